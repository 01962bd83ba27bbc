//! Bodies that their handler reads while they come, over real sockets: listeners that do not read ahead.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::harness::Live;
use crate::harness::{
    PATIENCE, Running, connect, get, get_last, read_all, read_response, settings, start, text, wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Body, Exchange, Observe};
use maitred_server::inspect::State;
use maitred_server::{Routes, Settings};
use maitred_testkit::client::Client;

fn serve_with(
    handler: impl Fn(Exchange) + Send + Sync + 'static,
    change: impl FnOnce(&mut Settings),
) -> Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(Live(handler))));
    settings.listeners[0].read_ahead = Some(false);
    change(&mut settings);
    start(settings)
}

fn serve(handler: impl Fn(Exchange) + Send + Sync + 'static) -> Running {
    serve_with(handler, |_| {})
}

/// Answers with kind, length, a sum in which the order counts, or with the error.
fn summary(exchange: Exchange) {
    let body = &exchange.request().body;
    let kind = if body.is_live() { "live" } else { "complete" };
    let answer = match body.to_vec() {
        Ok(bytes) => format!("{kind} {:?} {}", body.length(), sum(&bytes)),
        Err(error) => format!("{kind} {:?} {:?}: {error}", body.length(), error.kind()),
    };
    text(exchange, answer);
}

fn sum(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} {sum}", bytes.len())
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

fn head(path: &str, fields: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: t\r\n{fields}\r\n\r\n").into_bytes()
}

fn with_length(path: &str, body: &[u8]) -> Vec<u8> {
    [head(path, &format!("Content-Length: {}", body.len())), body.to_vec()].concat()
}

