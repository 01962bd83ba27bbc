//! The slowest requests of this minute and the one before, and the last ones that failed.
//!
//! Promises: a request that is quicker than the kept ones costs two loads of words that hardly ever change. At most 3
//! x [`KEPT`] requests are kept, each with at most some hundred bytes of text. Leaves out: requests that have not
//! ended.

use std::collections::VecDeque;

use maitred_http::TracePlace;
use maitred_io::clock;
use maitred_io::sync::NamedLock;
use maitred_io::sync::atomic::{AtomicU64, Ordering};
use maitred_log::{Database, Outcome, Outgoing};
use maitred_stats::{LockSnapshot, Spans};

/// Requests of each kind: about 30 KiB in all.
pub(crate) const KEPT: usize = 32;

/// A minute, in nanoseconds.
const MINUTE: u64 = 60_000_000_000;

/// Bytes of a target that are kept.
const MAX_TARGET: usize = 512;

/// From this status on a request has failed.
const FAILED: u16 = 500;

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct RecentRequest {
    /// Its id in the logs.
    pub id: String,
    /// The place in a trace, where the server traces.
    pub trace: Option<TracePlace>,
    /// The method.
    pub method: String,
    /// The target as in the access log, printable and cut at a length.
    pub target: String,
    /// The route as in the statistics; none where the engine has refused the request.
    pub route: Option<String>,
    /// Status of the response; 0 without a response.
    pub status: u16,
    /// The client.
    pub peer: String,
    /// Number of the pool; none where the engine has answered.
    pub pool: Option<usize>,
    /// The thread that has written the record: as a rule the thread that has run the request.
    pub thread: Option<String>,
    /// The end of the exchange.
    pub end: &'static str,
    /// The time in each span.
    pub spans: Spans,
    /// Database use.
    pub database: Option<Database>,
    /// Calls to other servers.
    pub outgoing: Option<RecentCalls>,
    /// Time of the record, in monotonic nanoseconds.
    pub noted: u64,
}

/// The calls of a request that has ended.
#[derive(Clone, Debug)]
pub struct RecentCalls {
    /// Calls.
    pub calls: u64,
    /// Calls without a response.
    pub failed: u64,
    /// The time of all calls, in nanoseconds.
    pub nanos: u64,
    /// The server of the slowest call.
    pub slowest: String,
    /// The time of that call, in nanoseconds.
    pub slowest_nanos: u64,
    /// The part that took most of that call.
    pub slowest_part: &'static str,
}

impl From<Outgoing<'_>> for RecentCalls {
    fn from(calls: Outgoing<'_>) -> Self {
        let Outgoing { calls, failed, nanos, slowest, slowest_nanos, slowest_part } = calls;
        Self { calls, failed, nanos, slowest: slowest.to_owned(), slowest_nanos, slowest_part }
    }
}

/// The kept requests: the slowest first, and the last failed first.
#[derive(Clone, Debug, Default)]
pub struct RecentRequests {
    /// Of this minute and the one before.
    pub slow: Vec<RecentRequest>,
    /// With a status of 500 or above.
    pub failed: Vec<RecentRequest>,
}

#[derive(Default)]
struct State {
    present: Vec<RecentRequest>,
    previous: Vec<RecentRequest>,
    failed: VecDeque<RecentRequest>,
}

/// Kept requests; see the module text.
pub struct Recent {
    /// Least time of a request that is kept, in nanoseconds.
    threshold: AtomicU64,
    /// The end of this minute, in monotonic nanoseconds.
    until: AtomicU64,
    state: NamedLock<State>,
}

impl Default for Recent {
    fn default() -> Self {
        let state = NamedLock::with_name("recent".into(), State::default());
        Self { threshold: AtomicU64::new(0), until: AtomicU64::new(0), state }
    }
}

impl Recent {
    /// Whether to keep this exchange, written down at `now`.
    #[inline]
    pub fn wants(&self, outcome: &Outcome<'_>, now: u64) -> bool {
        outcome.times.total() > self.threshold.load(Ordering::Relaxed)
            || now > self.until.load(Ordering::Relaxed)
            || outcome.status.code() >= FAILED
    }

    /// Keeps the exchange with its route and the present thread, if it is still slow enough, or has failed.
    pub fn add(&self, outcome: &Outcome<'_>, route: Option<String>, thread: Option<String>) {
        let target = outcome.head.target();
        let request = RecentRequest {
            id: outcome.id.to_string(),
            trace: outcome.head.trace,
            method: outcome.head.method.to_string(),
            target: target[..target.len().min(MAX_TARGET)].escape_ascii().to_string(),
            route,
            status: outcome.status.code(),
            peer: outcome.peer.to_string(),
            pool: outcome.pool.map(usize::from),
            thread,
            end: outcome.end.name(),
            spans: outcome.times.spans(),
            database: outcome.database,
            outgoing: outcome.outgoing.map(RecentCalls::from),
            noted: clock::monotonic(),
        };
        let mut state = self.state.lock();
        if request.status >= FAILED {
            if state.failed.len() == KEPT {
                state.failed.pop_front();
            }
            state.failed.push_back(request.clone());
        }
        self.turn(&mut state, request.noted);
        // A WebSocket lasts as long as both sides want.
        if request.status != 101 && request.method != "CONNECT" {
            state.insert(request);
        }
        let slowest = state.present.get(KEPT - 1).map_or(0, |last| last.spans.total());
        self.threshold.store(slowest, Ordering::Relaxed);
    }

