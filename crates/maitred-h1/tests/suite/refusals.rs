//! Every rule about heads: each request as one string, with its result. Each is received in one piece and byte by byte,
//! with the same outcome.

use maitred_h1::{Event, HeadFacts, Limits, Receiver, RequestError, TargetForm};
use maitred_http::{BodyLength, RequestHead, Version};

/// The first head, with the bytes offered in pieces of `piece` bytes.
fn receive(bytes: &[u8], piece: usize) -> Result<(RequestHead, HeadFacts), RequestError> {
    let mut receiver = Receiver::new();
    let mut head = RequestHead::default();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        let step = receiver.poll_event(&bytes[start..end], &mut head, &Limits::default())?;
        start += step.consumed;
        if let Event::Head(facts) = step.event {
            return Ok((head, facts));
        }
    }
    panic!("neither a head nor a refusal: {}", bytes.escape_ascii());
}

fn both(bytes: &[u8]) -> Result<(RequestHead, HeadFacts), RequestError> {
    let whole = receive(bytes, bytes.len());
    let bytewise = receive(bytes, 1);
    let outcome = |received: &Result<(RequestHead, HeadFacts), RequestError>| match received {
        Ok((head, facts)) => Ok((format!("{head:?}"), *facts)),
        Err(error) => Err(*error),
    };
    assert_eq!(outcome(&whole), outcome(&bytewise), "{}", bytes.escape_ascii());
    whole
}

fn refused(bytes: &[u8]) -> (u16, &'static str) {
    match both(bytes) {
        Ok(_) => panic!("accepted: {}", bytes.escape_ascii()),
        Err(error) => (error.status.code(), error.reason),
    }
}

