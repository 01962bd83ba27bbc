//! Lines about certificates: in `maitred check`, and in the error log before certificates expire.

use maitred_server::tls::{IdentityInfo, system_clock};

use super::Material;
use super::material::ListEnd;

/// Days before the end of a certificate at which warnings begin. Certificates of 90 days are renewed 30 days before their end, shorter ones by
/// ACME at two thirds or half of their time: a quarter is late for them.
const DAYS_TOLD: u64 = 21;

/// A day in seconds.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The lines of `maitred check` about the certificates: one for each, with its warnings.
pub fn report(material: &Material) -> Vec<String> {
    let now = system_clock();
    let mut lines = Vec::new();
    for (info, file) in material.certificates() {
        let certificate = &info.certificate;
        let days = certificate.not_after.saturating_sub(now) / DAY_SECONDS;
        let names = info.names.join(", ");
        lines.push(format!(
            "{file}: {names}; {}, issued by {}; until {}, {days} days left",
            certificate.key,
            certificate.issuer,
            date(certificate.not_after)
        ));
        lines.extend(of_certificate(info, file, now).into_iter().map(|line| format!("warning: {line}")));
    }
    lines.extend(of_lists(&material.lists, now).map(|line| format!("warning: {line}")));
    lines
}

/// The current warnings; `again`: without those that have been the same since the start.
pub fn warnings(material: &Material, again: bool) -> Vec<String> {
    let now = system_clock();
    let told = material.certificates().filter(|(info, _)| !again || is_pressing(info, now));
    let of_certificates = told.flat_map(|(info, file)| of_certificate(info, file, now));
    of_certificates.chain(of_lists(&material.lists, now)).collect()
}

/// Whether the operator must act now.
fn is_pressing(info: &IdentityInfo, now: u64) -> bool {
    let certificate = &info.certificate;
    let ends = certificate.not_after.saturating_sub(now) < days_told(info) * DAY_SECONDS;
    ends || now < certificate.not_before || info.ocsp.is_some_and(|times| !times.is_current(now))
}

fn days_told(info: &IdentityInfo) -> u64 {
    let certificate = &info.certificate;
    let quarter = certificate.not_after.saturating_sub(certificate.not_before) / DAY_SECONDS / 4;
    if info.is_ordered { DAYS_TOLD.min(quarter) } else { DAYS_TOLD }
}

/// The warnings about a certificate at the time `now`, in seconds since 1970.
fn of_certificate(info: &IdentityInfo, file: &str, now: u64) -> Vec<String> {
    let what = format!("{file} ({})", named(info));
    let mut lines: Vec<String> = info.warnings(now).iter().map(|line| format!("{what}: {line}")).collect();
    let until = info.certificate.not_after;
    let days = until.saturating_sub(now) / DAY_SECONDS;
    if now < until && days < days_told(info) {
        let days = match days {
            0 => "within a day".to_owned(),
            1 => "in 1 day".to_owned(),
            days => format!("in {days} days"),
        };
        lines.push(format!("{what}: the certificate expires {days}, {}; renew it", date(until)));
    }
    lines
}

/// The warnings about lists of revoked certificates.
fn of_lists(lists: &[ListEnd], now: u64) -> impl Iterator<Item = String> {
    let ending = lists.iter().filter(move |(_, until)| *until < now.saturating_add(DAY_SECONDS));
    ending.map(move |(file, until)| {
        let ends = if *until <= now { "has expired" } else { "expires within a day" };
        let until = date(*until);
        format!("{file}: the list of revoked certificates {ends}, {until}: no client is let in then; put a new one there")
    })
}

/// The changes in lines for the log.
pub fn changes(before: &Material, after: &Material) -> Vec<String> {
    if before.files == after.files {
        return Vec::new();
    }
    let prints = |material: &Material| -> Vec<String> {
        material.certificates().map(|(info, _)| info.certificate.fingerprint.clone()).collect()
    };
    let known = prints(before);
    let new = after.certificates().filter(|(info, _)| !known.contains(&info.certificate.fingerprint));
    let used = |(info, file): (&IdentityInfo, &str)| {
        let until = date(info.certificate.not_after);
        format!("TLS: the certificate {file} ({}) is used now, valid until {until}", named(info))
    };
    let mut lines: Vec<String> = new.map(used).collect();
    if lines.is_empty() {
        lines.push("TLS: the files have been loaded".to_owned());
    }
    lines
}

/// The first name, and the number of further names.
fn named(info: &IdentityInfo) -> String {
    match info.names.as_slice() {
        [] => "no name".to_owned(),
        [name] => name.clone(),
        [name, others @ ..] => format!("{name} and {} more", others.len()),
    }
}

/// The time in UTC.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "a time far away".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use maitred_server::tls::Identity;

    use super::*;

    #[test]
    fn a_list_that_ends_is_told() {
        let lists = [("a.crl".to_owned(), 1_800_000_000), ("b.crl".to_owned(), 1_800_200_000)];
        let told = |now: u64| of_lists(&lists, now).collect::<Vec<_>>();
        assert_eq!(told(1_799_900_000), [""; 0]);
        assert!(
            told(1_799_990_000)[0]
                .starts_with("a.crl: the list of revoked certificates expires within a day, 2027-")
        );
        assert_eq!(told(1_800_200_000).len(), 2);
    }

    #[test]
    fn the_end_of_a_certificate_is_told_three_weeks_before() {
        /// 2027-01-15T08:00:00Z.
        fn clock() -> u64 {
            1_800_000_000
        }
        let names = ["shop.example".to_owned(), "www.shop.example".to_owned()];
        let (identity, _) = Identity::development(&names, clock).expect("made");
        let lines = |days_left: u64, more: u64| {
            let until = identity.info().certificate.not_after;
            of_certificate(identity.info(), "a.pem", until - days_left * DAY_SECONDS - more).join("\n")
        };
        assert_eq!(lines(21, 0), "");
        let pressing = |days_left: u64| {
            is_pressing(identity.info(), identity.info().certificate.not_after - days_left * DAY_SECONDS)
        };
        assert_eq!((pressing(21), pressing(20), pressing(0)), (false, true, true));
        assert!(is_pressing(identity.info(), clock() - 2 * DAY_SECONDS), "it is not valid yet");
        assert_eq!(
            lines(20, 5),
            "a.pem (shop.example and 1 more): the certificate expires in 20 days, 2027-04-15T08:00:00Z; renew it"
        );
        assert!(lines(1, 0).contains("expires in 1 day, "));
        assert!(lines(0, 1).contains("expires within a day, "));
        assert_eq!(lines(0, 0), "a.pem (shop.example and 1 more): the certificate has expired");
        let mut short = identity.info().clone();
        short.certificate.not_before = short.certificate.not_after - 10 * DAY_SECONDS;
        assert_eq!((days_told(&short), days_told(&IdentityInfo { is_ordered: true, ..short })), (21, 2));
    }
}
