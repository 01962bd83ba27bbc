//! Which routes are slow: when to look, and telling it.
//!
//! While nothing has been slow lately no path is hashed. The first slow request has routes watched for a while, the
//! next ones are counted.

use std::sync::{Mutex, PoisonError};

use maitred_http::RequestHead;
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::dispatch::Route;
use crate::dispatch::learnt::{Change, LearntRoutes, SLOW, Shape};
use crate::log::Log;

/// How long routes are watched after a slow request, in seconds: as long as one counts.
const WATCH: u64 = 60;

const SECOND: u64 = 1_000_000_000;

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

    /// The route of a request at `now`, in monotonic nanoseconds, and whether it is slow; `None` while nothing has been.
    pub(crate) fn look_up(&self, head: &RequestHead, now: u64, log: &Log) -> Option<(Route, bool)> {
        if !self.routes.is_watching() && now / SECOND >= self.until.load(Ordering::Relaxed) {
            return None;
        }
        let (method, path) = (head.method.as_str(), head.path());
        let route = self.routes.key(method, path);
        if self.untold.load(Ordering::Relaxed) {
            self.tell(route, &Shape { method, path }, log);
        }
        Some((route, self.routes.any() && self.routes.is_learnt(route)))
    }

    /// A request was in the application for `nanos`, until `now`.
    pub(super) fn note(&self, route: Option<Route>, nanos: u64, now: u64) {
        let seconds = now / SECOND;
        if nanos >= SLOW {
            self.until.store(seconds + WATCH, Ordering::Relaxed);
        }
        let Some(route) = route else { return };
        if let Some(change) = self.routes.note(route, nanos, seconds) {
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
