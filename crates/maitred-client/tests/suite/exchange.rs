//! An exchange step by step: back-pressure, framing of bodies, deadlines, retries.

use std::time::{Duration, Instant};

use maitred_client::exchange::{Circumstances, Event, Exchange, NotReusable, Reuse, Timeouts};
use maitred_client::{Error, Kept, Phase};
use maitred_h1::{HeadError, Limits, OutgoingRequest};
use maitred_http::{FieldSet, Method};

const SECOND: Duration = Duration::from_secs(1);

fn begin(length: Option<u64>, fields: &FieldSet, circumstances: Circumstances, now: Instant) -> Exchange {
    let method = if length == Some(0) { Method::Get } else { Method::Post };
    let request =
        OutgoingRequest { method: &method, target: b"/", authority: b"a", fields, length, upgrade: false };
    Exchange::begin(&request, circumstances, now).expect("a good head")
}

fn plain(length: Option<u64>) -> (Exchange, Instant) {
    let now = Instant::now();
    (begin(length, &FieldSet::new(), Circumstances::default(), now), now)
}

/// The bytes that wait, which the socket takes.
fn take(exchange: &mut Exchange, now: Instant) -> String {
    let bytes = exchange.to_transmit().to_vec();
    exchange.transmitted(bytes.len(), now);
    String::from_utf8(bytes).expect("text").replace("\r\n", "|")
}

#[test]
fn a_body_waits_while_the_socket_takes_nothing() {
    let (mut exchange, now) = plain(None);
    let block = vec![b'x'; 100_000];
    let taken = exchange.send_body(&block).expect("within its length");
    assert!((60_000..70_000).contains(&taken), "{taken}");
    assert_eq!((exchange.room(), exchange.send_body(&block)), (0, Ok(0)));
    exchange.transmitted(1000, now);
    assert!(exchange.room() > 0);
}

#[test]
fn bodies_are_framed_by_their_lengths() {
    let (mut exchange, now) = plain(None);
    assert_eq!(take(&mut exchange, now), "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked||");
    assert_eq!(exchange.send_body(b"hello"), Ok(5));
    assert_eq!(exchange.send_body(b""), Ok(0), "this is not the end");
    let mut trailers = FieldSet::new();
    trailers.push("X-Sum", "1");
    exchange.end_body(Some(&trailers)).expect("complete");
    assert_eq!(take(&mut exchange, now), "5|hello|0|X-Sum: 1||");

    let (mut exchange, now) = plain(Some(5));
    exchange.send_body(b"hello").expect("within its length");
    exchange.end_body(None).expect("complete");
    assert_eq!(take(&mut exchange, now), "POST / HTTP/1.1|Host: a|Content-Length: 5||hello");
}

#[test]
fn a_body_of_another_length_than_declared_loses_the_connection() {
    let (mut exchange, _) = plain(Some(5));
    assert_eq!(exchange.send_body(b"hello!"), Err(Error::BodyTooLong));
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Failed));
    let (mut exchange, _) = plain(Some(5));
    exchange.send_body(b"hel").expect("within its length");
    assert_eq!(exchange.end_body(None), Err(Error::BodyTooShort(2)));
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Failed));
    assert!(!exchange.may_retry(true), "the caller's fault stays one");
}

#[test]
fn a_request_that_cannot_be_sent_leaves_the_connection_alone() {
    let (method, fields) = (Method::Get, FieldSet::new());
    let target = b"/ HTTP/1.1\r\nA: b";
    let request = OutgoingRequest {
        method: &method,
        target,
        authority: b"a",
        fields: &fields,
        length: Some(0),
        upgrade: false,
    };
    let begun = Exchange::begin(&request, Circumstances::default(), Instant::now());
    assert_eq!(begun.err(), Some(Error::Request(HeadError::InvalidTarget)));
}

