//! The client's receiver: which bytes are a response, and where it ends.

use maitred_h1::{Asked, Event, Limits, Malformed, Receiver, Responses};
use maitred_http::{ResponseHead, Status};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Head(String),
    Body(Vec<u8>),
    Trailers(String),
    End,
    Malformed(Malformed),
}

/// The events of `stream` in pieces that end at `cuts` (ascending) and at its end; whether the response is complete; how
/// many bytes are left behind it.
fn events(stream: &[u8], cuts: &[usize], asked: Asked, limits: &Limits) -> (Vec<Seen>, bool, usize) {
    let (mut receiver, mut head) = (Receiver::of_response(asked), ResponseHead::new(Status::OK));
    let (mut seen, mut start) = (Vec::new(), 0);
    for end in cuts.iter().copied().chain([stream.len()]) {
        loop {
            let step = match receiver.poll_response(&stream[start..end], &mut head, limits) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(Seen::Malformed(error));
                    assert_eq!(next_fault(&mut receiver), Malformed::AfterMalformed);
                    return (seen, false, 0);
                }
            };
            start += step.consumed;
            match step.event {
                Event::NeedMore => break,
                Event::Head(facts) => {
                    seen.push(Seen::Head(format!(
                        "{} {:?} {:?} {facts:?}",
                        head.status, head.reason, head.fields
                    )));
                }
                Event::Data(bytes) => match seen.last_mut() {
                    Some(Seen::Body(body)) => body.extend_from_slice(bytes),
                    _ => seen.push(Seen::Body(bytes.to_vec())),
                },
                Event::Trailers(fields) => seen.push(Seen::Trailers(format!("{fields:?}"))),
                Event::End => seen.push(Seen::End),
            }
        }
    }
    let ended = receiver.end_of_stream();
    if let Err(error) = ended {
        seen.push(Seen::Malformed(error));
    }
    (seen, ended.is_ok(), stream.len() - start)
}

fn next_fault(receiver: &mut Receiver<Responses>) -> Malformed {
    let mut head = ResponseHead::new(Status::OK);
    receiver.poll_response(b"", &mut head, &Limits::default()).expect_err("it stays so")
}

fn whole(stream: &str, asked: Asked) -> (Vec<Seen>, bool, usize) {
    events(stream.as_bytes(), &[], asked, &Limits::of_responses())
}

/// The body, if the response is complete, and the number of bytes behind it.
fn body(stream: &str, asked: Asked) -> Result<(String, usize), Malformed> {
    let (seen, complete, left) = whole(stream, asked);
    let mut body = Vec::new();
    for seen in seen {
        match seen {
            Seen::Body(bytes) => body.extend(bytes),
            Seen::Malformed(error) => return Err(error),
            Seen::Head(_) | Seen::Trailers(_) | Seen::End => {}
        }
    }
    assert!(complete);
    Ok((String::from_utf8(body).expect("text"), left))
}

