//! Calls of the engine to other servers: turns of a poll group, whose receivers are called by its threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use maitred_client::call::Options;
use maitred_client::exchange::Timeouts;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Flow, Receiver, RequestBody};
use maitred_client::{CallError, End, Report, Times};
use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{FieldSet, Method, ResponseHead};
use maitred_server::{EngineClient, Routes};

use crate::harness::{PATIENCE, Running, serve, settings, start, text, wait_until};

/// A server that serves each connection by `serve`, one after the other.
pub(crate) fn upstream(mut serve: impl FnMut(&mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(&mut stream.expect("a connection"));
        }
    });
    address
}

/// The head of a request; none if the client has gone.
pub(crate) fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Answers each request of each connection with `answer`.
fn answering(answer: &'static str) -> SocketAddr {
    upstream(move |stream| {
        while head(stream).is_some() {
            stream.write_all(answer.as_bytes()).expect("the client takes it");
        }
    })
}

/// An event that a receiver had.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Head(u16),
    Data(usize),
    Room,
    Trailers,
    /// The name of the end, and whether the connection was used before.
    End(String, bool),
}

/// Passes what it gets on, and wishes what `flow` says behind each part.
struct Teller {
    seen: Mutex<Sender<Seen>>,
    flow: Box<dyn FnMut(&Seen) -> Flow + Send>,
}

impl Teller {
    fn tell(&mut self, seen: Seen) -> Flow {
        let flow = (self.flow)(&seen);
        let _ = self.seen.lock().expect("not poisoned").send(seen);
        flow
    }
}

impl Receiver for Teller {
    fn head(&mut self, _: &CallHandle, head: ResponseHead, _: ResponseFacts) -> Flow {
        self.tell(Seen::Head(head.status.code()))
    }

    fn data(&mut self, _: &CallHandle, bytes: &[u8]) -> Flow {
        self.tell(Seen::Data(bytes.len()))
    }

    fn room(&mut self, _: &CallHandle) {
        self.tell(Seen::Room);
    }

    fn trailers(&mut self, _: &FieldSet) {
        self.tell(Seen::Trailers);
    }

    fn end(mut self: Box<Self>, result: Result<(), CallError>, report: &Report) {
        let name = match (&result, report.end) {
            (Ok(()), End::Complete) => "complete".to_owned(),
            (Err(error), _) => error.to_string(),
            (Ok(()), other) => format!("{other:?}"),
        };
        self.tell(Seen::End(name, report.reused));
    }
}

/// A call of a test.
struct Asked {
    handle: CallHandle,
    seen: mpsc::Receiver<Seen>,
}

impl Asked {
    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("an event")
    }

    /// Everything up to the end; bytes of the body as one number.
    fn all(&self) -> (Vec<Seen>, usize) {
        let (mut all, mut bytes) = (Vec::new(), 0);
        loop {
            match self.next() {
                Seen::Data(length) => bytes += length,
                end @ Seen::End(..) => {
                    all.push(end);
                    return (all, bytes);
                }
                other => all.push(other),
            }
        }
    }

    fn end(&self) -> String {
        match self.all().0.pop() {
            Some(Seen::End(name, _)) => name,
            other => panic!("no end: {other:?}"),
        }
    }
}

fn ask_with(
    client: &EngineClient,
    address: SocketAddr,
    (method, body): (Method, RequestBody),
    times: Times,
    flow: impl FnMut(&Seen) -> Flow + Send + 'static,
) -> Result<Asked, CallError> {
    let (sender, seen) = mpsc::channel();
    let authority = address.to_string();
    let request = OutgoingRequest {
        method: &method,
        target: b"/",
        authority: authority.as_bytes(),
        fields: &FieldSet::new(),
        length: None,
        upgrade: false,
    };
    let key = Arc::new(Key::plain(&address.ip().to_string(), address.port()));
    let options = Options { times, ..Options::default() };
    let receiver = Teller { seen: Mutex::new(sender), flow: Box::new(flow) };
    let handle = client.start(&key, &request, body, &options, Box::new(receiver))?;
    Ok(Asked { handle, seen })
}

fn whole() -> (Method, RequestBody) {
    (Method::Get, RequestBody::Whole(Vec::new()))
}

fn ask(client: &EngineClient, address: SocketAddr) -> Asked {
    ask_with(client, address, whole(), Times::default(), |_| Flow::Continue).expect("a call")
}

fn server() -> Running {
    serve(|exchange: maitred_runtime::Exchange| text(exchange, "hello"))
}

fn complete(status: u16, reused: bool) -> Vec<Seen> {
    vec![Seen::Head(status), Seen::End("complete".to_owned(), reused)]
}

#[test]
fn a_small_response_comes_whole_and_its_connection_serves_the_next_call() {
    let running = server();
    let address = answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    let client = running.server.client();
    for reused in [false, true, true] {
        let asked = ask(client, address);
        assert_eq!(asked.all(), (complete(200, reused), 5));
        assert!(asked.handle.is_ended());
    }
    let pool = client.client().expect("it is served");
    assert_eq!((pool.idle(), pool.holders().len()), (1, 0));
}
