//! Ranges and conditions, RFC 9110 §13 and §14: the table `ranges/cases.json`, over a real socket, against a static file and,
//! where it applies, against an application that allows ranges. `bench/run ranges` asks other servers the same.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::harness::{Running, connect, settings, start};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status, date};
use maitred_runtime::{Content, Exchange, FileRange};
use maitred_server::{CompressionSettings, Routes};
use serde_json::Value;

const DIGITS: &[u8] = include_bytes!("ranges/digits.txt");

struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| &**value);
        assert!(found.next().is_none(), "{name} twice");
        value
    }
}

fn ask(address: SocketAddr, method: &str, path: &str, fields: &[(String, String)]) -> Answer {
    let mut stream = connect(address);
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n");
    for (name, value) in fields {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("answered");
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(all[..end].to_vec()).expect("ASCII");
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status").parse().expect("a number");
    let fields = lines.map(|line| line.split_once(": ").expect("a field"));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let answer = Answer { status, fields, body: all[end + 4..].to_vec() };
    let length = answer.field("Content-Length").map(|length| length.parse().expect("a length"));
    if method != "HEAD" && status != 304 {
        assert_eq!(length, Some(answer.body.len()), "complete: {head}");
    }
    answer
}

/// The parts of a `multipart/byteranges` (RFC 9110 §14.6): what each says of itself, and its bytes.
fn parts(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let content_type = answer.field("Content-Type").expect("a type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("parts");
    let body = String::from_utf8(answer.body.clone()).expect("ASCII");
    let body = body.strip_suffix(&format!("\r\n--{boundary}--\r\n")).expect("the end");
    let parts = format!("\r\n{body}");
    let delimiter = format!("\r\n--{boundary}\r\n");
    let parts = parts.split(&delimiter).skip(1).map(|part| {
        let (head, bytes) = part.split_once("\r\n\r\n").expect("a part");
        assert!(head.contains("Content-Type: text/plain"), "{head}");
        let range = head.lines().find_map(|line| line.strip_prefix("Content-Range: ")).expect("a range");
        (range.to_owned(), bytes.as_bytes().to_vec())
    });
    parts.collect()
}

fn slice(text: &str) -> &'static [u8] {
    let (first, last) = text.split_once('-').expect("a range");
    &DIGITS[first.parse().expect("a number")..=last.parse::<usize>().expect("a number")]
}

/// Replaces the placeholders of the table.
fn filled(text: &str, first: &Answer) -> String {
    let etag = first.field("ETag").unwrap_or_default();
    let modified = first.field("Last-Modified").unwrap_or_default();
    let seconds = date::parse(modified.as_bytes()).unwrap_or(1_500_000_000);
    let moved = |seconds: u64| String::from_utf8(date::format(seconds).to_vec()).expect("ASCII");
    let text = text.replace("{etag}", etag).replace("{modified}", modified);
    text.replace("{earlier}", &moved(seconds - 86_400)).replace("{later}", &moved(seconds + 86_400))
}

fn check(case: &Value, address: SocketAddr, first: &Answer) {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let name = &case["name"];
    let pair = |pair: &Value| (text(&pair[0]), filled(&text(&pair[1]), first));
    let fields: Vec<(String, String)> = case["fields"].as_array().expect("fields").iter().map(pair).collect();
    let method = case["method"].as_str().unwrap_or("GET");
    let answer = ask(address, method, case["path"].as_str().unwrap_or("/digits.txt"), &fields);
    assert_eq!(u64::from(answer.status), case["status"], "{name}");
    for (field, value) in case["has"].as_object().into_iter().flatten() {
        assert_eq!(answer.field(field), Some(&*filled(&text(value), first)), "{name}: {field}");
    }
    for field in case["lacks"].as_array().into_iter().flatten() {
        assert_eq!(answer.field(&text(field)), None, "{name}: {field}");
    }
    match &case["body"] {
        Value::String(body) => match &**body {
            "whole" => assert!(answer.body == DIGITS, "{name}"),
            "none" | "" => assert!(answer.body.is_empty(), "{name}"),
            "any" => assert!(!answer.body.is_empty(), "{name}: for people"),
            range => assert!(answer.body == slice(range), "{name}: {:?}", answer.body),
        },
        Value::Array(ranges) => {
            let expected = ranges.iter().map(text);
            let expected: Vec<_> =
                expected.map(|range| (format!("bytes {range}/100"), slice(&range).to_vec())).collect();
            assert_eq!(parts(&answer), expected, "{name}");
        }
        other => panic!("{name}: {other}"),
    }
}

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("ranges/cases.json")).expect("JSON")
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/ranges")
}

fn digits(address: SocketAddr) -> Answer {
    ask(address, "GET", "/digits.txt", &[])
}

#[test]
fn a_file_answers_as_the_table_says() {
    let files = StaticFiles::open(&folder(), StaticSettings::default()).expect("the folder");
    let running = start(settings(Routes::new().with_static("/", files)));
    // A file that has just been checked out has a weak tag for two seconds.
    crate::harness::wait_until("the file has settled", || {
        digits(running.address).field("ETag").is_some_and(|tag| tag.starts_with('"'))
    });
    let first = digits(running.address);
    let cases = cases();
    assert!(cases.len() >= 60);
    for case in &cases {
        check(case, running.address, &first);
    }
}

fn head() -> ResponseHead {
    ResponseHead::new(Status::OK)
        .with("Content-Type", "text/plain; charset=utf-8")
        .with("Accept-Ranges", "bytes")
        .with("ETag", "\"digits\"")
        .with("Set-Cookie", "a=b")
}

