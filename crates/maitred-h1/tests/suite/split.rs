//! The split-anywhere property: the events of a byte stream do not depend on how it is cut.

use maitred_h1::{Event, Limits, Receiver};
use maitred_http::RequestHead;
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
enum Seen {
    Head(String),
    Body(Vec<u8>),
    Trailers(String),
    End,
    Refused(u16, &'static str),
}

/// The events of `stream` when it arrives in pieces that end at `cuts` (ascending) and at its end.
fn events(stream: &[u8], cuts: &[usize], limits: &Limits) -> Vec<Seen> {
    let mut receiver = Receiver::new();
    let mut head = RequestHead::default();
    let mut seen = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        loop {
            let step = match receiver.poll_event(&stream[start..end], &mut head, limits) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(Seen::Refused(error.status.code(), error.reason));
                    return seen;
                }
            };
            start += step.consumed;
            match step.event {
                Event::NeedMore => break,
                Event::Head(facts) => seen.push(Seen::Head(format!("{head:?} {facts:?}"))),
                Event::Data(bytes) => match seen.last_mut() {
                    Some(Seen::Body(body)) => body.extend_from_slice(bytes),
                    _ => seen.push(Seen::Body(bytes.to_vec())),
                },
                Event::Trailers(fields) => seen.push(Seen::Trailers(format!("{fields:?}"))),
                Event::End => seen.push(Seen::End),
            }
        }
    }
    seen
}

fn tight() -> Limits {
    Limits {
        max_head: 120,
        max_method: 8,
        max_target: 24,
        max_fields: 4,
        max_field_line: 40,
        max_empty_lines: 1,
        max_chunk_line: 8,
        max_chunk_extensions: 10,
        max_trailers: 24,
        max_trailer_fields: 1,
    }
}

const STREAMS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
    "\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\nGET ",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: y\n\r\n",
    "GET / HTTP/2.0\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nX : y\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\n\r\n",
    "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0",
    "",
];

#[test]
fn every_pair_of_cuts_in_short_streams() {
    for stream in STREAMS.iter().map(|stream| stream.as_bytes()) {
        for limits in [Limits::default(), tight()] {
            let whole = events(stream, &[], &limits);
            let bytewise: Vec<usize> = (1..stream.len()).collect();
            assert_eq!(events(stream, &bytewise, &limits), whole, "{}", stream.escape_ascii());
            for first in 0..=stream.len() {
                for second in first..=stream.len() {
                    let cut = events(stream, &[first, second], &limits);
                    assert_eq!(cut, whole, "{} cut at {first}, {second}", stream.escape_ascii());
                }
            }
        }
    }
}

/// A request, mostly right.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let target = prop_oneof![Just("/".to_owned()), "/[a-z?%=/]{0,30}", "http://[a-z]{1,8}(/[a-z]{0,4})?"];
    let method =
        prop_oneof![Just("GET"), Just("POST"), Just("HEAD"), Just("OPTIONS"), Just("VERYLONGMETHOD")];
    let fields = proptest::collection::vec(("[A-Za-z-]{1,12}", "[ -~\t]{0,20}"), 0..6);
    let chunks = proptest::collection::vec((1usize..40, "(;[a-z]{0,4})?"), 0..4);
    let body = prop_oneof![
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(fixed),
        (chunks, "([A-Z][a-z]{0,4}: [a-z]{0,9}\r\n){0,2}")
            .prop_map(|(chunks, trailers)| chunked(&chunks, &trailers)),
    ];
    let end = prop_oneof![20 => Just(""), 1 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r\n\r\n\r\n")];
    (method, target, 0u8..2, fields, body, end).prop_map(|(method, target, minor, fields, body, end)| {
        let mut bytes = format!("{method} {target} HTTP/1.{minor}\r\nHost: a\r\n").into_bytes();
        for (name, value) in fields {
            bytes.extend_from_slice(format!("{name}:{value}\r\n").as_bytes());
        }
        let framed = if body.is_empty() { b"\r\n" } else { body.as_slice() };
        bytes.extend_from_slice(framed);
        bytes.extend_from_slice(end.as_bytes());
        bytes
    })
}

fn fixed(body: Vec<u8>) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
}

fn chunked(chunks: &[(usize, String)], trailers: &str) -> Vec<u8> {
    let mut text = "Transfer-Encoding: chunked\r\n\r\n".to_owned();
    for (size, extension) in chunks {
        text += &format!("{size:x}{extension}\r\n{}\r\n", "d".repeat(*size));
    }
    (text + "0\r\n" + trailers + "\r\n").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stream_cut_anywhere(
        requests in proptest::collection::vec(request(), 1..5),
        damage in proptest::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        is_tight in any::<bool>(),
    ) {
        let mut stream = requests.concat();
        if let Some((place, byte)) = damage {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let limits = if is_tight { tight() } else { Limits::default() };
        let whole = events(&stream, &[], &limits);
        prop_assert_eq!(&events(&stream, &cuts, &limits), &whole);
        let bytewise: Vec<usize> = (1..stream.len()).collect();
        prop_assert_eq!(&events(&stream, &bytewise, &limits), &whole);
    }
}
