//! Calls that push their response, with a driver that only goes on.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::thread;
use std::time::Instant;

use maitred_client::call::Options;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Flow, Next, Pushed, Receiver, RequestBody};
use maitred_client::{CallError, Client, Report, Settings};
use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{FieldSet, Method, ResponseHead};

const BLOCK: usize = 64 * 1024;
const ALL: usize = 256 * BLOCK;

/// Gives a block wherever there is room.
struct Producer(Arc<AtomicUsize>);

impl Receiver for Producer {
    fn head(&mut self, _: &CallHandle, _: ResponseHead, _: ResponseFacts) -> Flow {
        Flow::Continue
    }

    fn data(&mut self, _: &CallHandle, _: &[u8]) -> Flow {
        Flow::Continue
    }

    fn room(&mut self, call: &CallHandle) {
        if self.0.load(Ordering::SeqCst) < ALL {
            self.0.fetch_add(call.give_body(&[b'x'; BLOCK]), Ordering::SeqCst);
        }
    }

    fn end(self: Box<Self>, result: Result<(), CallError>, _: &Report) {
        result.expect("a response");
    }
}

#[test]
fn a_producer_without_end_leaves_other_calls_their_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let (mut buffer, mut body) = (vec![0; BLOCK], 0);
        while body < ALL {
            let length = stream.read(&mut buffer).expect("a body");
            body += buffer[..length].iter().filter(|byte| **byte == b'x').count();
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("a reader");
    });
    let given = Arc::new(AtomicUsize::new(0));
    let request = OutgoingRequest {
        method: &Method::Post,
        target: b"/",
        authority: b"a",
        fields: &FieldSet::new(),
        length: Some(ALL as u64),
        upgrade: false,
    };
    let (client, key) = (Client::new(Settings::default()), Arc::new(Key::plain("127.0.0.1", address.port())));
    let (receiver, now) = (Box::new(Producer(Arc::clone(&given))), Instant::now());
    let options = Options::default();
    let waker = Waker::noop().clone();
    let call = Pushed::begin(&client, &key, &request, RequestBody::Given, &options, receiver, waker, now);
    let mut call = call.expect("a good request");
    let mut turns = Vec::new();
    loop {
        let before = given.load(Ordering::SeqCst);
        let next = call.go_on(Instant::now());
        turns.push(given.load(Ordering::SeqCst) - before);
        match next {
            Next::Ended => break,
            Next::Wait(_) => thread::yield_now(),
            Next::Later => (),
        }
    }
    server.join().expect("the server has had all");
    assert_eq!(turns.iter().sum::<usize>(), ALL);
    let most = turns.iter().max();
    assert!(most <= Some(&(5 * BLOCK)), "a turn moved {most:?} bytes of the body");
}
