//! The driver of a waiting thread against real sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use maitred_client::blocking::{Body, CallError, Client, Request, Response, Settings, Times};
use maitred_client::exchange::{NotReusable, Reuse, Timeouts};
use maitred_client::key::{Key, Place};
use maitred_client::{Error, Phase, pool};
use maitred_http::{FieldSet, Method};

/// No test waits for so long.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

struct Server {
    key: Arc<Key>,
    thread: JoinHandle<()>,
}

/// A server that gives each of its connections, in their order, to one of `connections`.
fn server(connections: Vec<fn(TcpStream)>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let key = Arc::new(Key::plain("127.0.0.1", listener.local_addr().expect("bound").port()));
    let thread = thread::spawn(move || {
        for serve in connections {
            serve(listener.accept().expect("a client").0);
        }
    });
    Server { key, thread }
}

impl Server {
    /// All connections were served.
    fn end(self) {
        self.thread.join().expect("no panic");
    }
}

fn client(first_byte: Duration) -> Client {
    let timeouts = Timeouts { first_byte: Some(first_byte), progress: Some(LONG), ..Timeouts::default() };
    let pool = pool::Settings { per_key: 1, idle: LONG, ..pool::Settings::default() };
    let times = Times { slot: Some(SHORT), connect: Some(LONG), exchange: timeouts, ..Times::default() };
    Client::new(Settings { pool, times, ..Settings::default() })
}

fn timed(exchange: Timeouts) -> Client {
    Client::new(Settings { times: Times { exchange, ..Times::default() }, ..Settings::default() })
}

fn request(method: Method, body: Body<'_>) -> Request<'_> {
    Request { method, target: "/", authority: "a", fields: FieldSet::new(), body, repeatable: None }
}

fn get(client: &Client, key: &Arc<Key>) -> Result<(u16, String, Reuse), CallError> {
    read(client.send(key, request(Method::Get, Body::Bytes(b"")))?)
}

fn read(mut response: Response<'_>) -> Result<(u16, String, Reuse), CallError> {
    let body = response.read_all(usize::MAX)?;
    let text = String::from_utf8(body).expect("text");
    Ok((response.head().status.code(), text, response.reuse()))
}

fn ok(text: &str) -> (u16, String, Reuse) {
    (200, text.to_owned(), Reuse::Yes(maitred_client::Kept::default()))
}

/// Reads a request up to its blank line.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request");
        head.extend_from_slice(&byte);
    }
    String::from_utf8(head).expect("text")
}

fn answer(stream: &mut TcpStream, text: &str) {
    let length = text.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}").expect("a reader");
}

fn one(mut stream: TcpStream) {
    head(&mut stream);
    answer(&mut stream, "one");
}

fn two(mut stream: TcpStream) {
    for text in ["one", "two"] {
        head(&mut stream);
        answer(&mut stream, text);
    }
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn a_connection_is_used_again() {
    let (server, client) = (server(vec![two]), client(LONG));
    assert_eq!(get(&client, &server.key).expect("a response"), ok("one"));
    assert_eq!(client.idle(), 1);
    assert_eq!(get(&client, &server.key).expect("a response"), ok("two"));
    drop(client);
    server.end();
}

#[test]
fn a_connection_that_was_closed_when_idle_is_not_used() {
    let (server, client) = (server(vec![one, one]), client(LONG));
    for _ in 0..2 {
        assert_eq!(get(&client, &server.key).expect("a response"), ok("one"));
    }
    server.end();
}

#[test]
fn a_connection_that_closes_at_the_request_is_replaced_once() {
    let closes = |mut stream: TcpStream| {
        head(&mut stream);
        answer(&mut stream, "one");
        head(&mut stream);
    };
    let (server, client) = (server(vec![closes, one]), client(LONG));
    for _ in 0..2 {
        assert_eq!(get(&client, &server.key).expect("a response"), ok("one"));
    }
    server.end();
}

#[test]
fn bodies_go_in_both_directions() {
    let echo = |mut stream: TcpStream| {
        assert!(head(&mut stream).contains("Transfer-Encoding: chunked"));
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).expect("a body");
            body.extend_from_slice(&part[..read]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").expect("a reader");
        stream.write_all(&body).expect("a reader");
    };
    let (server, client) = (server(vec![echo]), client(LONG));
    let text = "0123456789".repeat(300_000);
    let mut stream = text.as_bytes();
    let response = client.send(&server.key, request(Method::Post, Body::Stream(&mut stream)));
    assert_eq!(read(response.expect("a response")).expect("a body"), ok(&text));
    server.end();
}

#[test]
fn an_answer_while_a_large_body_is_sent_is_given_and_ends_the_connection() {
    const LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno";
    let stays = |mut stream: TcpStream| {
        head(&mut stream);
        stream.write_all(LARGE).expect("a reader");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    };
    let closes = |mut stream: TcpStream| {
        head(&mut stream);
        stream.write_all(LARGE).expect("a reader");
        stream.shutdown(Shutdown::Write).expect("open");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    };
    let resets = |mut stream: TcpStream| {
        head(&mut stream);
        // Closed with bytes unread: the system sends RST behind the answer.
        stream.write_all(LARGE).expect("a reader");
    };
    let body = vec![b'x'; 50_000_000];
    for (serve, name) in [(stays as fn(TcpStream), "stays"), (closes, "closes"), (resets, "resets")] {
        let (server, client) = (server(vec![serve, one]), client(LONG));
        let response = client.send(&server.key, request(Method::Post, Body::Bytes(&body)));
        let (status, text, reuse) = read(response.expect(name)).expect(name);
        assert_eq!((status, &*text), (413, "no"), "{name}");
        assert!(
            matches!(reuse, Reuse::No(NotReusable::Early | NotReusable::BrokenPipe)),
            "{name}: {reuse:?}"
        );
        assert_eq!(get(&client, &server.key).expect("a response"), ok("one"), "behind {name}");
        server.end();
    }
}

/// A body that comes byte by byte, so that the server takes each at once. It begins when the server says so.
struct Trickle {
    begins: Option<Receiver<()>>,
    left: usize,
    read: usize,
    interrupted: bool,
}

fn trickle(left: usize, begins: Option<Receiver<()>>) -> Trickle {
    Trickle { begins, left, read: 0, interrupted: false }
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some(begins) = self.begins.take() {
            begins.recv().expect("the server is there");
        }
        let length = usize::from(self.left > 0);
        buffer[..length].fill(b'x');
        (self.left, self.read) = (self.left - length, self.read + length);
        Ok(length)
    }
}

