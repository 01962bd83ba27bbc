//! A child process, as its clients see it: this test has a process of its own, which takes itself for a child.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use maitred_client::blocking::{Body, Client, Request, Settings};
use maitred_client::key::Key;
use maitred_client::{Kept, Times, pool};
use maitred_http::{FieldSet, Method};

fn serve(mut stream: TcpStream) {
    let mut bytes = [0; 1000];
    while let Ok(1..) = stream.read(&mut bytes) {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npart").expect("a reader");
    }
}

fn request() -> Request<'static> {
    Request {
        method: Method::Get,
        target: "/",
        authority: "a",
        fields: FieldSet::new(),
        body: Body::Bytes(b""),
        repeatable: None,
    }
}

#[test]
fn a_child_begins_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let key = Arc::new(Key::plain("127.0.0.1", listener.local_addr().expect("bound").port()));
    thread::spawn(move || {
        listener.incoming().for_each(|stream| drop(thread::spawn(|| serve(stream.expect("a client")))));
    });
    let pool = pool::Settings { per_key: 2, ..pool::Settings::default() };
    let times = Times { slot: Some(Duration::ZERO), ..Times::default() };
    let client = Client::new(Settings { pool, times, ..Settings::default() });
    let mut streaming = client.send(&key, request()).expect("a head");
    let mut other = client.send(&key, request()).expect("a head");
    assert_eq!(other.read_all(9).expect("a body"), b"part");
    assert_eq!((client.idle(), client.holders().len()), (1, 1));

    let (unused, token) = (pool::Pool::new(pool), Arc::new(()));
    let now = Instant::now();
    let mut slot = unused.check_out(&key, 0, now).expect("it is empty");
    slot.put(Arc::clone(&token), now);
    slot.give_back(Kept::default(), now);

    maitred_client::after_fork_in_child();
    drop(unused);
    assert_eq!(Arc::strong_count(&token), 2, "the parent's connections are not freed");
    assert_eq!((client.idle(), client.holders().len()), (0, 0));
    let failed = streaming.read_all(9).expect_err("the connection is the parent's");
    assert_eq!(failed.kind(), "closed", "{failed}");
    // The slots of the parent do not count.
    let mut slots: Vec<_> = (0..2).map(|_| client.send(&key, request()).expect("a head")).collect();
    client.send(&key, request()).expect_err("these are two");
    drop(streaming);
    drop(other);
    client.send(&key, request()).expect_err("they gave nothing back here");
    for response in &mut slots {
        assert_eq!(response.read_all(9).expect("a body"), b"part");
    }
    assert_eq!((client.idle(), client.holders().len()), (2, 0));
}
