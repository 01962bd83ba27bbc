//! Calls of the engine to other servers: turns of a poll group, whose receivers are called by its threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use maitred_client::call::Options;
use maitred_client::key::{Authorities, Key, Pem, TlsIdentity};
use maitred_client::pushed::{CallHandle, Flow, Next, Receiver, RequestBody};
use maitred_client::{CallError, Observer, Phase, Report, Settings, Times, pool};
use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{FieldSet, Method, ResponseHead};
use maitred_server::{EngineClient, Routes, Server, Task};
use maitred_testkit::client::certificate;

use crate::harness::{PATIENCE, Running, serve, settings, start, terms, text, wait_until};

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
fn answering(answer: &'static [u8]) -> SocketAddr {
    upstream(move |stream| {
        while head(stream).is_some() {
            say(stream, answer);
        }
    })
}

/// An event that a receiver had.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Interim(u16),
    Head(u16),
    Data(usize),
    Room,
    Trailers,
    /// The name of the end, and whether the connection was used before.
    End(String, bool),
}

/// Tells a test what has come, and wishes what the test says.
struct Teller<F> {
    seen: Sender<Seen>,
    flow: F,
}

impl<F: FnMut(&CallHandle, &Seen) -> Flow> Teller<F> {
    fn tell(&mut self, call: &CallHandle, seen: Seen) -> Flow {
        let flow = (self.flow)(call, &seen);
        let _ = self.seen.send(seen);
        flow
    }
}

impl<F: FnMut(&CallHandle, &Seen) -> Flow + Send> Receiver for Teller<F> {
    fn interim(&mut self, head: ResponseHead) {
        let _ = self.seen.send(Seen::Interim(head.status.code()));
    }

    fn head(&mut self, call: &CallHandle, head: ResponseHead, _: ResponseFacts) -> Flow {
        self.tell(call, Seen::Head(head.status.code()))
    }

    fn data(&mut self, call: &CallHandle, bytes: &[u8]) -> Flow {
        self.tell(call, Seen::Data(bytes.len()))
    }

    fn room(&mut self, call: &CallHandle) {
        self.tell(call, Seen::Room);
    }

    fn trailers(&mut self, _: &FieldSet) {
        let _ = self.seen.send(Seen::Trailers);
    }

