//! A listener's count of the connections that wait for it.

use std::net::TcpStream;

use maitred_io::listener::{Accepted, Address, Listener, SocketOptions};

#[test]
fn connections_that_wait_are_seen() {
    let address = Address::Tcp(([127, 0, 0, 1], 0).into());
    let listener = Listener::bind(&address, &SocketOptions::default()).unwrap();
    let empty = listener.backlog().expect("this kernel tells");
    assert_eq!(empty.waiting, 0);
    assert!(empty.max > 0);
    let Address::Tcp(address) = *listener.address() else { panic!("no port") };
    let connections = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    assert_eq!(listener.backlog().unwrap().waiting, 3);
    assert!(matches!(listener.accept(), Accepted::Connection(..)));
    assert_eq!(listener.backlog().unwrap().waiting, 2);
    drop(connections);
}
