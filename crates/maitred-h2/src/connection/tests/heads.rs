//! Heads of requests (RFC 9113 §8.2, §8.3).

use super::*;
use maitred_http::{BodyLength, Version};

/// The result of a request with these fields and no body: its head in words, or the reset.
fn seen(fields: &[(&str, &str)]) -> Vec<String> {
    let mut server = Server::with(Settings { connect: true, ..Settings::default() });
    server.gets(&[&headers(1, END_STREAM, fields), &depends(1, 0)])
}

fn is_refused(fields: &[(&str, &str)]) -> bool {
    let seen = seen(fields);
    assert!(seen.len() == 1, "{seen:?}");
    seen == ["< reset 1 ProtocolError"]
}

/// A usual request with one field more.
fn with<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    [&GET[..], &[(name, value)]].concat()
}

/// A usual request with another value for one of its pseudo-fields.
fn where_is<'a>(name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    GET.iter().map(|field| if field.0 == name { (name, value) } else { *field }).collect()
}

/// The head that a request becomes.
fn read(flags: u8, fields: &[(&str, &str)]) -> Server {
    let mut server = Server::with(Settings { connect: true, ..Settings::default() });
    assert_eq!(server.gets(&[&headers(1, flags, fields)]).len(), 1);
    server
}

#[test]
fn a_head_is_equal_to_that_of_http_1() {
    let more = [("accept", "*/*"), ("cookie", "a=b"), ("x-a", "1"), ("cookie", "c=d"), ("x-a", "")];
    let server = read(END_STREAM, &[&where_is(":path", "/a/b?c=d")[..], &more].concat());
    let head = &server.head;
    assert_eq!((head.version, head.method.as_str(), head.body), (Version::Http2, "GET", BodyLength::Empty));
    assert_eq!(
        (head.target(), head.path(), head.query()),
        (&b"/a/b?c=d"[..], &b"/a/b"[..], Some(&b"c=d"[..]))
    );
    assert_eq!(head.authority(), b"a.example");
    let fields: Vec<_> = head.fields.iter().collect();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"host", b"a.example"),
        (b"accept", b"*/*"),
        (b"x-a", b"1"),
        (b"x-a", b""),
        (b"cookie", b"a=b; c=d"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_host_that_is_there_is_the_authority() {
    for fields in [with("host", "a.example"), with("host", "A.Example")] {
        let server = read(END_STREAM, &fields);
        let hosts: Vec<_> = server.head.fields.all("host").collect();
        assert_eq!(hosts, [b"a.example"]);
    }
    let server = read(END_STREAM, &[&GET[..3], &[("accept", "*"), ("host", "b:80")]].concat());
    assert_eq!((server.head.authority(), server.head.fields.len()), (&b"b:80"[..], 2));
    assert!(is_refused(&with("host", "b.example")));
    assert!(is_refused(&with("host", "")));
    assert!(is_refused(&[&GET[..3], &[("host", "a"), ("host", "a")]].concat()));
    assert!(is_refused(&[&GET[..3], &[("host", "u@a")]].concat()));
    assert_eq!(seen(&GET[..3]), ["head 1 GET / ends 400"]);
    assert_eq!(
        seen(&[&GET[..3], &[("host", "")]].concat()),
        ["head 1 GET / ends 400"],
        "an http URI has a host"
    );
}

#[test]
fn how_long_the_body_is() {
    let of = |flags, fields: &[(&str, &str)]| read(flags, fields).head.body;
    let length = |value| [&POST[..], &[("content-length", value)]].concat();
    assert_eq!(of(END_STREAM, &POST), BodyLength::Empty);
    assert_eq!(of(END_STREAM, &length("0")), BodyLength::Fixed(0));
    assert_eq!(of(0, &POST), BodyLength::Chunked);
    assert_eq!(of(0, &length("7")), BodyLength::Fixed(7));
    assert_eq!(of(0, &length("0")), BodyLength::Fixed(0));
    for bad in ["", "+1", "1,1", "-1", "0x1", "99999999999999999999", "1 "] {
        assert!(is_refused(&length(bad)), "{bad}");
    }
    assert!(is_refused(&length("7")), "there is no body");
    assert!(is_refused(&[&length("0")[..], &[("content-length", "0")]].concat()));
}

#[test]
fn pseudo_fields_that_are_refused() {
    let without = |name: &str| GET.into_iter().filter(|field| field.0 != name).collect::<Vec<_>>();
    for name in [":method", ":scheme", ":path"] {
        assert!(is_refused(&without(name)), "{name}");
        assert!(is_refused(&[&GET[..], &GET].concat()), "twice");
        assert!(is_refused(&where_is(name, "")), "empty {name}");
    }
    for (name, value) in [
        (":method", "GE T"),
        (":method", "GET\r\n"),
        (":method", "G\u{e4}T"),
        (":scheme", "https://x/"),
        (":scheme", "ht tp"),
        (":scheme", "1http"),
        (":path", "x"),
        (":path", "https://a.example/"),
        (":path", "/ HTTP/1.1\r\nx: y"),
        (":path", "/a b"),
        (":path", "/a#b"),
        (":path", "/\u{e4}"),
        (":path", "/\0"),
        (":path", "*"),
        (":path", "**"),
        (":path", " /"),
        (":authority", ""),
        (":authority", ":80"),
        (":authority", "u@a.example"),
        (":authority", "a.example/"),
        (":authority", "a b"),
        (":authority", "a:b"),
    ] {
        assert!(is_refused(&where_is(name, value)), "{name} {value}");
    }
    for name in [":status", ":x", ":", ":Method", ":path "] {
        assert!(is_refused(&[&[(name, "/")], &GET[..]].concat()), "{name}");
        assert!(is_refused(&with(name, "/")), "{name}");
    }
    // Behind a field that is none.
    assert!(is_refused(&[&GET[..3], &[("accept", "*"), GET[3]]].concat()));
    assert!(is_refused(&[&[("accept", "*")], &GET[..]].concat()));
    assert!(is_refused(&[]));
    assert!(is_refused(&[("accept", "*")]));
}

#[test]
fn fields_that_are_refused() {
    for (name, value) in [
        ("", "x"),
        ("X-a", "x"),
        ("x-A", "x"),
        ("x a", "x"),
        ("x\u{e4}", "x"),
        ("x\r\n", "x"),
        ("x:", "x"),
        ("x\0", "x"),
        ("x", " x"),
        ("x", "x "),
        ("x", "\tx"),
        ("x", "x\t"),
        ("x", "\0"),
        ("x", "x\r\ny: z"),
        ("x", "x\ny"),
        ("x", "x\u{7f}"),
        ("cookie", "a\nb"),
        ("connection", "close"),
        ("connection", ""),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "websocket"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", ""),
    ] {
        assert!(is_refused(&with(name, value)), "{name} {value:?}");
    }
    for (name, value) in [
        ("te", "trailers"),
        ("te", "Trailers"),
        ("x_1.~", "\u{e4}\tb"),
        ("x", ""),
        ("trailer", "x-sum"),
        ("http2-settings", ""),
    ] {
        assert!(!is_refused(&with(name, value)), "{name} {value:?}");
    }
}

#[test]
fn options_and_connect() {
    let star = |method| [(":method", method), (":scheme", "http"), (":path", "*"), (":authority", "a")];
    assert_eq!(seen(&star("OPTIONS")), ["head 1 OPTIONS * ends"]);
    assert!(is_refused(&star("GET")));
    assert_eq!(seen(&[(":method", "CONNECT"), (":authority", "a:443")]), ["head 1 CONNECT a:443 ends"]);
    for bad in [
        &[(":method", "CONNECT")][..],
        &[(":method", "CONNECT"), (":authority", "a")],
        &[(":method", "CONNECT"), (":authority", "a:")],
        &[(":method", "CONNECT"), (":authority", "[::1]")],
        &[(":method", "CONNECT"), ("host", "a:443")],
        &[(":method", "CONNECT"), (":authority", "a:443"), (":path", "/")],
        &[(":method", "CONNECT"), (":authority", "a:443"), (":scheme", "https")],
    ] {
        assert!(is_refused(bad), "{bad:?}");
    }
}

#[test]
fn a_connect_that_names_a_protocol() {
    let fields = |method| [&[(":method", method), (":protocol", "websocket")], &GET[1..]].concat();
    let mut server = Server::with(Settings { connect: true, ..Settings::default() });
    let (mut control, bytes) = (Vec::new(), headers(1, 0, &fields("CONNECT")));
    let polled = server.connection.poll(&bytes, SECOND, &mut server.head, &mut control);
    let Ok((_, Event::Head { facts, .. })) = polled else { panic!("{polled:?}") };
    assert_eq!(facts.protocol.map(|span| server.head.fields.bytes(span)), Some(&b"websocket"[..]));
    assert_eq!((server.head.target(), server.head.authority()), (&b"/"[..], &b"a.example"[..]));
    assert!(is_refused(&fields("GET")));
    for missing in 2..5 {
        let mut fields = fields("CONNECT");
        fields.remove(missing);
        assert!(is_refused(&fields), "{missing}");
    }
    assert!(is_refused(&[&[(":method", "CONNECT"), (":protocol", "a b")], &GET[1..]].concat()));
    // Not where it is not offered.
    let seen = Server::new().gets(&[&headers(1, 0, &fields("CONNECT"))]);
    assert_eq!(seen, ["< reset 1 ProtocolError"]);
}

#[test]
fn an_expectation_counts_only_before_a_body() {
    let expects = |flags, value, more: &[(&str, &str)]| {
        let fields = [&POST[..], &[("expect", value)], more].concat();
        let (mut server, mut control) = (Server::new(), Vec::new());
        let bytes = headers(1, flags, &fields);
        match server.connection.poll(&bytes, SECOND, &mut server.head, &mut control) {
            Ok((_, Event::Head { facts, .. })) => {
                (facts.expect_continue, facts.objection.map(|(status, _)| status.code()))
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(expects(0, "100-Continue", &[]), (true, None));
    assert_eq!(expects(0, ", 100-continue,", &[]), (true, None));
    assert_eq!(expects(END_STREAM, "100-continue", &[]), (false, None));
    assert_eq!(expects(0, "100-continue", &[("content-length", "0")]), (false, None));
    assert_eq!(expects(0, "200-ok", &[]), (false, Some(417)));
}

#[test]
fn requests_that_are_answered_with_an_error() {
    let long = |length| "x".repeat(length);
    let path = |length: usize| format!("/{}", long(length - 1));
    let many = |count: usize, name: &'static str| vec![(name, "x"); count];
    let status = |fields: &[(&str, &str)]| {
        let seen = Server::new().gets(&[&split(&block(fields))]);
        match seen.as_slice() {
            [line] if line.ends_with(" ends") => 200,
            [line] => line.rsplit(' ').next().expect("a word").parse().expect("a status"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status(&where_is(":path", &path(8192))), 200);
    assert_eq!(status(&where_is(":path", &path(8193))), 414);
    assert_eq!(status(&where_is(":method", &long(32))), 200);
    assert_eq!(status(&where_is(":method", &long(33))), 501);
    assert_eq!(status(&where_is(":scheme", "ftp")), 400);
    assert_eq!(status(&[&with("content-type", "a")[..], &[("content-type", "a")]].concat()), 200);
    assert_eq!(status(&[&with("content-type", "a")[..], &[("content-type", "b")]].concat()), 400);
    assert_eq!(status(&[&GET[..], &many(128, "x")].concat()), 200);
    assert_eq!(status(&[&GET[..], &many(129, "x")].concat()), 431);
    assert_eq!(status(&[&GET[..], &many(256, "cookie")].concat()), 200);
    assert_eq!(status(&[&GET[..], &many(257, "cookie")].concat()), 431);
    assert_eq!(status(&with("x", &long(16 * 1024 - 1))), 200);
    assert_eq!(status(&with("x", &long(16 * 1024))), 431);
    assert_eq!(status(&[&GET[..], &[("cookie", &long(8188)[..]); 2]].concat()), 200);
    assert_eq!(status(&[&GET[..], &[("cookie", &long(8189)[..]); 2]].concat()), 431);
    let (sixteen, usual) =
        (long(16_000), GET.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>());
    let rest = 65_536 - usual - 4 * 16_033 - 33;
    for (last, expected) in [(rest, 200), (rest + 1, 431)] {
        let last = long(last);
        let fields = [&GET[..], &[("x", &sixteen[..]); 4], &[("y", &last)]].concat();
        assert_eq!(status(&fields), expected);
    }
    // Fields behind the fault are not checked.
    assert_eq!(status(&[&GET[..], &many(129, "x"), &[("X", "y")]].concat()), 431);
    assert_eq!(status(&[&where_is(":path", &path(9000))[..], &many(129, "x")].concat()), 431);
}

/// A request whose block may need several frames.
fn split(block: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::put_headers(1, true, 16_384, &mut out, |out| out.extend_from_slice(block));
    out
}
