//! Connecting: all addresses of a name, both families in turn, the next one before the last has failed (RFC 8305).
//!
//! Leaves out: waiting; the caller looks again when a socket is ready or the time has come.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use maitred_io::outgoing;

use crate::allow::Allow;
use crate::connection::Socket;
use crate::failure::CallError;

/// The head start of an address. Source: RFC 8305 §5.
const HEAD_START: Duration = Duration::from_millis(250);

/// The most attempts at once. The oldest of more has had five head starts, in which a lost SYN was sent again.
const MOST_AT_ONCE: usize = 6;

/// The most addresses in a text.
const MOST_NAMED: usize = 4;

/// The time until a Unix socket whose queue is full is tried again: no event tells when it has room.
const UNIX_AGAIN: Duration = Duration::from_millis(5);

/// The way to a connection.
#[derive(Debug)]
pub(crate) enum Connecting {
    Race(Race),
    Unix { path: PathBuf, again: Option<Instant> },
}

/// The attempts at several addresses.
#[derive(Debug)]
pub(crate) struct Race {
    left: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Socket)>,
    /// The time at which the next address gets its attempt, whatever the others do.
    next: Option<Instant>,
    failed: Option<CallError>,
    allow: Allow,
    /// All addresses that had an attempt.
    tried: Vec<SocketAddr>,
    /// Addresses that have failed, or were slower than others.
    slow: Vec<SocketAddr>,
}

impl Connecting {
    /// To the best of the addresses that `allow` has. Those of the second group come when all of the first one are tried.
    pub(crate) fn to(groups: [Vec<SocketAddr>; 2], allow: &Allow) -> Self {
        let (left, allow) = (groups.into_iter().flat_map(in_turn).collect(), allow.clone());
        let (running, tried, slow) = (Vec::new(), Vec::new(), Vec::new());
        Self::Race(Race { left, running, next: None, failed: None, allow, tried, slow })
    }

    pub(crate) fn to_socket(path: PathBuf) -> Self {
        Self::Unix { path, again: None }
    }

    /// The addresses that have failed so far or were slower than others; with `all` those that have not answered yet, too.
    pub(crate) fn slow(&mut self, all: bool) -> Vec<SocketAddr> {
        let Self::Race(race) = self else { return Vec::new() };
        if all {
            race.slow.extend(race.running.iter().map(|(address, _)| *address));
        }
        std::mem::take(&mut race.slow)
    }

    /// The places that had an attempt, as text.
    pub(crate) fn tried(&self) -> String {
        let tried = match self {
            Self::Race(race) => &race.tried,
            Self::Unix { path, .. } => return path.display().to_string(),
        };
        let named: Vec<String> = tried.iter().take(MOST_NAMED).map(ToString::to_string).collect();
        let more = match tried.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        named.join(", ") + &more
    }

    /// A socket that is connected, if one is.
    ///
    /// # Errors
    /// No address takes the connection.
    pub(crate) fn poll(&mut self, now: Instant) -> Result<Option<Socket>, CallError> {
        match self {
            Self::Race(race) => race.poll(now),
            Self::Unix { path, again } => match outgoing::connect_unix(path) {
                Ok(stream) => Ok(Some(Socket::unix(stream))),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    *again = now.checked_add(UNIX_AGAIN);
                    Ok(None)
                }
                Err(error) => Err(CallError::Connect(path.display().to_string(), error)),
            },
        }
    }

    /// The time at which there is something to do although no socket is ready.
    pub(crate) fn until(&self) -> Option<Instant> {
        match self {
            Self::Race(race) => race.next.filter(|_| !race.left.is_empty()),
            Self::Unix { again, .. } => *again,
        }
    }

    /// The sockets that are waited for until they can be written to.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let running = match self {
            Self::Race(race) => &*race.running,
            Self::Unix { .. } => &[],
        };
        running.iter().map(|(_, socket)| socket.as_fd())
    }
}

