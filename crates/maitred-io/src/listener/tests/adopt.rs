use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::sockopt;

use super::super::*;
use super::accepted;

fn tcp() -> Address {
    Address::Tcp(([127, 0, 0, 1], 0).into())
}

fn bound(address: &Address) -> Listener {
    Listener::bind(address, &SocketOptions::default()).expect("bound")
}

fn copy(socket: impl AsFd) -> OwnedFd {
    socket.as_fd().try_clone_to_owned().expect("a descriptor")
}

fn refusal(socket: impl Into<OwnedFd>, address: &Address) -> String {
    let error =
        Listener::adopt(socket.into(), address, &SocketOptions::default()).err().expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.remedy().contains("in the order of the listeners"), "{error}");
    error.what().to_owned()
}

#[test]
fn another_listener_accepts_from_a_bound_socket() {
    let one = bound(&tcp());
    let address = one.address().clone();
    // With a given port, and with one that the system has chosen.
    for asked in [tcp(), address.clone()] {
        let other = Listener::adopt(copy(&one), &asked, &SocketOptions::default()).expect("adopted");
        assert_eq!(*other.address(), address);
        assert!(matches!(other.accept(), Accepted::Empty));
        let client = TcpStream::connect(address.tcp().expect("TCP")).expect("it listens");
        let (_, remote) = accepted(&other);
        assert_eq!(remote, Remote::Ip(client.local_addr().expect("bound")));
    }
}

#[test]
fn a_socket_of_another_process_gets_the_options() {
    let made = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = Address::Tcp(made.local_addr().expect("bound"));
    let options = SocketOptions { defer_accept: Some(1), ..SocketOptions::default() };
    let listener = Listener::adopt(made.into(), &address, &options).expect("adopted");
    assert_eq!(sockopt::tcp_nodelay(&listener), Ok(true));
    assert!(listener.active().defer_accept.is_some());
    // The kernel would have it wait otherwise.
    assert!(matches!(listener.accept(), Accepted::Empty));
}

#[test]
fn a_unix_socket_keeps_its_file_until_that_is_ones_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let address = Address::from(UnixAddress::path(&path));
    let one = bound(&address);
    let mut other = Listener::adopt(copy(&one), &address, &SocketOptions::default()).expect("adopted");
    let _client = UnixStream::connect(&path).expect("it listens");
    accepted(&other);
    other.remove_file().expect("nothing to remove");
    assert!(path.exists());
    other.own_file();
    other.disown_file();
    other.remove_file().expect("nothing to remove");
    assert!(path.exists());
    other.own_file();
    other.remove_file().expect("removed");
    assert!(!path.exists());
}

#[test]
fn one_with_a_name_in_the_kernel_is_known_by_it() {
    let name = format!("maitred-adopt-{}", std::process::id());
    let address = |name: &str| Address::from(UnixAddress::abstract_name(name));
    let one = bound(&address(&name));
    Listener::adopt(copy(&one), &address(&name), &SocketOptions::default()).expect("adopted");
    assert_eq!(
        refusal(copy(&one), &address("other")),
        format!("the descriptor that is handed over for unix:@other is one of unix:@{name}")
    );
}

#[test]
fn other_descriptors_are_refused_by_their_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = |name: &str| Address::from(UnixAddress::path(folder.path().join(name)));
    let begin = "the descriptor that is handed over for 127.0.0.1:0 is";
    let file = std::fs::File::open("/dev/null").expect("there is one");
    assert_eq!(refusal(file, &tcp()), format!("{begin} no socket"));
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    assert_eq!(refusal(datagrams, &tcp()), format!("{begin} no stream socket"));
    let listener = bound(&tcp());
    let client = TcpStream::connect(listener.address().tcp().expect("TCP")).expect("it listens");
    assert_eq!(refusal(client, &tcp()), format!("{begin} a socket that does not listen"));
    // Another family, another address, another port.
    let unix = bound(&local("s"));
    assert!(refusal(copy(&unix), &tcp()).starts_with(&format!("{begin} one of unix:")));
    assert!(refusal(copy(&listener), &local("s")).ends_with(&format!("one of {}", listener.address())));
    for other in ["127.0.0.2:0", "[::1]:0", "127.0.0.1:1"] {
        let other = Address::Tcp(other.parse().expect("an address"));
        assert!(refusal(copy(&listener), &other).ends_with(&format!("one of {}", listener.address())));
    }
    assert!(refusal(copy(&unix), &local("other")).contains(" one of unix:"));
    assert!(Path::new(&folder.path().join("s")).exists());
}
