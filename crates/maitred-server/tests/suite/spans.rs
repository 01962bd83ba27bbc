//! Where the time of a request went: as clients are told it, as the access log has it.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::{
    PATIENCE, Running, ask, connect, get, get_last, read_all, read_response, settings, start, text,
    wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::inspect::State;
use maitred_server::{Level, Log, LogTarget, Routes, Settings, Trusted};
use maitred_stats::Span;
use maitred_testkit::client::Client;

/// Least time of the work in these tests.
const WORK: Duration = Duration::from_millis(20);

fn work(exchange: Exchange) {
    std::thread::sleep(WORK);
    text(exchange, "done\n");
}

fn timed(handler: impl maitred_runtime::Handler, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.insight.server_timing = true;
    change(&mut settings);
    start(settings)
}

/// Milliseconds by name.
fn spans(head: &str) -> HashMap<String, f64> {
    let value = head.lines().find_map(|line| line.strip_prefix("Server-Timing: ")).expect("times are told");
    let part = |part: &str| {
        let (name, duration) = part.split_once(";dur=").expect("a name and a duration");
        (name.to_owned(), duration.parse().expect("a number"))
    };
    value.split(", ").map(part).collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Two clocks that tell the time of one wait.
const CLOCKS: f64 = 1.0;

/// Reads a response; its times.
fn told(stream: &mut Client) -> HashMap<String, f64> {
    spans(&read_response(stream).0)
}

#[test]
fn a_handler_s_time_is_told_to_the_client_as_run() {
    let running = timed(work, |_| {});
    let begun = Instant::now();
    let mut client = ask(running.address, "/");
    let told = told(&mut client);
    let whole = millis(begun.elapsed());
    assert!(told["run"] >= millis(WORK), "{told:?}");
    assert!(told.values().sum::<f64>() <= whole, "{told:?} in {whole} ms");
    let mut names: Vec<_> = told.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "filter", "gate", "queue", "receive", "run"]);
}

#[test]
fn what_a_proxy_says_of_the_time_before_is_told_too() {
    let running = timed(
        |exchange| text(exchange, "hello\n"),
        |settings| {
            let here = "127.0.0.0/8".parse().expect("a network");
            settings.forwarding.trusted = Trusted::new(vec![here], false);
        },
    );
    let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970") - WORK;
    let mut client = connect(running.address);
    let head =
        format!("GET / HTTP/1.1\r\nHost: test\r\nX-Request-Start: t={:.3}\r\n\r\n", start.as_secs_f64());
    client.write_all(head.as_bytes()).unwrap();
    let told = told(&mut client);
    assert!(told["outer"] + CLOCKS >= millis(WORK), "{told:?}");
}

#[test]
fn a_request_waits_for_a_thread_as_long_as_the_others_run() {
    let door = Arc::new(Door::default());
    let guard = Opened(Arc::clone(&door));
    let running = timed(guarded(&door), |settings| settings.pool.limits.max_threads = 3);
    let began = Instant::now();
    let mut first: Vec<_> = (0..3).map(|number| ask(running.address, &format!("/wait/{number}"))).collect();
    guard.0.wait_for(3);
    let mut second: Vec<_> = (0..3).map(|number| ask(running.address, &format!("/wait/{number}"))).collect();
    wait_until("three wait", || running.figure("default", "queued") == 3);
    let waiting = Instant::now();
    std::thread::sleep(WORK);
    let waited = millis(waiting.elapsed());
    guard.0.open();
    for stream in &mut first {
        let told = told(stream);
        assert!(told["run"] >= waited, "{told:?} {waited}");
    }
    for stream in &mut second {
        let told = told(stream);
        assert!(told["queue"] + CLOCKS >= waited, "{told:?} {waited}");
    }
    let whole = millis(began.elapsed());
    assert!(whole >= waited);
}

#[test]
fn a_wait_in_the_socket_s_buffer_is_seen() {
    let door = Arc::new(Door::default());
    let guard = Opened(Arc::clone(&door));
    let running = timed(guarded(&door), |_| {});
    let mut client = ask(running.address, "/wait/1");
    guard.0.wait_for(1);
    // Nothing is read while the response before it is not complete.
    client.write_all(&get("/wait/2")).unwrap();
    let waiting = Instant::now();
    std::thread::sleep(WORK);
    let waited = millis(waiting.elapsed());
    guard.0.open();
    let (first, second) = (told(&mut client), told(&mut client));
    assert!(first["run"] >= waited, "{first:?} {waited}");
    assert!(second["queue"] + CLOCKS >= waited, "{second:?} {waited}");
}

/// Waits until the server has read the first part of a request.
fn until_received(running: &Running) {
    wait_until("the first part is read", || {
        let mut read = false;
        running.server.connections().each(|_, connection| read |= connection.state == State::Receiving);
        read
    });
}

#[test]
fn a_slow_client_s_time_is_accept_and_no_queue() {
    let running = timed(|exchange| text(exchange, "hello\n"), |_| {});
    let mut client = connect(running.address);
    let request = get("/");
    client.write_all(&request[..10]).unwrap();
    until_received(&running);
    let dripping = Instant::now();
    std::thread::sleep(WORK);
    let dripped = millis(dripping.elapsed());
    client.write_all(&request[10..]).unwrap();
    let told = told(&mut client);
    assert!(told["accept"] + CLOCKS >= dripped, "{told:?} {dripped}");
}

