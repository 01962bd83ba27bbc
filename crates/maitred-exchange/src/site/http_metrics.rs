//! Requests by the attributes that the conventions of OpenTelemetry have for its metrics.
//!
//! Counted as the times that applications state are (`figures.rs`), with [a number](pack) for the attributes in the place of a pool, and
//! under names that no entry of `Server-Timing` can have.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use maitred_http::{BodyLength, Method, Version};
use maitred_log::{End, Outcome};
use maitred_stats::{CHOSEN, CHOSEN_OTHER, Distribution, OTHER, Recorder, TimingKey};

const DURATION: &str = "http;duration";
const SENT: &str = "http;sent";
const RECEIVED: &str = "http;received";

/// Ends before a response was complete: each has durations of its own.
const ABORTED: [End; 5] = [End::PeerGone, End::Cut, End::TooSlow, End::Operator, End::Drain];

/// The methods of the conventions; all others have one number behind them.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];
const METHOD: u16 = METHODS.len() as u16 + 1;

/// Versions below HTTP/3, each without TLS and with it, and HTTP/3.
const WAYS: u16 = 7;

/// The requests with the same attributes.
#[derive(Clone, Debug, Default)]
pub struct HttpRequests {
    /// The method; `_OTHER` for rare ones.
    pub method: &'static str,
    /// Of the response; 0 of all requests with attributes for which there was no room.
    pub status: u16,
    /// `1.1`.
    pub version: &'static str,
    /// The client has used TLS.
    pub secure: bool,
    /// The cause of an end before the response was complete: `peer-gone`.
    pub aborted: Option<&'static str>,
    /// The pattern of the route, without method and host; empty for an application that has told none.
    pub route: String,
    /// The whole time, in nanoseconds.
    pub duration: Distribution,
    /// Bytes of the bodies of responses that were complete.
    pub sent: Distribution,
    /// Bytes of the bodies of requests that have told their length, with a complete response.
    pub received: Distribution,
}

/// A number below [`CHOSEN_OTHER`].
fn pack(status: u16, method: &Method, version: Version, secure: bool) -> u16 {
    let method = METHODS.iter().position(|one| *one == method.as_str()).unwrap_or(METHODS.len()) as u16;
    let way = (version as u16 * 2 + u16::from(secure)).min(WAYS - 1);
    CHOSEN.start + ((status.clamp(200, 599) - 200) * METHOD + method) * WAYS + way
}

fn unpack(number: u16, aborted: Option<&'static str>, route: &str) -> HttpRequests {
    if number == CHOSEN_OTHER {
        return HttpRequests::default();
    }
    let number = number - CHOSEN.start;
    let (status, method, way) = (200 + number / WAYS / METHOD, number / WAYS % METHOD, number % WAYS);
    HttpRequests {
        method: METHODS.get(usize::from(method)).unwrap_or(&"_OTHER"),
        status,
        version: ["1.0", "1.1", "2", "3"][usize::from(way / 2)],
        secure: way % 2 == 1 || way == WAYS - 1,
        aborted,
        route: route.to_owned(),
        ..HttpRequests::default()
    }
}

/// The numbers of the names in a recorder: a request takes no lock for them.
#[derive(Default)]
pub(crate) struct Names(OnceLock<([u8; 3], [u8; ABORTED.len()])>);

impl Names {
    /// Counts an exchange for these metrics, also while statistics are off, but for a WebSocket, which lasts as long as both sides want. `route` is the number of the
    /// route that the application has told, or of a pattern of ours.
    pub(crate) fn record(&self, recorder: &Arc<Recorder>, outcome: &Outcome<'_>, route: Option<u32>) {
        if outcome.status.code() == 101 {
            return;
        }
        let ([duration, sent, received], aborted) = *self.0.get_or_init(|| {
            let of_end = |end: End| recorder.number_of(&format!("{DURATION};{}", end.name()));
            ([DURATION, SENT, RECEIVED].map(|name| recorder.number_of(name)), ABORTED.map(of_end))
        });
        let head = outcome.head;
        let pool = pack(outcome.status.code(), &head.method, head.version, head.arrival.secure);
        let route = route.unwrap_or(OTHER);
        let count = |name, value| recorder.record_numbered(TimingKey { pool, route, name }, value);
        if let Some(end) = ABORTED.iter().position(|end| *end == outcome.end) {
            return count(aborted[end], outcome.times.total());
        }
        count(duration, outcome.times.total());
        count(sent, outcome.body_bytes);
        if let BodyLength::Fixed(length) = head.body {
            count(received, length);
        }
    }
}

