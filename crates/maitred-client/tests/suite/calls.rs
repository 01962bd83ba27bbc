//! The state machine of a call with a driver of few lines, over real sockets.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use maitred_client::allow::Allow;
use maitred_client::call::{Call, Options, Step};
use maitred_client::exchange::{Reuse, Timeouts};
use maitred_client::key::{Key, Place};
use maitred_client::{CallError, Client, End, Observer, Phase, Report, Settings, Times, blocking, pool};
use maitred_h1::OutgoingRequest;
use maitred_http::{FieldSet, Method};
use maitred_io::outgoing::Wanted;

/// A server that answers each request of each connection with `one`, until its process ends.
fn server() -> SocketAddr {
    serve(|stream| {
        while let Some(request) = head(stream) {
            let body = if request.starts_with("POST") { 3 } else { 0 };
            stream.read_exact(&mut [0; 3][..body]).expect("a body");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").expect("a reader");
        }
    })
}

fn serve(serve: impl Fn(&mut TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, serve) = (stream.expect("a client"), serve.clone());
            thread::spawn(move || serve(&mut stream));
        }
    });
    address
}

/// The head of a request; none at the end.
fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).expect("text"))
}

fn key(address: SocketAddr) -> Arc<Key> {
    Arc::new(Key::plain(&address.ip().to_string(), address.port()))
}

/// The reports of all calls, and the numbers of those that run.
#[derive(Default)]
struct Reports {
    running: Mutex<HashMap<u64, String>>,
    phases: Mutex<Vec<Phase>>,
    ended: Mutex<Vec<Report>>,
    next: AtomicUsize,
}

impl Observer for Reports {
    fn begun(&self, key: &Key) -> u64 {
        let number = self.next.fetch_add(1, Ordering::SeqCst) as u64;
        self.running.lock().expect("no panic").insert(number, key.to_string());
        number
    }

    fn phase(&self, number: u64, phase: Phase) {
        assert!(self.running.lock().expect("no panic").contains_key(&number));
        self.phases.lock().expect("no panic").push(phase);
    }

    fn describe(&self, number: u64) -> Option<String> {
        Some(format!("call {number}"))
    }

    fn ended(&self, number: u64, key: &Key, report: &Report) {
        let begun = self.running.lock().expect("no panic").remove(&number);
        assert_eq!(begun, Some(key.to_string()), "each call ends once");
        self.ended.lock().expect("no panic").push(*report);
    }
}

struct Test {
    client: Client,
    reports: Arc<Reports>,
}

fn test(settings: Settings) -> Test {
    let reports = Arc::new(Reports::default());
    let observer: Arc<dyn Observer> = Arc::clone(&reports) as _;
    Test { client: Client::new(Settings { observer: Some(observer), ..settings }), reports }
}

fn begin(client: &Client, key: &Arc<Key>, method: Method, options: &Options) -> Call {
    let length = if method == Method::Post { 3 } else { 0 };
    let request = OutgoingRequest {
        method: &method,
        target: b"/",
        authority: b"a",
        fields: &FieldSet::new(),
        length: Some(length),
        upgrade: false,
    };
    Call::begin(client, key, &request, options, Instant::now()).expect("a good request")
}

/// The next step that is no wait. A body is given whenever it is asked for.
fn next(call: &mut Call) -> Result<Step, CallError> {
    loop {
        let now = Instant::now();
        match blocking::with_waker(|waker| call.step(now, waker))? {
            Step::Wait(until) => blocking::wait(call, until.map(|at| at.saturating_duration_since(now)))?,
            Step::Body => {
                let at = usize::try_from(call.body_at()).expect("three bytes");
                call.give_body(&b"abc"[at..])?;
            }
            step => return Ok(step),
        }
    }
}

