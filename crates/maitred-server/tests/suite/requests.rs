//! Requests over real sockets: order, framing, limits, refusals.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::{
    connect, exchange, get, get_last, read_all, read_response, serve, settings, start, text, wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, SendError};
use maitred_server::Routes;

fn echo(exchange: Exchange) {
    let request = exchange.request();
    let path = String::from_utf8_lossy(request.head.path()).into_owned();
    let body = String::from_utf8(request.body.to_vec().unwrap()).unwrap();
    text(exchange, format!("{path}:{body}"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let running = serve(echo);
    let mut requests = Vec::new();
    for number in 0..200 {
        requests.extend_from_slice(&get(&format!("/{number}")));
    }
    let mut stream = connect(running.address);
    stream.write_all(&requests).unwrap();
    for number in 0..200 {
        let (head, body) = read_response(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(String::from_utf8(body).unwrap(), format!("/{number}:"));
    }
}

#[test]
fn a_request_that_arrives_byte_by_byte_is_one_request() {
    let running = serve(echo);
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    let request = b"POST /slow HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for byte in request {
        stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(read_response(&mut stream).1, b"/slow:abcde");
}

#[test]
fn a_large_body_is_received_whole() {
    let running = serve(|exchange: Exchange| {
        let body = exchange.request().body.to_vec().unwrap();
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        let answer = format!("{} {sum}", body.len());
        text(exchange, answer);
    });
    let body: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let mut stream = connect(running.address);
    write!(stream, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&body).unwrap();
    assert_eq!(read_response(&mut stream).1, format!("{} {sum}", body.len()).into_bytes());
}

#[test]
fn bodies_at_the_limit_pass_and_one_byte_more_is_413() {
    let mut settings = settings(Routes::new().with_application(std::sync::Arc::new(echo)));
    settings.max_body = 10;
    let running = start(settings);
    let fixed = |length: usize| {
        let body = "x".repeat(length);
        format!("POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    assert!(exchange(running.address, fixed(10).as_bytes()).ends_with("/:xxxxxxxxxx"));
    assert!(exchange(running.address, fixed(11).as_bytes()).starts_with("HTTP/1.1 413 "));
    let chunked = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\nabcde\r\n0\r\n\r\n";
    assert!(exchange(running.address, chunked.as_bytes()).starts_with("HTTP/1.1 413 "));
}

#[test]
fn a_refused_expectation_gets_the_refusal_and_no_100() {
    let mut settings = settings(Routes::new().with_application(std::sync::Arc::new(echo)));
    settings.max_body = 10;
    let running = start(settings);
    let request = "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n";
    assert!(exchange(running.address, request.as_bytes()).starts_with("HTTP/1.1 413 "));
}

#[test]
fn an_accepted_expectation_gets_100_then_the_answer() {
    let running = serve(echo);
    let mut stream = connect(running.address);
    stream
        .write_all(b"POST /e HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        .unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").unwrap();
    assert_eq!(read_response(&mut stream).1, b"/e:abc");
}

#[test]
fn refusals_name_the_reason_and_close() {
    let running = serve(echo);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "400"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: br\r\n\r\n", "501"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: tea\r\n\r\n", "417"),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "501"),
    ] {
        let answer = exchange(running.address, request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
        assert!(answer.contains("Connection: close\r\n"), "{request:?}: {answer}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9_000));
    assert!(exchange(running.address, long.as_bytes()).starts_with("HTTP/1.1 414 "));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(300));
    assert!(exchange(running.address, many.as_bytes()).starts_with("HTTP/1.1 431 "));
}

#[test]
fn answers_before_a_refused_request_are_still_sent() {
    let running = serve(echo);
    let requests = [get("/one"), get("/two"), b"BAD\r\n\r\n".to_vec()].concat();
    let answer = exchange(running.address, &requests);
    let places = ["/one:", "/two:", "HTTP/1.1 400 "].map(|part| answer.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{answer}");
}

#[test]
fn options_asterisk_is_answered_by_the_engine() {
    let running = serve(echo);
    let answer = exchange(running.address, b"OPTIONS * HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 204 ") && answer.contains("Allow: GET, HEAD"), "{answer}");
}

#[test]
fn http_1_0_closes_unless_asked_to_keep_alive() {
    let running = serve(echo);
    let answer = exchange(running.address, b"GET /old HTTP/1.0\r\n\r\n");
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("/old:"), "{answer}");
    let mut stream = connect(running.address);
    for path in ["/a", "/b"] {
        write!(stream, "GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap();
        let (head, body) = read_response(&mut stream);
        assert!(head.contains("Connection: keep-alive\r\n"), "{head}");
        assert_eq!(body, format!("{path}:").into_bytes());
    }
}

#[test]
fn a_peer_that_ends_its_side_still_gets_its_answer() {
    // It runs before the end is there: of a request that waits for a thread, the end is a peer that has left.
    let door = Arc::new(Door::default());
    let guard = Opened(Arc::clone(&door));
    let running = serve(guarded(&door));
    let mut stream = connect(running.address);
    stream.write_all(&get("/wait")).unwrap();
    guard.0.wait_for(1);
    stream.shutdown(Shutdown::Write).unwrap();
    guard.0.open();
    let answer = read_all(&mut stream);
    assert!(answer.contains("/wait on "), "{answer:?}");
}

#[test]
fn a_panicking_handler_is_500_and_the_thread_lives() {
    let running = serve(|exchange: Exchange| {
        assert!(exchange.request().head.path() != b"/panic", "asked for it");
        text(exchange, "fine");
    });
    for _ in 0..20 {
        let answer = exchange(running.address, &get_last("/panic"));
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    }
    assert!(exchange(running.address, &get_last("/")).ends_with("fine"));
    // A thread counts a request after its peer has the answer.
    wait_until("all are counted", || running.server.figures().snapshot().errors == 20);
}

#[test]
fn a_response_that_breaks_the_rules_never_desynchronises() {
    let running = serve(|exchange: Exchange| {
        let path = exchange.request().head.path().to_vec();
        let head = ResponseHead::new(Status::OK);
        let result = match path.as_slice() {
            b"/long" => {
                let mut stream = exchange.start(head, Some(3)).unwrap();
                let sent = stream.send("abcdef").map(drop);
                stream.finish();
                sent
            }
            b"/split" => exchange.respond(head.with("X", "a\r\nSet-Cookie: b=c"), "never"),
            b"/empty" => exchange.respond(ResponseHead::new(Status::NO_CONTENT), "body"),
            b"/hop" => exchange.respond(head.with("Transfer-Encoding", "chunked"), "ok"),
            _ => exchange.respond(head, "end"),
        };
        drop(result);
    });
    let requests: Vec<u8> = ["/long", "/split", "/empty", "/hop"].iter().flat_map(|path| get(path)).collect();
    let answer = exchange(running.address, &[requests, get_last("/")].concat());
    let bodies: Vec<_> = answer.split("HTTP/1.1 ").map(|part| part.split("\r\n\r\n").nth(1)).collect();
    assert_eq!(bodies[1], Some("abc"), "{answer}");
    assert!(answer.contains("HTTP/1.1 500 ") && !answer.contains("Set-Cookie"), "{answer}");
    assert_eq!(bodies[3], Some(""), "{answer}");
    assert_eq!(bodies[4], Some("ok"), "{answer}");
    assert_eq!(bodies[5], Some("end"), "{answer}");
}

#[test]
fn a_short_body_closes_the_connection() {
    let running = serve(|exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(10)).unwrap();
        stream.send("abc").unwrap();
        stream.finish();
    });
    let answer = exchange(running.address, &[get("/"), get("/")].concat());
    assert!(answer.ends_with("\r\n\r\nabc"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1);
}

#[test]
fn head_has_the_length_and_no_body() {
    let running = serve(echo);
    let requests = [b"HEAD /x HTTP/1.1\r\nHost: t\r\n\r\n".to_vec(), get_last("/y")].concat();
    let answer = exchange(running.address, &requests);
    assert!(answer.contains("Content-Length: 3\r\n\r\nHTTP/1.1 200"), "{answer}");
}

#[test]
fn a_handler_is_told_that_no_part_of_its_body_is_sent_and_the_response_is_complete() {
    let running = serve(|exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
        let mut sent = 0;
        while stream.send("x").is_ok() {
            sent += 1;
            if sent == 3 {
                return stream.finish();
            }
        }
        assert_eq!(stream.send("x"), Err(SendError::Unwanted));
    });
    let requests = [b"HEAD /x HTTP/1.1\r\nHost: t\r\n\r\n".to_vec(), get_last("/y")].concat();
    let answer = exchange(running.address, &requests);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (_, after) = answer.split_once("\r\n\r\n").unwrap();
    assert!(after.starts_with("HTTP/1.1 200 OK\r\n") && after.ends_with("0\r\n\r\n"), "{answer}");
}
