//! TLS: the certificates of the server, the certificates that it asks of clients, and the counts of handshakes.

use maitred_certificates::Status;
use maitred_io::clock;
use serde_json::{Map, Value, json};

use super::status::shown_host;
use super::{Given, QueryContext, Refusal};
use maitred_server::tls::{ClientPolicy, Clients, IdentityInfo, Terms};

const SHOWN_HOSTS: usize = 20;

const DAY: u64 = 24 * 60 * 60;

pub(super) fn tls(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    let Some(terms) = asking.server.settings().tls() else {
        return Err(Refusal::conflict("no listener speaks TLS: there is no certificate (tls-cert)"));
    };
    let (files, orders) = (asking.owner.certificate_files(), asking.owner.orders());
    let now = clock::unix_seconds();
    let certificates = terms.identities().iter().enumerate().map(|(at, info)| {
        let order = orders.iter().find(|order| is_for(info, order));
        shown(info, files.get(at), order, now)
    });
    let certificates = certificates.collect::<Vec<_>>();
    let mut answer = Map::new();
    answer.insert("certificates".to_owned(), certificates.into());
    let rules = (0..).zip(terms.rules()).filter_map(|(number, policy)| rules(asking, &terms, number, policy));
    answer.insert("clients".to_owned(), rules.collect());
    let plain = |series: &str| series.replacen("maitred_tls_", "", 1).replacen("_total", "", 1);
    // Those of several workers are added up by these names.
    answer.extend(
        asking
            .server
            .figures()
            .tls_handshakes()
            .iter()
            .map(|(series, count)| (plain(series), (*count).into())),
    );
    Ok(answer.into())
}

/// Whether the order is that of this certificate, or of the one that takes its place.
pub(super) fn is_for(info: &IdentityInfo, order: &Status) -> bool {
    *info.names == [order.name.as_str()]
}

fn shown(info: &IdentityInfo, file: Option<&String>, order: Option<&Status>, now: u64) -> Value {
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
        "order": order.map(|order| &order.state),
        "order_next": order.and_then(|order| order.next).map(date),
        "order_fault": order.and_then(|order| order.fault.as_ref()).map(|fault| &fault.text),
        "order_failed": order.and_then(|order| order.fault.as_ref()).map(|fault| date(fault.at)),
    })
}

fn rules(asking: &QueryContext<'_>, terms: &Terms, number: u16, policy: &ClientPolicy) -> Option<Value> {
    let hosts = hosts_with(asking, terms, number);
    let trust = policy.trust();
    let authorities = trust.map(|trust| {
        trust.authorities().iter().map(|one| one.subject.as_str()).collect::<Vec<_>>().join("; ")
    });
    (!hosts.is_empty()).then(|| {
        json!({
            "hosts": hosts,
            "certificate": asked(Clients::of(policy)),
            "authorities": authorities,
            "lists": trust.map(|trust| trust.crls().len()),
            "lists_until": trust.and_then(|trust| trust.until()).map(date),
        })
    })
}

pub(super) fn asked(clients: Clients) -> &'static str {
    match clients {
        Clients::NotAsked => "none",
        Clients::Asked => "optional",
        Clients::Required => "required",
    }
}

pub(super) fn hosts_with(asking: &QueryContext<'_>, terms: &Terms, number: u16) -> String {
    let hosts =
        (0..).zip(asking.server.routing().hosts().all()).filter(|(host, _)| terms.rules_of(*host) == number);
    let names: Vec<&str> = hosts.map(|(_, host)| shown_host(host).unwrap_or("the default host")).collect();
    let more = names.len().saturating_sub(SHOWN_HOSTS);
    let shown = names.iter().take(SHOWN_HOSTS).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// UTC, as of RFC 3339.
fn date(seconds: u64) -> Option<String> {
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.to_string())
}