/// Takes these requests out of all timings. `hosts` are the names of the hosts, which stand before the patterns of their routes.
pub(super) fn take(
    timings: &mut BTreeMap<TimingKey, Distribution>,
    routes: &[String],
    names: &[String],
    hosts: &[Arc<str>],
) -> Vec<HttpRequests> {
    let of_requests: Vec<TimingKey> =
        timings.keys().filter(|key| CHOSEN.contains(&key.pool)).copied().collect();
    let mut found = BTreeMap::<(u16, Option<&str>, &str), HttpRequests>::new();
    for key in of_requests {
        let Some(values) = timings.remove(&key) else { continue };
        let name = names.get(usize::from(key.name)).map_or("", |name| name);
        let end = name.strip_prefix(DURATION).and_then(|end| end.strip_prefix(';'));
        let aborted = ABORTED.map(End::name).into_iter().find(|name| Some(*name) == end);
        let route = routes.get(key.route as usize).filter(|_| key.route != OTHER).map_or("", |name| name);
        let route = route.split_once(' ').map_or(route, |(_, path)| path);
        let paths = hosts.iter().filter_map(|host| route.strip_prefix(&**host));
        let route = paths.min_by_key(|path| path.len()).unwrap_or(route);
        let requests =
            found.entry((key.pool, aborted, route)).or_insert_with(|| unpack(key.pool, aborted, route));
        match name {
            SENT => requests.sent.merge(&values),
            RECEIVED => requests.received.merge(&values),
            _ => requests.duration.merge(&values),
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_no_part_of_routes_and_aborted_requests_are_told_apart() {
        let number = pack(200, &Method::Get, Version::Http11, false);
        let names = [DURATION, SENT, "db", "http;duration;cut"].map(str::to_owned);
        let routes = ["other", "GET shop.example/a", "shop.example/b/*"].map(str::to_owned);
        let mut one = Distribution::default();
        one.record(7);
        let key = |(pool, route, name)| (TimingKey { pool, route, name }, one.clone());
        let keys = [
            (number, 1, 0),
            (number, 1, 1),
            (number, 1, 3),
            (number, 2, 0),
            (CHOSEN_OTHER, OTHER, 0),
            (3, 0, 2),
        ];
        let mut timings: BTreeMap<_, _> = keys.map(key).into();
        let found = take(&mut timings, &routes, &names, &["".into(), "shop.example".into()]);
        let shown = |one: &HttpRequests| {
            (one.status, one.route.clone(), one.aborted, one.duration.count(), one.sent.count())
        };
        let text = str::to_owned;
        let expected = [
            (200, text("/a"), None, 1, 1),
            (200, text("/b/*"), None, 1, 0),
            (200, text("/a"), Some("cut"), 1, 0),
            (0, text(""), None, 1, 0),
        ];
        assert_eq!((found.iter().map(shown).collect::<Vec<_>>(), timings.len()), (expected.to_vec(), 1));
    }

    #[test]
    fn attributes_are_found_again_in_their_number() {
        let shown = |status, method: &str, version, secure| {
            let number = pack(status, &Method::from_token(method), version, secure);
            assert!(CHOSEN.contains(&number) && number != CHOSEN_OTHER, "{number:x}");
            let HttpRequests { method, status, version, secure, .. } = unpack(number, None, "");
            (method, status, version, secure)
        };
        assert_eq!(shown(200, "GET", Version::Http11, false), ("GET", 200, "1.1", false));
        assert_eq!(shown(599, "BREW", Version::Http3, true), ("_OTHER", 599, "3", true));
        assert_eq!(shown(599, "QUERY", Version::Http2, true), ("QUERY", 599, "2", true));
        assert_eq!(shown(204, "CONNECT", Version::Http10, true), ("CONNECT", 204, "1.0", true));
        assert_eq!(shown(504, "HEAD", Version::Http2, false), ("HEAD", 504, "2", false));
    }
}
