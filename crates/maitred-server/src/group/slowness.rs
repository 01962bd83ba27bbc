//! Which routes are slow: when to look, and telling it.
//!
//! While nothing has been slow lately no path is hashed. The first request that takes long has routes watched for a while:
//! then the next one of a route with one that took long is measured, and every one of a route that has been slow. A request that took long is slow if its
//! thread has waited for something or has computed that long; one that was stopped for another thread is not: with more
//! work than processors every request takes long.

use std::sync::{Mutex, PoisonError};

use maitred_http::RequestHead;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use maitred_io::usage::Usage;

use crate::dispatch::Route;
use crate::dispatch::learnt::{Change, LearntRoutes, SLOW};
use crate::log::Log;
use crate::shape::Shape;

/// How long routes are watched after a slow request, in seconds: as long as one counts.
const WATCH: u64 = 60;

const SECOND: u64 = 1_000_000_000;

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
}

/// Whether it was the request's doing that it took long.
fn is_slow(before: Usage) -> bool {
    let now = Usage::now();
    now.sleeps != before.sleeps || now.processor_ns - before.processor_ns >= SLOW
}

/// What is known of the route of a request.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) watched: Option<Watched>,
    /// Slow again and again.
    pub(crate) slow: bool,
}

/// What is known of routes.
pub(crate) struct Slowness {
    routes: LearntRoutes,
    /// Until when routes are watched, in seconds of the monotonic clock.
    until: AtomicU64,
    /// The route whose last request took long and was not measured.
    suspect: AtomicU64,
    /// What has changed last: told with the next request of that route, whose path is known.
    change: Mutex<Option<(Route, Change)>>,
    untold: AtomicBool,
}

impl Slowness {
    pub(crate) fn new() -> Self {
        Self {
            routes: LearntRoutes::new(),
            until: AtomicU64::new(0),
            suspect: AtomicU64::new(0),
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
        let measure = self.routes.knows(route) || self.suspect.load(Ordering::Relaxed) == route.to_bits();
        let slow = self.routes.any() && self.routes.is_learnt(route);
        Known { watched: Some(Watched { route, measure }), slow }
    }

    /// A request was in the application, on this thread, for `nanos` until `now`.
    pub(super) fn note(&self, measured: Option<Measured>, nanos: u64, now: u64) {
        let seconds = now / SECOND;
        if nanos >= SLOW {
            self.until.store(seconds + WATCH, Ordering::Relaxed);
        }
        let Some(Measured { route, before }) = measured else { return };
        let Some(before) = before else {
            if nanos >= SLOW {
                self.suspect.store(route.to_bits(), Ordering::Relaxed);
            }
            return;
        };
        let slow = nanos >= SLOW && is_slow(before);
        if !slow && self.suspect.load(Ordering::Relaxed) == route.to_bits() {
            // The next one that takes long makes it suspect again.
            self.suspect.store(0, Ordering::Relaxed);
        }
        if let Some(change) = self.routes.note(route, if slow { nanos } else { 0 }, seconds) {
            *self.change.lock().unwrap_or_else(PoisonError::into_inner) = Some((route, change));
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