#[test]
fn the_end_follows_from_request_status_and_framing_in_this_order() {
    let ok = |body: &str, left| Ok((body.to_owned(), left));
    use Asked::*;
    for (stream, asked, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab!", Ordinary, ok("ab", 1)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 02\r\n\r\nab", Ordinary, ok("ab", 0)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP", Ordinary, ok("", 4)),
        ("HTTP/1.1 200 OK\r\n\r\nall of it", Ordinary, ok("all of it", 0)),
        ("HTTP/1.0 200 OK\r\n\r\n", Ordinary, ok("", 0)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", Head, ok("", 1)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", Head, ok("", 0)),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde", Ordinary, ok("", 5)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Ordinary, ok("", 0)),
        ("HTTP/1.1 205 Reset Content\r\nContent-Length: 1\r\n\r\na", Ordinary, ok("a", 0)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntunnel", Connect, ok("", 6)),
        ("HTTP/1.1 204 No Content\r\n\r\ntunnel", Connect, ok("", 6)),
        ("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", Connect, ok("no", 0)),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\nframes", Upgrade, ok("", 6)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Upgrade, ok("ok", 0)),
        (
            "HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            Ordinary,
            ok("x", 0),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 1\r\n\r\nrest",
            Ordinary,
            ok("abcd", 4),
        ),
    ] {
        assert_eq!(body(stream, asked), expected, "{stream:?}");
    }
}

#[test]
fn each_kind_of_wrong_response_has_its_name() {
    use Malformed::*;
    let long = |name: &str, times: usize| format!("HTTP/1.1 200 OK\r\n{}", name.repeat(times));
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    let chunks = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    for (stream, expected) in [
        (String::new(), NoResponse),
        ("HTT".to_owned(), CutInHead),
        (head("A: b")[..20].to_owned(), CutInHead),
        ("SSH-2.0-x\r\n".to_owned(), StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(), StatusLine),
        ("\r".to_owned(), StatusLine),
        ("http/1.1 200 OK\r\n\r\n".to_owned(), StatusLine),
        ("ICY 200 OK\r\n\r\n".to_owned(), StatusLine),
        ("\u{15}\u{3}\u{3}\0\u{2}".to_owned(), StatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n".to_owned(), Version),
        ("HTTP/1.x 200 OK\r\n\r\n".to_owned(), Version),
        ("HTTP/1.1200 OK\r\n\r\n".to_owned(), Version),
        ("HTTP/1.1 099 A\r\n\r\n".to_owned(), StatusCode),
        ("HTTP/1.1 99 A\r\n\r\n".to_owned(), StatusCode),
        ("HTTP/1.1 2000 A\r\n\r\n".to_owned(), StatusCode),
        ("HTTP/1.1 2\u{e9} A\r\n\r\n".to_owned(), StatusCode),
        ("HTTP/1.1 200 a\0b\r\n\r\n".to_owned(), Reason),
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n".to_owned(), BareLf),
        (head("A: b\nC: d"), BareLf),
        (head("A: b\r\n c"), FieldName),
        (head("A : b"), FieldName),
        (head(": b"), FieldName),
        (head("no colon"), FieldName),
        (head("A: b\0"), FieldValue),
        (head("A: b\rC: d"), FieldValue),
        (long("A: b\r\n", 201) + "\r\n", TooManyFields),
        (long("A", 65536), HeadTooLarge),
        ("HTTP/1.1 200 ".to_owned() + &"A".repeat(65536), HeadTooLarge),
        (head("Content-Length: 1\r\nTransfer-Encoding: chunked"), TwoLengths),
        (head("Content-Length: 1\r\nContent-Length: 1"), RepeatedLength),
        (head("Content-Length: 1\r\nContent-Length: 2"), RepeatedLength),
        (head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), RepeatedLength),
        (head("Content-Length: +5"), ContentLength),
        (head("Content-Length: -1"), ContentLength),
        (head("Content-Length: 5,5"), ContentLength),
        (head("Content-Length: 18446744073709551616"), ContentLength),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), EncodingInHttp10),
        (head("Transfer-Encoding:"), EmptyCoding),
        (head("Transfer-Encoding: chunked, gzip"), ChunkedNotLast),
        (head("Transfer-Encoding: gzip, chunked"), UnknownCoding),
        (head("Transfer-Encoding: identity"), UnknownCoding),
        (head("Transfer-Encoding: xchunked"), UnknownCoding),
        (head("Transfer-Encoding: chunked, chunked"), ChunkedTwice),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n".to_owned(), UnaskedSwitch),
        (chunks("0x5\r\n"), ChunkSize),
        (chunks("\r\n"), ChunkSize),
        (chunks("00000000000000001\r\n"), ChunkDigits),
        (chunks(&("1;".to_owned() + &"a".repeat(20_000))), ChunkLineTooLong),
        (chunks(&("1;".to_owned() + &"a".repeat(900) + "\r\nx\r\n").repeat(20)), ChunkExtensionsTooLong),
        (chunks("1\r\nab\r\n"), ChunkEnd),
        (chunks("0\r\nbad\r\n\r\n"), Trailer),
        (chunks(&("0\r\n".to_owned() + &"A: b\r\n".repeat(65) + "\r\n")), TooManyTrailers),
        (chunks(&("0\r\nA: ".to_owned() + &"b".repeat(65536))), TrailersTooLarge),
        (chunks("5\r\nabc"), CutInChunks),
        (chunks("1\r\na\r\n0\r\n"), CutInChunks),
        (head("Content-Length: 2") + "a", ShortBody),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), NoResponse),
    ] {
        assert_eq!(body(&stream, Asked::Ordinary), Err(expected), "{:.60}", stream.escape_default());
    }
}

