//! A handler that passes requests on to another server and streams its responses back: the seam of a proxy. No application thread waits.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, channel};
use std::time::Duration;

use maitred_client::call::Options;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Flow, Receiver, RequestBody};
use maitred_client::{CallError, Report};
use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{BodyLength, FieldSet, ResponseHead, Status};
use maitred_runtime::{Body, Exchange, Handler, InvocationType, Observe, Stream};
use maitred_server::{EngineClient, Routes};

use maitred_testkit::client::{Client, by_tls};

use crate::engine_client::{head, say, upstream};
use crate::harness::{
    PATIENCE, Running, connect, get, get_last, read_all, read_response, settings, start, terms, text,
    wait_until,
};

/// Passes everything on.
struct Through {
    client: EngineClient,
    upstream: SocketAddr,
}

impl Handler for Through {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn handle(&self, mut exchange: Exchange) {
        let taken = std::mem::take(&mut exchange.request_mut().body);
        let request = exchange.request();
        let (method, mut fields) = (request.head.method.clone(), request.head.fields.clone());
        fields.remove("connection");
        let target = [request.head.path(), b"?", request.head.query().unwrap_or_default()].concat();
        let body = if taken.is_live() {
            RequestBody::Given
        } else {
            RequestBody::Whole(Arc::new(taken.to_vec().expect("a body in memory")))
        };
        let authority = self.upstream.to_string();
        let outgoing = OutgoingRequest {
            method: &method,
            target: &target,
            authority: authority.as_bytes(),
            fields: &fields,
            length: taken.length(),
            upgrade: false,
        };
        let key = Arc::new(Key::plain(&self.upstream.ip().to_string(), self.upstream.port()));
        let options = Options { interim: true, ..Options::default() };
        let passing =
            Passing { front: Front::Asks(exchange), body: taken, wants_body: false, trailers: None };
        if let Err(not) = self.client.start(&key, &outgoing, body, &options, Box::new(passing)) {
            not.tell();
        }
    }
}

/// The side of the client.
enum Front {
    Asks(Exchange),
    Answered(Stream),
    Gone,
}

struct Passing {
    front: Front,
    /// Of the request, while it comes.
    body: Body,
    wants_body: bool,
    trailers: Option<FieldSet>,
}

/// The client has room, has sent something, or has gone.
struct Changes(CallHandle);

impl Observe for Changes {
    fn changed(&self) {
        self.0.resume();
    }
}

impl Passing {
    fn flow(&self) -> Flow {
        match &self.front {
            // A peer that has only ended its sending side has left, as most have.
            Front::Asks(exchange) if exchange.has_peer_ended() => Flow::Cancel,
            Front::Answered(stream) if stream.is_closed() => Flow::Cancel,
            Front::Answered(stream) if stream.is_full() => Flow::Pause,
            Front::Gone => Flow::Cancel,
            _ => Flow::Continue,
        }
    }

    /// Gives what has come of the request's body, at most as much as there is room for.
    fn give_body(&mut self, call: &CallHandle) {
        let Some(live) = self.body.live_mut() else { return };
        let observer: Arc<dyn Observe> = Arc::new(Changes(call.clone()));
        let mut buffer = [0; 16 * 1024];
        match live.poll_read(&mut buffer, &observer) {
            Ok(Some(0)) => (self.wants_body, _) = (false, call.end_body()),
            Ok(Some(read)) => (self.wants_body, _) = (false, call.give_body(&buffer[..read])),
            Ok(None) => self.wants_body = true,
            Err(_) => call.cancel(),
        }
    }
}

impl Receiver for Passing {
    fn resumed(&mut self, call: &CallHandle) -> Flow {
        if let Front::Asks(exchange) = &mut self.front {
            exchange.observe(Arc::new(Changes(call.clone())));
        }
        if self.wants_body {
            self.give_body(call);
        }
        self.flow()
    }

