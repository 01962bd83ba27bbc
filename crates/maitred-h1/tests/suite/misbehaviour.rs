//! For any declaration and behaviour of an application, a client that reads our bytes stays in step: each response is
//! read back with httparse and framed as RFC 9112 §6.3 tells a client to.

use maitred_h1::{DataPlan, Finish, HeadError, HeadReport, Sender};
use maitred_http::{FieldSet, ResponseHead, Status, Version};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// The sender's result for one response.
struct Sent {
    bytes: Vec<u8>,
    report: HeadReport,
    surplus: u64,
    finish: Finish,
}

struct Application<'a> {
    version: Version,
    to_head: bool,
    head: ResponseHead,
    length: Option<u64>,
    parts: &'a [&'a str],
    trailers: Option<FieldSet>,
}

impl Default for Application<'_> {
    fn default() -> Self {
        let head = ResponseHead::new(Status::OK);
        Self { version: Version::Http11, to_head: false, head, length: None, parts: &[], trailers: None }
    }
}

fn send(application: &Application<'_>) -> Result<Sent, HeadError> {
    let mut sender = Sender::new(application.version, application.to_head, true);
    let mut bytes = Vec::new();
    let report = sender.send_head(&application.head, application.length, DATE, &mut bytes)?;
    let mut surplus = 0;
    for part in application.parts {
        let plan = sender.send_data(part.len() as u64, &mut bytes);
        bytes.extend_from_slice(&part.as_bytes()[..plan.allowed as usize]);
        bytes.extend_from_slice(plan.suffix);
        surplus += plan.surplus;
    }
    let finish = sender.finish(application.trailers.as_ref(), &mut bytes);
    assert_eq!(sender.finish(None, &mut bytes).reusable, finish.reusable, "a second finish changes nothing");
    Ok(Sent { bytes, report, surplus, finish })
}

/// A response as a client sees it.
#[derive(Debug)]
struct Read {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: String,
    closes: bool,
    whole: bool,
    rest: Vec<u8>,
}

impl Read {
    fn field(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }
}

fn read(bytes: &[u8], to_head: bool, version: Version) -> Read {
    let mut slots = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut slots);
    let Ok(httparse::Status::Complete(length)) = response.parse(bytes) else {
        panic!("no response head: {}", bytes.escape_ascii());
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let status = response.code.expect("complete");
    let fields = response.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
    let mut read = Read {
        status,
        fields,
        body: Vec::new(),
        trailers: String::new(),
        closes: false,
        whole: true,
        rest: Vec::new(),
    };
    read.closes = match version {
        Version::Http10 => read.field("connection") != ["keep-alive"],
        _ => read.field("connection").contains(&"close"),
    };
    let body = &bytes[length..];
    let lengths: Vec<usize> =
        read.field("content-length").iter().map(|value| value.parse().expect("a number")).collect();
    let is_chunked = read.field("transfer-encoding") == ["chunked"];
    assert!(lengths.len() + usize::from(is_chunked) <= 1, "{}", bytes.escape_ascii());
    if to_head || matches!(status, 204 | 205 | 304) {
        read.rest = body.to_vec();
    } else if is_chunked {
        read_chunks(body, &mut read);
    } else if let [declared] = lengths[..] {
        read.whole = body.len() >= declared;
        let (body, rest) = body.split_at(declared.min(body.len()));
        (read.body, read.rest) = (body.to_vec(), rest.to_vec());
    } else {
        assert!(read.closes, "a body without length ends with the connection");
        read.body = body.to_vec();
    }
    read
}

fn read_chunks(mut body: &[u8], read: &mut Read) {
    loop {
        let Ok(httparse::Status::Complete((length, size))) = httparse::parse_chunk_size(body) else {
            panic!("no chunk size: {}", body.escape_ascii());
        };
        body = &body[length..];
        if size == 0 {
            let end = if body.starts_with(b"\r\n") {
                2
            } else {
                4 + body.windows(4).position(|four| four == b"\r\n\r\n").expect("trailers end")
            };
            read.trailers = String::from_utf8_lossy(&body[..end]).into_owned();
            read.rest = body[end..].to_vec();
            return;
        }
        let size = usize::try_from(size).expect("fits");
        read.body.extend_from_slice(&body[..size]);
        assert_eq!(&body[size..size + 2], b"\r\n");
        body = &body[size + 2..];
    }
}

