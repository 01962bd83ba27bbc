//! Sockets that listen before there is a server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::harness::{
    PATIENCE, Running, ask, connect, get_last, read_all, read_response, settings, start, text,
};
use maitred_runtime::Exchange;
use maitred_server::listening::{Address, UnixAddress};
use maitred_server::{Accept, Bell, BoundListeners, ListenerSettings, Routes, Server, Settings, StartError};

fn greet(exchange: Exchange) {
    text(exchange, "served");
}

fn with(listeners: Vec<ListenerSettings>, bound: BoundListeners) -> Settings {
    let routes = Routes::new().with_application(Arc::new(greet));
    Settings { listeners, bound: Some(bound), ..settings(routes) }
}

#[test]
fn who_connects_before_the_server_is_there_waits_and_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listeners = vec!["127.0.0.1:0".parse().expect("an address"), UnixAddress::path(&path).into()];
    let bound = BoundListeners::bind(&listeners).expect("bound");
    let addresses: Vec<Address> = bound.addresses().cloned().collect();
    let mut early = connect(addresses[0].tcp().expect("the first one is TCP"));
    early.write_all(&get_last("/")).expect("the kernel takes it");
    let mut local = UnixStream::connect(&path).expect("it listens");
    local.write_all(&get_last("/")).expect("the kernel takes it");
    let running = start(with(listeners, bound));
    assert_eq!(running.server.addresses(), addresses);
    assert!(read_all(&mut early).ends_with("served"));
    let mut said = String::new();
    local.read_to_string(&mut said).expect("text");
    assert!(said.ends_with("served"), "{said}");
    drop(running);
    assert!(!path.exists());
}

#[test]
fn without_a_server_they_close_and_leave_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let holder = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = holder.local_addr().expect("bound");
    let listeners = [UnixAddress::path(&path).into(), "127.0.0.1:0".parse().expect("an address")];
    let bound = BoundListeners::bind(&listeners).expect("bound");
    let address = bound.addresses().nth(1).and_then(Address::tcp).expect("TCP");
    assert!(path.exists() && TcpStream::connect(address).is_ok());
    drop(bound);
    assert!(!path.exists() && TcpStream::connect(address).is_err());
    // The same where a later one cannot be had.
    let listeners = [UnixAddress::path(&path).into(), ListenerSettings::from(taken)];
    let (address, _) = BoundListeners::bind(&listeners).err().expect("it is taken");
    assert_eq!(address, Address::Tcp(taken));
    assert!(!path.exists());
}

#[test]
fn each_listener_has_its_socket() {
    let listeners = vec!["127.0.0.1:0".parse().expect("an address")];
    let refused = Server::start(with(listeners, BoundListeners::default())).err();
    assert!(matches!(refused, Some(StartError::System(_))), "{refused:?}");
}

/// Copies of sockets, as another process gets them.
fn copies(bound: &BoundListeners) -> Vec<OwnedFd> {
    bound.descriptors().map(|socket| socket.try_clone_to_owned().expect("a descriptor")).collect()
}

/// A worker at sockets that others have, too.
fn worker(listeners: &[ListenerSettings], bound: &BoundListeners, accept: Accept) -> Running {
    let own = BoundListeners::adopt(copies(bound), listeners).expect("adopted");
    start(Settings { accept, ..with(listeners.to_vec(), own) })
}

#[test]
fn what_waits_when_one_of_several_ends_is_left_to_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listeners = vec!["127.0.0.1:0".parse().expect("an address"), UnixAddress::path(&path).into()];
    let bound = BoundListeners::bind(&listeners).expect("bound");
    let address = bound.addresses().next().and_then(Address::tcp).expect("TCP");
    for accept in [Accept::Shared as fn(Bell) -> Accept, Accept::Own] {
        let one = worker(&listeners, &bound, accept(Bell::new().expect("a descriptor")));
        one.server.drain();
        assert!(one.server.wait_drained(PATIENCE));
        let mut waiting = ask(address, "/");
        let mut local = UnixStream::connect(&path).expect("it listens");
        local.write_all(&get_last("/")).expect("the kernel takes it");
        drop(one);
        let other = worker(&listeners, &bound, accept(Bell::new().expect("a descriptor")));
        assert!(read_response(&mut waiting).0.starts_with("HTTP/1.1 200"));
        let mut said = String::new();
        local.read_to_string(&mut said).expect("text");
        assert!(said.ends_with("served"), "{said}");
        drop(other);
        assert!(path.exists(), "it is that of whoever bound it");
    }
    drop(bound);
    assert!(!path.exists());
}

#[test]
fn the_last_of_several_serves_what_waits() {
    let listeners = vec!["127.0.0.1:0".parse().expect("an address")];
    let bound = BoundListeners::bind(&listeners).expect("bound");
    let address = bound.addresses().next().and_then(Address::tcp).expect("TCP");
    let mut waiting: Vec<_> = (0..20).map(|_| ask(address, "/")).collect();
    let last = worker(&listeners, &bound, Accept::Shared(Bell::new().expect("a descriptor")));
    last.server.drain_last();
    for stream in &mut waiting {
        assert!(read_response(stream).0.starts_with("HTTP/1.1 200"));
    }
    assert!(last.server.wait_drained(PATIENCE));
}

#[test]
fn sockets_and_listeners_are_as_many() {
    let listeners: Vec<ListenerSettings> = vec!["127.0.0.1:0".parse().expect("an address"); 2];
    let bound = BoundListeners::bind(&listeners).expect("bound");
    let one = copies(&bound).into_iter().take(1).collect();
    let (_, error) = BoundListeners::adopt(one, &listeners).err().expect("one is missing");
    assert_eq!(error.what(), "1 sockets are handed over for 2 listeners");
    let (_, error) = BoundListeners::adopt(copies(&bound), &listeners[..1]).err().expect("one is too many");
    assert_eq!(error.what(), "2 sockets are handed over for 1 listeners");
}
