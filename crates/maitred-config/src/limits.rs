//! Limits on peers: from the texts of options to the server's settings.

use maitred_io::machine;
use maitred_match::Network;
use maitred_server::Limits;
use maitred_server::limits::RouteBandwidth;

use crate::{BadValue, value};

/// Divides the limits of the whole server by the number of workers.
pub(crate) fn share(limits: &mut Limits, workers: u64) {
    let part = |whole: u64| if whole > 0 { (whole / workers).max(1) } else { 0 };
    let whole = limits.buffers.or_else(|| machine::memory_limit().map(|bytes| bytes / 4));
    limits.buffers = whole.map(part);
    limits.heads = part(limits.heads);
    limits.connections = usize::try_from(part(limits.connections as u64)).unwrap_or(usize::MAX);
    limits.bandwidth.routes.iter_mut().for_each(|route| route.bytes = part(route.bytes));
}

/// The word for an empty list.
const NONE: &str = "none";

/// The word for a number that depends on the machine.
pub(crate) const AUTO: &str = "auto";

/// Greatest rate, in requests a second.
const MAX_RATE: f64 = 1_000_000.0;

/// The values of a request rate, in words.
pub(crate) const RATES: &str = "requests a second from 0 (off) to 1000000, fractions to a thousandth allowed";

/// Requests a second, as requests in a thousand seconds.
pub(crate) fn rate(text: &str) -> Result<u64, BadValue> {
    let bad =
        || BadValue::new(format!("'{text}' is not a number of {RATES}"), "give one, for example 10 or 0.5");
    let number: f64 = text.parse().ok().filter(|number| (0.0..=MAX_RATE).contains(number)).ok_or_else(bad)?;
    let thousandths = (number * 1000.0).round();
    // A rate below a thousandth would become zero, which is no limit.
    if number > 0.0 && thousandths < 1.0 { Err(bad()) } else { Ok(thousandths as u64) }
}

pub(crate) fn show_rate(thousandths: u64) -> String {
    (thousandths as f64 / 1000.0).to_string()
}

/// Splits texts into items: one text may have a list.
pub(crate) fn items(texts: &[String]) -> impl Iterator<Item = &str> {
    let all = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    let none = texts.len() == 1 && texts[0] == NONE;
    all.filter(move |_| !none)
}

pub(crate) fn networks(texts: &[String]) -> Result<Vec<Network>, BadValue> {
    items(texts).map(value::pattern).collect()
}

pub(crate) fn routes(texts: &[String]) -> Result<Vec<RouteBandwidth>, BadValue> {
    items(texts).map(route).collect()
}

fn route(text: &str) -> Result<RouteBandwidth, BadValue> {
    let Some((path, bytes)) = text.rsplit_once('=') else {
        let remedy = "write PATH=BYTES, for example /video/*=10m";
        return Err(BadValue::new(format!("'{text}' has no '='"), remedy));
    };
    Ok(RouteBandwidth { path: value::pattern(path)?, bytes: value::bytes(bytes)? })
}

pub(crate) fn show_route(route: &RouteBandwidth) -> String {
    format!("{}={}", route.path, value::show_bytes(route.bytes).trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rates_have_fractions_and_hold_their_range() {
        for (text, thousandths) in
            [("0", 0), ("10", 10_000), ("0.5", 500), ("0.001", 1), ("1000000", 1_000_000_000)]
        {
            assert_eq!(rate(text), Ok(thousandths), "{text}");
            assert_eq!(rate(&show_rate(thousandths)), Ok(thousandths), "{text}");
        }
        for text in ["", "-1", "0.0001", "1000001", "nan", "inf", "10/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn workers_share_what_is_for_all_together() {
        let route = RouteBandwidth { path: "/a".parse().expect("a pattern"), bytes: 100 };
        let mut limits = Limits { buffers: Some(90), connections: 10, ..Limits::default() };
        limits.clients.rate = 7;
        limits.bandwidth.routes = vec![route];
        share(&mut limits, 3);
        assert_eq!((limits.buffers, limits.connections, limits.clients.rate), (Some(30), 3, 7));
        assert_eq!(limits.bandwidth.routes[0].bytes, 33);
        let mut unlimited = Limits { buffers: Some(0), ..Limits::default() };
        share(&mut unlimited, 3);
        assert_eq!((unlimited.buffers, unlimited.connections), (Some(0), 0));
        let mut automatic = Limits::default();
        share(&mut automatic, 2);
        assert_eq!(automatic.buffers, machine::memory_limit().map(|bytes| bytes / 8));
    }

    #[test]
    fn lists_are_one_text_or_several_and_may_be_empty() {
        let all = networks(&owned(&["10.0.0.0/8, ::1", "192.0.2.7"])).expect("three");
        assert_eq!(
            all.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "::1", "192.0.2.7"]
        );
        assert_eq!(networks(&owned(&["none"])), Ok(Vec::new()));
        assert!(networks(&owned(&["none", "::1"])).is_err());
        assert!(networks(&owned(&[""])).is_err());
    }

    #[test]
    fn routes_are_patterns_with_bytes() {
        let routes = routes(&owned(&["/video/*=10m,*.iso=1500"])).expect("two");
        assert_eq!(routes.iter().map(show_route).collect::<Vec<_>>(), ["/video/*=10m", "*.iso=1500"]);
        assert_eq!(
            route("/video").expect_err("no bytes").remedy,
            "write PATH=BYTES, for example /video/*=10m"
        );
        assert!(route("video=1m").expect_err("no path").remedy.contains("did you mean '/video'?"));
        assert!(route("/video=fast").is_err());
    }
}
