//! Bytes that a peer has not taken are known, and can be dropped.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use maitred_io::listener::{Accepted, Address, Listener, SocketOptions};
use maitred_io::transport::{Moved, Socket};

const PATIENCE: Duration = Duration::from_secs(20);

fn connected() -> (Socket, TcpStream) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(&address.into(), &SocketOptions::default()).unwrap();
    let Address::Tcp(address) = *listener.address() else { panic!("no port") };
    let client = TcpStream::connect(address).unwrap();
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Accepted::Connection(socket, _) => return (socket, client),
            _ => assert!(begun.elapsed() < PATIENCE, "nobody came"),
        }
    }
}

/// Sends until the socket takes no more.
fn fill(socket: &Socket) -> u64 {
    let mut sent = 0;
    while let Moved::Bytes(count) = socket.send(&[b'x'; 65536], false) {
        sent += count as u64;
    }
    sent
}

fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never is");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn taken_bytes_are_acknowledged_also_while_the_socket_takes_no_more() {
    let (socket, mut client) = connected();
    assert_eq!(socket.unacknowledged(), 0);
    let sent = fill(&socket);
    let before = socket.unacknowledged();
    assert!(before > 0 && before <= sent, "{before} of {sent}");
    let mut taken = vec![0; usize::try_from(sent / 2).unwrap()];
    client.read_exact(&mut taken).unwrap();
    wait_until(|| socket.unacknowledged() < before);
}

#[test]
fn a_socket_that_is_reset_leaves_nothing_to_its_peer() {
    let (socket, mut client) = connected();
    fill(&socket);
    socket.reset_when_closed();
    drop(socket);
    let read = client.read_to_end(&mut Vec::new());
    assert_eq!(read.expect_err("a reset").kind(), std::io::ErrorKind::ConnectionReset);
}