fn chunked(path: &str, body: &[u8], size: usize, trailers: &str) -> Vec<u8> {
    let mut request = head(path, "Transfer-Encoding: chunked");
    for part in body.chunks(size) {
        request.extend_from_slice(format!("{:x};a=b\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    request
}

fn body_of(stream: &mut Client) -> String {
    let (head, body) = read_response(stream);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    String::from_utf8(body).expect("text")
}

#[test]
fn a_live_body_has_the_same_bytes_however_it_is_framed_and_cut() {
    let running = serve(summary);
    let mut stream = connect(running.address);
    for length in [1, 100, 65_535, 65_536, 65_537, 3_000_001] {
        let body = pattern(length);
        stream.write_all(&with_length("/", &body)).unwrap();
        assert_eq!(body_of(&mut stream), format!("live Some({length}) {}", sum(&body)));
        for (size, trailers) in [(7_001, ""), (1 << 20, "X-T: a\r\n")] {
            stream.write_all(&chunked("/", &body, size, trailers)).unwrap();
            assert_eq!(body_of(&mut stream), format!("live None {}", sum(&body)), "on one connection");
        }
    }
    // Byte by byte, each as a segment of its own.
    for request in [with_length("/", b"abcdef"), chunked("/", b"abcdef", 2, "X-T: a\r\nX-U: b\r\n")] {
        for byte in request {
            stream.write_all(&[byte]).unwrap();
        }
        assert!(body_of(&mut stream).ends_with(&sum(b"abcdef")));
    }
    // Without a body there is nothing to wait for.
    stream.write_all(&get("/")).unwrap();
    assert!(body_of(&mut stream).starts_with("complete Some(0) 0"));
}

#[test]
fn pipelined_requests_stay_apart() {
    let running = serve(summary);
    let mut stream = connect(running.address);
    let bodies = [50_000, 3, 200_000, 0, 131_072].map(pattern);
    let requests: Vec<u8> = bodies
        .iter()
        .flat_map(|body| [with_length("/", body), chunked("/", body, 999, "")].concat())
        .collect();
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || writing.write_all(&requests).unwrap());
    for body in &bodies {
        for _ in 0..2 {
            assert!(body_of(&mut stream).ends_with(&sum(body)));
        }
    }
    writer.join().unwrap();
}

#[test]
fn the_handler_runs_before_the_body_is_there_and_reads_what_comes() {
    let (send, parts): (Sender<Vec<u8>>, Receiver<Vec<u8>>) = channel();
    let send = Mutex::new(send);
    let running = serve(move |exchange: Exchange| {
        let mut reader = exchange.request().body.reader();
        let mut part = [0; 100];
        loop {
            let count = reader.read(&mut part).expect("it comes");
            send.lock().unwrap().send(part[..count].to_vec()).unwrap();
            if count == 0 {
                break;
            }
        }
        text(exchange, "read");
    });
    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Transfer-Encoding: chunked")).unwrap();
    for part in [&b"one"[..], b"two", b"three"] {
        write!(stream, "{:x}\r\n{}\r\n", part.len(), String::from_utf8_lossy(part)).unwrap();
        // The next part is not sent before this one has been read.
        let mut received = Vec::new();
        while received.len() < part.len() {
            received.extend(parts.recv_timeout(PATIENCE).expect("it is read while the rest is missing"));
        }
        assert_eq!(received, part);
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(body_of(&mut stream), "read");
}

#[test]
fn a_handler_can_answer_while_it_reads() {
    let running = serve(|mut exchange: Exchange| {
        let body = std::mem::take(&mut exchange.request_mut().body);
        let mut reader = body.reader();
        let mut part = vec![0; 10_000];
        let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(250_000)).unwrap();
        loop {
            match reader.read(&mut part).expect("it comes") {
                0 => break,
                count => drop(stream.send(part[..count].to_vec())),
            }
            stream.wait(PATIENCE).unwrap();
        }
        stream.finish();
    });
    let mut stream = connect(running.address);
    let body = pattern(250_000);
    for _ in 0..2 {
        let request = with_length("/", &body);
        let mut writing = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || writing.write_all(&request).unwrap());
        assert_eq!(read_response(&mut stream).1, body);
        writer.join().unwrap();
    }
}

#[test]
fn bytes_without_a_read_of_the_handler_are_not_received() {
    let (send, asked) = channel::<()>();
    let asked = Mutex::new(asked);
    let running = serve(move |exchange: Exchange| {
        asked.lock().unwrap().recv_timeout(PATIENCE).expect("the test goes on");
        summary(exchange);
    });
    // Made before the connection: on a busy machine it takes longer than the time of a head.
    let body = pattern(40_000_000);
    let request = with_length("/", &body);
    let mut stream = connect(running.address);
    stream.set_nonblocking(true).unwrap();
    // The peer's system and ours hold a few MiB; then the sender waits.
    let (mut sent, mut still) = (0, Instant::now());
    while still.elapsed() < Duration::from_millis(300) && sent < request.len() {
        match stream.write(&request[sent..]) {
            Ok(count) => (sent, still) = (sent + count, Instant::now()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!(sent < 20_000_000, "{sent} bytes were taken for nobody");
    stream.set_nonblocking(false).unwrap();
    send.send(()).unwrap();
    stream.write_all(&request[sent..]).unwrap();
    assert!(body_of(&mut stream).ends_with(&sum(&body)));
}

#[test]
fn continue_is_sent_when_the_handler_reads_first() {
    let running = serve(|exchange: Exchange| match exchange.request().head.path() {
        b"/reads" => summary(exchange),
        _ => text(exchange, "not wanted"),
    });
    let mut stream = connect(running.address);
    for _ in 0..2 {
        stream.write_all(&head("/reads", "Expect: 100-continue\r\nContent-Length: 3")).unwrap();
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").unwrap();
        assert!(body_of(&mut stream).ends_with(&sum(b"abc")), "once, and the connection stays");
    }
    stream.write_all(&head("/ignores", "Expect: 100-continue\r\nContent-Length: 3")).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("not wanted"), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "nobody knows whether a body follows: {answer}");
}

#[test]
fn what_is_left_unread_is_dropped_up_to_a_bound() {
    let running = serve(|exchange: Exchange| {
        let mut first = [0; 10];
        let _ = exchange.request().body.reader().read(&mut first);
        text(exchange, "enough");
    });
    let mut stream = connect(running.address);
    for request in [
        with_length("/", &pattern(100_000)),
        chunked("/", &pattern(200_000), 50_000, "X-T: a\r\n"),
        with_length("/", &pattern(5)),
        chunked("/", &pattern(5), 5, ""),
        with_length("/", &pattern(256 * 1024)),
    ] {
        stream.write_all(&request).unwrap();
        assert_eq!(body_of(&mut stream), "enough", "and the next request follows");
    }
    // More than the bound, by its length: the answer says that the connection ends.
    stream.write_all(&head("/", "Content-Length: 100000000")).unwrap();
    stream.write_all(&pattern(10)).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("enough"), "{answer}");
    // Of unknown length: it ends when the bound is reached.
    let mut stream = connect(running.address);
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || writing.write_all(&chunked("/", &pattern(3_000_000), 9_999, "")));
    assert_eq!(body_of(&mut stream), "enough");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "no second answer: {}", String::from_utf8_lossy(&rest));
    let _ = writer.join().unwrap();
}

