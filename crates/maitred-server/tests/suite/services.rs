//! A service of the engine over HTTP/1: it answers exchanges from the events of other connections, while every application
//! thread is busy. No file of the engine knows it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use maitred_server::Routes;
use maitred_testkit::wall::Wall;

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::{Running, ask, connect, exchange, get, get_last, read_all, settings, start, wait_until};

/// More than the kernel takes for a peer that does not read.
const MUCH: usize = 16 << 20;

/// A server with a wall, beside an application whose only thread is busy.
fn with_wall() -> (Running, Arc<Wall>, Opened, impl Sized) {
    let (wall, door) = (Arc::new(Wall::default()), Arc::new(Door::default()));
    let routes = Routes::new()
        .with_mounted("/wall", "wall", Arc::clone(&wall) as Arc<_>)
        .with_application(Arc::new(guarded(&door)));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let busy = ask(running.address, "/wait");
    door.wait_for(1);
    (running, wall, Opened(door), busy)
}

/// The body of the response for `path`, on a connection of its own.
fn body(address: SocketAddr, path: &str) -> String {
    exchange(address, &get_last(path)).rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn an_exchange_is_answered_from_the_event_of_another_connection() {
    let (running, _wall, _door, _busy) = with_wall();
    let address = running.address;
    let mut first = ask(address, "/wall/listen");
    wait_until("the first one waits", || body(address, "/wall/say?1") == "1 of 1");
    let mut second = connect(address);
    second.write_all(&[get("/wall/listen"), get("/wall/say?7")].concat()).unwrap();
    wait_until("both wait", || body(address, "/wall/say?5") == "2 of 2");
    assert_eq!(body(address, "/wall/end"), "0 of 2");
    second.shutdown(std::net::Shutdown::Write).unwrap();
    let second = read_all(&mut second);
    assert!(second.contains("\r\n\r\n5\r\nwwwww\r\n"), "{second}");
    assert!(second.ends_with("0 of 0"), "the next request of the connection is answered behind it: {second}");
    first.shutdown(std::net::Shutdown::Write).unwrap();
    let first = read_all(&mut first);
    assert!(first.contains("\r\n1\r\nw\r\n5\r\nwwwww\r\n") && first.ends_with("0\r\n\r\n"), "{first}");
}

#[test]
fn a_peer_that_leaves_is_told_to_the_service() {
    let (running, wall, _door, _busy) = with_wall();
    let address = running.address;
    let listener = ask(address, "/wall/listen");
    wait_until("it waits", || body(address, "/wall/say?1") == "1 of 1");
    let before = wall.changes();
    drop(listener);
    wait_until("the service is told", || wall.changes() > before);
    wait_until("it is forgotten", || body(address, "/wall/say?1") == "0 of 0");
}

#[test]
fn a_peer_that_takes_nothing_gets_nothing_more_until_it_has_read() {
    let (running, wall, _door, _busy) = with_wall();
    let address = running.address;
    let mut listener = ask(address, "/wall/listen");
    wait_until("it waits", || body(address, &format!("/wall/say?{MUCH}")) == "1 of 1");
    assert_eq!(body(address, "/wall/say?1"), "0 of 1", "there is no room");
    let before = wall.changes();
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while read < MUCH {
        read += listener.read(&mut buffer).unwrap();
    }
    wait_until("the service is told", || wall.changes() > before);
    wait_until("there is room", || body(address, "/wall/say?1") == "1 of 1");
}