    /// Begins a new minute, if it is time.
    fn turn(&self, state: &mut State, now: u64) {
        let until = self.until.load(Ordering::Relaxed);
        if now <= until {
            return;
        }
        let present = std::mem::take(&mut state.present);
        // Requests older than the previous minute are not asked for.
        state.previous = if now - until <= MINUTE { present } else { Vec::new() };
        self.until.store(now + MINUTE, Ordering::Relaxed);
    }

    /// All kept requests.
    pub fn all(&self) -> RecentRequests {
        let mut state = self.state.lock();
        self.turn(&mut state, clock::monotonic());
        let mut slow: Vec<_> = state.present.iter().chain(&state.previous).cloned().collect();
        slow.sort_by_key(|request| std::cmp::Reverse(request.spans.total()));
        let full = state.present.get(KEPT - 1).map_or(0, |last| last.spans.total());
        self.threshold.store(full, Ordering::Relaxed);
        RecentRequests { slow, failed: state.failed.iter().rev().cloned().collect() }
    }

    /// Counts of the lock of the list.
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.state.snapshot()
    }
}

impl State {
    /// Inserts in the order of the times, the slowest first.
    fn insert(&mut self, request: RecentRequest) {
        let total = request.spans.total();
        let place = self.present.partition_point(|kept| kept.spans.total() >= total);
        if place < KEPT {
            self.present.truncate(KEPT - 1);
            self.present.insert(place, request);
        }
    }
}

#[cfg(test)]
mod tests {
    use maitred_http::{RequestHead, Status};
    use maitred_log::{End, RequestId};
    use maitred_stats::Times;

    use super::*;

    fn ends(recent: &Recent, number: u64, total: u64, status: u16) -> bool {
        let head = RequestHead::default();
        let outcome = Outcome {
            head: &head,
            peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().expect("an address").into(),
            id: RequestId::Made(number),
            listener: 0,
            pool: Some(0),
            route: None,
            told_route: "",
            status: Status::from_code(status).expect("a status"),
            body_bytes: 0,
            times: Times { arrived: 1, done: 1 + total, ..Times::default() },
            end: End::Complete,
            database: None,
            outgoing: None,
        };
        let wanted = recent.wants(&outcome, clock::monotonic());
        if wanted {
            recent.add(&outcome, Some("GET /".to_owned()), None);
        }
        wanted
    }

    #[test]
    fn the_slowest_are_kept_and_the_others_cost_nothing() {
        let recent = Recent::default();
        assert!((1..=100).all(|total| ends(&recent, total, total, 200)), "each is slower than those before");
        assert!(!ends(&recent, 101, 68, 200), "32 are slower");
        assert!(ends(&recent, 102, 70, 200));
        let slow = recent.all().slow;
        let totals: Vec<u64> = slow.iter().map(|request| request.spans.total()).collect();
        assert_eq!((totals.len(), totals[0], totals[30], totals[31]), (KEPT, 100, 70, 70));
        assert_eq!((&*slow[0].peer, slow[0].route.as_deref()), ("192.0.2.1:99", Some("GET /")));
        assert!(recent.all().failed.is_empty());
    }

    #[test]
    fn the_last_that_failed_are_kept_however_quick_they_were() {
        let recent = Recent::default();
        assert!((0..40).all(|_| ends(&recent, 1, 1000, 200)) || recent.all().slow.len() == KEPT);
        assert!((1..=40).all(|number| ends(&recent, number, 1, 500)));
        let failed = recent.all().failed;
        assert_eq!(
            (failed.len(), &failed[0].id[9..], &failed[31].id[9..]),
            (KEPT, "000000000028", "000000000009")
        );
        assert!(recent.all().slow.iter().all(|request| request.status == 200));
    }

    #[test]
    fn a_minute_later_they_are_those_before_and_then_gone() {
        let recent = Recent::default();
        assert!(ends(&recent, 1, 5_000, 200));
        // The minute is over: the next request that ends begins another, however quick it is.
        let past = || recent.until.store(clock::monotonic() - 1, Ordering::Relaxed);
        (0..KEPT as u64).for_each(|number| _ = ends(&recent, number, 9_000, 200));
        assert!(!ends(&recent, 2, 10, 200));
        past();
        assert!(ends(&recent, 2, 10, 200));
        assert_eq!(recent.all().slow.len(), KEPT + 1);
        past();
        assert_eq!(recent.all().slow.iter().map(|one| one.spans.total()).collect::<Vec<_>>(), [10]);
        recent.until.store(clock::monotonic().saturating_sub(2 * MINUTE), Ordering::Relaxed);
        assert!(recent.all().slow.is_empty());
    }
}
