//! The driver for a thread that may wait: it writes, polls and reads by itself, without another thread.
//!
//! Promises: a call ends within its time limits in every state of the server, a stale connection is tried once more by the
//! [rule](crate::exchange::Exchange::may_retry), and an unread response closes its connection.
//!
//! Leaves out: names are looked up by getaddrinfo on this thread, without a cache and without a limit; TLS; proxies; event loops.

mod call;
mod connect;
mod connection;
mod response;

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use maitred_h1::{Limits, OutgoingRequest};

use crate::error::{Error, Phase};
use crate::exchange::{Circumstances, Exchange, Timeouts};
use crate::key::Key;
use crate::pool::{self, Pool, Slot};
use connection::Connection;

pub use call::{Body, CallError, Request};
pub use response::Response;

/// The settings of a client.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The limits of its pool.
    pub pool: pool::Settings,
    /// How long a call waits for a slot of the pool.
    pub slot: Option<Duration>,
    /// How long connecting may take, all addresses of a name together.
    pub connect: Option<Duration>,
    /// The limits of an exchange.
    pub timeouts: Timeouts,
}

impl Default for Settings {
    /// No limits but one: a call that is made while its own thread holds the last slot would wait for ever.
    fn default() -> Self {
        let slot = Some(Duration::from_secs(30));
        Self { pool: pool::Settings::default(), slot, connect: None, timeouts: Timeouts::default() }
    }
}

/// A client of plain HTTP, which its clones share.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Pool<Connection>,
    settings: Settings,
    limits: Limits,
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Self {
        Self { pool: Pool::new(settings.pool), settings, limits: Limits::of_responses() }
    }

    /// This client with other time limits. Both have the same pool.
    #[must_use]
    pub fn within(&self, slot: Option<Duration>, connect: Option<Duration>, timeouts: Timeouts) -> Self {
        Self { settings: Settings { slot, connect, timeouts, ..self.settings }, ..self.clone() }
    }

    /// The number of connections that are idle. One whose time has passed leaves at the next use of its server.
    pub fn idle(&self) -> usize {
        self.pool.idle()
    }

    /// Closes the connections that are idle.
    pub fn clear(&self) {
        drop(self.pool.sweep(Instant::now(), |_| false));
    }

    /// Sends `request` to the server of `key` and waits for the head of its response.
    ///
    /// # Errors
    /// There is no response. Nothing of the call is left in the pool.
    pub fn send<'a>(&self, key: &Arc<Key>, mut request: Request<'a>) -> Result<Response<'a>, CallError> {
        if key.tls.is_some() || key.proxy.is_some() {
            return Err(CallError::Unsupported);
        }
        let begun = Instant::now();
        let mut slot = self.slot(key, begun)?;
        if !slot.connection().is_some_and(|connection| connection.is_quiet()) {
            self.connect(&mut slot, begun)?;
        }
        loop {
            let mut exchange = self.begin(&request, slot.is_reused(), begun)?;
            let Some(connection) = slot.connection() else { return Err(CallError::Unsupported) };
            match response::until_head(connection, &mut exchange, &mut request.body, &self.limits) {
                Ok(given) => return Ok(Response::new(slot, exchange, request.body, given, self.limits)),
                Err(CallError::Exchange(_)) if exchange.may_retry(matches!(request.body, Body::Bytes(_))) => {
                    self.connect(&mut slot, begun)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn begin(&self, request: &Request<'_>, reused: bool, begun: Instant) -> Result<Exchange, CallError> {
        let length = match request.body {
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::Stream(_) => None,
        };
        let outgoing = OutgoingRequest {
            method: &request.method,
            target: request.target.as_bytes(),
            authority: request.authority.as_bytes(),
            fields: &request.fields,
            length,
            upgrade: false,
        };
        let circumstances =
            Circumstances { reused, repeatable: request.repeatable, timeouts: self.settings.timeouts };
        Ok(Exchange::begin(&outgoing, circumstances, begun)?)
    }

    fn slot(&self, key: &Arc<Key>, begun: Instant) -> Result<Slot<Connection>, CallError> {
        let waker = || Waker::from(Arc::new(Parked(thread::current())));
        let waiting = match self.pool.check_out(key, 0, begun) {
            Ok(slot) => return Ok(slot),
            Err(_) => match self.pool.check_out_or_wait(key, 0, begun, waker()) {
                Ok(slot) => return Ok(slot),
                Err(waiting) => waiting,
            },
        };
        let until = self.within_total(self.settings.slot, begun).and_then(|limit| begun.checked_add(limit));
        loop {
            if let Some(slot) = waiting.take() {
                return Ok(slot);
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return Err(Error::Timeout(Phase::Slot).into()),
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    /// `limit`, or the time that is left for the whole call that has begun then.
    fn within_total(&self, limit: Option<Duration>, begun: Instant) -> Option<Duration> {
        let left = self.settings.timeouts.total.map(|total| total.saturating_sub(begun.elapsed()));
        limit.into_iter().chain(left).min()
    }

    fn connect(&self, slot: &mut Slot<Connection>, begun: Instant) -> Result<(), CallError> {
        let limit = self.within_total(self.settings.connect, begun);
        let socket = connect::connect(&slot.key().place, limit)?;
        slot.put(Connection::new(socket), Instant::now());
        Ok(())
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
