//! Taking connections: accept, exhaustion of descriptors, the end of a listener.

use std::io;
use std::sync::{Arc, PoisonError};

use maitred_exchange::{Ends, nanos};
use maitred_http::Peer;
use maitred_io::listener::{Accepted, Credentials, Listener, Remote};
use maitred_io::poller::Interest;
use maitred_io::sync::atomic::Ordering;
use maitred_turns::Signals;

use maitred_io::transport::{Socket, Transport};
use maitred_io::{clock, machine};
use maitred_runtime::Process;

use super::wire::Wire;
use super::{Connection, Group, Protocol, accept_turns, proxy_header};
use crate::group::Occupant;
use crate::group::slots::Token;
use crate::listener::{self, Listening};

/// Connections accepted in one turn before others get theirs: accept and registration cost about
/// 10 µs each, so a turn stays below 1 ms.
const MAX_ACCEPTS_A_TURN: usize = 64;

/// How long no connection is accepted when the process is out of descriptors, in nanoseconds. Connections wait in the
/// kernel's queue meanwhile; retrying at once would spin.
pub(super) const EXHAUSTION_PAUSE: u64 = 50_000_000;

/// Shortest time between two lines about exhaustion in the error log, in nanoseconds.
const EXHAUSTION_REPORT: u64 = 1_000_000_000;

/// Reason for not accepting when only the reserve of descriptors is left.
const NEAR: &str = "the limit of open files is near";

/// Time between two checks while a resource is scarce, in nanoseconds.
pub(super) const LOOK_AGAIN: u64 = 1_000_000_000;

impl Listening {
    /// Takes waiting connections, up to the turn's budget, and checks for scarce resources.
    pub(crate) fn accept(&self, group: &Arc<Group>, token: Token) {
        if group.is_draining() {
            self.close(group, token);
            return;
        }
        if self.shared {
            accept_turns::look(group, Some(token.slot));
            return;
        }
        let most = most(group);
        let paused = self.accept_some(group, token, most);
        if group.look_at_resources(group.groups.open(), most) && !paused {
            group.set_deadline(token.slot, clock::monotonic() + LOOK_AGAIN);
        }
    }

