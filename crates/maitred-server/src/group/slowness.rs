//! Which routes take long: when to look, and telling it.
//!
//! A request takes long if it keeps its thread for some of the interpreter's switch intervals, whatever others take.
//! While nothing has been slow for an hour no path is hashed. The first request that takes long has routes watched; a route
//! with one that took long is measured from then on: a request that took long is slow if its thread has waited for something
//! or has computed that long; one that was stopped for another thread is not.

use std::hash::RandomState;
use std::sync::{LazyLock, Mutex, PoisonError};

use maitred_http::RequestHead;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use maitred_io::usage::Usage;

use maitred_dispatch::slow_routes::{Change, LearntRoutes, Outcome};
use maitred_dispatch::{Route, RouteClass, RunTime};
use maitred_log::Log;
use maitred_match::Shape;

/// A request takes long from so many nanoseconds on: as one that computes for long.
const SLOW: u64 = maitred_dispatch::LONG;

/// One that has computed for so many nanoseconds computes for long, however long it was in the application. Where nothing was sampled a
/// wait for the interpreter looks like any other: computations that enter at once would be taken for requests that wait, which
/// enter at once.
const SURELY_COMPUTED: u64 = 10_000_000;

/// How long routes are watched after a slow request, in seconds: a burst every few minutes is measured from its begin.
const WATCH: u64 = 3_600;

const SECOND: u64 = 1_000_000_000;

/// The same change of a route is told again after this time, in nanoseconds.
const TOLD_AGAIN: u64 = 60 * SECOND;

/// Changes of so many routes are remembered for that.
const MAX_TOLD: usize = 64;

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

    /// What is to be said of a request that took long. One that has waited for the interpreter is not slow for that.
    fn outcome(&self, run: RunTime) -> Outcome {
        self.before.map_or(Outcome::Slow, |before| Self::outcome_between(&before, &Usage::now(), run))
    }

    fn outcome_between(before: &Usage, now: &Usage, run: RunTime) -> Outcome {
        let computed = now.processor_ns.saturating_sub(before.processor_ns);
        if run.without_interpreter == Some(true) {
            return Outcome::Waited;
        }
        if run.without_interpreter == Some(false) {
            return if computed >= SLOW { Outcome::Computed } else { Outcome::Usual };
        }
        if computed >= SURELY_COMPUTED || (computed >= SLOW && computed >= run.nanos / 2) {
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
    pub(crate) class: RouteClass,
}

/// What is known of routes.
pub(crate) struct Slowness {
    routes: LearntRoutes,
    /// Until when routes are watched, in seconds of the monotonic clock.
    until: AtomicU64,
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
        let class = match self.routes.any().then(|| self.routes.learnt(route)).flatten() {
            None => RouteClass::Normal,
            Some(false) => RouteClass::Blocking,
            Some(true) => RouteClass::CpuBound,
        };
        Known { watched: Some(Watched { route, measure }), class }
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

    /// A request was in the application, on this thread.
    pub(super) fn note(&self, measured: Option<Measured>, run: RunTime) {
        let slow = run.nanos >= SLOW;
        let seconds = run.ended / SECOND;
        if slow {
            self.until.store(seconds + WATCH, Ordering::Relaxed);
        }
        let Some(measured) = measured else { return };
        let outcome = if slow { measured.outcome(run) } else { Outcome::Usual };
        let route = measured.route;
        if let Some(change) = self.routes.note(route, outcome, seconds) {
            *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some((route, change));
            self.untold.store(true, Ordering::Relaxed);
        }
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
                "{shape}: takes long, again and again; other requests do not wait behind it from now on"
            )),
            Change::Forgotten => log.info(format_args!("{shape}: does not take long any more")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_among_others_is_no_request_that_waits() {
        let outcome = |computed: u64, sleeps, without_interpreter| {
            let before = Usage { processor_ns: 0, sleeps: 0 };
            let run = RunTime { nanos: 200_000_000, ended: 0, without_interpreter };
            Measured::outcome_between(&before, &Usage { processor_ns: computed, sleeps }, run)
        };
        // Four of 50 ms took turns, and each has slept for the others again and again.
        assert!(matches!(outcome(50_000_000, 300, None), Outcome::Computed));
        assert!(matches!(outcome(3_000_000, 2, None), Outcome::Waited));
        assert!(matches!(outcome(50_000_000, 300, Some(true)), Outcome::Waited));
        assert!(matches!(outcome(3_000_000, 300, Some(false)), Outcome::Computed));
        assert!(matches!(outcome(1_000_000, 300, Some(false)), Outcome::Usual));
    }
}
