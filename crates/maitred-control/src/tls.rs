//! TLS: the certificates that are used, and what has become of handshakes.

use maitred_io::clock;
use serde_json::{Map, Value, json};

use super::QueryContext;
use super::owner::Refusal;
use super::table::Given;
use maitred_server::tls::IdentityInfo;

/// In seconds.
const DAY: u64 = 24 * 60 * 60;

pub(super) fn tls(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    let Some(terms) = asking.server.tls() else {
        return Err(Refusal::conflict("no listener speaks TLS: there is no certificate (tls-cert)"));
    };
    let files = asking.owner.certificate_files();
    let now = clock::unix_seconds();
    let certificates = terms.identities().iter().enumerate();
    let certificates = certificates.map(|(at, info)| shown(info, files.get(at), now)).collect::<Vec<_>>();
    let mut answer = Map::new();
    answer.insert("certificates".to_owned(), certificates.into());
    let plain = |series: &str| series.replacen("maitred_tls_", "", 1).replacen("_total", "", 1);
    // Those of several workers are added up by these names.
    answer.extend(
        asking.server.tls_handshakes().iter().map(|(series, count)| (plain(series), (*count).into())),
    );
    Ok(answer.into())
}

fn shown(info: &IdentityInfo, file: Option<&String>, now: u64) -> Value {
    let certificate = &info.certificate;
    let warnings = info.warnings(now).join("; ");
    json!({
        "names": info.names.join(", "),
        "file": file,
        "key": certificate.key,
        "issuer": certificate.issuer,
        "serial": certificate.serial,
        "fingerprint": certificate.fingerprint,
        "until": date(certificate.not_after),
        "days_left": certificate.not_after.saturating_sub(now) / DAY,
        "ocsp_until": info.ocsp.and_then(|times| times.until).map(date),
        "warnings": Some(warnings).filter(|text| !text.is_empty()),
    })
}

/// UTC, as of RFC 3339.
fn date(seconds: u64) -> Option<String> {
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.to_string())
}