    fn end(self: Box<Self>, result: Result<(), CallError>, report: &Report) {
        let name = match &result {
            Ok(()) => format!("{:?}", report.end),
            Err(error) => error.to_string(),
        };
        let _ = self.seen.send(Seen::End(name, report.reused));
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

    /// Everything up to the end, without the parts of the body, and how many bytes these had.
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

/// A request, a `GET` without a body unless a test says otherwise.
struct Ask {
    key: Key,
    method: Method,
    body: RequestBody,
    length: Option<u64>,
    times: Times,
}

impl Ask {
    fn to(address: SocketAddr) -> Self {
        Self {
            key: Key::plain(&address.ip().to_string(), address.port()),
            method: Method::Get,
            body: RequestBody::Whole(Arc::default()),
            length: None,
            times: Times::default(),
        }
    }

    fn post(address: SocketAddr, length: Option<u64>) -> Self {
        Self { method: Method::Post, body: RequestBody::Given, length, ..Self::to(address) }
    }

    fn by(
        self,
        client: &EngineClient,
        flow: impl FnMut(&CallHandle, &Seen) -> Flow + Send + 'static,
    ) -> Result<Asked, CallError> {
        let (sender, seen) = mpsc::channel();
        let request = OutgoingRequest {
            method: &self.method,
            target: b"/",
            authority: b"test",
            fields: &FieldSet::new(),
            length: self.length,
            upgrade: false,
        };
        let options = Options { times: self.times, interim: true, ..Options::default() };
        let receiver = Box::new(Teller { seen: sender, flow });
        let handle = client.start(&Arc::new(self.key), &request, self.body, &options, receiver)?;
        Ok(Asked { handle, seen })
    }

    fn simply(self, client: &EngineClient) -> Asked {
        self.by(client, |_, _| Flow::Continue).expect("a call")
    }
}

fn server() -> Running {
    serve(|exchange: maitred_runtime::Exchange| text(exchange, "hello"))
}

fn complete(status: u16, reused: bool) -> Vec<Seen> {
    vec![Seen::Head(status), Seen::End("Complete".to_owned(), reused)]
}

/// The pool has no slot that a call holds.
fn is_clean(client: &EngineClient) {
    let pool = client.client().expect("it is served");
    wait_until("no call holds a slot", || pool.holders().is_empty());
}

#[test]
fn a_small_response_comes_whole_and_its_connection_serves_the_next_call() {
    let running = server();
    let address = answering(GOOD);
    let client = running.server.client();
    for reused in [false, true, true] {
        let asked = Ask::to(address).simply(client);
        assert_eq!(asked.all(), (complete(200, reused), 2));
        assert!(asked.handle.is_ended());
    }
    let pool = client.client().expect("it is served");
    assert_eq!((pool.idle(), pool.holders().len()), (1, 0));
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_call_by_tls_is_the_same() {
    let mut upstream = settings(Routes::new().with_application(Arc::new(|exchange| text(exchange, "hello"))));
    upstream.tls = Some(terms());
    upstream.listeners[0].tls = true;
    let upstream = start(upstream);
    let running = server();
    let client = running.server.client();
    let authorities = |pem: &str| Authorities::Pem(Pem(pem.as_bytes().into()));
    for reused in [false, true] {
        let tls = TlsIdentity {
            authorities: authorities(certificate().0),
            server_name: Some("localhost".into()),
            ..TlsIdentity::default()
        };
        let key = Key { tls: Some(tls), ..Ask::to(upstream.address).key };
        let asked = Ask { key, ..Ask::to(upstream.address) }.simply(client);
        assert_eq!(asked.all(), (complete(200, reused), 5));
    }
    let key = Key { tls: Some(TlsIdentity::default()), ..Ask::to(upstream.address).key };
    let end = Ask { key, ..Ask::to(upstream.address) }.simply(client).end();
    assert!(end.contains("certificate"), "{end}");
}

#[test]
fn odd_servers_have_a_named_end_and_the_next_call_is_right() {
    type Serve = fn(&mut TcpStream);
    let chunked = |stream: &mut TcpStream| {
        say(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\nA: b\r\n\r\n");
    };
    let early = |stream: &mut TcpStream| say(stream, &b"HTTP/1.1 103 Early\r\n\r\n".repeat(11));
    let rows: [(&str, Serve, &str, usize); 9] = [
        ("closes", |_| {}, "the server closed the connection without a response", 0),
        ("dribbles", |stream| GOOD.iter().for_each(|byte| say(stream, &[*byte])), "Complete", 2),
        ("until close", |stream| say(stream, b"HTTP/1.1 200 OK\r\n\r\nuntil the end"), "Complete", 13),
        ("chunked", chunked, "Complete", 3),
        ("interim", |stream| say(stream, &[b"HTTP/1.1 103 Early\r\n\r\n", GOOD].concat()), "Complete", 2),
        ("interim for ever", early, "interim responses without end", 0),
        ("cut", |stream| say(stream, &GOOD[..GOOD.len() - 1]), "before the end of the body's length", 1),
        ("another protocol", |stream| say(stream, b"SSH-2.0-x\r\n"), "does not begin with a status line", 0),
        ("two answers", |stream| say(stream, &[GOOD, GOOD].concat()), "Complete", 2),
    ];
    let running = server();
    let client = running.server.client();
    for (name, serve, expected, bytes) in rows {
        let address = upstream(move |stream| {
            if head(stream).is_some() {
                serve(stream);
            }
        });
        for _ in 0..2 {
            let (mut seen, length) = Ask::to(address).simply(client).all();
            let Some(Seen::End(end, false)) = seen.pop() else { panic!("{name}: no end") };
            assert!(end.contains(expected) && length == bytes, "{name}: {end}, {length} bytes, {seen:?}");
            assert_eq!(seen.contains(&Seen::Interim(103)), name.contains("interim"), "{name}: {seen:?}");
            assert_eq!(seen.contains(&Seen::Trailers), name == "chunked", "{name}: {seen:?}");
        }
        is_clean(client);
    }
    // Bytes that are not read make the system reset the connection.
    let resets = upstream(|stream| drop(stream.read(&mut [0])));
    assert!(Ask::to(resets).simply(client).end().starts_with("the connection broke"));
    let refuses = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    assert!(Ask::to(refuses.expect("a port")).simply(client).end().contains("takes no connection"));
}

pub(crate) fn say(stream: &mut TcpStream, bytes: &[u8]) {
    // The client may have gone.
    let _ = stream.write_all(bytes);
}

#[test]
fn a_stale_connection_is_replaced_once() {
    let mut served = 0;
    let address = upstream(move |stream| {
        served += 1;
        if head(stream).is_some() {
            say(stream, GOOD);
        }
        // The second request of the first connection has no answer.
        if head(stream).is_some() && served > 1 {
            say(stream, GOOD);
        }
    });
    let running = server();
    let client = running.server.client();
    for reused in [false, false, true] {
        assert_eq!(Ask::to(address).simply(client).all(), (complete(200, reused), 2));
    }
}

#[test]
fn an_answer_that_comes_early_ends_the_body() {
    let address = upstream(|stream| {
        if head(stream).is_some() {
            say(stream, b"HTTP/1.1 413 Too large\r\nContent-Length: 0\r\n\r\n");
            let _ = std::io::copy(stream, &mut std::io::sink());
        }
    });
    let running = server();
    let client = running.server.client();
    let whole = RequestBody::Whole(Arc::new(vec![b'x'; 16 << 20]));
    for _ in 0..2 {
        let ask = Ask { body: whole_again(&whole), ..Ask::post(address, None) };
        assert_eq!(ask.simply(client).all(), (complete(413, false), 0), "the connection is not used again");
    }
    is_clean(client);
}

fn whole_again(body: &RequestBody) -> RequestBody {
    match body {
        RequestBody::Whole(bytes) => RequestBody::Whole(Arc::clone(bytes)),
        RequestBody::Given => RequestBody::Given,
    }
}

#[test]
fn a_body_is_given_in_parts_as_there_is_room() {
    const PARTS: usize = 100;
    let address = upstream(|stream| {
        let Some(head) = head(stream) else { return };
        let length = head.to_ascii_lowercase().contains("content-length: 1638400");
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while received.len() < PARTS * 16384 || (!length && !received.ends_with(b"0\r\n\r\n")) {
            let read = stream.read(&mut buffer).expect("the body");
            received.extend_from_slice(&buffer[..read]);
        }
        let bytes = received.iter().filter(|byte| **byte == b'x').count();
        let body = format!("{bytes} {length}");
        say(
            stream,
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .as_bytes(),
        );
    });
    let running = server();
    let client = running.server.client();
    for (length, answer) in [(Some((PARTS * 16384) as u64), "1638400 true"), (None, "1638400 false")] {
        let mut given = 0;
        let flow = move |call: &CallHandle, seen: &Seen| {
            if *seen == Seen::Room {
                let taken = call.give_body(&[b'x'; 1 << 20][..(PARTS * 16384 - given).min(1 << 20)]);
                assert!(taken <= 64 * 1024, "{taken} bytes are held");
                given += taken;
                if taken == 0 {
                    call.end_body();
                }
            }
            Flow::Continue
        };
        let asked = Ask::post(address, length).by(client, flow).expect("a call");
        let (mut seen, bytes) = asked.all();
        seen.retain(|seen| *seen != Seen::Room);
        assert_eq!((seen, bytes), (complete(200, false), answer.len()));
    }
}

#[test]
fn a_receiver_that_pauses_holds_the_server_up() {
    let (full, is_full) = mpsc::channel();
    const ALL: usize = 64 << 20;
    let address = upstream(move |stream| {
        let Some(_) = head(stream) else { return };
        say(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: {ALL}\r\n\r\n").as_bytes());
        let block = vec![b'x'; 64 * 1024];
        stream.set_nonblocking(true).expect("an option");
        let mut sent = 0;
        while let Ok(taken) = stream.write(&block[..block.len().min(ALL - sent)]) {
            sent += taken;
        }
        stream.set_nonblocking(false).expect("an option");
        full.send(sent).expect("the test waits");
        while sent < ALL {
            sent += stream.write(&block[..block.len().min(ALL - sent)]).expect("the client reads");
        }
    });
    let running = server();
    let client = running.server.client();
    let asked = Ask::to(address).by(client, |_, _| Flow::Pause).expect("a call");
    assert_eq!(asked.next(), Seen::Head(200));
    let sent = is_full.recv_timeout(PATIENCE).expect("the system takes no more");
    assert!(sent < ALL / 2, "{sent} bytes were taken of a receiver that pauses");
    let mut bytes = 0;
    loop {
        asked.handle.resume();
        match asked.next() {
            Seen::Data(length) => bytes += length,
            Seen::End(end, _) => break assert_eq!((&*end, bytes), ("Complete", ALL)),
            other => panic!("{other:?}"),
        }
    }
}

// ---- Time limits and cancellation, in each phase ----

/// Knows the phase of the last call.
#[derive(Default)]
struct Phases(Mutex<Option<Phase>>);

impl Observer for Phases {
    fn begun(&self, _: &Key) -> u64 {
        1
    }

    fn phase(&self, _: u64, phase: Phase) {
        *self.0.lock().expect("not poisoned") = Some(phase);
    }

    fn ended(&self, _: u64, _: &Key, _: &Report) {
        *self.0.lock().expect("not poisoned") = None;
    }
}

/// A server that says this behind the head of the request, and takes nothing else from then on.
fn held(answer: &'static [u8]) -> SocketAddr {
    upstream(move |stream| {
        if head(stream).is_some() {
            say(stream, answer);
            loop {
                thread::park();
            }
        }
    })
}

/// A call that stays in this phase.
fn stays_in(phase: Phase, full: SocketAddr, held_slot: SocketAddr) -> Ask {
    let silent = upstream(|stream| drop(std::io::copy(stream, &mut std::io::sink())));
    match phase {
        Phase::Slot => Ask::to(held_slot),
        Phase::Resolve => Ask { key: Key::plain("unknown.example", 80), ..Ask::to(silent) },
        Phase::Connect => Ask::to(full),
        Phase::Tls => {
            let key = Key {
                tls: Some(TlsIdentity { verify: false, ..TlsIdentity::default() }),
                ..Ask::to(silent).key
            };
            Ask { key, ..Ask::to(silent) }
        }
        Phase::Write => {
            let body = RequestBody::Whole(Arc::new(vec![b'x'; 32 << 20]));
            Ask { body, ..Ask::post(held(b""), None) }
        }
        Phase::Read => Ask::to(held(&GOOD[..GOOD.len() - 1])),
        _ => Ask::to(silent),
    }
}

/// The limit of this phase alone.
fn limit(phase: Phase) -> Times {
    let limit = Some(Duration::from_millis(30));
    let mut times = Times { slot: None, ..Times::default() };
    match phase {
        Phase::Slot => times.slot = limit,
        Phase::Resolve | Phase::Connect => times.connect = limit,
        Phase::Tls => times.tls = limit,
        Phase::Write => times.exchange.write = limit,
        Phase::FirstByte => times.exchange.first_byte = limit,
        Phase::Total => times.exchange.total = limit,
        _ => times.exchange.progress = limit,
    }
    times
}

#[test]
fn a_call_ends_by_its_limit_or_its_cancellation_in_each_phase() {
    // Its queue is full: it answers no SYN.
    let full = TcpListener::bind("127.0.0.1:0").expect("a port");
    rustix::net::listen(&full, 0).expect("it listens");
    let address = full.local_addr().expect("bound");
    let queued: Vec<_> =
        std::iter::repeat_with(|| maitred_io::outgoing::connect(&address).expect("begun")).take(4).collect();
    let (hangs, hung) = mpsc::channel::<()>();
    let hung = Mutex::new(hung);
    let phases = Arc::new(Phases::default());
    let client = EngineClient::new(Settings {
        pool: pool::Settings { per_key: 1, ..pool::Settings::default() },
        observer: Some(Arc::clone(&phases) as Arc<_>),
        resolver: Some(Arc::new(move |_| {
            let _ = hung.lock().expect("not poisoned").recv();
            Ok(Vec::new())
        })),
        ..Settings::default()
    });
    let mut settings = settings(Routes::new());
    settings.client = client.clone();
    let _running = start(settings);
    let holder = held(&GOOD[..GOOD.len() - 1]);
    let holds = Ask::to(holder).by(&client, |_, _| Flow::Continue).expect("a call");
    assert_eq!(holds.next(), Seen::Head(200));
    for phase in [
        Phase::Slot,
        Phase::Resolve,
        Phase::Connect,
        Phase::Tls,
        Phase::Write,
        Phase::FirstByte,
        Phase::Read,
        Phase::Total,
    ] {
        let ask = Ask { times: limit(phase), ..stays_in(phase, address, holder) };
        let end = ask.simply(&client).end();
        assert!(end.starts_with(&format!("timed out: {phase}")), "{phase:?}: {end}");
        let ask = Ask { times: Times { slot: None, ..Times::default() }, ..stays_in(phase, address, holder) };
        let asked = ask.simply(&client);
        // The observer does not tell the parts of a body from the wait for the response.
        let expected = if matches!(phase, Phase::Total | Phase::Write) { Phase::FirstByte } else { phase };
        wait_until(&format!("it is in its phase, {phase:?}"), || {
            *phases.0.lock().expect("not poisoned") == Some(expected)
        });
        asked.handle.cancel();
        assert_eq!(asked.end(), "the call was cancelled", "{phase:?}");
        asked.handle.cancel();
    }
    drop((hangs, queued));
    holds.handle.cancel();
    assert_eq!(holds.end(), "the call was cancelled");
    is_clean(&client);
}

// ---- The server ----

#[test]
fn a_call_needs_a_server_and_ends_with_it() {
    let silent = held(b"");
    let client = EngineClient::default();
    let refused = |client: &EngineClient| {
        let ended = Ask::to(silent).by(client, |_, _| Flow::Continue);
        matches!(ended, Err(CallError::NotServed)) && client.client().is_none()
    };
    assert!(refused(&client), "there is no server yet");
    let mut settings = settings(Routes::new());
    settings.client = client.clone();
    let early = Mutex::new(None);
    let server = Server::start_after(settings, |_| {
        *early.lock().expect("not poisoned") = Some(Ask::to(answering(GOOD)).simply(&client));
    });
    let server = server.expect("it starts");
    let early = early.into_inner().expect("not poisoned").expect("a call");
    assert_eq!(early.all().0, complete(200, false), "a call may wait for the first thread");
    let hangs = Ask::to(silent).simply(&client);
    server.drain();
    assert!(server.wait_drained(PATIENCE), "the drain does not wait for calls");
    assert_eq!(
        Ask::to(answering(GOOD)).simply(&client).all().0,
        complete(200, false),
        "they go on meanwhile"
    );
    server.stop();
    assert_eq!(hangs.end(), CallError::NotServed.to_string());
    assert!(hangs.handle.is_ended() && refused(&client), "the server has ended");
}

#[test]
fn a_receiver_that_panics_ends_its_own_call() {
    let running = server();
    let client = running.server.client();
    let address = answering(GOOD);
    let asked = Ask::to(address).by(client, |_, _| panic!("the test says so")).expect("a call");
    wait_until("it is given up", || asked.handle.is_ended());
    is_clean(client);
    assert_eq!(Ask::to(address).simply(client).all().0, complete(200, false));
}

/// Tells each turn: the first waits for a time, the second to be woken, the third is the last.
struct Turns(Sender<usize>, usize);

impl Task for Turns {
    fn turn(&mut self, now: Instant) -> Next {
        self.1 += 1;
        let _ = self.0.send(self.1);
        match self.1 {
            1 => Next::Wait(now.checked_add(Duration::from_millis(5))),
            2 => Next::Wait(None),
            _ => Next::Ended,
        }
    }
}

#[test]
fn a_task_goes_on_by_time_and_when_it_is_woken() {
    let running = server();
    let client = running.server.client().clone();
    let (sender, turns) = mpsc::channel();
    let waker = client.run(Box::new(Turns(sender.clone(), 0))).expect("it is served");
    let next = || turns.recv_timeout(PATIENCE);
    assert_eq!((next(), next()), (Ok(1), Ok(2)));
    waker.wake_by_ref();
    assert_eq!(next(), Ok(3));
    waker.wake();
    client.run(Box::new(Turns(sender, 1))).expect("it is served");
    assert_eq!(next(), Ok(2));
    running.server.stop();
    assert!(turns.recv().is_err(), "the end of the server drops it");
    assert!(client.run(Box::new(Turns(mpsc::channel().0, 0))).is_err());
}
