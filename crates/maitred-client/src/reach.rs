//! Reaching the server: its name, a socket.
//!
//! Leaves out: waiting; the caller polls again when a socket is ready, the waker is woken, or the time has come.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use maitred_io::outgoing::Wanted;

use crate::allow::Allow;
use crate::client::{Parts, Times};
use crate::connect::Connecting;
use crate::connection::Connection;
use crate::error::{Error, Phase};
use crate::failure::CallError;
use crate::key::{Key, Place};
use crate::names::{Found, literal};
use crate::report::Report;

/// A connection on its way.
#[derive(Debug)]
pub(crate) struct Reaching {
    key: Arc<Key>,
    way: Way,
    /// The end of the time for looking up and connecting.
    until: Option<Instant>,
    begun: Instant,
    /// The name is not known yet.
    resolving: bool,
    resolve: Option<Duration>,
    connect: Option<Duration>,
}

#[derive(Debug)]
enum Way {
    Name,
    Sockets(Connecting),
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
        Self { key, way: Way::Name, until, begun: now, resolving: false, resolve: None, connect: None }
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
            let Way::Sockets(way) = &mut self.way else {
                match self.find(parts, now, waker)? {
                    Some(until) => break until,
                    None => continue,
                }
            };
            let connected = way.poll(now);
            parts.names.sink(&way.slow(false), now);
            match connected? {
                None => break way.until(),
                Some(socket) => {
                    self.connect = Some(now.saturating_duration_since(self.begun));
                    return Ok(Progress::Done(Connection::new(socket)));
                }
            }
        };
        let (is_over, is_late) = (total.is_some_and(|at| at <= now), self.until.is_some_and(|at| at <= now));
        if is_over || is_late {
            let phase = self.give_up(parts, now);
            return Err(Error::Timeout(if is_over { Phase::Total } else { phase }).into());
        }
        Ok(Progress::Wait([again, self.until, total].into_iter().flatten().min()))
    }

    /// Looks for the addresses: the time until which they are waited for, unless they are there.
    fn find(
        &mut self,
        parts: &Parts,
        now: Instant,
        waker: &Waker,
    ) -> Result<Option<Option<Instant>>, CallError> {
        let (host, port) = match &self.key.place {
            Place::Host(host, port) => (host, *port),
            Place::Socket(path) if self.key.allow == Allow::All => {
                self.way = Way::Sockets(Connecting::to_socket(path.clone()));
                return Ok(None);
            }
            Place::Socket(path) => return Err(CallError::NotAllowed(path.display().to_string())),
        };
        let mut addresses: Vec<SocketAddr> = match literal(host) {
            Some(addresses) => addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            None => match parts.names.find(host, now, waker).map_err(CallError::Resolve)? {
                Found::Addresses(found) => found.to_vec(),
                Found::Pending(until) => {
                    self.resolving = true;
                    return Ok(Some(until));
                }
            },
        };
        addresses.iter_mut().for_each(|address| address.set_port(port));
        parts.names.order(&mut addresses, now);
        if self.resolving {
            self.resolve = Some(now.saturating_duration_since(self.begun));
            self.begun = now;
        }
        self.way = Way::Sockets(Connecting::to(addresses, &self.key.allow));
        Ok(None)
    }

    /// The time has passed: the part of the call for which that is so.
    fn give_up(&mut self, parts: &Parts, now: Instant) -> Phase {
        match &mut self.way {
            Way::Name => Phase::Resolve,
            Way::Sockets(way) => {
                parts.names.sink(&way.slow(true), now);
                Phase::Connect
            }
        }
    }

    /// Writes the times so far.
    pub(crate) fn note(&self, report: &mut Report) {
        (report.resolve, report.connect) = (self.resolve, self.connect);
    }

    /// The sockets that are waited for; none while a name is looked up.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Wanted)> {
        let way = match &self.way {
            Way::Sockets(way) => Some(way.sockets()),
            Way::Name => None,
        };
        way.into_iter().flatten().map(|socket| (socket, Wanted::Write))
    }
}