/// The addresses with the families in turn, the family of the first one first (RFC 8305 §4).
fn in_turn(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_ipv4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (mut these, mut others): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_ipv4);
    let mut ordered = VecDeque::with_capacity(these.len() + others.len());
    while !these.is_empty() || !others.is_empty() {
        ordered.extend(these.pop_front());
        ordered.extend(others.pop_front());
    }
    ordered
}

impl Race {
    fn poll(&mut self, now: Instant) -> Result<Option<Socket>, CallError> {
        loop {
            if let Some(socket) = self.ended() {
                return Ok(Some(socket));
            }
            let is_due = self.running.is_empty() || self.next.is_none_or(|next| next <= now);
            match if is_due { self.left.pop_front() } else { None } {
                Some(address) => self.begin(address, now),
                None if self.running.is_empty() => return Err(self.failure()),
                None => return Ok(None),
            }
        }
    }

    fn begin(&mut self, address: SocketAddr, now: Instant) {
        if !self.allow.allows(address.ip()) {
            self.failed.get_or_insert_with(|| CallError::NotAllowed(address.ip().to_string()));
            return;
        }
        self.tried.push(address);
        match outgoing::connect(&address) {
            Ok(stream) => {
                if self.running.len() >= MOST_AT_ONCE {
                    self.running.remove(0);
                }
                self.running.push((address, Socket::tcp(stream)));
                self.next = now.checked_add(HEAD_START);
            }
            Err(error) => {
                self.slow.push(address);
                self.failed = Some(CallError::Connect(address.to_string(), error));
            }
        }
    }

    /// A socket that is connected. Those that have failed are taken out.
    fn ended(&mut self) -> Option<Socket> {
        let mut index = 0;
        while let Some((address, socket)) = self.running.get(index) {
            match socket.is_connected() {
                Ok(true) => {
                    // The addresses in front of this one had a head start.
                    self.slow.extend(self.running.iter().take(index).map(|(address, _)| *address));
                    return Some(self.running.swap_remove(index).1);
                }
                Ok(false) => index += 1,
                Err(error) => {
                    self.slow.push(*address);
                    self.failed = Some(CallError::Connect(address.to_string(), error));
                    self.running.remove(index);
                    // Its place goes to the next address at once.
                    self.next = None;
                }
            }
        }
        None
    }

