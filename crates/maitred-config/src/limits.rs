//! Limits on peers: from the texts of options to the server's settings.

use std::time::Duration;

use maitred_io::machine;
use maitred_match::Network;
use maitred_server::Limits;
use maitred_server::limits::{BandwidthLimits, ClientLimits, MinimumRates, RouteBandwidth};

use crate::value::{self, BadValue};

/// The limits on peers. The meaning of the fields is that of the options with the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitConfig {
    /// Least bytes per second of a request; zero for any rate.
    pub min_rate_in: u64,
    /// Least bytes per second of a response; zero for any rate.
    pub min_rate_out: u64,
    /// Time over which the least rates are averages; more than zero.
    pub min_rate_grace: Duration,
    /// Most connections of a client; zero for any number.
    pub client_connections: usize,
    /// Most requests of a client in a thousand seconds; zero for any number.
    pub client_rate: u64,
    /// Most requests of a client at once, at least 1.
    pub client_burst: usize,
    /// Most TLS handshakes of a client in a thousand seconds; zero for any number.
    pub handshake_rate: u64,
    /// Bits of an IPv6 address that are one client, from 1 to 128.
    pub client_ipv6_prefix: usize,
    /// Clients without limits.
    pub client_exempt: Vec<Network>,
    /// Most bytes per second of a connection; zero for any number.
    pub connection_bandwidth: u64,
    /// Most bytes per second for each pattern of paths.
    pub route_bandwidth: Vec<RouteBandwidth>,
    /// Bytes of all buffers; zero for any number; none for a quarter of the memory that the process may use.
    pub buffer_budget: Option<u64>,
    /// Bytes of the heads of all incomplete requests; zero for any number.
    pub head_budget: u64,
    /// Most connections; zero for as many as the limit of open files allows.
    pub max_connections: usize,
}

impl LimitConfig {
    /// Divides the limits of the whole server by the number of workers.
    pub(crate) fn share(&mut self, workers: u64) {
        let part = |whole: u64| if whole > 0 { (whole / workers).max(1) } else { 0 };
        let whole = self.buffer_budget.or_else(|| machine::memory_limit().map(|bytes| bytes / 4));
        self.buffer_budget = whole.map(part);
        self.head_budget = part(self.head_budget);
        self.max_connections = usize::try_from(part(self.max_connections as u64)).unwrap_or(usize::MAX);
        self.route_bandwidth.iter_mut().for_each(|route| route.bytes = part(route.bytes));
    }

    /// The server's settings.
    pub fn settings(&self) -> Limits {
        Limits {
            rates: MinimumRates {
                inward: self.min_rate_in,
                outward: self.min_rate_out,
                grace: self.min_rate_grace,
            },
            clients: ClientLimits {
                // A greater number is as good as no limit.
                connections: u32::try_from(self.client_connections).unwrap_or(u32::MAX),
                rate: self.client_rate,
                burst: u32::try_from(self.client_burst).unwrap_or(u32::MAX),
                handshakes: self.handshake_rate,
                ipv6_prefix: u8::try_from(self.client_ipv6_prefix).unwrap_or(128),
                exempt: self.client_exempt.clone(),
            },
            bandwidth: BandwidthLimits {
                connection: self.connection_bandwidth,
                routes: self.route_bandwidth.clone(),
            },
            buffers: self.buffer_budget,
            heads: self.head_budget,
            connections: self.max_connections,
        }
    }
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
        let mut limits = LimitConfig {
            buffer_budget: Some(90),
            max_connections: 10,
            client_rate: 7,
            route_bandwidth: vec![route],
            ..LimitConfig::default()
        };
        limits.share(3);
        assert_eq!((limits.buffer_budget, limits.max_connections, limits.client_rate), (Some(30), 3, 7));
        assert_eq!(limits.route_bandwidth[0].bytes, 33);
        let mut unlimited = LimitConfig { buffer_budget: Some(0), ..LimitConfig::default() };
        unlimited.share(3);
        assert_eq!((unlimited.buffer_budget, unlimited.max_connections), (Some(0), 0));
        let mut automatic = LimitConfig::default();
        automatic.share(2);
        assert_eq!(automatic.buffer_budget, machine::memory_limit().map(|bytes| bytes / 8));
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