/// Drives the call to its end: the body.
fn finish(mut call: Call) -> Result<(String, Report, Reuse), CallError> {
    let mut body = String::new();
    loop {
        match next(&mut call)? {
            Step::Data(_) => {
                let part = call.data().len().min(2);
                body.push_str(std::str::from_utf8(&call.data()[..part]).expect("text"));
                call.consume(part);
            }
            Step::End => return Ok((body, *call.report(), call.reuse())),
            _ => {}
        }
    }
}

fn get(client: &Client, key: &Arc<Key>) -> Result<(String, Report, Reuse), CallError> {
    finish(begin(client, key, Method::Get, &Options { times: client.settings().times, ..Options::default() }))
}

impl Test {
    fn last(&self) -> Report {
        *self.reports.ended.lock().expect("no panic").last().expect("a call has ended")
    }

    /// No call has left anything.
    fn is_clean(&self) {
        assert!(self.client.holders().is_empty());
        assert!(self.reports.running.lock().expect("no panic").is_empty());
    }
}

#[test]
fn a_call_gives_an_account_of_itself() {
    let (test, key) = (test(Settings::default()), key(server()));
    let (body, report, reuse) = get(&test.client, &key).expect("a response");
    assert_eq!((&*body, test.client.idle()), ("one", 1));
    assert!(matches!(reuse, Reuse::Yes(_)));
    assert_eq!((report.end, report.status, report.reused), (End::Complete, Some(200), false));
    assert_eq!((report.sent, report.received), (27, 41));
    assert!(
        report.connect.is_some()
            && report.first_byte.is_some()
            && report.total >= report.first_byte.expect("it is")
    );
    assert!(report.slot.is_none() && report.resolve.is_none() && report.tls.is_none());
    let again = finish(begin(&test.client, &key, Method::Post, &Options::default())).expect("a response").1;
    assert_eq!((again.end, again.reused, again.connect), (End::Complete, true, None));
    assert_eq!(
        again.sent,
        27 + "Content-Length: 3\r\n".len() as u64 + 4,
        "POST has one letter more, and a body"
    );
    test.is_clean();
}

#[test]
fn the_connection_is_back_with_the_last_byte() {
    let (test, key) = (test(Settings::default()), key(server()));
    let mut call = begin(&test.client, &key, Method::Get, &Options::default());
    assert_eq!(next(&mut call).expect("a head"), Step::Head);
    assert_eq!((test.client.idle(), test.client.holders().len()), (0, 1));
    while !matches!(next(&mut call).expect("a body"), Step::Data(3)) {}
    call.consume(2);
    assert_eq!((test.client.idle(), call.data()), (0, &b"e"[..]));
    call.consume(1);
    assert_eq!((test.client.idle(), call.is_ended()), (1, true));
    assert_eq!(next(&mut call).expect("it is"), Step::End);
    assert_eq!(call.head().status.code(), 200);
}

#[test]
fn a_stale_connection_is_replaced_and_the_body_is_asked_for_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let address = serve(move |stream| {
        while let Some(request) = head(stream) {
            let body = if request.starts_with("POST") { 3 } else { 0 };
            stream.read_exact(&mut [0; 3][..body]).expect("a body");
            if count.fetch_add(1, Ordering::SeqCst) == 1 {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").expect("a reader");
        }
    });
    let (test, key) = (test(Settings::default()), key(address));
    for (body_again, repeatable, expected) in
        [(true, Some(true), "one"), (false, Some(true), "cut-off"), (true, None, "cut-off")]
    {
        calls.store(0, Ordering::SeqCst);
        test.client.close_idle();
        get(&test.client, &key).expect("a response");
        let options = Options { body_again, repeatable, ..Options::default() };
        let mut call = begin(&test.client, &key, Method::Post, &options);
        assert_eq!(call.give_body(b"abc").expect("three bytes"), 3);
        let result = finish(call);
        let retried = test.last().retried;
        match result {
            Ok((body, report, _)) => assert_eq!((&*body, retried, report.sent), (expected, true, 2 * 50)),
            Err(error) => assert_eq!((error.end(), retried), (End::Failed(expected), false), "{error}"),
        }
    }
    test.is_clean();
}

