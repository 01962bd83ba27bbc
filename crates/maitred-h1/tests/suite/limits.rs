//! Every limit at its value and one past it.

use maitred_h1::{Event, Limits, Receiver};
use maitred_http::RequestHead;

/// `Ok` with the number of complete requests, or the status of the refusal; the same in one piece
/// and byte by byte.
fn receive(bytes: &[u8], limits: &Limits) -> Result<usize, u16> {
    let whole = receive_pieces(bytes, bytes.len(), limits);
    assert_eq!(whole, receive_pieces(bytes, 1, limits), "{}", bytes.escape_ascii());
    whole
}

fn receive_pieces(bytes: &[u8], piece: usize, limits: &Limits) -> Result<usize, u16> {
    let mut receiver = Receiver::new();
    let mut head = RequestHead::default();
    let (mut start, mut end, mut complete) = (0, 0, 0);
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        loop {
            let polled = receiver.poll_event(&bytes[start..end], &mut head, limits);
            let step = polled.map_err(|error| error.status.code())?;
            start += step.consumed;
            match step.event {
                Event::NeedMore => break,
                Event::End => complete += 1,
                Event::Head(facts) => complete += usize::from(facts.complete),
                Event::Data(_) | Event::Trailers(_) => {}
            }
        }
    }
    Ok(complete)
}

#[test]
fn max_head_counts_the_blank_line() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: 1234\r\n\r\n";
    let limits = |max_head| Limits { max_head, ..Limits::default() };
    assert_eq!(receive(head, &limits(head.len())), Ok(1));
    assert_eq!(receive(head, &limits(head.len() - 1)), Err(431));
    let two = head.repeat(2);
    assert_eq!(receive(&two, &limits(head.len())), Ok(2));
    let late = [b"\r\n", &head[..]].concat();
    assert_eq!(receive(&late, &limits(head.len())), Ok(1));
}

#[test]
fn a_head_that_never_ends_is_refused_at_the_limit() {
    let limits = Limits::default();
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    while head.len() < limits.max_head - 1 {
        let length = (limits.max_head - 1 - head.len()).min(1000);
        head.extend(std::iter::repeat_n(b'x', length));
    }
    assert_eq!(receive_pieces(&head, 4096, &limits), Ok(0));
    head.push(b'x');
    assert_eq!(receive_pieces(&head, 4096, &limits), Err(431));
}

#[test]
fn max_target_is_of_the_target_alone() {
    let limits = Limits { max_target: 5, ..Limits::default() };
    assert_eq!(receive(b"GET /1234 HTTP/1.1\r\nHost: a\r\n\r\n", &limits), Ok(1));
    assert_eq!(receive(b"GET /12345 HTTP/1.1\r\nHost: a\r\n\r\n", &limits), Err(414));
    let limits = Limits::default();
    let request = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(length - 1));
    assert_eq!(receive(request(limits.max_target).as_bytes(), &limits), Ok(1));
    assert_eq!(receive(request(limits.max_target + 1).as_bytes(), &limits), Err(414));
}

#[test]
fn a_target_that_never_ends_is_refused_before_the_head_is_full() {
    let limits = Limits { max_target: 5, max_method: 4, ..Limits::default() };
    // 4 + 1 + 5 + 1 + 8 + 2 bytes are the longest request line.
    assert_eq!(receive(&[b"GET /".as_slice(), &[b'x'; 15]].concat(), &limits), Ok(0));
    assert_eq!(receive(&[b"GET /".as_slice(), &[b'x'; 16]].concat(), &limits), Err(414));
    assert_eq!(receive(&[b'X'; 21], &limits), Err(501));
}

