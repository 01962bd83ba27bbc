//! Connecting: all addresses of a name, both families in turn, the next one before the last has failed (RFC 8305).

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use maitred_io::outgoing::{self, Wanted};

use super::call::CallError;
use super::connection::Socket;
use crate::error::{Error, Phase};
use crate::key::Place;

/// The head start of an address. Source: RFC 8305 §5.
const HEAD_START: Duration = Duration::from_millis(250);

/// A socket to `place`.
///
/// # Errors
/// No address takes a connection within `limit`.
pub(super) fn connect(place: &Place, limit: Option<Duration>) -> Result<Socket, CallError> {
    match place {
        Place::Socket(path) => {
            outgoing::connect_unix(path, limit).map(Socket::Unix).map_err(|error| match error.kind() {
                ErrorKind::TimedOut => Error::Timeout(Phase::Connect).into(),
                _ => CallError::Connect(path.display().to_string(), error),
            })
        }
        Place::Host(host, port) => {
            let found = (&**host, *port).to_socket_addrs().map_err(CallError::Resolve)?;
            race(in_turn(found.collect()), limit).map(Socket::Tcp)
        }
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

fn race(mut left: VecDeque<SocketAddr>, limit: Option<Duration>) -> Result<TcpStream, CallError> {
    let until = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut running: Vec<(SocketAddr, TcpStream)> = Vec::new();
    let mut failed = CallError::Resolve(io::Error::new(ErrorKind::NotFound, "it has none"));
    loop {
        if let Some(address) = left.pop_front() {
            match outgoing::connect(&address) {
                Ok(stream) => running.push((address, stream)),
                Err(error) => {
                    failed = CallError::Connect(address.to_string(), error);
                    continue;
                }
            }
        }
        let next = if left.is_empty() { None } else { Instant::now().checked_add(HEAD_START) };
        // Until one has connected, the next one may begin, or none is left.
        loop {
            if let Some(stream) = ended(&mut running, &mut failed) {
                return Ok(stream);
            }
            if running.is_empty() && left.is_empty() {
                return Err(failed);
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Err(Error::Timeout(Phase::Connect).into());
            }
            if running.is_empty() || next.is_some_and(|next| next <= now) {
                break;
            }
            let sockets: Vec<_> = running.iter().map(|(_, stream)| (stream.as_fd(), Wanted::Write)).collect();
            let wait = [until, next].into_iter().flatten().min().map(|at| at.saturating_duration_since(now));
            if let Err(error) = outgoing::wait(&sockets, wait) {
                return Err(CallError::Connect("the system".to_owned(), error));
            }
        }
    }
}

/// A stream that is connected. Those that have failed are taken out.
fn ended(running: &mut Vec<(SocketAddr, TcpStream)>, failed: &mut CallError) -> Option<TcpStream> {
    let mut index = 0;
    while let Some((address, stream)) = running.get(index) {
        match stream.take_error() {
            Ok(None) if stream.peer_addr().is_ok() => return Some(running.swap_remove(index).1),
            Ok(None) => index += 1,
            Ok(Some(error)) | Err(error) => {
                *failed = CallError::Connect(address.to_string(), error);
                running.remove(index);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn families_take_turns() {
        let addresses = |text: &str| -> Vec<SocketAddr> {
            text.split(' ').map(|address| address.parse().expect("an address")).collect()
        };
        let ordered = in_turn(addresses("[::1]:1 [::2]:1 [::3]:1 127.0.0.1:1 127.0.0.2:1"));
        assert_eq!(ordered, addresses("[::1]:1 127.0.0.1:1 [::2]:1 127.0.0.2:1 [::3]:1"));
        assert_eq!(in_turn(addresses("127.0.0.1:1 [::1]:1")), addresses("127.0.0.1:1 [::1]:1"));
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

    #[test]
    fn every_address_is_tried_while_one_does_not_answer() {
        let (refused, good, full) = (listener().1, listener(), full());
        for first in [refused, full.1] {
            let connected = race(VecDeque::from([first, good.1]), None).expect("the second is good");
            assert_eq!(connected.peer_addr().expect("connected"), good.1);
        }
        let all_refused = race(VecDeque::from([refused, refused]), None).expect_err("refused");
        assert!(matches!(all_refused, CallError::Connect(place, _) if place == refused.to_string()));
        assert!(matches!(race(VecDeque::new(), None), Err(CallError::Resolve(_))));
    }

    #[test]
    fn a_unix_socket_whose_queue_is_full_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        rustix::net::listen(&listener, 0).expect("it listens");
        let place = Place::Socket(path);
        let queued = connect(&place, None).expect("the queue has one place");
        let begun = Instant::now();
        let late = connect(&place, Some(Duration::from_millis(20))).expect_err("it is full");
        assert!(begun.elapsed() >= Duration::from_millis(10), "it waits");
        assert!(matches!(late, CallError::Exchange(Error::Timeout(Phase::Connect))), "{late}");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| connect(&place, Some(Duration::from_secs(60))));
            listener.accept().expect("the first");
            waits.join().expect("no panic").expect("there is room now");
        });
        drop(queued);
    }

    #[test]
    fn an_address_that_does_not_answer_is_left_when_the_time_has_passed() {
        let full = full();
        let late = race(VecDeque::from([full.1]), Some(Duration::from_millis(20))).expect_err("no answer");
        assert!(matches!(late, CallError::Exchange(Error::Timeout(Phase::Connect))), "{late}");
    }
}