#[test]
fn the_body_of_an_expectation_waits_for_100_or_a_second() {
    for comes in [true, false] {
        let (mut fields, now) = (FieldSet::new(), Instant::now());
        fields.push("Expect", "100-continue");
        let mut exchange = begin(Some(2), &fields, Circumstances::default(), now);
        assert_eq!((exchange.room(), exchange.deadline()), (0, None), "the head is not out");
        take(&mut exchange, now);
        assert_eq!((exchange.room(), exchange.deadline()), (0, Some(now + SECOND)));
        if comes {
            let input = b"HTTP/1.1 100 Continue\r\n\r\n";
            let step = exchange.poll_event(input, &Limits::of_responses(), now).expect("a response");
            assert!(matches!(step.event, Event::Interim) && step.consumed == input.len());
        } else {
            exchange.handle_deadline(now + SECOND).expect("no limit");
        }
        assert_eq!(exchange.send_body(b"ok"), Ok(2));
        assert_eq!(exchange.deadline(), None);
    }
}

#[test]
fn deadlines_are_of_the_phase() {
    let now = Instant::now();
    let timeouts = Timeouts {
        first_byte: Some(SECOND * 5),
        progress: Some(SECOND * 2),
        write: Some(SECOND),
        total: Some(SECOND * 20),
        expect: SECOND,
    };
    let circumstances = Circumstances { timeouts, ..Circumstances::default() };
    let mut exchange = begin(None, &FieldSet::new(), circumstances, now);
    assert_eq!(exchange.deadline(), Some(now + SECOND), "the server takes the head");
    take(&mut exchange, now + SECOND);
    assert_eq!(exchange.deadline(), Some(now + SECOND * 20), "the caller makes the body");
    exchange.end_body(None).expect("complete");
    take(&mut exchange, now + SECOND * 3);
    assert_eq!(exchange.deadline(), Some(now + SECOND * 8), "the first byte");
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let step = exchange.poll_event(input, &Limits::of_responses(), now + SECOND * 4).expect("a head");
    assert!(matches!(step.event, Event::Head(_)));
    assert_eq!(exchange.deadline(), Some(now + SECOND * 6), "the next byte");
    exchange.resume(now + SECOND * 10);
    assert_eq!(exchange.deadline(), Some(now + SECOND * 12), "the caller has paused");
    assert_eq!(exchange.handle_deadline(now + SECOND * 11), Ok(()));
    assert_eq!(exchange.handle_deadline(now + SECOND * 12), Err(Error::Timeout(Phase::Read)));
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Failed));
    assert!(!exchange.may_retry(true));
}

#[test]
fn a_retry_needs_a_stale_connection_and_a_request_that_may_be_repeated() {
    let fields = FieldSet::new();
    for (reused, repeatable, sent, body, body_again, expected) in [
        (true, Some(true), true, false, false, true),
        (true, Some(true), true, true, true, true),
        (true, Some(true), true, true, false, false),
        (false, Some(true), true, false, false, false),
        (true, Some(false), true, false, true, false),
        (true, Some(false), false, false, false, true),
        (true, None, true, true, true, false),
    ] {
        let now = Instant::now();
        let circumstances = Circumstances { reused, repeatable, ..Circumstances::default() };
        let mut exchange = begin(Some(2), &fields, circumstances, now);
        if sent {
            take(&mut exchange, now);
        }
        if body {
            exchange.send_body(b"ok").expect("within its length");
        }
        assert!(exchange.end_of_stream(true).is_err());
        let row = (reused, repeatable, sent, body, body_again);
        assert_eq!(exchange.may_retry(body_again), expected, "{row:?}");
    }
}

#[test]
fn bytes_before_the_request_are_no_response_on_an_idle_connection() {
    let now = Instant::now();
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (reused, expected) in [(true, true), (false, false)] {
        let circumstances = Circumstances { reused, ..Circumstances::default() };
        let mut exchange = begin(Some(2), &FieldSet::new(), circumstances, now);
        let polled = exchange.poll_event(response, &Limits::of_responses(), now);
        assert_eq!(polled.is_err_and(|error| error == Error::Unasked), expected);
        assert_eq!(exchange.may_retry(false), expected);
    }
}

#[test]
fn an_unread_response_ends_the_connection() {
    let (mut exchange, now) = plain(Some(0));
    take(&mut exchange, now);
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    exchange.poll_event(input, &Limits::of_responses(), now).expect("a head");
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Unread));
}