#[test]
fn max_method() {
    let limits = Limits { max_method: 4, ..Limits::default() };
    assert_eq!(receive(b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", &limits), Ok(1));
    assert_eq!(receive(b"BREWS / HTTP/1.1\r\nHost: a\r\n\r\n", &limits), Err(501));
}

#[test]
fn max_fields() {
    let request = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
    for limits in [Limits { max_fields: 3, ..Limits::default() }, Limits::default()] {
        assert_eq!(receive(request(limits.max_fields).as_bytes(), &limits), Ok(1));
        assert_eq!(receive(request(limits.max_fields + 1).as_bytes(), &limits), Err(431));
    }
}

#[test]
fn max_fields_past_the_slots_has_no_effect() {
    let most = Limits::default().max_fields;
    let limits = Limits { max_fields: usize::MAX, ..Limits::default() };
    let request = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
    assert_eq!(receive(request(most).as_bytes(), &limits), Ok(1));
    assert_eq!(receive(request(most + 1).as_bytes(), &limits), Err(431));
}

#[test]
fn max_field_line_is_name_and_value() {
    let limits = Limits { max_field_line: 8, ..Limits::default() };
    assert_eq!(receive(b"GET / HTTP/1.1\r\nHost: a\r\nName:    1234   \r\n\r\n", &limits), Ok(1));
    assert_eq!(receive(b"GET / HTTP/1.1\r\nHost: a\r\nName: 12345\r\n\r\n", &limits), Err(431));
}

#[test]
fn max_empty_lines() {
    let limits = Limits { max_empty_lines: 2, ..Limits::default() };
    let request = |lines: usize| format!("{}GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n".repeat(lines));
    assert_eq!(receive(request(2).as_bytes(), &limits), Ok(1));
    assert_eq!(receive(request(3).as_bytes(), &limits), Err(400));
    // The count starts anew behind every request.
    assert_eq!(receive(request(2).repeat(3).as_bytes(), &limits), Ok(3));
}

fn chunked(body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}").into_bytes()
}

#[test]
fn max_chunk_line() {
    let limits = Limits { max_chunk_line: 5, ..Limits::default() };
    assert_eq!(receive(&chunked("1;abc\r\nx\r\n0\r\n\r\n"), &limits), Ok(1));
    assert_eq!(receive(&chunked("1;abcd\r\nx\r\n0\r\n\r\n"), &limits), Err(400));
    let limits = Limits::default();
    let body = |length: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(length - 2));
    assert_eq!(receive(&chunked(&body(limits.max_chunk_line)), &limits), Ok(1));
    assert_eq!(receive(&chunked(&body(limits.max_chunk_line + 1)), &limits), Err(400));
}

#[test]
fn max_chunk_extensions_is_of_the_whole_body() {
    let limits = Limits::default();
    let chunk = format!("1;{}\r\nx\r\n", "e".repeat(63));
    let most = limits.max_chunk_extensions / 64;
    assert_eq!(receive(&chunked(&(chunk.repeat(most) + "0\r\n\r\n")), &limits), Ok(1));
    assert_eq!(receive(&chunked(&(chunk.repeat(most) + "0;\r\n\r\n")), &limits), Err(400));
}

#[test]
fn max_trailers_counts_the_blank_line() {
    let body = chunked("0\r\nA: b\r\n\r\n");
    assert_eq!(receive(&body, &Limits { max_trailers: 8, ..Limits::default() }), Ok(1));
    assert_eq!(receive(&body, &Limits { max_trailers: 7, ..Limits::default() }), Err(431));
}

#[test]
fn max_trailer_fields() {
    let limits = Limits::default();
    let body = |count: usize| chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(count)));
    assert_eq!(receive(&body(limits.max_trailer_fields), &limits), Ok(1));
    assert_eq!(receive(&body(limits.max_trailer_fields + 1), &limits), Err(431));
}

#[test]
fn malformed_trailers_are_refused() {
    for section in
        ["A : b\r\n", "A: b\n", " A: b\r\n", "A: b\r\n c\r\n", "A\r\n", "A: \0\r\n", "\n", "A: b\rc\r\n"]
    {
        let body = chunked(&format!("0\r\n{section}\r\n"));
        assert_eq!(receive(&body, &Limits::default()), Err(400), "{section:?}");
    }
}

#[test]
fn no_limits_at_all_still_works() {
    let limits = Limits {
        max_head: usize::MAX,
        max_method: usize::MAX,
        max_target: usize::MAX,
        max_fields: usize::MAX,
        max_field_line: usize::MAX,
        max_empty_lines: u8::MAX,
        max_chunk_line: usize::MAX,
        max_chunk_extensions: usize::MAX,
        max_trailers: usize::MAX,
        max_trailer_fields: usize::MAX,
    };
    assert_eq!(receive(&chunked("1;x\r\na\r\n0\r\nA: b\r\n\r\n"), &limits), Ok(1));
}