#[test]
fn a_malformed_rest_gets_no_second_answer() {
    let running = serve(|exchange: Exchange| text(exchange, "first"));
    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Transfer-Encoding: chunked")).unwrap();
    stream.write_all(b"zz\r\n").unwrap();
    assert!(read_all(&mut stream).ends_with("first"));
}

#[test]
fn errors_of_the_peer_reach_the_reader() {
    let (begin, began) = channel();
    let begin = Mutex::new(begin);
    let handler = move |exchange| {
        begin.lock().unwrap().send(()).unwrap();
        summary(exchange);
    };
    let running = serve_with(handler, |settings| {
        settings.timeouts.body = Duration::from_millis(100);
        settings.max_body = 100_000;
    });
    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Content-Length: 10")).unwrap();
    stream.write_all(b"abc").unwrap();
    began.recv_timeout(PATIENCE).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.contains("TimedOut: nothing of the request body came within the time limit"), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "{answer}");

    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Content-Length: 10")).unwrap();
    stream.write_all(b"abc").unwrap();
    // Before that it would not be run: its peer has left.
    began.recv_timeout(PATIENCE).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.contains("ConnectionReset: the client ended the connection"), "{answer}");

    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Transfer-Encoding: chunked")).unwrap();
    stream.write_all(b"3\r\nabcd\r\n").unwrap();
    assert!(read_all(&mut stream).contains("InvalidData: chunk data does not end in CRLF"));

    let mut stream = connect(running.address);
    stream.write_all(&chunked("/", &pattern(100_000), 1_000, "")).unwrap();
    assert!(body_of(&mut stream).ends_with(&sum(&pattern(100_000))));
    stream.write_all(&chunked("/", &pattern(100_001), 1_000, "")).unwrap();
    assert!(read_all(&mut stream).contains("larger than the limit (--max-body)"));

    // By its length it is refused before the handler runs.
    let mut stream = connect(running.address);
    stream.write_all(&head("/", "Content-Length: 100001")).unwrap();
    assert!(read_all(&mut stream).starts_with("HTTP/1.1 413 "));
}

#[test]
fn a_reader_waits_no_longer_than_for_its_peer_and_its_server() {
    let (send, errors) = channel();
    let (begin, began) = channel();
    let tell = Mutex::new((begin, send));
    let running = serve(move |exchange: Exchange| {
        tell.lock().unwrap().0.send(()).unwrap();
        let error = exchange.request().body.to_vec().expect_err("it does not come");
        tell.lock().unwrap().1.send(error.kind()).unwrap();
    });
    let mut reset = connect(running.address);
    reset.write_all(&head("/", "Expect: 100-continue\r\nContent-Length: 10")).unwrap();
    reset.peek(&mut [0]).unwrap();
    // Received and unread bytes turn the close into a reset.
    drop(reset);
    assert_eq!(errors.recv_timeout(PATIENCE), Ok(ErrorKind::ConnectionReset));
    let mut waits = connect(running.address);
    waits.write_all(&head("/", "Content-Length: 10")).unwrap();
    (0..2).for_each(|_| began.recv_timeout(PATIENCE).expect("a handler has it"));
    running.server.stop();
    assert_eq!(errors.recv_timeout(PATIENCE), Ok(ErrorKind::ConnectionReset));
}