/// Checks the table against an application that answers with `body`.
fn check_application(body: fn() -> Content, compression: Option<CompressionSettings>) {
    let handler = move |exchange: Exchange| drop(exchange.respond(head(), body()));
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.compression = compression;
    let running = start(settings);
    let first = digits(running.address);
    let cases: Vec<Value> = cases().into_iter().filter(|case| case["application"] == true).collect();
    assert!(cases.len() >= 40);
    for case in &cases {
        check(case, running.address, &first);
    }
}

#[test]
fn an_application_with_bytes_answers_as_the_table_says() {
    check_application(|| Content::Bytes(DIGITS.to_vec()), None);
}

#[test]
fn an_application_with_a_file_answers_as_the_table_says() {
    fn file() -> Content {
        let file = std::fs::File::open(folder().join("digits.txt")).expect("the file");
        Content::File(FileRange { file: Arc::new(file), offset: 0, length: DIGITS.len() as u64 })
    }
    check_application(file, None);
}

#[test]
fn a_client_that_accepts_no_coding_gets_ranges_also_with_compression() {
    let settings = CompressionSettings { min_length: 1, ..CompressionSettings::default() };
    check_application(|| Content::Static(DIGITS), Some(settings));
}

fn serve(handler: impl Fn(Exchange) + Send + Sync + 'static) -> Running {
    crate::harness::serve(handler)
}

fn range(value: &str) -> [(String, String); 1] {
    [("Range".to_owned(), value.to_owned())]
}

#[test]
fn the_application_s_own_fields_stay_and_those_of_the_content_go_with_it() {
    let running = serve(|exchange: Exchange| drop(exchange.respond(head(), Content::Static(DIGITS))));
    let part = ask(running.address, "GET", "/", &range("bytes=0-4"));
    assert_eq!(
        (part.status, part.field("ETag"), part.field("Set-Cookie")),
        (206, Some("\"digits\""), Some("a=b"))
    );
    let nothing = ask(running.address, "GET", "/", &range("bytes=100-"));
    assert_eq!(
        (nothing.status, nothing.field("ETag"), nothing.field("Set-Cookie")),
        (416, None, Some("a=b"))
    );
}

#[test]
fn parts_of_a_long_body_are_its_own_bytes() {
    fn byte(at: usize) -> u8 {
        (at % 251) as u8
    }
    let running = serve(|exchange: Exchange| {
        let body: Vec<u8> = (0..1_000_000).map(byte).collect();
        let _ = exchange.respond(head(), body);
    });
    let answer = ask(running.address, "GET", "/", &range("bytes=100000-899999"));
    assert_eq!((answer.status, answer.field("Content-Range")), (206, Some("bytes 100000-899999/1000000")));
    assert!(answer.body.iter().enumerate().all(|(at, found)| *found == byte(at + 100_000)));
}

#[test]
fn what_the_application_does_not_allow_is_not_cut() {
    let running = serve(|exchange: Exchange| {
        let path = exchange.request().head.path().to_vec();
        let mut head = head();
        match &path[..] {
            b"/none" => drop(head.fields.set("Accept-Ranges", "none")),
            b"/nothing-said" => drop(head.fields.remove("Accept-Ranges")),
            b"/created" => head.status = Status::CREATED,
            _ => {
                let mut stream = exchange.start(head, Some(DIGITS.len() as u64)).expect("a client");
                let (one, other) = DIGITS.split_at(DIGITS.len() / 2);
                let _ = stream.send(Content::Static(one));
                let _ = stream.send(Content::Static(other));
                return stream.finish();
            }
        }
        let _ = exchange.respond(head, Content::Static(DIGITS));
    });
    for (path, status) in [("/none", 200), ("/nothing-said", 200), ("/created", 201), ("/in-parts", 200)] {
        let answer = ask(running.address, "GET", path, &range("bytes=0-4"));
        assert_eq!((answer.status, answer.field("Content-Range")), (status, None), "{path}");
        assert!(answer.body == DIGITS, "{path}");
    }
    let posted = ask(running.address, "POST", "/none", &range("bytes=0-4"));
    assert_eq!(posted.status, 200);
}

#[test]
fn a_body_that_is_whole_before_the_response_ends_is_cut_as_well() {
    let running = serve(|exchange: Exchange| {
        let mut stream = exchange.start(head(), Some(DIGITS.len() as u64)).expect("a client");
        let _ = stream.send(Content::Static(DIGITS));
        stream.finish();
    });
    let answer = ask(running.address, "GET", "/", &range("bytes=2-4"));
    assert_eq!((answer.status, &answer.body[..]), (206, &DIGITS[2..=4]));
    let answer = ask(running.address, "GET", "/", &range("bytes=0-0,2-4"));
    assert!(answer.field("Content-Type").is_some_and(|found| found.starts_with("multipart/byteranges")));
}

#[test]
fn a_compressed_response_offers_no_ranges() {
    let handler = |exchange: Exchange| drop(exchange.respond(head(), "some text ".repeat(500)));
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.compression = Some(CompressionSettings::default());
    let running = start(settings);
    let fields =
        [("Range".to_owned(), "bytes=0-4".to_owned()), ("Accept-Encoding".to_owned(), "gzip".to_owned())];
    let answer = ask(running.address, "GET", "/", &fields);
    assert_eq!((answer.status, answer.field("Content-Encoding")), (200, Some("gzip")));
    assert_eq!(answer.field("Accept-Ranges"), None);
    // Without a coding there are ranges, also of what varies.
    let answer = ask(running.address, "GET", "/", &fields[..1]);
    assert_eq!((answer.status, answer.field("Vary")), (206, Some("Accept-Encoding")));
}
