//! The variables of OpenTelemetry (`OTEL_...`), read where the option is on.

use maitred_trace::Environment;

use crate::otlp::OtlpTo;
use crate::{BadValue, Config, Origins, Problem};

/// The variables of OpenTelemetry, of the process or of the `env-file`; none where the option is off.
///
/// # Errors
/// A variable is wrong.
pub fn read(
    config: &Config,
    origins: &Origins,
    of_file: &[(String, String)],
) -> Result<Option<Environment>, Problem> {
    let base = match &config.otlp.to {
        OtlpTo::Off => return Ok(None),
        OtlpTo::On => None,
        OtlpTo::Url(url) => Some(url.as_str()),
    };
    let of_file =
        |name: &str| of_file.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let variable = |name: &str| std::env::var(name).ok().or_else(|| of_file(name));
    let found = Environment::read(variable, base, &config.otlp.signals).map_err(|what| {
        let remedy = "correct the variable, or leave it out; --otlp=off needs none";
        BadValue::new(what, remedy).at(origins.describe("otlp"))
    })?;
    let Some(found) = found else { return Ok(None) };
    for endpoint in [&found.traces, &found.metrics, &found.logs].into_iter().flatten() {
        let client = endpoint.client.iter().flat_map(|(certificate, key)| {
            [("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate), ("OTEL_EXPORTER_OTLP_CLIENT_KEY", key)]
        });
        let authorities = endpoint.certificate.iter().map(|file| ("OTEL_EXPORTER_OTLP_CERTIFICATE", file));
        for (name, file) in authorities.chain(client) {
            std::fs::File::open(file).map_err(|error| {
                let what = format!("{name}: the file {file} cannot be read: {error}");
                BadValue::new(what, "correct the variable, or allow it").at(origins.describe("otlp"))
            })?;
        }
    }
    Ok(Some(found))
}