    fn failure(&mut self) -> CallError {
        let none = || CallError::Resolve(io::Error::new(ErrorKind::NotFound, "it has none"));
        self.failed.take().unwrap_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use maitred_io::outgoing::Wanted;

    use super::*;

    #[test]
    fn families_take_turns() {
        let addresses = |text: &str| -> Vec<SocketAddr> {
            text.split(' ').map(|address| address.parse().expect("an address")).collect()
        };
        let ordered = in_turn(addresses("[::1]:1 [::2]:1 [::3]:1 127.0.0.1:1 127.0.0.2:1"));
        assert_eq!(ordered, addresses("[::1]:1 127.0.0.1:1 [::2]:1 127.0.0.2:1 [::3]:1"));
        assert_eq!(in_turn(addresses("127.0.0.1:1 [::1]:1")), addresses("127.0.0.1:1 [::1]:1"));
        let groups = ["127.0.0.1:1 127.0.0.2:1", "[::1]:1 127.0.0.3:1"].map(addresses);
        let ordered = addresses("127.0.0.1:1 127.0.0.2:1 [::1]:1 127.0.0.3:1");
        let way = Connecting::to(groups, &Allow::All);
        assert!(matches!(way, Connecting::Race(race) if race.left == ordered), "sunk ones are last");
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    /// A server whose queue is full: it answers no SYN.
    fn full() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
        let (listener, address) = listener();
        rustix::net::listen(&listener, 0).expect("it listens");
        let queued = std::iter::repeat_with(|| outgoing::connect(&address).expect("begun")).take(4).collect();
        (listener, address, queued)
    }

    /// Connects in virtual time: each wait without a ready socket lets the time of the next attempt come.
    fn connected(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<(Socket, Duration), CallError> {
        let way = &mut Connecting::to([addresses.into_iter().collect(), vec![]], &Allow::All);
        drive(way)
    }

    fn drive(way: &mut Connecting) -> Result<(Socket, Duration), CallError> {
        let begun = Instant::now();
        let mut now = begun;
        loop {
            if let Some(socket) = way.poll(now)? {
                return Ok((socket, now - begun));
            }
            let sockets: Vec<_> = way.sockets().map(|socket| (socket, Wanted::Write)).collect();
            match way.until() {
                Some(until) => now = until,
                None => drop(outgoing::wait(&sockets, None).expect("it waits")),
            }
        }
    }

    #[test]
    fn every_address_is_tried_while_one_does_not_answer() {
        let (refused, good, full) = (listener().1, listener(), full());
        for first in [refused, full.1] {
            let (socket, after) = connected([first, good.1]).expect("the second is good");
            assert_eq!(socket.peer(), Some(good.1));
            assert!(after <= HEAD_START, "{after:?}");
        }
        let (_, after) = connected(std::iter::repeat_n(full.1, 8).chain([good.1])).expect("the last is good");
        assert_eq!(after, HEAD_START * 8);
        let all_refused = connected([refused, refused]).expect_err("refused");
        assert!(matches!(all_refused, CallError::Connect(place, _) if place == refused.to_string()));
        assert!(matches!(connected([]), Err(CallError::Resolve(_))));
    }

    #[test]
    fn addresses_that_fail_or_are_slow_are_noted() {
        let (refused, good, full) = (listener().1, listener(), full());
        let mut way = Connecting::to([vec![refused, full.1, good.1], vec![]], &Allow::All);
        drive(&mut way).expect("the last is good");
        assert_eq!(way.slow(false), [refused, full.1]);
        let mut way = Connecting::to([vec![full.1], vec![]], &Allow::All);
        assert!(way.poll(Instant::now()).expect("it is tried").is_none());
        assert_eq!((way.slow(false), way.slow(true)), (vec![], vec![full.1]));
        let mut way = Connecting::to([vec![refused; 7], vec![]], &Allow::All);
        assert!(drive(&mut way).is_err());
        assert_eq!(way.tried(), format!("{refused}, {refused}, {refused}, {refused} and 3 more"));
    }

    #[test]
    fn an_address_that_is_not_allowed_is_not_connected() {
        let (good, refused) = (listener(), listener().1);
        let failed = |addresses: &[SocketAddr], allow: &str| {
            let allow = Allow::Networks([allow.parse().expect("a network")].into());
            let mut way = Connecting::to([addresses.to_vec(), vec![]], &allow);
            drive(&mut way).map(|_| ()).map_err(|error| error.kind())
        };
        assert_eq!(failed(&[good.1], "10.0.0.0/8"), Err("allow"));
        assert_eq!(failed(&[good.1], "127.0.0.0/8"), Ok(()));
        let other = SocketAddr::from(([127, 0, 0, 2], refused.port()));
        assert_eq!(failed(&[other, good.1], "127.0.0.1"), Ok(()), "the others are tried");
        assert_eq!(
            failed(&[other, refused], "127.0.0.1"),
            Err("connect"),
            "the failure of one that is allowed"
        );
        good.0.set_nonblocking(true).expect("a socket");
        assert_eq!(std::iter::from_fn(|| good.0.accept().ok()).count(), 2, "not one more");
    }

    #[test]
    fn a_unix_socket_whose_queue_is_full_is_tried_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        rustix::net::listen(&listener, 0).expect("it listens");
        let now = Instant::now();
        let connect = || Connecting::to_socket(path.clone()).poll(now).expect("it exists");
        let queued = connect().expect("the queue has one place");
        assert!(connect().is_none(), "it is full");
        let mut late = Connecting::to_socket(path.clone());
        assert!(late.poll(now).expect("it exists").is_none());
        assert_eq!(late.until(), Some(now + UNIX_AGAIN));
        listener.accept().expect("the first");
        assert!(late.poll(now).expect("it exists").is_some(), "there is room now");
        drop(queued);
    }
}
