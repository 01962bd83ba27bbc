//! Which routes are slow: when to look, and telling it.
//!
//! While nothing has been slow lately no path is hashed. The first slow request has routes watched for a while: then one
//! request of several is measured, and every one of a route that has been slow. A request that took long is slow if its
//! thread has waited for something or has computed that long; one that was stopped for another thread is not: with more
//! work than processors every request takes long.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use maitred_http::RequestHead;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use maitred_io::usage::Usage;

use crate::dispatch::Route;
use crate::dispatch::learnt::{Change, LearntRoutes, SLOW, Shape};
use crate::log::Log;

/// How long routes are watched after a slow request, in seconds: as long as one counts.
const WATCH: u64 = 60;

/// One of so many requests of other routes is measured: that takes two system calls.
const SAMPLE: u32 = 8;

const SECOND: u64 = 1_000_000_000;

thread_local! {
    static LOOKED_UP: Cell<u32> = const { Cell::new(0) };
}

/// A request that is measured.
pub(crate) struct Measured {
    route: Route,
    before: Usage,
}

impl Measured {
    /// From now on, on this thread.
    pub(super) fn begin(route: Route) -> Self {
        Self { route, before: Usage::now() }
    }

    /// Whether it is the request's doing that it took so long.
    fn is_slow(&self) -> bool {
        let now = Usage::now();
        now.sleeps != self.before.sleeps || now.processor_ns - self.before.processor_ns >= SLOW
    }
}

/// What is known of the route of a request.
#[derive(Default)]
pub(crate) struct Known {
    /// To be measured.
    pub(crate) measure: Option<Route>,
    /// Slow again and again.
    pub(crate) slow: bool,
}

/// What is known of routes.
pub(crate) struct Slowness {
    routes: LearntRoutes,
    /// Until when routes are watched, in seconds of the monotonic clock.
    until: AtomicU64,
    /// What has changed last: told with the next request of that route, whose path is known.
    change: Mutex<Option<(Route, Change)>>,
    untold: AtomicBool,
}

impl Slowness {
    pub(super) fn new() -> Self {
        Self {
            routes: LearntRoutes::new(),
            until: AtomicU64::new(0),
            change: Mutex::new(None),
            untold: AtomicBool::new(false),
        }
    }

    /// What is known of the route of a request at `now`, in monotonic nanoseconds.
    pub(crate) fn look_up(&self, head: &RequestHead, now: u64, log: &Log) -> Known {
        if !self.routes.is_watching() && now / SECOND >= self.until.load(Ordering::Relaxed) {
            return Known::default();
        }
        let (method, path) = (head.method.as_str(), head.path());
        let route = self.routes.key(method, path);
        if self.untold.load(Ordering::Relaxed) {
            self.tell(route, &Shape { method, path }, log);
        }
        let turn = LOOKED_UP.with(|count| count.replace(count.get().wrapping_add(1)));
        let measure = self.routes.knows(route) || turn.is_multiple_of(SAMPLE);
        let slow = self.routes.any() && self.routes.is_learnt(route);
        Known { measure: measure.then_some(route), slow }
    }

    /// A request was in the application, on this thread, for `nanos` until `now`.
    pub(super) fn note(&self, measured: Option<Measured>, nanos: u64, now: u64) {
        let seconds = now / SECOND;
        if nanos >= SLOW {
            self.until.store(seconds + WATCH, Ordering::Relaxed);
        }
        let Some(measured) = measured else { return };
        let slow = nanos >= SLOW && measured.is_slow();
        if let Some(change) = self.routes.note(measured.route, if slow { nanos } else { 0 }, seconds) {
            *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some((measured.route, change));
            self.untold.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets what has not been slow for a while.
    pub(super) fn sweep(&self, now: u64) {
        self.routes.sweep(now / SECOND);
    }

    fn tell(&self, route: Route, shape: &Shape<'_>, log: &Log) {
        let mut change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, what)) = change.take_if(|(changed, _)| *changed == route) else { return };
        self.untold.store(false, Ordering::Relaxed);
        match what {
            Change::Learnt => log.info(format_args!(
                "{shape}: slow again and again; its requests leave some of the threads to others from now on"
            )),
            Change::Forgotten => log.info(format_args!("{shape}: not slow any more")),
        }
    }
}