/// A body that comes in two parts, which memory keeps or not.
fn slow_body(memory: u64, request: impl Fn(&[u8]) -> Vec<u8>) {
    const LENGTH: usize = 100_000;
    const REST: usize = 1000;
    let spool = tempfile::tempdir().expect("a folder");
    let running = timed(
        |exchange: Exchange| {
            let length = exchange.request().body.len();
            text(exchange, length.to_string());
        },
        |settings| {
            settings.body_memory = memory;
            settings.body_budget = 0;
            settings.spool = spool.path().to_owned();
        },
    );
    let mut client = connect(running.address);
    let bytes = request(&vec![b'x'; LENGTH]);
    let (first, rest) = bytes.split_at(bytes.len() - REST);
    client.write_all(first).unwrap();
    until_received(&running);
    let dripping = Instant::now();
    std::thread::sleep(WORK);
    let dripped = millis(dripping.elapsed());
    client.write_all(rest).unwrap();
    let (head, body) = read_response(&mut client);
    let told = spans(&head);
    assert_eq!(body, LENGTH.to_string().as_bytes());
    assert!(told["accept"] + CLOCKS >= dripped, "{told:?} {dripped}");
    wait_until("it is counted", || running.server.figures().statistics().server.requests == 1);
    let counted = running.server.figures().statistics().server;
    let accept = counted.spans[Span::Accept as usize].max() as f64 / 1e6;
    assert!(accept + CLOCKS >= dripped, "{accept} {dripped}");
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for part in body.chunks(5000) {
        request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

#[test]
fn the_time_of_a_slow_body_in_memory_is_accept() {
    slow_body(1_000_000, with_length);
    slow_body(1_000_000, in_chunks);
}

#[test]
fn the_time_of_a_slow_body_beyond_memory_is_accept() {
    slow_body(10_000, with_length);
    slow_body(10_000, in_chunks);
}

#[test]
fn the_time_of_a_body_that_is_refused_in_the_middle_is_accept() {
    let running = timed(|exchange: Exchange| text(exchange, "never"), |settings| settings.max_body = 1000);
    let mut client = connect(running.address);
    client.write_all(b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n").unwrap();
    until_received(&running);
    let dripping = Instant::now();
    std::thread::sleep(WORK);
    let dripped = millis(dripping.elapsed());
    client.write_all(&[b'x'; 2000]).unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 413 "));
    wait_until("it is counted", || running.server.figures().statistics().server.requests == 1);
    let counted = running.server.figures().statistics().server;
    let accept = counted.spans[Span::Accept as usize].max() as f64 / 1e6;
    assert!(accept + CLOCKS >= dripped, "{accept} {dripped}");
}

/// An access log of its own in a folder of its own.
fn logged(settings: &mut Settings, name: &str) -> PathBuf {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("spans-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the log");
    let path = folder.join("access.log");
    let target = LogTarget::Path(path.clone());
    let log =
        Log::open(Level::Error, LogTarget::Path("/dev/null".into()), Some(target)).expect("the log opens");
    settings.log = Arc::new(log);
    path
}

#[test]
fn an_exchange_is_written_down_when_its_last_byte_has_left() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let mut path = PathBuf::new();
    let running = timed(
        |exchange: Exchange| {
            let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
            let _ = exchange.respond(head, vec![b'x'; LENGTH]);
        },
        |settings| path = logged(settings, "slow"),
    );
    let mut client = connect(running.address);
    client.write_all(&get_last("/slow")).unwrap();
    let mut begin = [0; 1024];
    client.read_exact(&mut begin).unwrap();
    // More than any socket's buffers hold is still with the server: another request is written down, this one not.
    let mut other = connect(running.address);
    other.write_all(b"BAD\r\n\r\n").unwrap();
    read_all(&mut other);
    running.server.log().flush(PATIENCE);
    let lines = fs::read_to_string(&path).unwrap();
    assert!(lines.contains("\" 400 ") && !lines.contains("/slow"), "{lines}");
    let rest = read_all(&mut client);
    assert!(begin.len() + rest.len() > LENGTH);
    wait_until("the response is written down", || {
        running.server.log().flush(PATIENCE);
        fs::read_to_string(&path).unwrap().contains("GET /slow HTTP/1.1\" 200 67108864")
    });
}

#[test]
fn what_the_peer_did_not_take_is_written_down_as_such() {
    let mut path = PathBuf::new();
    let running = timed(
        |exchange: Exchange| {
            let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
            let _ = exchange.respond(head, vec![b'x'; 64 * 1024 * 1024]);
        },
        |settings| path = logged(settings, "gone"),
    );
    let mut client = ask(running.address, "/gone");
    client.read_exact(&mut [0; 1024]).unwrap();
    drop(client);
    wait_until("the response is written down", || {
        running.server.log().flush(PATIENCE);
        let lines = fs::read_to_string(&path).unwrap();
        lines.contains("GET /gone HTTP/1.1\" 200") && lines.contains(" peer-gone\n")
    });
}

#[test]
fn requests_without_an_id_get_one_where_that_is_wanted() {
    fn id(exchange: Exchange) {
        let given = exchange.request().head.fields.first("x-request-id").map(<[u8]>::to_vec);
        text(exchange, String::from_utf8(given.unwrap_or_default()).unwrap());
    }
    let asked = |running: &Running, fields: &str| {
        let mut client = connect(running.address);
        client.write_all(format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes()).unwrap();
        String::from_utf8(read_response(&mut client).1).unwrap()
    };
    let running = timed(id, |settings| settings.insight.ids = true);
    let (one, two) = (asked(&running, ""), asked(&running, ""));
    assert!(one.len() > 16 && one != two, "{one} {two}");
    assert_eq!(asked(&running, "X-Request-ID: mine\r\n"), "mine");
    assert_eq!(asked(&running, "X-Request-ID: not mine\r\n").len(), one.len());
    let running = timed(id, |_| {});
    assert_eq!(asked(&running, ""), "");
}
