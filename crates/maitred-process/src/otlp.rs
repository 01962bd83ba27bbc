//! From the options and variables of OpenTelemetry to the exporters of a process and their collector.

use std::path::PathBuf;
use std::sync::Arc;

use maitred_client::key::{Authorities, ClientCertificate, Key, TlsIdentity};
use maitred_config::{BadValue, Config, Origins, Problem, otlp_variables};
use maitred_http::FieldSet;
use maitred_server::{OtlpSettings, OtlpTarget, Settings, TraceRules, Tracing, trace_seed};
use maitred_trace::{Endpoint, Environment, Exporter, Signal, exporter};

/// Has the server send what the options say. Each process is an instance of the service.
///
/// # Errors
/// A variable of OpenTelemetry is wrong.
pub(crate) fn apply(
    config: &Config,
    origins: &Origins,
    environment: &[(String, String)],
    settings: &mut Settings,
) -> Result<(), Problem> {
    let Some(found) = otlp_variables::read(config, origins, environment)? else { return Ok(()) };
    let wrong = |bad: BadValue| bad.at(origins.describe("otlp"));
    let resource = resource(&found);
    let (mut exporters, mut targets) = (Vec::new(), Vec::new());
    for (signal, endpoint) in
        [(Signal::Traces, &found.traces), (Signal::Metrics, &found.metrics), (Signal::Logs, &found.logs)]
    {
        let Some(endpoint) = endpoint else { continue };
        let settings = exporter::Settings {
            format: endpoint.format,
            gzip: endpoint.gzip,
            resource: resource.clone(),
            pid: resource.iter().all(|(key, _)| key != "process.pid").then(std::process::id),
            delay: u64::try_from(endpoint.delay.as_nanos()).unwrap_or(u64::MAX / 2),
            batch: endpoint.batch,
            queue: endpoint.queue,
            ..exporter::Settings::default()
        };
        // The next reading has newer values.
        let interval = u64::try_from(found.metric_interval.as_nanos()).unwrap_or(u64::MAX / 2);
        let settings = match signal {
            Signal::Metrics => exporter::Settings { give_up: interval, ..settings },
            _ => settings,
        };
        exporters.push((signal, endpoint.format, Exporter::new(signal, settings, trace_seed())));
        targets.push(target(signal, endpoint).map_err(wrong)?);
    }
    let rules = TraceRules {
        trust: config.otlp.trust,
        sampler: found.sampler,
        slow: config.otlp.slow,
        phases: config.otlp.phases,
        query: config.otlp.query,
        mask: config.access_log_mask,
        except: config.access_log_except.clone(),
        limits: found.limits,
    };
    settings.tracing = Some(Tracing::new(rules, exporters));
    settings.otlp = OtlpSettings { targets, interval: found.metric_interval, exponential: found.exponential };
    Ok(())
}

/// The attributes of this process.
fn resource(found: &Environment) -> Vec<(String, String)> {
    let mut resource = found.resource.clone();
    let [high, low] = trace_seed();
    let number = u128::from(high) << 64 | u128::from(low);
    // A random UUID (RFC 9562 §5.4).
    let hex = format!("{:032x}", number & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    let mut add = |key: &str, value: String| {
        if resource.iter().all(|(known, _)| known != key) {
            resource.push((key.to_owned(), value));
        }
    };
    add("service.instance.id", parts.join("-"));
    resource
}

fn target(signal: Signal, endpoint: &Endpoint) -> Result<OtlpTarget, BadValue> {
    let bad = |what: &str| BadValue {
        what: format!("'{}' {what}", endpoint.url),
        remedy: "write the URL of a collector, for example http://localhost:4318".to_owned(),
    };
    let (scheme, rest) = endpoint.url.split_once("://").ok_or_else(|| bad("is no URL"))?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    if authority.contains('@') {
        return Err(BadValue {
            what: "the URL of the collector has a name or a password".to_owned(),
            remedy: "give credentials by OTEL_EXPORTER_OTLP_HEADERS".to_owned(),
        });
    }
    let is_secure = scheme == "https";
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let full = match has_port {
        true => authority.to_owned(),
        false => format!("{authority}:{}", if is_secure { 443 } else { 80 }),
    };
    let mut key = Key::of_authority(&full).map_err(|_| bad("has no host, or no port"))?;
    if is_secure {
        key.tls = Some(TlsIdentity {
            authorities: endpoint
                .certificate
                .as_ref()
                .map_or(Authorities::System, |file| Authorities::At(PathBuf::from(file))),
            certificate: endpoint.client.as_ref().map(|(certificate, key)| ClientCertificate {
                certificate: certificate.into(),
                key: Some(key.into()),
                password: None,
            }),
            ..TlsIdentity::default()
        });
    }
    let mut fields = FieldSet::new();
    for (name, value) in &endpoint.headers {
        fields.push(name, value);
    }
    Ok(OtlpTarget {
        signal,
        shown: endpoint.url.clone(),
        key: Arc::new(key),
        authority: authority.to_owned(),
        target: path.to_owned(),
        fields,
        timeout: endpoint.timeout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(base: Option<&str>) -> Environment {
        let found = Environment::read(|_| None, base, &[Signal::Traces]).expect("no variable is wrong");
        found.expect("not disabled")
    }

    #[test]
    fn the_collector_is_the_host_of_the_url() {
        let of = |url: &str| {
            let found = found(Some(url));
            target(Signal::Traces, &found.traces.expect("an endpoint"))
        };
        let shown = |url: &str| {
            let target = of(url).expect("a target");
            (target.key.to_string(), target.authority, target.target)
        };
        let expected = |key: &str, authority: &str, path: &str| (key.into(), authority.into(), path.into());
        assert_eq!(
            shown("http://collector:4318"),
            expected("http://collector:4318", "collector:4318", "/v1/traces")
        );
        assert_eq!(shown("https://[::1]/otlp/"), expected("https://::1:443", "[::1]", "/otlp/v1/traces"));
        assert!(of("http://me:secret@collector").is_err_and(|bad| !bad.what.contains("secret")));
        assert!(of("http://collector:x").is_err());
    }

    #[test]
    fn each_process_is_an_instance_of_its_own() {
        let found = found(None);
        let [one, other] = [(); 2].map(|()| resource(&found));
        let id = |resource: &[(String, String)]| {
            resource.iter().find(|(key, _)| key == "service.instance.id").map(|(_, id)| id.clone())
        };
        assert_ne!(id(&one), id(&other));
        let id = id(&one).expect("an id");
        assert!(id.len() == 36 && id.as_bytes()[14] == b'4', "{id}");
    }
}
