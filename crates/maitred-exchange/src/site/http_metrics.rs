//! Requests by the attributes that the conventions of OpenTelemetry have for its metrics.
//!
//! Counted as the times that applications state are (`figures.rs`), with [a number](pack) for the attributes in the place of a pool, and
//! under names that no entry of `Server-Timing` can have.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use maitred_http::{BodyLength, Method, Version};
use maitred_log::Outcome;
use maitred_stats::{Distribution, OTHER, Recorder, TimingKey};

const DURATION: &str = "http;duration";
const SENT: &str = "http;sent";
const RECEIVED: &str = "http;received";

/// The numbers of attributes; pools have lower ones, calls and the engine higher ones.
const NUMBERS: std::ops::Range<u16> = 0x8000..0xffc0;

/// The methods with a number; all others have the last one.
const METHODS: [Method; 7] =
    [Method::Get, Method::Head, Method::Post, Method::Put, Method::Delete, Method::Options, Method::Patch];

/// The requests with the same attributes.
#[derive(Clone, Debug, Default)]
pub struct HttpRequests {
    /// The method; `_OTHER` for rare ones.
    pub method: &'static str,
    /// Of the response.
    pub status: u16,
    /// `1.1`.
    pub version: &'static str,
    /// The client has used TLS.
    pub secure: bool,
    /// The pattern of the route, without the method; empty for an application that has told none.
    pub route: String,
    /// The whole time, in nanoseconds.
    pub duration: Distribution,
    /// Bytes of the bodies of responses.
    pub sent: Distribution,
    /// Bytes of the bodies of requests that have told their length.
    pub received: Distribution,
}

/// Status in 9 bits, method in 3, version in 2, scheme in 1.
fn pack(status: u16, method: &Method, version: Version, secure: bool) -> u16 {
    let method = METHODS.iter().position(|one| one == method).unwrap_or(METHODS.len()) as u16;
    let version = version as u16 & 3;
    NUMBERS.start | status.clamp(100, 599).abs_diff(100) << 6 | method << 3 | version << 1 | u16::from(secure)
}

fn unpack(number: u16, route: String) -> HttpRequests {
    let method = METHODS.get(usize::from(number >> 3 & 7)).map_or("_OTHER", |method| match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Options => "OPTIONS",
        _ => "PATCH",
    });
    let version = ["1.0", "1.1", "2", "3"][usize::from(number >> 1 & 3)];
    let status = 100 + (number >> 6 & 0x1ff);
    HttpRequests { method, status, version, secure: number & 1 == 1, route, ..HttpRequests::default() }
}

/// The numbers of the names in a recorder: a request takes no lock for them.
#[derive(Default)]
pub(crate) struct Names(OnceLock<[u8; 3]>);

impl Names {
    /// Counts an exchange for these metrics. `route` is the number of the route that the application has told, or of a pattern of ours.
    pub(crate) fn record(&self, recorder: &Arc<Recorder>, outcome: &Outcome<'_>, route: Option<u32>) {
        if !recorder.is_on() {
            return;
        }
        let [duration, sent, received] =
            *self.0.get_or_init(|| [DURATION, SENT, RECEIVED].map(|name| recorder.number_of(name)));
        let head = outcome.head;
        let pool = pack(outcome.status.code(), &head.method, head.version, head.arrival.secure);
        let route = route.unwrap_or(OTHER);
        let count = |name, value| recorder.record_numbered(TimingKey { pool, route, name }, value);
        count(duration, outcome.times.total());
        count(sent, outcome.body_bytes);
        if let BodyLength::Fixed(length) = head.body {
            count(received, length);
        }
    }
}

/// Takes these requests out of all timings.
pub(super) fn take(
    timings: &mut BTreeMap<TimingKey, Distribution>,
    routes: &[String],
    names: &[String],
) -> Vec<HttpRequests> {
    let of_requests: Vec<TimingKey> =
        timings.keys().filter(|key| NUMBERS.contains(&key.pool)).copied().collect();
    let mut found = BTreeMap::<(u16, String), HttpRequests>::new();
    for key in of_requests {
        let Some(values) = timings.remove(&key) else { continue };
        let name =
            if key.route == OTHER { "" } else { routes.get(key.route as usize).map_or("", |name| name) };
        let route = name.split_once(' ').map_or(name, |(_, path)| path);
        let requests =
            found.entry((key.pool, route.to_owned())).or_insert_with(|| unpack(key.pool, route.to_owned()));
        match names.get(usize::from(key.name)).map(String::as_str) {
            Some(DURATION) => requests.duration.merge(&values),
            Some(SENT) => requests.sent.merge(&values),
            Some(RECEIVED) => requests.received.merge(&values),
            _ => {}
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_again_in_their_number() {
        let shown = |status, method: &str, version, secure| {
            let number = pack(status, &Method::from_token(method), version, secure);
            assert!(NUMBERS.contains(&number), "{number:x}");
            let HttpRequests { method, status, version, secure, .. } = unpack(number, String::new());
            (method, status, version, secure)
        };
        assert_eq!(shown(200, "GET", Version::Http11, false), ("GET", 200, "1.1", false));
        assert_eq!(shown(599, "PATCH", Version::Http3, true), ("PATCH", 599, "3", true));
        assert_eq!(shown(100, "BREW", Version::Http10, true), ("_OTHER", 100, "1.0", true));
        assert_eq!(shown(504, "HEAD", Version::Http2, false), ("HEAD", 504, "2", false));
    }
}