#[test]
fn a_reader_that_outlives_its_request_reads_nothing_of_the_next() {
    let (send, bodies): (Sender<Body>, Receiver<Body>) = channel();
    let send = Mutex::new(send);
    let running = serve(move |mut exchange: Exchange| match exchange.request().head.path() {
        b"/keeps" => {
            send.lock().unwrap().send(std::mem::take(&mut exchange.request_mut().body)).unwrap();
            text(exchange, "kept");
        }
        _ => summary(exchange),
    });
    let mut stream = connect(running.address);
    stream.write_all(&with_length("/keeps", b"abc")).unwrap();
    assert_eq!(body_of(&mut stream), "kept");
    let body = bodies.recv_timeout(PATIENCE).unwrap();
    stream.write_all(&head("/", "Content-Length: 6")).unwrap();
    stream.write_all(b"def").unwrap();
    let error = body.reader().read(&mut [0; 10]).expect_err("its request is over");
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    stream.write_all(b"ghi").unwrap();
    assert!(body_of(&mut stream).ends_with(&sum(b"defghi")));
}

#[test]
fn a_body_can_be_polled() {
    struct Bell(Mutex<Sender<()>>);

    impl Observe for Bell {
        fn changed(&self) {
            let _ = self.0.lock().unwrap().send(());
        }
    }

    let running = serve(|mut exchange: Exchange| {
        let (send, rung) = channel();
        let observer: Arc<dyn Observe> = Arc::new(Bell(Mutex::new(send)));
        let mut body = std::mem::take(&mut exchange.request_mut().body);
        let mut all = Vec::new();
        loop {
            let mut part = [0; 1000];
            match body.live_mut().expect("live").poll_read(&mut part, &observer).expect("it comes") {
                Some(0) => break,
                Some(count) => all.extend_from_slice(&part[..count]),
                None => rung.recv_timeout(PATIENCE).expect("told"),
            }
        }
        text(exchange, sum(&all));
    });
    let mut stream = connect(running.address);
    for request in [with_length("/", &pattern(30_000)), chunked("/", &pattern(30_000), 77, "")] {
        for part in request.chunks(5_000) {
            stream.write_all(part).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(body_of(&mut stream), sum(&pattern(30_000)));
    }
}

#[test]
fn a_handler_that_does_not_take_live_bodies_gets_them_complete() {
    let mut settings = settings(Routes::new().with_application(Arc::new(summary)));
    settings.listeners[0].read_ahead = Some(false);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&with_length("/", b"abc")).unwrap();
    assert!(body_of(&mut stream).starts_with("complete Some(3)"));
}

#[test]
fn the_engine_says_itself_that_it_serves() {
    let (send, released) = channel::<()>();
    let released = Mutex::new(released);
    let running = serve_with(
        move |exchange: Exchange| {
            let _ = released.lock().unwrap().recv_timeout(PATIENCE);
            text(exchange, "application");
        },
        |settings| {
            settings.health_path = Some("/healthz".to_owned());
            settings.pool.limits.max_threads = 1;
        },
    );
    let mut blocked = connect(running.address);
    blocked.write_all(&get("/")).unwrap();
    let mut asks = connect(running.address);
    asks.write_all(&get("/healthz?x")).unwrap();
    assert_eq!(body_of(&mut asks), "ok\n");
    asks.write_all(b"HEAD /healthz HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
    let mut head = [0; 15];
    asks.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let mut late = connect(running.address);
    late.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    wait_until("its beginning has come", || running.states().contains(&State::Receiving));
    running.server.drain();
    late.write_all(b"Host: t\r\n\r\n").unwrap();
    let answer = read_all(&mut late);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("draining\n"), "{answer}");
    send.send(()).unwrap();
    drop(send);
    assert_eq!(body_of(&mut blocked), "application");
    let running = serve_with(|exchange: Exchange| text(exchange, "application"), |_| {});
    assert!(
        crate::harness::exchange(running.address, &get_last("/healthz")).ends_with("application"),
        "off by default"
    );
}
