//! Reaching the server: its name, a socket, and on it the proxy's tunnel and TLS.
//!
//! ```text
//! Name --> Sockets --> Establishing (proxy, TLS) --> connection
//!              `--------- plain HTTP ------------^
//! ```
//!
//! Leaves out: waiting; the caller polls again when a socket is ready, the waker is woken, or the time has come.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use maitred_io::outgoing::Wanted;

use crate::allow::Allow;
use crate::client::{Parts, Times};
use crate::connect::Connecting;
use crate::connection::{Connection, Socket};
use crate::error::{Error, Phase};
use crate::establish::Establishing;
use crate::failure::CallError;
use crate::key::{Key, Place};
use crate::names::{Found, Waiter, literal};
use crate::report::Report;
use crate::stream::Stream;

/// A connection on its way.
#[derive(Debug)]
pub(crate) struct Reaching {
    key: Arc<Key>,
    way: Way,
    /// The end of the time for looking up and connecting.
    until: Option<Instant>,
    begun: Instant,
    /// The name is not known yet.
    waiter: Option<Waiter>,
    resolve: Option<Duration>,
    connect: Option<Duration>,
    /// The limit of a handshake, with the proxy or the server, and the end of the one that runs.
    tls: Option<Duration>,
    tls_until: Option<Instant>,
    handshake: Option<Duration>,
}

#[derive(Debug)]
enum Way {
    Name,
    Sockets(Connecting),
    Establishing(Box<Establishing<Socket>>),
    Done,
}

/// The result of a poll.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The connection.
    Done(Connection),
    /// Nothing to do before this time.
    Wait(Option<Instant>),
}

impl Reaching {
    pub(crate) fn begin(key: Arc<Key>, times: &Times, now: Instant) -> Self {
        let until = times.connect.and_then(|limit| now.checked_add(limit));
        let (resolve, connect, handshake) = (None, None, None);
        let (tls, tls_until) = (times.tls, None);
        Self {
            key,
            way: Way::Name,
            until,
            begun: now,
            waiter: None,
            resolve,
            connect,
            tls,
            tls_until,
            handshake,
        }
    }

    /// Goes on as far as that needs no waiting. `total` is the end of the call's time.
    ///
    /// # Errors
    /// No connection is made.
    pub(crate) fn poll(
        &mut self,
        parts: &Parts,
        total: Option<Instant>,
        now: Instant,
        waker: &Waker,
    ) -> Result<Progress, CallError> {
        let again = loop {
            match &mut self.way {
                Way::Name => {
                    if let Some(until) = self.find(parts, now, waker)? {
                        break until;
                    }
                }
                Way::Sockets(way) => {
                    let connected = way.poll(now);
                    parts.names.sink(&way.slow(false), now);
                    let Some(socket) = connected? else { break way.until() };
                    self.connect = Some(now.saturating_duration_since(self.begun));
                    if self.key.tls.is_none() && self.key.proxy.is_none() {
                        return Ok(Progress::Done(Connection::new(Stream::new(socket))));
                    }
                    self.way = Way::Establishing(Box::new(Establishing::over(socket, &self.key, now)?));
                }
                Way::Establishing(way) => {
                    let is_done = way.poll(&parts.limits, now)?;
                    if way.phase() == Phase::Tls {
                        self.until = None;
                    }
                    self.tls_until = way
                        .handshake_begun()
                        .zip(self.tls)
                        .and_then(|(begun, limit)| begun.checked_add(limit));
                    if !is_done {
                        break None;
                    }
                    if let Way::Establishing(way) = std::mem::replace(&mut self.way, Way::Done) {
                        let (stream, handshake) = way.into_stream();
                        self.handshake = handshake;
                        return Ok(Progress::Done(Connection::new(stream)));
                    }
                }
                Way::Done => return Err(Error::Broken.into()),
            }
        };
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let is_over = is_past(total);
        if is_over || is_past(self.until) || is_past(self.tls_until) {
            let failure = self.give_up(parts, now);
            return Err(if is_over { Error::Timeout(Phase::Total).into() } else { failure });
        }
        Ok(Progress::Wait([again, self.until, self.tls_until, total].into_iter().flatten().min()))
    }

    /// Looks for the addresses: the time until which they are waited for, unless they are there.
    fn find(
        &mut self,
        parts: &Parts,
        now: Instant,
        waker: &Waker,
    ) -> Result<Option<Option<Instant>>, CallError> {
        if self.key.proxy.is_some() {
            self.check_behind_proxy()?;
        }
        let (host, port) = match &self.key.first_place() {
            Place::Host(host, port) => (host.clone(), *port),
            Place::Socket(path) if self.key.allow == Allow::All => {
                self.way = Way::Sockets(Connecting::to_socket(path.clone()));
                return Ok(None);
            }
            Place::Socket(path) => return Err(CallError::NotAllowed(path.display().to_string())),
        };
        let mut addresses: Vec<SocketAddr> = match literal(&host) {
            Some(addresses) => addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            None => {
                match parts.names.find(&host, now, waker, &mut self.waiter).map_err(CallError::Resolve)? {
                    Found::Addresses(found) => found.to_vec(),
                    Found::Pending(until) => return Ok(Some(until)),
                }
            }
        };
        addresses.iter_mut().for_each(|address| address.set_port(port));
        let addresses = parts.names.parted(addresses, now);
        if self.waiter.take().is_some() {
            self.resolve = Some(now.saturating_duration_since(self.begun));
            self.begun = now;
        }
        let allow = if self.key.proxy.is_some() { &Allow::All } else { &self.key.allow };
        self.way = Way::Sockets(Connecting::to(addresses, allow));
        Ok(None)
    }

    /// The proxy looks names up by itself: behind one only an address can be checked.
    fn check_behind_proxy(&self) -> Result<(), CallError> {
        let is_allowed = |host| {
            let addresses = literal(host);
            addresses.is_some_and(|found| found.into_iter().all(|address| self.key.allow.allows(address)))
        };
        match &self.key.place {
            _ if self.key.allow == Allow::All => Ok(()),
            Place::Host(host, _) if is_allowed(host) => Ok(()),
            place => Err(CallError::NotAllowed(format!("{place:?}, which a proxy looks up,"))),
        }
    }

    /// The time has passed: the failure for which that is so.
    fn give_up(&mut self, parts: &Parts, now: Instant) -> CallError {
        if let Way::Sockets(way) = &mut self.way {
            parts.names.sink(&way.slow(true), now);
            return CallError::Unanswered(way.tried());
        }
        Error::Timeout(self.phase()).into()
    }

    /// The part of the call that this is now.
    pub(crate) fn phase(&self) -> Phase {
        match &self.way {
            Way::Name => Phase::Resolve,
            Way::Sockets(_) => Phase::Connect,
            Way::Establishing(way) => way.phase(),
            Way::Done => Phase::Tls,
        }
    }

    /// Writes the times so far.
    pub(crate) fn note(&self, report: &mut Report) {
        (report.resolve, report.connect, report.tls) = (self.resolve, self.connect, self.handshake);
    }

    /// The sockets that are waited for; none while a name is looked up.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Wanted)> {
        let (connecting, establishing) = match &self.way {
            Way::Sockets(way) => (Some(way.sockets()), None),
            Way::Establishing(way) => (None, Some((way.socket().as_fd(), way.wanted()))),
            Way::Name | Way::Done => (None, None),
        };
        let connecting = connecting.into_iter().flatten().map(|socket| (socket, Wanted::Write));
        connecting.chain(establishing)
    }
}
