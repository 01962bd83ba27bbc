//! A client: its pool, its limits, its observer.
//!
//! Leaves out: making calls ([`Call`](crate::call::Call), [`blocking`](crate::blocking)).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use maitred_h1::Limits;

use crate::connection::Connection;
use crate::exchange::Timeouts;
use crate::fork;
use crate::key::Key;
use crate::names::{Names, Resolve};
use crate::pool::{self, Holder, Pool, named};
use crate::report::Observer;

/// The time limits of a call; `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Waiting for a slot of the pool.
    pub slot: Option<Duration>,
    /// Looking the name up and connecting, all addresses of the name together.
    pub connect: Option<Duration>,
    /// A TLS handshake, that with a proxy and that with the server each.
    pub tls: Option<Duration>,
    /// The exchange. `total` is for the whole call, from its beginning.
    pub exchange: Timeouts,
}

impl Default for Times {
    /// No limits but one: a call that is made while its own thread holds the last slot would wait for ever.
    fn default() -> Self {
        let slot = Some(Duration::from_secs(30));
        Self { slot, connect: None, tls: None, exchange: Timeouts::default() }
    }
}

/// The settings of a client.
#[derive(Clone, Default)]
pub struct Settings {
    /// The limits of its pool.
    pub pool: pool::Settings,
    /// The time limits of calls that bring none.
    pub times: Times,
    /// The receiver of the reports of all calls.
    pub observer: Option<Arc<dyn Observer>>,
    /// The resolver of names; `None` for the system's.
    pub resolver: Option<Arc<Resolve>>,
}

/// A client, which its clones share.
#[derive(Clone, Debug)]
pub struct Client(Arc<ArcSwap<Parts>>);

/// The parts of a client in one process.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) pool: Pool<Connection>,
    pub(crate) names: Names,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    forks: u64,
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Parts::new(settings))))
    }

    /// The number of connections that are idle. One whose time has passed leaves at the next use of its server.
    pub fn idle(&self) -> usize {
        self.parts().pool.idle()
    }

    /// The holders of connections that are used, in no order.
    pub fn holders(&self) -> Vec<Holder> {
        self.parts().pool.holders()
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        self.parts().settings.clone()
    }

    /// Closes the idle connections. Calls that run end as they would.
    pub fn close_idle(&self) {
        let parts = self.parts();
        drop(parts.pool.sweep(Instant::now(), |_| false));
    }

    pub(crate) fn parts(&self) -> Arc<Parts> {
        let parts = self.0.load_full();
        if parts.is_present() { parts } else { self.begin_anew(&parts) }
    }

    /// In a child process. The parent's parts are never freed here: another thread may have been changing them at the fork.
    #[cold]
    fn begin_anew(&self, old: &Arc<Parts>) -> Arc<Parts> {
        std::mem::forget(Arc::clone(old));
        let new = Arc::new(Parts::new(old.settings.clone()));
        let found = self.0.compare_and_swap(old, Arc::clone(&new));
        if Arc::ptr_eq(&found, old) { new } else { Arc::clone(&found) }
    }
}

impl Parts {
    fn new(settings: Settings) -> Self {
        let resolver = settings.resolver.clone().unwrap_or_else(|| Arc::new(maitred_io::names::look_up));
        let (pool, names) = (Pool::new(settings.pool), Names::new(resolver));
        Self { pool, names, settings, limits: Limits::of_responses(), forks: fork::count() }
    }

    /// The holders of the connections that a call to `key` waits for, as text.
    pub(crate) fn named_holders(&self, key: &Key, now: Instant) -> String {
        let pool::Settings { per_key, total, .. } = self.settings.pool;
        named(&self.pool.holders(), key, (per_key, total), now, |caller| match &self.settings.observer {
            Some(observer) => observer.describe(caller),
            None => (caller > 0).then(|| format!("caller {caller}")),
        })
    }

    /// Whether they are this process's, and not those of its parent.
    pub(crate) fn is_present(&self) -> bool {
        self.forks == fork::count()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observed = self.observer.is_some();
        let Self { pool, times, .. } = self;
        f.debug_struct("Settings")
            .field("pool", pool)
            .field("times", times)
            .field("observed", &observed)
            .finish()
    }
}