/// Sends and reads back. In step: nothing stands behind the response, and when it is not whole or
/// not delimited the connection is not used again.
fn exchange(application: &Application<'_>) -> (Sent, Read) {
    let sent = send(application).expect("a head that can be sent");
    let read = read(&sent.bytes, application.to_head, application.version);
    assert_eq!(read.rest, b"", "{}", sent.bytes.escape_ascii());
    assert!(read.whole || !sent.finish.reusable);
    assert!(!read.closes || !sent.finish.reusable);
    assert_eq!(read.closes, sent.report.close);
    (sent, read)
}

fn with(fields: &[(&str, &str)]) -> ResponseHead {
    fields.iter().fold(ResponseHead::new(Status::OK), |head, (name, value)| head.with(name, value))
}

#[test]
fn a_body_longer_than_declared_is_cut() {
    for (head, length) in [(with(&[("content-length", "5")]), None), (with(&[]), Some(5))] {
        let (sent, read) =
            exchange(&Application { head, length, parts: &["hel", "lo, w", "orld"], ..Default::default() });
        assert_eq!((read.body.as_slice(), sent.surplus), (&b"hello"[..], 7));
        assert!(sent.finish.reusable);
    }
}

#[test]
fn a_body_shorter_than_declared_closes_the_connection() {
    let head = with(&[("Content-Length", "9")]);
    let (sent, read) = exchange(&Application { head, parts: &["hello"], ..Default::default() });
    assert_eq!(sent.finish, Finish { reusable: false, short_by: 4 });
    assert!(!read.whole);
}

#[test]
fn a_known_length_overrules_a_wrong_declaration() {
    let head = with(&[("CONTENT-LENGTH", "99")]);
    let (sent, read) =
        exchange(&Application { head, length: Some(5), parts: &["hello"], ..Default::default() });
    assert_eq!(sent.report.wrong_length, Some(99));
    assert_eq!(read.field("content-length"), ["5"]);
    assert!(sent.finish.reusable);
}

#[test]
fn several_lengths_are_an_error_unless_they_agree() {
    let lengths = |values: &[&str]| {
        let head = with(&values.iter().map(|value| ("Content-Length", *value)).collect::<Vec<_>>());
        send(&Application { head, parts: &["hello"], ..Default::default() }).map(|sent| sent.report.length)
    };
    assert_eq!(lengths(&["5", "5"]), Ok(Some(5)));
    for wrong in [&["5", "6"][..], &["5, 5"], &["-5"], &["five"], &[""], &["18446744073709551616"]] {
        assert_eq!(lengths(wrong), Err(HeadError::ContentLength), "{wrong:?}");
    }
}

#[test]
fn line_breaks_and_controls_in_fields_send_nothing_at_all() {
    let refused = |head: ResponseHead| {
        let mut sender = Sender::new(Version::Http11, false, true);
        let mut out = b"before".to_vec();
        let error = sender.send_head(&head, Some(0), DATE, &mut out).expect_err("refused");
        assert_eq!(out, b"before");
        // Another head can take its place.
        let report =
            sender.send_head(&ResponseHead::new(Status::INTERNAL_SERVER_ERROR), Some(0), DATE, &mut out);
        assert!(report.is_ok() && sender.finish(None, &mut out).reusable);
        error
    };
    for value in ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0", "\u{1b}[0m", "\u{7f}"] {
        let head = with(&[("X-Good", "yes"), ("Location", value)]);
        assert_eq!(refused(head), HeadError::InvalidValue("Location".to_owned()), "{value:?}");
    }
    for (name, shown) in
        [("", ""), ("a b", "a b"), ("a:", "a:"), ("a\r\nb", "a\\r\\nb"), ("\u{e4}", "\\xc3\\xa4")]
    {
        assert_eq!(refused(with(&[(name, "x")])), HeadError::InvalidName(shown.to_owned()));
    }
    let mut head = ResponseHead::new(Status::OK);
    head.reason = Some((*b"fine\r\nX: y").into());
    assert_eq!(refused(head), HeadError::InvalidReason);
    assert_eq!(refused(ResponseHead::new(Status::CONTINUE)), HeadError::InterimStatus(Status::CONTINUE));
    let switching = Status::SWITCHING_PROTOCOLS;
    assert_eq!(refused(ResponseHead::new(switching)), HeadError::InterimStatus(switching));
}