fn accepted(text: &str) -> (RequestHead, HeadFacts) {
    both(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

#[test]
fn request_lines_that_are_refused() {
    for (line, status) in [
        ("GET / HTTP/2.0", 505),
        ("PRI * HTTP/2.0", 505),
        ("GET / HTTP/3.0", 505),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/2.1", 505),
        ("GET / HTTP/11", 400),
        ("GET / HTTP/1.a", 400),
        ("GET / http/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET / HTTP/1.10", 400),
        ("GET / ICAP/1.1", 400),
        ("GET /", 400),
        ("GET", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        (" GET / HTTP/1.1", 400),
        ("GET /a b HTTP/1.1", 400),
        ("G@T / HTTP/1.1", 400),
        ("G\u{e9}T / HTTP/1.1", 400),
        ("GET /\u{e9} HTTP/1.1", 400),
        ("GET /\u{7f} HTTP/1.1", 400),
        ("GET /\0 HTTP/1.1", 400),
        ("GET /\r HTTP/1.1", 400),
        ("GET /a\tb HTTP/1.1", 400),
        ("GET /#f HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("GET a HTTP/1.1", 400),
        ("GET a:80 HTTP/1.1", 400),
        ("GET ftp://a/ HTTP/1.1", 400),
        ("GET http:// HTTP/1.1", 400),
        ("GET http://u:p@a/ HTTP/1.1", 400),
        ("CONNECT / HTTP/1.1", 400),
        ("CONNECT a HTTP/1.1", 400),
        ("\u{16}\u{3}\u{1} HTTP/1.1", 400),
    ] {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(refused(head.as_bytes()).0, status, "{line:?}");
    }
}

#[test]
fn fields_that_are_refused() {
    for (fields, status) in [
        // RFC 9112 §2.2, §5: lines, white space, folding
        ("Host: a\nX: b\r\n", 400),
        ("Host: a\r\nX: b\n", 400),
        ("Host: a\r\nX: b\rc\r\n", 400),
        ("Host: a\r\nX: b\r\r\n", 400),
        ("Host: a\r\nX : b\r\n", 400),
        ("Host : a\r\n", 400),
        ("Host: a\r\nX: b\r\n c\r\n", 400),
        ("Host: a\r\nX: b\r\n\tc\r\n", 400),
        (" Host: a\r\n", 400),
        ("Host: a\r\n: b\r\n", 400),
        ("Host: a\r\nX\r\n", 400),
        ("Host: a\r\nX[]: b\r\n", 400),
        ("Host: a\r\nX\u{e9}: b\r\n", 400),
        ("Host: a\r\nX\0: b\r\n", 400),
        ("Host: a\r\nX: b\0\r\n", 400),
        ("Host: a\r\nX: b\u{1}\r\n", 400),
        ("Host: a\r\nX: b\u{7f}\r\n", 400),
        // RFC 9112 §3.2
        ("X: b\r\n", 400),
        ("", 400),
        ("Host: a\r\nHost: a\r\n", 400),
        ("Host: a\r\nhOST: b\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: a/b\r\n", 400),
        ("Host: u@a\r\n", 400),
        ("Host: a:b\r\n", 400),
        ("Host: a, b\r\n", 400),
        ("Host: [::1\r\n", 400),
        ("Host: %zz\r\n", 400),
        ("Host: a%4\r\n", 400),
        // RFC 9110 §5.3: a field that may be there once
        ("Host: a\r\nContent-Type: text/html\r\ncontent-type: text/plain\r\n", 400),
        ("Host: a\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nContent-Type: a/b\r\n", 400),
        // RFC 9112 §6
        ("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n", 400),
        ("Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400),
        ("Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n", 400),
        ("Host: a\r\nContent-Length: 1, 1\r\n", 400),
        ("Host: a\r\nContent-Length: +1\r\n", 400),
        ("Host: a\r\nContent-Length: -1\r\n", 400),
        ("Host: a\r\nContent-Length: 0x1\r\n", 400),
        ("Host: a\r\nContent-Length: 1 1\r\n", 400),
        ("Host: a\r\nContent-Length:\r\n", 400),
        ("Host: a\r\nContent-Length: 18446744073709551616\r\n", 400),
        ("Host: a\r\nContent-Length\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: chunked, chunked\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: chunked, gzip\r\n", 400),
        ("Host: a\r\nTransfer-Encoding:\r\n", 400),
        ("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
        ("Host: a\r\nTransfer-Encoding: identity\r\n", 501),
        ("Host: a\r\nTransfer-Encoding: \"chunked\"\r\n", 501),
        // RFC 9110 §10.1.1
        ("Host: a\r\nExpect: magic\r\n", 417),
        ("Host: a\r\nExpect: 100-continue, magic\r\n", 417),
        ("Host: a\r\nExpect: ,100-continue x\r\n", 417),
        ("Host: a\r\nExpect: 100-continue\r\nExpect: magic\r\n", 417),
        ("Host: a\r\nExpect: magic\r\nExpect: 100-continue\r\n", 417),
    ] {
        let head = format!("POST / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(refused(head.as_bytes()).0, status, "{fields:?}");
    }
}

#[test]
fn a_higher_minor_version_is_read_as_11() {
    for version in ["HTTP/1.2", "HTTP/1.9"] {
        let (head, facts) = accepted(&format!(
            "POST /a?b {version}\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
        ));
        assert_eq!(
            (head.version, head.target(), head.authority()),
            (Version::Http11, &b"/a?b"[..], &b"a"[..])
        );
        assert!(facts.keep_alive && facts.expect_continue);
    }
    assert_eq!(refused(b"GET / HTTP/1.2\r\n\r\n"), (400, "Host is missing"));
    assert_eq!(refused(b"GET / HTTP/1.2\r\nX : y\r\n\r\n").0, 400);
}

#[test]
fn a_content_type_may_be_said_again() {
    let (head, _) = accepted("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\ncontent-type: a/b\r\n\r\n");
    assert_eq!(head.fields.all("content-type").count(), 2);
}

#[test]
fn http_10_has_rules_of_its_own() {
    for fields in ["Transfer-Encoding: chunked\r\n", "Host: a\r\nHost: a\r\n", "Host: a b\r\n"] {
        let head = format!("POST / HTTP/1.0\r\n{fields}\r\n");
        assert_eq!(refused(head.as_bytes()).0, 400, "{fields:?}");
    }
    let (head, facts) = accepted("POST / HTTP/1.0\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n");
    assert_eq!((head.version, head.authority()), (Version::Http10, &b""[..]));
    assert_eq!(facts, HeadFacts::default());
}

#[test]
fn a_wrong_start_is_refused_at_once() {
    for start in [&b"\x16"[..], b"\n", b"\r\r", b" ", b"\0", b"\xff", b"\x7f"] {
        assert_eq!(refused(start).0, 400, "{}", start.escape_ascii());
    }
}

#[test]
fn a_wrong_request_line_is_refused_before_the_fields_arrive() {
    assert_eq!(refused(b"GET / HTTP/2.0\r\n").0, 505);
    assert_eq!(refused(b"GET /\r\n").0, 400);
    assert_eq!(refused(b"GET / HTTP/1.1\n").0, 400);
}

#[test]
fn reasons_name_the_rule() {
    for (head, reason) in [
        ("GET / HTTP/1.1\r\n\r\n", "Host is missing"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host is there twice"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", "malformed field name, or a folded line"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "malformed field name, or a folded line"),
        ("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", "a line ends in LF without CR"),
        ("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", "control character in a field value"),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "control character in a field value"),
    ] {
        assert_eq!(refused(head.as_bytes()).1, reason, "{head:?}");
    }
}

#[test]
fn targets_are_taken_apart() {
    let parts = |text: &str| {
        let (head, facts) = accepted(&format!("{text} HTTP/1.1\r\nHost: from.host:1\r\n\r\n"));
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(string(head.target()), text.split_once(' ').map_or("", |(_, target)| target));
        let whole = string(head.fields.bytes(head.path_and_query));
        (facts.target_form, string(head.authority()), whole)
    };
    let is = |form, authority: &str, path: &str| (form, authority.to_owned(), path.to_owned());
    use TargetForm::*;
    assert_eq!(parts("GET /a?b=c"), is(Origin, "from.host:1", "/a?b=c"));
    assert_eq!(parts("GET //x/y"), is(Origin, "from.host:1", "//x/y"));
    assert_eq!(parts("OPTIONS *"), is(Asterisk, "from.host:1", "*"));
    assert_eq!(parts("GET http://t:2/a?b"), is(Absolute, "t:2", "/a?b"));
    assert_eq!(parts("GET HTTPS://[::1]/"), is(Absolute, "[::1]", "/"));
    assert_eq!(parts("GET http://t"), is(Absolute, "t", "/"));
    assert_eq!(parts("GET http://t?q"), is(Absolute, "t", "/?q"));
    assert_eq!(parts("OPTIONS http://t"), is(Absolute, "t", "*"));
    assert_eq!(parts("OPTIONS http://t?q"), is(Absolute, "t", "/?q"));
    assert_eq!(parts("CONNECT t:443"), is(Authority, "t:443", "t:443"));
}

#[test]
fn facts_of_accepted_heads() {
    let facts =
        |version: &str, fields: &str| accepted(&format!("POST / {version}\r\nHost: a\r\n{fields}\r\n")).1;
    assert!(facts("HTTP/1.1", "").keep_alive);
    assert!(!facts("HTTP/1.1", "Connection: Close\r\n").keep_alive);
    assert!(!facts("HTTP/1.1", "Connection: x, close\r\nConnection: keep-alive\r\n").keep_alive);
    assert!(!facts("HTTP/1.0", "").keep_alive);
    assert!(facts("HTTP/1.0", "Connection: Keep-Alive\r\n").keep_alive);
    assert!(!facts("HTTP/1.0", "Connection: keep-alive, close\r\n").keep_alive);
    assert!(facts("HTTP/1.1", "").complete);
    assert!(facts("HTTP/1.1", "Content-Length: 0\r\n").complete);
    assert!(!facts("HTTP/1.1", "Content-Length: 1\r\n").complete);
    assert!(!facts("HTTP/1.1", "Transfer-Encoding: chunked\r\n").complete);
    assert!(facts("HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 1\r\n").expect_continue);
    assert!(!facts("HTTP/1.1", "Expect: 100-continue\r\n").expect_continue);
    // RFC 9110 §5.6.1.2: empty elements of a list say nothing.
    for expect in [
        "100-continue ,",
        ", 100-Continue",
        "100-continue, 100-continue",
        "100-continue\r\nExpect: 100-continue",
    ] {
        let fields = format!("Expect: {expect}\r\nContent-Length: 1\r\n");
        assert!(facts("HTTP/1.1", &fields).expect_continue, "{expect}");
    }
    for expect in ["", ",", " , ,"] {
        let fields = format!("Expect: {expect}\r\nContent-Length: 1\r\n");
        assert!(!facts("HTTP/1.1", &fields).expect_continue, "{expect}");
    }
    assert!(facts("HTTP/1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n").upgrade);
    assert!(!facts("HTTP/1.1", "Upgrade: websocket\r\n").upgrade);
    assert!(!facts("HTTP/1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n").upgrade);
}

#[test]
fn fields_stand_as_they_were_sent_without_the_white_space_around_values() {
    let (head, _) = accepted(
        "BREW / HTTP/1.1\r\nhOsT: \r\nA:\r\nB: \t x \t y \t\r\na:\u{e9}\r\nContent-Length: 7\r\n\r\n",
    );
    let fields: Vec<_> = head.fields.iter().collect();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"hOsT", b""),
        (b"A", b""),
        (b"B", b"x \t y"),
        (b"a", "\u{e9}".as_bytes()),
        (b"Content-Length", b"7"),
    ];
    assert_eq!(fields, expected);
    assert_eq!((head.method.as_str(), head.body), ("BREW", BodyLength::Fixed(7)));
}

#[test]
fn a_refused_connection_stays_refused() {
    let mut receiver = Receiver::new();
    let mut head = RequestHead::default();
    let limits = Limits::default();
    assert!(receiver.poll_event(b"\n", &mut head, &limits).is_err());
    assert!(receiver.poll_event(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut head, &limits).is_err());
}

#[test]
fn a_receiver_stays_small() {
    assert!(size_of::<Receiver>() <= 32, "{}", size_of::<Receiver>());
}