fn takes_all(mut stream: TcpStream) {
    let _ = io::copy(&mut stream, &mut io::sink());
}

#[test]
fn an_answer_stops_a_body_that_the_server_takes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let key = Arc::new(Key::plain("127.0.0.1", listener.local_addr().expect("bound").port()));
    let (begin, begins) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut stream = listener.accept().expect("a client").0;
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno").expect("a reader");
        begin.send(()).expect("a body");
        takes_all(stream);
    });
    let mut body = trickle(100_000, Some(begins));
    let response = client(LONG).send(&key, request(Method::Post, Body::Stream(&mut body)));
    assert_eq!(read(response.expect("a response")).expect("a body").0, 413);
    thread.join().expect("no panic");
    assert!(body.read < 50_000, "{}", body.read);
}

#[test]
fn the_total_time_ends_a_body_that_the_server_takes() {
    let server = server(vec![takes_all]);
    let timeouts = Timeouts { total: Some(SHORT), ..Timeouts::default() };
    let client = timed(timeouts);
    let mut body = trickle(usize::MAX, None);
    let failed = client.send(&server.key, request(Method::Post, Body::Stream(&mut body)));
    let failed = failed.expect_err("it never ends");
    assert!(matches!(failed, CallError::Exchange(Error::Timeout(Phase::Total))), "{failed}");
    drop(client);
    server.end();
}

#[test]
fn a_stream_is_read_up_to_its_declared_length() {
    let server = server(vec![|mut stream| {
        head(&mut stream);
        stream.read_exact(&mut [0; 5]).expect("a body");
        answer(&mut stream, "one");
    }]);
    let mut body = trickle(9, None);
    let mut post = request(Method::Post, Body::Stream(&mut body));
    post.fields.push("Content-Length", "5");
    let response = client(LONG).send(&server.key, post).expect("a response");
    assert_eq!(read(response).expect("a body"), ok("one"));
    assert_eq!(body.read, 5);
    server.end();
}