#[test]
fn hop_by_hop_fields_are_taken_out_and_reported() {
    let head = with(&[
        ("Transfer-encoding", "chunked"),
        ("connection", "keep-alive, X-Private"),
        ("Keep-Alive", "timeout=5"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Trailer", "X-Sum"),
        ("Proxy-Connection", "close"),
        ("Proxy-Authenticate", "Basic"),
        ("Content-Type", "text/plain"),
    ]);
    let (sent, read) = exchange(&Application { head, length: Some(2), parts: &["hi"], ..Default::default() });
    let removed = sent.report.removed;
    assert_eq!(
        removed,
        [
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "Upgrade",
            "TE",
            "Trailer",
            "Proxy-Connection",
            "Proxy-Authenticate"
        ]
    );
    let names: Vec<_> = read.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Content-Type", "Date", "Server", "Content-Length"]);
    assert!(sent.finish.reusable);
}

#[test]
fn connection_close_of_the_application_is_honoured() {
    for (value, reported) in [("close", 0), ("Close", 0), ("x, close", 1)] {
        let head = with(&[("Connection", value)]);
        let (sent, read) =
            exchange(&Application { head, length: Some(2), parts: &["hi"], ..Default::default() });
        assert_eq!((read.field("connection"), sent.report.removed.len()), (vec!["close"], reported));
        assert!(!sent.finish.reusable);
    }
}

#[test]
fn no_body_goes_out_where_none_may_be() {
    for (status, declared, expected) in [
        (Status::NO_CONTENT, Some("5"), vec![]),
        (Status::NO_CONTENT, None, vec![]),
        (Status::NOT_MODIFIED, Some("5"), vec!["5"]),
        (Status::NOT_MODIFIED, None, vec![]),
    ] {
        for length in [None, Some(5)] {
            let mut head = ResponseHead::new(status);
            if let Some(value) = declared {
                head = head.with("Content-Length", value);
            }
            let (sent, read) =
                exchange(&Application { head, length, parts: &["hello"], ..Default::default() });
            assert_eq!((read.status, sent.surplus), (status.code(), 5));
            assert_eq!(read.field("content-length"), expected, "{status} {length:?}");
            assert_eq!(read.field("transfer-encoding"), [""; 0]);
            assert!(sent.finish.reusable);
        }
    }
}

#[test]
fn head_has_the_length_and_no_body() {
    for (declared, length, expected) in [
        (Some("5"), None, Some("5")),
        (Some("5"), Some(0), Some("5")),
        (None, Some(5), Some("5")),
        (None, Some(0), None),
        (None, None, None),
    ] {
        for version in [Version::Http11, Version::Http10] {
            let head = declared.map_or(with(&[]), |value| with(&[("Content-Length", value)]));
            let parts = &["hello"];
            let (sent, read) =
                exchange(&Application { version, to_head: true, head, length, parts, ..Default::default() });
            assert_eq!(read.field("content-length"), Vec::from_iter(expected));
            assert_eq!(sent.surplus, 0);
            assert!(sent.finish.reusable, "{version:?} {declared:?} {length:?}");
        }
    }
}

#[test]
fn an_unknown_length_is_chunked_and_empty_parts_do_not_end_it() {
    let trailers = {
        let mut fields = FieldSet::new();
        for (name, value) in
            [("X-Sum", "7"), ("Content-Length", "1"), ("bad name", "x"), ("X-Bad", "a\r\nb: c")]
        {
            fields.push(name, value);
        }
        Some(fields)
    };
    let parts = &["", "hello", "", ", world of sixteen"];
    let (sent, read) = exchange(&Application { parts, trailers, ..Default::default() });
    assert_eq!(read.body, b"hello, world of sixteen");
    assert_eq!(read.trailers, "X-Sum: 7\r\n\r\n");
    assert!(sent.finish.reusable);
}

#[test]
fn an_unknown_length_ends_with_the_connection_in_http_10() {
    let parts = &["hello", "", "there"];
    let (sent, read) = exchange(&Application { version: Version::Http10, parts, ..Default::default() });
    assert_eq!((read.body.as_slice(), sent.finish.reusable), (&b"hellothere"[..], false));
}

#[test]
fn fields_are_added_only_where_they_are_missing() {
    let head = with(&[("dAtE", "yesterday"), ("server", "mine")]);
    let (_, read) = exchange(&Application { head, length: Some(0), ..Default::default() });
    assert_eq!((read.field("date"), read.field("server")), (vec!["yesterday"], vec!["mine"]));
    let (_, read) = exchange(&Application { length: Some(0), ..Default::default() });
    assert_eq!((read.field("date").len(), read.field("server")), (1, vec!["maitred"]));
}

#[test]
fn steps_out_of_order_send_nothing() {
    let mut out = Vec::new();
    let mut sender = Sender::new(Version::Http11, false, true);
    let nothing = DataPlan { allowed: 0, surplus: 3, suffix: b"" };
    assert_eq!(sender.send_data(3, &mut out), nothing);
    assert_eq!(sender.finish(None, &mut out), Finish { reusable: false, short_by: 0 });
    assert_eq!(sender.send_data(3, &mut out), nothing);
    let late = sender.send_head(&ResponseHead::new(Status::OK), Some(0), DATE, &mut out);
    assert_eq!(late, Err(HeadError::AlreadySent));
    assert!(!sender.send_continue(&mut out));
    assert_eq!(out, b"");
}

/// RFC 9110 §15.3.6, and RFC 9112 §6.3: a client expects a body behind it unless its length is said.
#[test]
fn a_205_has_no_body_and_says_so() {
    for (version, to_head) in [(Version::Http11, false), (Version::Http11, true), (Version::Http10, false)] {
        let mut out = Vec::new();
        let mut sender = Sender::new(version, to_head, true);
        let head = ResponseHead::new(Status::RESET_CONTENT).with("Content-Length", "4");
        let report = sender.send_head(&head, Some(4), DATE, &mut out).expect("sent");
        assert_eq!(report.length, Some(0));
        let (plan, finish) = sender.send_last(4, &mut out);
        // To HEAD the application may well make the body it would send to GET.
        let surplus = if to_head { 0 } else { 4 };
        assert_eq!((plan.allowed, plan.surplus, finish.reusable), (0, surplus, true));
        let text = String::from_utf8(out).expect("ASCII");
        assert!(text.contains("\r\nContent-Length: 0\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(!text.contains("Transfer-Encoding") && text.matches("Content-Length").count() == 1, "{text}");
    }
}

#[test]
fn interim_responses_stand_before_the_head() {
    let mut out = Vec::new();
    let mut sender = Sender::new(Version::Http11, false, true);
    assert!(sender.send_continue(&mut out));
    assert!(!sender.send_continue(&mut out));
    let hints = ResponseHead::new(Status::EARLY_HINTS).with("Link", "</a.css>; rel=preload");
    assert_eq!(sender.send_interim(&hints, &mut out), Ok(()));
    for status in [Status::CONTINUE, Status::SWITCHING_PROTOCOLS, Status::OK] {
        let refused = sender.send_interim(&ResponseHead::new(status), &mut out);
        assert_eq!(refused, Err(HeadError::NotInterim(status)));
    }
    let split = ResponseHead::new(Status::EARLY_HINTS).with("Link", "a\r\nX: y");
    assert_eq!(sender.send_interim(&split, &mut out), Err(HeadError::InvalidValue("Link".to_owned())));
    assert_eq!(
        out.escape_ascii().to_string(),
        r"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    );
    assert!(sender.send_head(&ResponseHead::new(Status::OK), Some(0), DATE, &mut out).is_ok());
    assert_eq!(sender.send_interim(&hints, &mut out), Err(HeadError::AlreadySent));
    let mut sender = Sender::new(Version::Http10, false, true);
    out.clear();
    assert!(!sender.send_continue(&mut out));
    assert_eq!((sender.send_interim(&hints, &mut out), out.len()), (Ok(()), 0));
}

#[test]
fn an_upgrade_ends_http() {
    let mut out = Vec::new();
    let mut sender = Sender::new(Version::Http11, false, true);
    let head = ResponseHead::new(Status::SWITCHING_PROTOCOLS).with("Sec-WebSocket-Accept", "x");
    assert_eq!(sender.send_switching(&head, "websocket", &mut out), Ok(()));
    assert_eq!(
        out.escape_ascii().to_string(),
        r"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    assert_eq!(sender.send_data(3, &mut out).allowed, 0);
    assert!(!sender.finish(None, &mut out).reusable);
}

#[test]
fn close_after_is_told_to_the_peer() {
    let mut out = Vec::new();
    let mut sender = Sender::new(Version::Http11, false, true);
    sender.close_after();
    let report = sender.send_head(&ResponseHead::new(Status::OK), Some(0), DATE, &mut out);
    assert!(report.is_ok_and(|report| report.close));
    assert!(read(&out, false, Version::Http11).closes);
    assert!(!sender.finish(None, &mut out).reusable);
}