    fn room(&mut self, call: &CallHandle) {
        self.give_body(call);
    }

    fn interim(&mut self, head: ResponseHead) {
        if let Front::Asks(exchange) = &mut self.front {
            // A 100 is the engine's own affair.
            let _ = exchange.send_interim(&head);
        }
    }

    fn head(&mut self, call: &CallHandle, head: ResponseHead, facts: ResponseFacts) -> Flow {
        let Front::Asks(mut exchange) = std::mem::replace(&mut self.front, Front::Gone) else {
            return Flow::Cancel;
        };
        exchange.announce_trailers();
        let length = if let BodyLength::Fixed(length) = facts.body { Some(length) } else { None };
        if let Ok(mut stream) = exchange.start(&head, length) {
            stream.observe(Arc::new(Changes(call.clone())));
            self.front = Front::Answered(stream);
        }
        self.flow()
    }

    fn data(&mut self, _: &CallHandle, bytes: &[u8]) -> Flow {
        if let Front::Answered(stream) = &mut self.front {
            // A client that has gone shows in the flow.
            let _ = stream.send(bytes.to_vec());
        }
        self.flow()
    }

    fn trailers(&mut self, trailers: &FieldSet) {
        self.trailers = Some(trailers.clone());
    }

    fn end(self: Box<Self>, result: Result<(), CallError>, _: &Report) {
        match (self.front, result) {
            (Front::Asks(exchange), Err(error)) => {
                let _ = exchange.respond(ResponseHead::new(Status::BAD_GATEWAY), format!("{error}\n"));
            }
            (Front::Answered(stream), Ok(())) => match self.trailers {
                Some(trailers) => drop(stream.finish_with_trailers(trailers)),
                None => stream.finish(),
            },
            (Front::Answered(stream), Err(error)) => stream.abort(&error.to_string()),
            _ => {}
        }
    }
}

/// A server that passes everything on to `upstream`.
fn through(upstream: SocketAddr, change: impl FnOnce(&mut maitred_server::Settings)) -> Running {
    let client = EngineClient::default();
    let handler = Through { client: client.clone(), upstream };
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.client = client;
    settings.pool.limits.max_threads = 1;
    change(&mut settings);
    start(settings)
}

