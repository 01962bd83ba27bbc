//! Which routes are slow beside the others of their site: when to look, and telling it.
//!
//! Slow is what takes much longer than the site's usual request. A site of one route has no slow route, however long it takes.
//! While nothing has been slow for an hour no path is hashed. The first request that takes long has routes watched; a route
//! with one that took long is measured from then on: a request that took long is slow if its thread has waited for something
//! or has computed that long; one that was stopped for another thread is not.

use std::hash::RandomState;
use std::sync::{LazyLock, Mutex, PoisonError};

use maitred_http::RequestHead;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use maitred_io::usage::Usage;

use maitred_dispatch::slow_routes::{Change, LearntRoutes, Outcome};
use maitred_dispatch::{Pace, Route};
use maitred_log::Log;
use maitred_match::Shape;

/// A request is slow at the least from so long on, in nanoseconds: a thread that others wait for can be missed for as long
/// as the interpreter's own switch interval was by default (5 ms), not longer.
const SLOW: u64 = 5_000_000;

/// A request is slow that takes so many times what the usual one takes.
const TIMES: u64 = 8;

/// How long routes are watched after a slow request, in seconds: a burst every few minutes is measured from its begin.
const WATCH: u64 = 3_600;

const SECOND: u64 = 1_000_000_000;

/// The same change of a route is told again after this time, in nanoseconds.
const TOLD_AGAIN: u64 = 60 * SECOND;

/// Changes of so many routes are remembered for that.
const MAX_TOLD: usize = 64;

/// The usual duration follows what comes by a 32nd of itself: half of the requests take longer, half less.
const STEP: u64 = 32;

/// A request of a route that is watched.
#[derive(Clone, Copy)]
pub(crate) struct Watched {
    route: Route,
    /// It is measured, which takes two system calls.
    measure: bool,
}

/// The same while it is in the application.
pub(crate) struct Measured {
    route: Route,
    before: Option<Usage>,
}

impl Measured {
    /// From now on, on this thread.
    pub(super) fn begin(watched: Watched) -> Self {
        Self { route: watched.route, before: watched.measure.then(Usage::now) }
    }

    /// What is to be said of a request that took `nanos` in all.
    fn outcome(&self, nanos: u64) -> Outcome {
        let Some(before) = self.before else { return Outcome::Slow };
        let now = Usage::now();
        let computed = now.processor_ns.saturating_sub(before.processor_ns);
        if computed >= SLOW && computed >= nanos / 2 {
            Outcome::Computed
        } else if now.sleeps != before.sleeps {
            Outcome::Waited
        } else {
            Outcome::Usual
        }
    }
}

/// What is known of the route of a request.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) watched: Option<Watched>,
    pub(crate) pace: Pace,
}

/// What is known of routes.
pub(crate) struct Slowness {
    routes: LearntRoutes,
    /// Until when routes are watched, in seconds of the monotonic clock.
    until: AtomicU64,
    /// What a usual request takes, in nanoseconds.
    usual: AtomicU64,
    /// What has changed last: told with the next request of that route, whose path is known.
    change: Mutex<Option<(Route, Change)>>,
    untold: AtomicBool,
    /// What was told lately, and when, in monotonic nanoseconds.
    told: Mutex<Vec<(Route, Change, u64)>>,
}

impl Slowness {
    pub(crate) fn new() -> Self {
        Self {
            routes: LearntRoutes::default(),
            until: AtomicU64::new(0),
            usual: AtomicU64::new(0),
            change: Mutex::new(None),
            untold: AtomicBool::new(false),
            told: Mutex::new(Vec::new()),
        }
    }

    /// What is known of the route of a request at `now`, in monotonic nanoseconds.
    pub(crate) fn look_up(&self, head: &RequestHead, now: u64, log: &Log) -> Known {
        if !self.is_on(now) {
            return Known::default();
        }
        let shape = shape(head);
        let route = self.routes.key(|state| shape.hash(state));
        if self.untold.load(Ordering::Relaxed) {
            self.tell(route, &shape, now, log);
        }
        let measure = self.routes.knows(route);
        let pace = match self.routes.any().then(|| self.routes.learnt(route)).flatten() {
            None => Pace::Usual,
            Some(false) => Pace::Waits,
            Some(true) => Pace::Computes,
        };
        Known { watched: Some(Watched { route, measure }), pace }
    }

    /// The watch on a request that was read before anything was slow, and runs at `now`.
    pub(super) fn watch_late(&self, head: &RequestHead, now: u64) -> Option<Watched> {
        if !self.is_on(now) {
            return None;
        }
        let route = self.routes.key(|state| shape(head).hash(state));
        Some(Watched { route, measure: self.routes.knows(route) })
    }

    /// Whether routes are watched. Two loads.
    fn is_on(&self, now: u64) -> bool {
        self.routes.is_watching() || now / SECOND < self.until.load(Ordering::Relaxed)
    }

    /// From how many nanoseconds on a request is slow.
    pub(super) fn long(&self) -> u64 {
        self.usual.load(Ordering::Relaxed).saturating_mul(TIMES).max(SLOW)
    }

    /// A request was in the application, on this thread, for `nanos` until `now`.
    pub(super) fn note(&self, measured: Option<Measured>, nanos: u64, now: u64) {
        let slow = nanos >= SLOW && nanos >= self.long();
        self.note_usual(nanos);
        let seconds = now / SECOND;
        if slow {
            self.until.store(seconds + WATCH, Ordering::Relaxed);
        }
        let Some(measured) = measured else { return };
        let outcome = if slow { measured.outcome(nanos) } else { Outcome::Usual };
        let route = measured.route;
        if let Some(change) = self.routes.note(route, outcome, seconds) {
            *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some((route, change));
            self.untold.store(true, Ordering::Relaxed);
        }
    }

    /// Threads that do so at once lose a step, which nobody misses.
    fn note_usual(&self, nanos: u64) {
        let usual = self.usual.load(Ordering::Relaxed);
        let next = match usual {
            0 => nanos,
            _ if nanos > usual => usual + usual / STEP + 1,
            _ => usual - usual / STEP,
        };
        self.usual.store(next.max(1), Ordering::Relaxed);
    }

    /// Forgets what has not been slow for a while.
    pub(super) fn sweep(&self, now: u64) {
        self.routes.sweep(now / SECOND);
    }

    fn is_news(&self, route: Route, what: Change, now: u64) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(_, _, at)| now.saturating_sub(*at) < TOLD_AGAIN);
        let is_known = told.iter().any(|(known, change, _)| (*known, *change) == (route, what));
        if !is_known && told.len() < MAX_TOLD {
            told.push((route, what, now));
        }
        !is_known
    }

    /// A route that is at the edge changes again and again: the same is told of it once a minute.
    fn tell(&self, route: Route, shape: &Shape<'_>, now: u64, log: &Log) {
        let mut change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, what)) = change.take_if(|(changed, _)| *changed == route) else { return };
        self.untold.store(false, Ordering::Relaxed);
        drop(change);
        if !self.is_news(route, what, now) {
            return;
        }
        match what {
            Change::Learnt => log.info(format_args!(
                "{shape}: takes much longer than other requests, again and again; they do not wait behind it from now on"
            )),
            Change::Forgotten => log.info(format_args!("{shape}: does not take much longer than others any more")),
        }
    }
}

/// A number for the route of a request, equal for all of that route, which no peer can foretell.
pub(super) fn route(head: &RequestHead) -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    shape(head).hash(&KEY)
}

fn shape(head: &RequestHead) -> Shape<'_> {
    Shape { method: head.method.as_str(), path: head.path(), host: head.host }
}