#[test]
fn a_head_at_its_limits_is_read() {
    let fields = "A: b\r\n".repeat(200);
    assert!(body(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), Asked::Ordinary).is_ok());
    let wide = "a".repeat(65536 - "HTTP/1.1 200 OK\r\nA: \r\n\r\n".len());
    assert!(body(&format!("HTTP/1.1 200 OK\r\nA: {wide}\r\n\r\n"), Asked::Ordinary).is_ok());
    let over = body(&format!("HTTP/1.1 200 OK\r\nA: {wide}a\r\n\r\n"), Asked::Ordinary);
    assert_eq!(over, Err(Malformed::HeadTooLarge));
}

#[test]
fn a_head_says_what_stands_in_it() {
    for (line, expected) in [
        ("HTTP/1.1 200 OK", "200 None"),
        ("HTTP/1.1 200", "200 Some([])"),
        ("HTTP/1.1 200 ", "200 Some([])"),
        ("HTTP/1.1 200 a\tb", "200 Some([97, 9, 98])"),
        ("HTTP/1.1 404 \u{e9}", "404 Some([195, 169])"),
        ("HTTP/1.1 600 ", "600 None"),
        ("HTTP/1.7 999 x", "999 Some([120])"),
    ] {
        let (seen, ..) = whole(&format!("{line}\r\nA:  \u{e9} \r\n\r\n"), Asked::Ordinary);
        let [Seen::Head(head), ..] = &seen[..] else { panic!("{line}: {seen:?}") };
        assert!(head.starts_with(&format!("{expected} {{\"A\": \"\u{e9}\"}}")), "{line}: {head}");
    }
}

#[test]
fn a_server_keeps_a_connection_by_version_option_and_framing() {
    for (stream, keeps) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive, Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", false),
    ] {
        let (seen, ..) = whole(stream, Asked::Ordinary);
        let [Seen::Head(head), ..] = &seen[..] else { panic!("{stream}: {seen:?}") };
        assert!(head.ends_with(&format!("keep_alive: {keeps} }}")), "{stream}: {head}");
    }
}

fn tight() -> Limits {
    Limits {
        max_head: 90,
        max_fields: 4,
        max_field_line: 40,
        max_chunk_line: 8,
        max_chunk_extensions: 10,
        max_trailers: 24,
        max_trailer_fields: 1,
        ..Limits::of_responses()
    }
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => (0u8..3, 100u16..620, "( [ -~]{0,9})?").prop_map(|(minor, code, reason)| format!("HTTP/1.{minor} {code}{reason}")),
        1 => "HTTP/[0-9].[0-9] [0-9]{1,4}.{0,3}",
    ];
    let fields = proptest::collection::vec(("[A-Za-z-]{1,12}", "[ -~\t]{0,20}"), 0..6);
    let body = prop_oneof![
        Just("\r\n".to_owned()),
        "[a-z]{0,40}".prop_map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())),
        ("([1-9a-f](;[a-z]{0,4})?\r\n[a-z]{1,15}\r\n){0,3}", "([A-Z][a-z]{0,4}: [a-z]{0,9}\r\n){0,2}")
            .prop_map(|(chunks, trailers)| format!(
                "Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n{trailers}\r\n"
            )),
    ];
    (line, fields, body).prop_map(|(line, fields, body)| {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        format!("{line}\r\n{fields}{body}").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_response_cut_anywhere(
        responses in proptest::collection::vec(response(), 1..3),
        damage in proptest::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        asked in prop_oneof![Just(Asked::Ordinary), Just(Asked::Head), Just(Asked::Connect), Just(Asked::Upgrade)],
        is_tight in any::<bool>(),
    ) {
        let mut stream = responses.concat();
        if let Some((place, byte)) = damage {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let limits = if is_tight { tight() } else { Limits::of_responses() };
        let whole = events(&stream, &[], asked, &limits);
        prop_assert_eq!(&events(&stream, &cuts, asked, &limits), &whole);
        let bytewise: Vec<usize> = (1..stream.len()).collect();
        prop_assert_eq!(&events(&stream, &bytewise, asked, &limits), &whole);
    }
}
