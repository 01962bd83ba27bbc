//! A program that does not ignore SIGPIPE; in a process of its own, which such a signal would end.

#![cfg(not(shuttle))]

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use maitred_io::transport::together::{self, Left, Offer};
use maitred_io::transport::{Socket, Transport};

/// Our side of a connection whose peer has ended its side and then sent a reset: the first write raises SIGPIPE.
fn broken() -> Transport {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (ours, _) = listener.accept().expect("a connection");
    peer.write_all(b"x").expect("a byte");
    peer.shutdown(Shutdown::Write).expect("an end");
    socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a reset");
    drop(peer);
    ours.set_nonblocking(true).expect("an option");
    Transport::Plain(Socket::from(OwnedFd::from(ours)))
}

#[test]
fn a_program_that_lets_the_signal_end_it_is_not_ended_by_what_leaves_together() {
    // SAFETY: no handler is set but the system's own.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let (one, other) = (broken(), broken());
    let offer = |transport| Offer::new(transport, [&b"answer"[..]].into_iter());
    let mut left = [Left::Bytes(1); 2];
    together::send(&[offer(&one), offer(&other)], &mut left);
    assert_eq!(left, [Left::Bytes(0); 2], "it is the caller's");
}