/// Answers each request of each connection with what it has got.
fn echoing() -> SocketAddr {
    upstream(|stream| {
        while let Some(head) = head(stream) {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
            stream.read_exact(&mut body).expect("the body");
            let target = head.split(' ').nth(1).expect("a target");
            let answer =
                format!("{target} {} {}", body.len(), body.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            let answer = format!("HTTP/1.1 200 Fine\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            stream.write_all(answer.as_bytes()).expect("a reader");
        }
    })
}

fn body_of(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or(response, |(_, body)| body)
}

#[test]
fn requests_and_responses_pass() {
    let running = through(echoing(), |_| {});
    let mut stream = connect(running.address);
    let body = vec![7; 100_000];
    let post = format!("POST /b HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[get("/a?b=c"), post.into_bytes(), body, get_last("/d")].concat()).expect("a server");
    let all = read_all(&mut stream);
    for expected in ["/a?b=c 0 0", "/b? 100000 700000", "/d? 0 0"] {
        assert!(all.contains(expected), "{all}");
    }
    let pool = running.server.client().client().expect("it is served");
    assert_eq!((pool.idle(), pool.holders().len()), (1, 0), "one connection has served all");
}

#[test]
fn a_body_passes_as_it_comes() {
    let running = through(echoing(), |settings| settings.listeners[0].read_ahead = Some(false));
    let mut stream = connect(running.address);
    let body = vec![1; 3 << 20];
    let head =
        format!("POST /b HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("a server");
    stream.write_all(&body).expect("a server");
    assert_eq!(body_of(&read_all(&mut stream)), format!("/b? {0} {0}", body.len()));
}

#[test]
fn interim_responses_and_trailers_pass() {
    let upstream = upstream(|stream| {
        while head(stream).is_some() {
            let answer = "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\none\r\n0\r\nA: b\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("a reader");
        }
    });
    let running = through(upstream, |_| {});
    let mut stream = connect(running.address);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: t\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n")
        .expect("a server");
    let all = read_all(&mut stream);
    assert!(all.starts_with("HTTP/1.1 103 ") && all.contains("Link: </a>\r\n"), "{all}");
    assert!(all.ends_with("3\r\none\r\n0\r\nA: b\r\n\r\n"), "{all}");
}

#[test]
fn a_server_that_fails_is_a_502_or_a_visible_cut() {
    let upstream = upstream(|stream| {
        if head(stream).is_some_and(|head| head.contains("/cut")) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none").expect("a reader");
        }
    });
    let running = through(upstream, |_| {});
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/")).expect("a server");
    assert!(read_all(&mut stream).starts_with("HTTP/1.1 502 "));
    let mut stream = connect(running.address);
    stream.write_all(&get("/cut")).expect("a server");
    assert_eq!(body_of(&read_all(&mut stream)), "one", "the connection ends");
}

/// Sends for ever behind its head, and tells when its client has gone.
fn endless() -> (SocketAddr, mpsc::Receiver<u64>) {
    let (sender, gone) = channel();
    let address = upstream(move |stream| {
        if head(stream).is_none() {
            return;
        }
        let mut sent = 0;
        let mut bytes: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
        let block = [b'x'; 16 * 1024];
        while let Ok(taken) = stream.write(bytes) {
            sent += taken as u64;
            bytes = &block;
        }
        let _ = sender.send(sent);
    });
    (address, gone)
}

#[test]
fn a_client_that_leaves_ends_the_call() {
    for before_the_head in [true, false] {
        let (sender, gone) = channel();
        let silent = upstream(move |stream| {
            if head(stream).is_some() {
                let _ = sender.send(1);
                let _ = stream.read(&mut [0]);
                let _ = sender.send(2);
            }
        });
        let (endless, cut) = endless();
        let running = through(if before_the_head { silent } else { endless }, |_| {});
        let mut stream = connect(running.address);
        stream.write_all(&get("/")).expect("a server");
        if before_the_head {
            assert_eq!(gone.recv_timeout(PATIENCE), Ok(1));
        } else {
            stream.read_exact(&mut [0; 100_000]).expect("the response");
        }
        // What is unread makes the system reset the connection.
        drop(stream);
        let told =
            if before_the_head { gone.recv_timeout(PATIENCE) } else { cut.recv_timeout(PATIENCE).map(|_| 2) };
        assert_eq!(told, Ok(2), "the server is left, too");
        let pool = running.server.client().client().expect("it is served");
        wait_until("no slot is held", || pool.holders().is_empty());
    }
}

/// So much is sent to a client that takes less.
const ALL: usize = 256 << 20;

/// Sends [`ALL`] bytes, and tells how many when its client takes none for a while.
fn plentiful() -> (SocketAddr, mpsc::Receiver<usize>) {
    let (sender, stalled) = channel();
    let address = upstream(move |stream| {
        if head(stream).is_none() {
            return;
        }
        say(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: {ALL}\r\n\r\n").as_bytes());
        let block = vec![b'x'; 64 * 1024];
        // A machine that stands still for so long lets the test pass: fewer bytes are sent then.
        stream.set_write_timeout(Some(Duration::from_millis(300))).expect("an option");
        let mut sent = 0;
        while sent < ALL {
            match stream.write(&block[..block.len().min(ALL - sent)]) {
                Ok(taken) => sent += taken,
                Err(error) => {
                    let has_left = error.kind() != ErrorKind::WouldBlock;
                    let told = sender.send(if has_left { usize::MAX } else { sent });
                    if has_left || told.is_err() {
                        return;
                    }
                }
            }
        }
    });
    (address, stalled)
}

fn without_files(settings: &mut maitred_server::Settings) {
    settings.writer.file = 0;
}

#[test]
fn a_slow_client_holds_the_server_up() {
    let (plentiful, stalled) = plentiful();
    let running = through(plentiful, without_files);
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/")).expect("a server");
    let sent = stalled.recv_timeout(PATIENCE).expect("it stalls");
    assert!(sent < ALL / 4, "{sent} bytes were taken for a client that reads nothing");
    let received = std::io::copy(&mut stream, &mut std::io::sink()).expect("the rest");
    assert!(received as usize > ALL, "{received} bytes");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short one").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame of HTTP/2: its kind, its stream, and its payload.
fn next_frame(stream: &mut Client) -> (u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("a frame");
    let [a, b, c, kind, _, stream_number @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).expect("a payload");
    (kind, u32::from_be_bytes(stream_number), payload)
}

#[test]
fn streams_of_http2_pass_side_by_side_with_their_own_ends() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    if by_tls() {
        // The clients of the tests agree on HTTP/1.1 then.
        return;
    }
    let (plentiful, stalled) = plentiful();
    let running = through(plentiful, without_files);
    let mut stream = connect(running.address);
    // GET / of `test` (RFC 7541, appendix A), without a body.
    let block = [&[0x82, 0x86, 0x84, 0x41, 4][..], b"test"].concat();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let begin = [&preface[..], &frame(4, 0, 0, &[]), &frame(HEADERS, 5, 1, &block)].concat();
    stream.write_all(&begin).expect("a server");
    // Its window is 65,535 bytes, and is never widened.
    let mut received = 0;
    while received < 65_535 {
        if let (DATA, 1, payload) = next_frame(&mut stream) {
            received += payload.len();
        }
    }
    let sent = stalled.recv_timeout(PATIENCE).expect("it stalls");
    assert!(sent < ALL / 4, "{sent} bytes were taken for a client that takes 65,535");
    stream.write_all(&frame(RESET, 0, 1, &[0, 0, 0, 8])).expect("a server");
    while stalled.recv_timeout(PATIENCE).expect("it is left") != usize::MAX {}
    let pool = running.server.client().client().expect("it is served");
    wait_until("no slot is held", || pool.holders().is_empty());
    stream.write_all(&frame(HEADERS, 5, 3, &block)).expect("a server");
    while !matches!(next_frame(&mut stream), (HEADERS, 3, _)) {}
}

#[test]
fn clients_of_two_groups_share_the_connections_to_the_server_behind() {
    const CLIENTS: usize = 6;
    const REQUESTS: usize = 200;
    let mut behind = settings(Routes::new().with_application(Arc::new(|exchange: Exchange| {
        let answer = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        text(exchange, answer);
    })));
    // Without listeners that speak it, whatever the clients of the tests do.
    behind.tls = Some(terms());
    let behind = start(behind);
    let running = through(behind.address, |settings| {
        settings.pool.limits.max_threads = 4;
        settings.poll_groups = 2;
    });
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let address = running.address;
            scope.spawn(move || {
                let mut stream = connect(address);
                for number in 0..REQUESTS {
                    let path = format!("/{client}/{number}");
                    stream.write_all(&get(&path)).expect("a server");
                    if number % 7 == client {
                        // The call may be in any phase then.
                        stream = connect(address);
                        continue;
                    }
                    let (head, body) = read_response(&mut stream);
                    assert!(head.starts_with("HTTP/1.1 200 ") && body == path.as_bytes(), "{path}: {head}");
                }
            });
        }
    });
    let pool = running.server.client().client().expect("it is served");
    wait_until("no slot is held", || pool.holders().is_empty());
    assert!(pool.idle() <= CLIENTS + CLIENTS * REQUESTS / 7, "{} connections", pool.idle());
}