    /// Accepts up to `most` connections. Returns whether the process is out of descriptors; the time of the next
    /// attempt is set then.
    fn accept_some(&self, group: &Arc<Group>, token: Token, most: usize) -> bool {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner);
        let Some(listener) = &*listener else { return false };
        for _ in 0..MAX_ACCEPTS_A_TURN {
            match self.take_one(group, listener, token.slot, most) {
                One::Taken(_) => {}
                One::None => return false,
                One::Full(error) => {
                    self.report_full(group, &error);
                    group.set_deadline(token.slot, clock::monotonic() + EXHAUSTION_PAUSE);
                    return true;
                }
            }
        }
        group.scheduler.ready_next(token.to_u64(), Signals::RESUME);
        false
    }

    /// Takes one waiting connection.
    pub(super) fn accept_one(&self, group: &Arc<Group>, slot: u32) -> One {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner);
        listener.as_ref().map_or(One::None, |listener| self.take_one(group, listener, slot, most(group)))
    }

    /// Takes one waiting connection if fewer than `most` are open.
    fn take_one(&self, group: &Arc<Group>, listener: &Listener, slot: u32, most: usize) -> One {
        let _alone = group.groups.accept_alone();
        if group.groups.open() >= most {
            let why = if most < possible() { "--max-connections is reached" } else { NEAR };
            return One::Full(io::Error::other(why));
        }
        match listener.accept() {
            Accepted::Connection(socket, remote) => match self.take(group, socket, remote, slot) {
                Ok(token) => One::Taken(token),
                Err(error) => One::Full(error),
            },
            Accepted::Empty => One::None,
            Accepted::Exhausted(error) => One::Full(error),
            Accepted::Failed(error) => {
                group.site.log.debug(format_args!("accept on {}: {error}", self.address()));
                One::Taken(None)
            }
        }
    }

    /// Logs that the process is out of descriptors: connections wait in the kernel's queue until some are free again.
    pub(super) fn report_full(&self, group: &Group, error: &io::Error) {
        let now = clock::monotonic();
        let reported = self.reported.load(Ordering::Relaxed);
        if now.saturating_sub(reported) >= EXHAUSTION_REPORT
            && self.reported.compare_exchange(reported, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            group.site.log.error(format_args!(
                "cannot accept on {}: {error}; {} connections are open; new ones wait until some end \
                 (raise the limit of open files, ulimit -n, or --max-connections)",
                self.address(),
                group.groups.open(),
            ));
        }
    }

    /// Takes the connections in the kernel's queue and closes the listener when the queue is empty. Returns false
    /// when descriptors ran out and another attempt is needed.
    fn take_rest(&self, group: &Arc<Group>, index: u32) -> bool {
        let mut place = self.listener.write().unwrap_or_else(PoisonError::into_inner);
        let Some(listener) = &*place else { return true };
        loop {
            match listener.accept() {
                Accepted::Connection(socket, remote) => {
                    if self.take(group, socket, remote, index).is_err() {
                        return false;
                    }
                }
                Accepted::Failed(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Accepted::Exhausted(_) => return false,
                Accepted::Empty | Accepted::Failed(_) => break,
            }
        }
        listener::end(&mut place, &group.scheduler.poller, &group.site.log);
        true
    }

    /// Takes the connections that wait at another socket with the same address, as if they waited at this one.
    /// Returns their number, or the reason why one still waits.
    pub(crate) fn empty(&self, group: &Arc<Group>, other: &Listener, slot: u32) -> io::Result<usize> {
        let most = most(group);
        let mut taken = 0;
        loop {
            match self.take_one(group, other, slot, most) {
                One::Taken(_) => taken += 1,
                One::None => return Ok(taken),
                One::Full(error) => return Err(error),
            }
        }
    }

    /// Closes the listener for a drain: this process, or another worker or a successor where one exists, serves every
    /// connection that the kernel has taken.
    pub(crate) fn close(&self, group: &Arc<Group>, token: Token) {
        if !group.groups.takes_rest() {
            self.shut(&group.scheduler.poller, &group.site.log);
            group.groups.tell_drained();
        } else if self.take_rest(group, token.slot) {
            group.groups.tell_drained();
        } else {
            group.set_deadline(token.slot, clock::monotonic() + EXHAUSTION_PAUSE);
        }
    }

    /// Gives a connection to its group. A client with as many connections as allowed has the new one closed at once:
    /// none of its bytes has been read, so that it costs neither a slot nor a deadline, and the client may ask again
    /// on another connection (RFC 9110 §9.2.2). A response would have to wait for the request, and hold what the
    /// limit is to spare.
    ///
    /// Returns the token if the connection belongs to this group.
    fn take(
        &self,
        group: &Arc<Group>,
        socket: Socket,
        remote: Remote,
        listener: u32,
    ) -> io::Result<Option<Token>> {
        let site = &group.site;
        let (peer, process) = match remote {
            Remote::Ip(address) => (Peer::Ip(address), None),
            Remote::Unix(process) => (Peer::Unix, process),
        };
        let trusted = site.proxies.trusts(peer);
        if self.expects_proxy_header() && !trusted {
            proxy_header::refuse(site, peer, self.address());
            return Ok(None);
        }
        // The connections of a proxy carry the requests of all its clients.
        let counted = if trusted { Some(false) } else { site.guard.open(peer, &site.log) };
        let Some(counted) = counted else { return Ok(None) };
        let (awaits_header, awaits_handshake) = (self.expects_proxy_header(), self.speaks_tls());
        let ends = (process.is_some() || awaits_header || awaits_handshake).then(|| {
            let process = process.map(process_of);
            Box::new(Ends { process, awaits_header, awaits_handshake, ..Ends::default() })
        });
        let home = group.for_connection();
        let transport = if awaits_handshake { Transport::tls(socket) } else { Transport::Plain(socket) };
        Connection::open(&home, transport, Protocol::h1(), (peer, ends), listener, counted)
            .map(|token| {
                if group.groups.has_others()
                    && home
                        .with_connection(token, |connection| connection.wire.read_ahead(&home))
                        .unwrap_or_default()
                {
                    home.resume(token);
                }
                Arc::ptr_eq(group, &home).then_some(token)
            })
            .inspect_err(|_| {
                if counted {
                    site.guard.close(peer);
                }
            })
    }
}