/// Takes all events of `input`, which ends the response.
fn answer(exchange: &mut Exchange, mut input: &[u8], now: Instant) {
    while !exchange.is_done() {
        let step = exchange.poll_event(input, &Limits::of_responses(), now).expect("a response");
        input = input.split_at(step.consumed).1;
    }
}

#[test]
fn a_response_that_began_before_the_request_had_ended_ends_the_connection() {
    let (mut exchange, now) = plain(Some(2));
    take(&mut exchange, now);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    exchange.poll_event(head, &Limits::of_responses(), now).expect("a head");
    assert_eq!(exchange.send_body(b"hi"), Ok(2), "the server reads on");
    exchange.end_body(None).expect("complete");
    take(&mut exchange, now);
    answer(&mut exchange, b"ok", now);
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Early));
}

#[test]
fn a_server_that_does_not_close_as_asked_is_closed() {
    let (mut fields, now) = (FieldSet::new(), Instant::now());
    fields.push("Connection", "close");
    let mut exchange = begin(Some(0), &fields, Circumstances::default(), now);
    assert!(take(&mut exchange, now).ends_with("Connection: close||"));
    answer(&mut exchange, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", now);
    assert_eq!(exchange.reuse(false), Reuse::No(NotReusable::Asked));
}

#[test]
fn bytes_that_have_come_before_are_no_progress() {
    let now = Instant::now();
    let timeouts = Timeouts { first_byte: Some(SECOND), progress: Some(SECOND * 2), ..Timeouts::default() };
    let circumstances = Circumstances { timeouts, ..Circumstances::default() };
    let mut exchange = begin(Some(0), &FieldSet::new(), circumstances, now);
    take(&mut exchange, now);
    for (input, seconds, deadline) in
        [("HTTP/1.1 2", 1, 3), ("HTTP/1.1 2", 2, 3), ("HTTP/1.1 20", 2, 4), ("HTTP/1.1 20", 3, 4)]
    {
        let at = now + SECOND * seconds;
        exchange.poll_event(input.as_bytes(), &Limits::of_responses(), at).expect("a part");
        assert_eq!(exchange.deadline(), Some(now + SECOND * deadline), "{input} at {seconds}");
    }
}

#[test]
fn an_end_behind_a_reset_is_no_end_of_a_body() {
    for (reset, expected) in [(false, Ok(())), (true, Err(Error::Broken))] {
        let (mut exchange, now) = plain(Some(5));
        exchange.write_failed(reset);
        let input = b"HTTP/1.1 200 OK\r\n\r\n";
        exchange.poll_event(input, &Limits::of_responses(), now).expect("a head");
        assert_eq!(exchange.end_of_stream(true), expected);
    }
}

#[test]
fn a_connection_that_is_authenticated_itself_is_not_used_again() {
    let no = Reuse::No(NotReusable::Authenticated);
    for (sent, received, expected) in [
        ("Authorization: Negotiate YII=", "", no),
        ("Proxy-Authorization: ntlm TlR=", "", no),
        ("Authorization: Basic YTpi", "", Reuse::Yes(Kept::default())),
        ("A: b", "WWW-Authenticate: Basic realm=\"a\", NTLM\r\n", no),
        ("A: b", "Proxy-Authenticate: Negotiate\r\n", no),
        ("A: b", "WWW-Authenticate: Basic realm=\"NTLM\"\r\n", Reuse::Yes(Kept::default())),
    ] {
        let (mut fields, now) = (FieldSet::new(), Instant::now());
        let (name, value) = sent.split_once(": ").expect("a field");
        fields.push(name, value);
        let mut exchange = begin(Some(0), &fields, Circumstances::default(), now);
        take(&mut exchange, now);
        let input = format!("HTTP/1.1 200 OK\r\n{received}Content-Length: 0\r\n\r\n");
        exchange.poll_event(input.as_bytes(), &Limits::of_responses(), now).expect("a response");
        assert_eq!(exchange.reuse(false), expected, "{sent}, {received}");
    }
}