#[test]
fn a_408_to_an_idle_connection_is_not_the_first_byte() {
    let calls = Arc::new(AtomicUsize::new(0));
    let address = serve(move |stream| {
        while head(stream).is_some() {
            let (status, close) = match calls.fetch_add(1, Ordering::SeqCst) {
                1 => ("408 Late", "Connection: close\r\n"),
                _ => ("200 OK", ""),
            };
            write!(stream, "HTTP/1.1 {status}\r\n{close}Content-Length: 3\r\n\r\none").expect("a reader");
        }
    });
    let (test, key) = (test(Settings::default()), key(address));
    get(&test.client, &key).expect("a response");
    test.reports.phases.lock().expect("no panic").clear();
    let (body, report, _) = get(&test.client, &key).expect("a response");
    assert_eq!((&*body, report.retried, report.reused, report.sent), ("one", true, false, 54));
    assert!(report.first_byte.is_some() && report.received > 41);
    let exchange = [Phase::Write, Phase::FirstByte, Phase::Read];
    let phases = test.reports.phases.lock().expect("no panic");
    assert_eq!(*phases, [&exchange[..], &[Phase::Connect], &exchange].concat());
}

/// Whatever its state, a call that is dropped leaves nothing: 4,000 calls of four threads, each given up at some step.
#[test]
fn a_call_can_be_dropped_at_each_step() {
    let pool = pool::Settings { per_key: 3, ..pool::Settings::default() };
    let (test, key) = (test(Settings { pool, ..Settings::default() }), key(server()));
    thread::scope(|scope| {
        for thread in 0..4usize {
            let (test, key) = (&test, &key);
            scope.spawn(move || {
                for number in 0..1000 {
                    let method = if number % 2 == 0 { Method::Get } else { Method::Post };
                    let options = Options { body_again: true, repeatable: Some(true), ..Options::default() };
                    let mut call = begin(&test.client, key, method, &options);
                    for _ in 0..(number + thread) % 8 {
                        let now = Instant::now();
                        match blocking::with_waker(|waker| call.step(now, waker)).expect("a good server") {
                            Step::Wait(_) if number % 16 == 0 => break,
                            Step::Wait(_) => {
                                blocking::wait(&call, Some(Duration::from_secs(60))).expect("a socket")
                            }
                            Step::Body => drop(call.give_body(b"abc").expect("three bytes")),
                            Step::Data(length) => call.consume(length),
                            Step::Head | Step::Interim => {}
                            Step::End => break,
                        }
                    }
                }
            });
        }
    });
    test.is_clean();
    let ended = test.reports.ended.lock().expect("no panic");
    assert_eq!(ended.len(), 4000);
    for end in [End::Complete, End::Dropped] {
        assert!(ended.iter().filter(|report| report.end == end).count() > 100, "{end:?}");
    }
    assert!(ended.iter().all(|report| matches!(report.end, End::Complete | End::Dropped)));
    drop(ended);
    assert_eq!(get(&test.client, &key).expect("a response").0, "one");
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_call_that_waits_for_a_slot_is_woken_or_names_the_holders() {
    let pool = pool::Settings { per_key: 1, ..pool::Settings::default() };
    let (test, key) = (test(Settings { pool, ..Settings::default() }), key(server()));
    let mut first = begin(&test.client, &key, Method::Get, &Options::default());
    assert_eq!(next(&mut first).expect("a head"), Step::Head);
    let slot = Some(Duration::from_secs(5));
    let options = Options { times: Times { slot, ..Times::default() }, ..Options::default() };
    let (mut second, mut third) =
        (begin(&test.client, &key, Method::Get, &options), begin(&test.client, &key, Method::Get, &options));
    let (flag, begun) = (Arc::new(Flag(AtomicBool::new(false))), Instant::now());
    let waker = Waker::from(Arc::clone(&flag));
    for call in [&mut second, &mut third] {
        assert!(matches!(call.step(begun, &waker), Ok(Step::Wait(Some(until))) if until > begun));
        assert_eq!(call.sockets().count(), 0);
    }
    let late = third.step(begun + Duration::from_secs(6), &waker).expect_err("it is held");
    assert_eq!((late.kind(), late.phase()), ("timeout", Some(Phase::Slot)));
    let text = format!("1 of 1 connections to {key} are held: 1 by call 0 for ");
    assert!(late.to_string().contains(&text), "{late}");
    let again = third.step(begun, &waker).expect_err("it has failed");
    assert_eq!(again.phase(), Some(Phase::Slot));
    assert_eq!(test.last().end, End::TimedOut(Phase::Slot));
    assert!(!flag.0.load(Ordering::SeqCst));
    drop(first);
    assert!(flag.0.load(Ordering::SeqCst));
    let (body, report, _) = finish(second).expect("a response");
    assert!(body == "one" && report.slot.is_some());
    drop(third);
    test.is_clean();
}

fn named(host: &str, port: u16) -> Arc<Key> {
    Arc::new(Key::plain(host, port))
}

#[test]
fn names_are_looked_up_beside_the_call() {
    let address = server();
    let (end, ends) = mpsc::channel::<()>();
    let ends = Mutex::new(ends);
    let settings = Settings {
        resolver: Some(Arc::new(move |host: &str| match host {
            "good.test" => Ok(vec!["[::1]:0".parse().expect("an address"), ([127, 0, 0, 1], 0).into()]),
            "hangs.test" => {
                let _ = ends.lock().expect("no panic").recv();
                Err(ErrorKind::Other.into())
            }
            "fails.test" => Err(std::io::Error::other("no server answers")),
            _ => Err(std::io::Error::new(ErrorKind::NotFound, "no such name")),
        })),
        ..Settings::default()
    };
    let test = test(settings);
    let times = Times { connect: Some(Duration::from_millis(30)), ..Times::default() };
    let options = Options { times, ..Options::default() };
    let late =
        finish(begin(&test.client, &named("hangs.test", 80), Method::Get, &options)).expect_err("it hangs");
    assert_eq!((late.kind(), late.phase()), ("timeout", Some(Phase::Resolve)));
    for _ in 0..2 {
        let (body, report, _) = get(&test.client, &named("good.test", address.port())).expect("a response");
        assert_eq!(body, "one");
        assert_eq!(report.resolve.is_some(), !report.reused);
    }
    for (host, text) in [("fails.test", "no server answers"), ("missing.test", "no such name")] {
        let failed = get(&test.client, &named(host, 80)).expect_err("no address");
        assert_eq!((failed.kind(), test.last().end), ("resolve", End::Failed("no-address")));
        assert!(failed.to_string().ends_with(text), "{failed}");
    }
    drop(end);
    test.is_clean();
}

#[test]
fn an_address_that_is_not_allowed_is_an_error_of_its_own() {
    let address = server();
    let resolver = |_: &str| Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    let test = test(Settings { resolver: Some(Arc::new(resolver)), ..Settings::default() });
    let place = |host: &str| Place::Host(host.into(), address.port());
    let only = |network: &str| Allow::Networks([network.parse().expect("a network")].into());
    for (place, allow, is_allowed) in [
        (place("127.0.0.1"), Allow::Public, false),
        (place("localhost"), Allow::Public, false),
        (place("rebinds.test"), Allow::Public, false),
        (place("::ffff:127.0.0.1"), Allow::Public, false),
        (place("rebinds.test"), only("10.0.0.0/8"), false),
        (Place::Socket("/nothing/here".into()), Allow::Public, false),
        (place("127.0.0.1"), only("127.0.0.0/8"), true),
        (place("rebinds.test"), only("127.0.0.1"), true),
    ] {
        let key = Arc::new(Key { place, allow, ..Key::plain("", 0) });
        let result = get(&test.client, &key).map(|(body, ..)| body);
        match is_allowed {
            true => assert_eq!(result.expect("allowed"), "one"),
            false => {
                assert_eq!(result.expect_err("not allowed").kind(), "allow", "{key:?}");
                assert_eq!(test.last().end, End::Failed("not-allowed"));
            }
        }
    }
    // A connection that another key may use is none for this one.
    assert_eq!(get(&test.client, &key(address)).expect("a response").0, "one");
    let public = Arc::new(Key { allow: Allow::Public, ..(*key(address)).clone() });
    assert_eq!(get(&test.client, &public).expect_err("not allowed").kind(), "allow");
    test.is_clean();
}

#[test]
fn a_call_shows_no_credentials() {
    let mut fields = FieldSet::new();
    fields.push("Authorization", "secret");
    let (method, authority) = (&Method::Get, b"a");
    let request =
        OutgoingRequest { method, target: b"/", authority, fields: &fields, length: Some(0), upgrade: false };
    let (test, key) = (test(Settings::default()), key(server()));
    let mut call = Call::begin(&test.client, &key, &request, &Options::default(), Instant::now())
        .expect("a good request");
    let shows = |call: &Call, bytes: &[u8]| {
        let numbers = format!("{bytes:?}");
        format!("{call:?}").contains(numbers.trim_matches(['[', ']']))
    };
    assert!(!shows(&call, b"secret"));
    assert_eq!(next(&mut call).expect("a head"), Step::Head);
    assert!(matches!(next(&mut call), Ok(Step::Data(3))));
    assert!(!shows(&call, b"secret") && !shows(&call, b"one"));
}

#[test]
fn the_total_time_ends_while_bytes_are_always_there() {
    let address = serve(|stream| {
        head(stream).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("a reader");
        while stream.write_all(&[b'a'; 1 << 16]).is_ok() {}
    });
    let exchange = Timeouts { total: Some(Duration::from_secs(60)), ..Timeouts::default() };
    let options = Options { times: Times { exchange, ..Times::default() }, ..Options::default() };
    let (test, key) = (test(Settings::default()), key(address));
    for reads in [0, 3] {
        let mut call = begin(&test.client, &key, Method::Get, &options);
        assert_eq!(next(&mut call).expect("a head"), Step::Head);
        for _ in 0..reads {
            assert!(matches!(next(&mut call), Ok(Step::Data(_))));
            call.consume(usize::MAX);
        }
        assert!(matches!(next(&mut call), Ok(Step::Data(_))));
        if reads > 0 {
            call.consume(usize::MAX);
            let socket = call.sockets().next().expect("one");
            maitred_io::outgoing::wait(&[(socket.0, Wanted::Read)], None).expect("bytes");
        }
        let late = call.step(Instant::now() + Duration::from_secs(61), Waker::noop());
        assert_eq!(
            late.expect_err("the time has passed").phase(),
            Some(Phase::Total),
            "behind {reads} reads"
        );
    }
}

#[test]
fn a_time_limit_is_kept_while_the_server_is_silent() {
    let address = serve(|stream| drop(stream.read_to_end(&mut Vec::new())));
    let test = test(Settings::default());
    let exchange = Timeouts { first_byte: Some(Duration::from_millis(20)), ..Timeouts::default() };
    let options = Options { times: Times { exchange, ..Times::default() }, ..Options::default() };
    let late = finish(begin(&test.client, &key(address), Method::Get, &options)).expect_err("silence");
    assert_eq!(late.phase(), Some(Phase::FirstByte));
    let report = test.last();
    assert_eq!((report.end, report.sent, report.received), (End::TimedOut(Phase::FirstByte), 27, 0));
    test.is_clean();
}

/// A server whose queue is full: it answers no SYN.
fn full(address: SocketAddr) -> Option<(TcpListener, Vec<TcpStream>)> {
    let listener = TcpListener::bind(address).ok()?;
    rustix::net::listen(&listener, 0).expect("it listens");
    let address = listener.local_addr().expect("bound");
    let queued = std::iter::repeat_with(|| maitred_io::outgoing::connect(&address).expect("begun"));
    Some((listener, queued.take(4).collect()))
}

#[test]
fn a_server_that_answers_no_syn_is_left_when_its_time_has_passed() {
    let test = test(Settings::default());
    let (listener, _queued) = full(([127, 0, 0, 1], 0).into()).expect("a port");
    let key = key(listener.local_addr().expect("bound"));
    let second = Duration::from_secs(1);
    for (connect, total, phase) in [
        (Some(second), None, Phase::Connect),
        (None, Some(second), Phase::Total),
        (Some(second), Some(second), Phase::Total),
    ] {
        let exchange = Timeouts { total, ..Timeouts::default() };
        let times = Times { connect, exchange, ..Times::default() };
        let mut call = begin(&test.client, &key, Method::Get, &Options { times, ..Options::default() });
        let begun = Instant::now();
        let step = call.step(begun, Waker::noop()).expect("it waits");
        let until = if let Step::Wait(until) = step { until } else { None }.expect("it waits for a while");
        assert!(until > begun && until <= begun + second);
        assert_eq!(call.sockets().count(), 1);
        let late = call.step(begun + second, Waker::noop()).expect_err("it is late");
        assert_eq!((late.phase(), test.last().end), (Some(phase), End::TimedOut(phase)));
        let tried = format!("no connection was made: tried {}", listener.local_addr().expect("bound"));
        assert_eq!(late.to_string().ends_with(&tried), phase == Phase::Connect, "{late}");
    }
    test.is_clean();
}

#[test]
fn an_address_that_does_not_answer_costs_its_head_start_once() {
    let (good, _other) = std::iter::repeat_with(server)
        .find_map(|good| Some((good, full(SocketAddr::from(([127, 0, 0, 2], good.port())))?)))
        .expect("a port that is free at both addresses");
    let resolver = |_: &str| Ok(vec![([127, 0, 0, 2], 0).into(), ([127, 0, 0, 1], 0).into()]);
    let test = test(Settings { resolver: Some(Arc::new(resolver)), ..Settings::default() });
    let key = named("two.test", good.port());
    for (number, head_start) in [(0, Duration::from_millis(250)), (1, Duration::ZERO)] {
        let mut call = begin(&test.client, &key, Method::Get, &Options::default());
        let mut now = Instant::now();
        let begun = now;
        // The time that passes is that of the call's own deadlines.
        while call.report().sent == 0 {
            match blocking::with_waker(|waker| call.step(now, waker)).expect("the second is good") {
                Step::Wait(Some(until)) if number == 0 => now = until,
                step => {
                    assert!(matches!(step, Step::Wait(_)), "{step:?}");
                    blocking::wait(&call, None).expect("a socket");
                }
            }
        }
        assert_eq!(call.report().connect, Some(head_start), "call {number}");
        assert_eq!(now - begun, head_start, "call {number}");
        drop(call);
    }
    test.is_clean();
}

#[test]
fn a_request_that_cannot_be_sent_is_accounted() {
    let test = test(Settings::default());
    let request = OutgoingRequest {
        method: &Method::Get,
        target: b"/ HTTP/1.1\r\nA: b",
        authority: b"a",
        fields: &FieldSet::new(),
        length: Some(0),
        upgrade: false,
    };
    let key = named("a", 80);
    let failed = Call::begin(&test.client, &key, &request, &Options::default(), Instant::now());
    assert_eq!(failed.expect_err("no target").kind(), "request");
    assert_eq!(test.last().end, End::Failed("request"));
    let mut call = begin(&test.client, &key, Method::Post, &Options::default());
    assert_eq!(call.give_body(b"abcd").expect_err("three bytes").kind(), "request");
    assert_eq!(test.last().end, End::Failed("request"));
    assert!(call.is_ended());
    test.is_clean();
}