impl Connection {
    /// Takes a connection into the group.
    ///
    /// # Errors
    /// The poller cannot watch the transport. The transport is closed then.
    pub(super) fn open(
        group: &Arc<Group>,
        transport: Transport,
        protocol: Protocol,
        (peer, ends): (Peer, Option<Box<Ends>>),
        listener: u32,
        counted: bool,
    ) -> io::Result<Token> {
        let Some((index, slot)) = group.slots.take() else {
            return Err(io::Error::other("the limit of connections is reached"));
        };
        let token = Token { slot: index, generation: slot.generation() };
        let awaits_header = ends.as_ref().is_some_and(|ends| ends.awaits_header);
        let awaits_handshake = ends.as_ref().is_some_and(|ends| ends.awaits_handshake);
        let timeouts = &group.site.timeouts;
        let time = match (awaits_header, awaits_handshake) {
            (true, _) => proxy_header::TIME,
            (false, true) => nanos(timeouts.handshake),
            (false, false) => nanos(timeouts.head),
        };
        let deadline = clock::monotonic() + time;
        // The lock is held until all fields are set: events may come as soon as the socket is watched.
        let mut place = slot.lock();
        let direct = group.groups.listeners.get(listener as usize).is_some_and(|own| !own.has_writer());
        let has_receipts = group.site.measures.receipt.load(Ordering::Relaxed);
        let wire = Wire::new(transport, (peer, ends), listener, deadline, (has_receipts, direct, counted));
        let watched = wire.transport.watch(&group.scheduler.poller, token.to_u64(), Interest::ReadWrite);
        *place = Some(Occupant::Resident(Self { wire, protocol, shares: None }));
        if let Err(error) = watched {
            *place = None;
            drop(place);
            group.slots.retire(slot);
            group.slots.give_back(index);
            return Err(error);
        }
        group.count_opened();
        group.site.counters.connections.add(1);
        group.set_deadline(index, deadline);
        Ok(token)
    }
}

/// Result of one attempt to take a connection.
pub(super) enum One {
    /// A connection was taken and may have ended already; its token, if this group has it.
    Taken(Option<Token>),
    /// No connection waits.
    None,
    /// The process has no room for another connection.
    Full(io::Error),
}

impl Group {
    /// Checks the resources now; see [`look_at_resources`](Self::look_at_resources).
    pub(super) fn look_at_resources_now(&self) -> bool {
        self.look_at_resources(self.groups.open(), most(self))
    }
}

fn process_of(Credentials { pid, uid, gid }: Credentials) -> Process {
    Process { pid, uid, gid }
}

/// The present limit of connections.
fn most(group: &Group) -> usize {
    group.site.guard.max_connections(possible())
}

/// The largest number of connections that the limit of open files allows.
fn possible() -> usize {
    max_connections(machine::descriptor_limit())
}

/// The number of connections for a limit of open files: an eighth of the limit, between 32 and 512, is left for
/// files, for the engine's own descriptors and for the application.
fn max_connections(descriptors: Option<u64>) -> usize {
    let descriptors = descriptors.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    descriptors.saturating_sub((descriptors / 8).clamp(32, 512)).max(1)
}

#[cfg(test)]
mod tests {
    use super::max_connections;

    #[test]
    fn connections_leave_descriptors_for_files() {
        assert_eq!(max_connections(Some(100)), 68);
        assert_eq!(max_connections(Some(1024)), 896);
        assert_eq!(max_connections(Some(20_000)), 19_488);
        assert_eq!(max_connections(Some(10)), 1);
    }
}
