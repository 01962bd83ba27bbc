//! A client: its pool, its limits, its observer.
//!
//! Leaves out: making calls ([`Call`](crate::call::Call), [`blocking`](crate::blocking)).

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use maitred_h1::Limits;

use crate::connection::Connection;
use crate::exchange::Timeouts;
use crate::pool::{self, Holder, Pool};
use crate::report::Observer;

/// The time limits of a call; `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Waiting for a slot of the pool.
    pub slot: Option<Duration>,
    /// Looking the name up and connecting, all addresses of the name together.
    pub connect: Option<Duration>,
    /// The TLS handshake.
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
}

/// A client, which its clones share.
#[derive(Clone, Debug)]
pub struct Client(Arc<Generation>);

/// The parts of a client in one process. A child that was forked adds its own: a lock of the parent may be held for ever there.
#[derive(Debug)]
struct Generation {
    parts: Arc<Parts>,
    next: OnceLock<Box<Generation>>,
}

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) pool: Pool<Connection>,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Generation::new(settings)))
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
    pub fn settings(&self) -> &Settings {
        &self.parts().settings
    }

    pub(crate) fn parts(&self) -> &Arc<Parts> {
        let mut generation = &*self.0;
        while let Some(next) = generation.next.get() {
            generation = next;
        }
        &generation.parts
    }
}

impl Generation {
    fn new(settings: Settings) -> Self {
        let parts = Parts { pool: Pool::new(settings.pool), settings, limits: Limits::of_responses() };
        Self { parts: Arc::new(parts), next: OnceLock::new() }
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