#[test]
fn a_server_that_stalls_within_a_response_is_left_when_its_time_has_passed() {
    fn stalls(mut stream: TcpStream, text: &str) {
        head(&mut stream);
        stream.write_all(text.as_bytes()).expect("a reader");
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    }
    let in_head = |stream: TcpStream| stalls(stream, "HTTP/1.1 2");
    let in_trailers =
        |stream| stalls(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ");
    for serve in [in_head as fn(TcpStream), in_trailers] {
        let server = server(vec![serve]);
        let timeouts = Timeouts { first_byte: Some(LONG), progress: Some(SHORT), ..Timeouts::default() };
        let client = timed(timeouts);
        let failed = get(&client, &server.key).expect_err("it stalls");
        assert!(matches!(failed, CallError::Exchange(Error::Timeout(Phase::Read))), "{failed}");
        server.end();
    }
}

#[test]
fn a_silent_server_is_left_when_its_time_has_passed() {
    let silent = |mut stream: TcpStream| {
        head(&mut stream);
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    };
    let (server, client) = (server(vec![silent, one]), client(SHORT));
    let failed = get(&client, &server.key).expect_err("silence");
    assert!(matches!(failed, CallError::Exchange(Error::Timeout(Phase::FirstByte))), "{failed}");
    drop(client);
    let client = self::client(LONG);
    assert_eq!(get(&client, &server.key).expect("a response"), ok("one"));
    server.end();
}

#[test]
fn a_call_within_a_streaming_call_ends_by_its_own_time_and_leaves_nothing() {
    let streams = |mut stream: TcpStream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart").expect("a reader");
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0, "unread: closed");
    };
    let (server, client) = (server(vec![streams, one]), client(LONG));
    let response = client.send(&server.key, request(Method::Get, Body::Bytes(b""))).expect("a head");
    let failed = get(&client, &server.key).expect_err("the slot is held");
    let expected = format!(
        "timed out: no connection of the pool became free: 1 of 1 connections to {} are held: 1 for ",
        server.key
    );
    assert!(failed.to_string().starts_with(&expected), "{failed}");
    assert_eq!(failed.phase(), Some(Phase::Slot));
    drop(response);
    assert_eq!(get(&client, &server.key).expect("a response"), ok("one"));
    server.end();
}

#[test]
fn the_total_time_is_that_of_the_slot_and_the_connection_too() {
    let silent = |mut stream: TcpStream| drop(stream.read(&mut [0]));
    let server = server(vec![silent]);
    let timeouts = Timeouts { total: Some(Duration::ZERO), ..Timeouts::default() };
    let client = timed(timeouts);
    let failed = get(&client, &server.key).expect_err("no time");
    assert!(matches!(failed.phase(), Some(Phase::Connect | Phase::Total)), "{failed}");
    drop(client);
    let port = server.key.to_string().rsplit_once(':').expect("a port").1.parse().expect("a number");
    drop(TcpStream::connect(("127.0.0.1", port)));
    server.end();
}

#[test]
fn places_that_take_no_connection_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let client = client(LONG);
    let refused = get(&client, &Arc::new(Key::plain("127.0.0.1", port))).expect_err("refused");
    assert!(refused.to_string().starts_with(&format!("127.0.0.1:{port} takes no connection: ")), "{refused}");
    let socket = Key { place: Place::Socket("/nothing/here".into()), ..Key::plain("", 0) };
    let missing = get(&client, &Arc::new(socket)).expect_err("missing");
    assert!(missing.to_string().starts_with("/nothing/here takes no connection: "), "{missing}");
    assert_eq!(client.idle(), 0);
}

#[test]
fn a_server_behind_a_unix_socket_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).expect("bound");
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        for _ in 0..2 {
            assert_eq!(stream.read(&mut [0; 1000]).expect("a request"), 27);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").expect("a reader");
        }
    });
    let key = Arc::new(Key { place: Place::Socket(path), ..Key::plain("", 0) });
    let client = client(LONG);
    for _ in 0..2 {
        assert_eq!(get(&client, &key).expect("a response"), ok("one"));
    }
    thread.join().expect("no panic");
}

#[test]
fn a_body_that_is_longer_than_wanted_is_an_error() {
    let (server, client) = (server(vec![two]), client(LONG));
    for (most, expected) in
        [(3, Ok(&b"one"[..])), (2, Err("the body of the response is longer than 2 bytes"))]
    {
        let mut response = client.send(&server.key, request(Method::Get, Body::Bytes(b""))).expect("a head");
        let result = response.read_all(most).map_err(|error| error.to_string());
        assert_eq!(result, expected.map(<[u8]>::to_vec).map_err(str::to_owned));
    }
    drop(client);
    server.end();
}

#[test]
fn a_response_that_has_failed_stays_so() {
    let cut = |mut stream: TcpStream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart").expect("a reader");
    };
    let server = server(vec![cut]);
    let client = client(LONG);
    let mut response = client.send(&server.key, request(Method::Get, Body::Bytes(b""))).expect("a head");
    response.read_all(9).expect_err("cut");
    for _ in 0..2 {
        let failed = response.read(&mut [0; 9]).expect_err("it has failed");
        assert!(std::error::Error::source(&failed).is_some());
    }
    server.end();
}

#[test]
fn trailers_are_there_behind_the_last_byte() {
    let server = server(vec![|mut stream| {
        head(&mut stream);
        let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 7\r\n\r\n";
        stream.write_all(response).expect("a client");
    }]);
    let client = client(LONG);
    let mut response = client.send(&server.key, request(Method::Get, Body::Bytes(b""))).expect("a response");
    assert!(response.trailers().is_none());
    assert_eq!(response.read_all(9).expect("a body"), b"ok");
    let sums: Vec<_> =
        response.trailers().expect("trailers").iter().map(|(_, value)| value.to_vec()).collect();
    assert_eq!(sums, [b"7"]);
    drop(response);
    server.end();
}
