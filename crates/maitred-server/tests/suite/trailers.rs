//! Fields behind the body of a response (RFC 9110 §6.5) in HTTP/1.1: who gets them, and what becomes of those that have no place.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use crate::harness::{Running, connect, exchange, start, wait_until};
use flate2::read::GzDecoder;
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{FieldSet, ResponseHead, Status};
use maitred_runtime::{Exchange, SendError};
use maitred_server::{CompressionSettings, Level, Log, LogTarget, Routes, Settings, Submissions};

const SUM: &[(&str, &str)] = &[("X-Sum", "7"), ("grpc-status", "0")];

fn trailers(fields: &[(&str, &str)]) -> FieldSet {
    let mut set = FieldSet::new();
    for (name, value) in fields {
        set.push(name, value);
    }
    set
}

/// How an application answers.
#[derive(Clone, Copy)]
struct Answer {
    status: Status,
    field: (&'static str, &'static str),
    length: Option<u64>,
    announced: bool,
    parts: &'static [&'static str],
    trailers: &'static [(&'static str, &'static str)],
}

const PLAIN: Answer = Answer {
    status: Status::OK,
    field: ("Trailer", "X-Sum"),
    length: None,
    announced: true,
    parts: &["one", "two"],
    trailers: SUM,
};

/// A server that always answers so, and whose log can be read.
fn serve(folder: &Path, answer: Answer, change: impl FnOnce(&mut Settings)) -> Running {
    let log = Log::open(Level::Info, LogTarget::Path(folder.join("log")), None).expect("the log opens");
    let routes = Routes::new().with_application(Arc::new(move |mut exchange: Exchange| {
        if answer.announced {
            exchange.announce_trailers();
        }
        let (name, value) = answer.field;
        let head = ResponseHead::new(answer.status).with("Content-Type", "text/plain").with(name, value);
        let mut stream = exchange.start(head, answer.length).expect("a good head");
        answer.parts.iter().for_each(|part| drop(stream.send(*part)));
        let ended = stream.finish_with_trailers(trailers(answer.trailers));
        let bad = answer.trailers.iter().any(|(_, value)| value.contains('\n'));
        assert_eq!(matches!(ended, Err(SendError::InvalidField(_))), bad, "{ended:?}");
    }));
    let mut settings = Settings::new(routes, Arc::new(log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    change(&mut settings);
    start(settings)
}

fn ask(running: &Running, method: &str, fields: &str) -> String {
    let request = format!("{method} / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n");
    exchange(running.address, request.as_bytes())
}

/// The head and all that follows it.
fn split(answer: &str) -> (&str, &str) {
    answer.split_once("\r\n\r\n").expect("a whole head")
}

fn logged(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).expect("a log")
}

fn wait_for_log(folder: &Path, text: &str) {
    wait_until(&format!("the log says: {text}"), || logged(folder).contains(text));
}

const TAKES: &str = "TE: trailers\r\n";

#[test]
fn they_stand_behind_a_chunked_body_for_a_client_that_takes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve(folder.path(), PLAIN, |_| {});
    let answer = ask(&running, "GET", TAKES);
    let (head, rest) = split(&answer);
    assert!(head.contains("\r\nTrailer: X-Sum\r\n"), "{head}");
    assert_eq!(rest, "3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 7\r\ngrpc-status: 0\r\n\r\n");
    for fields in ["", "TE: gzip\r\n"] {
        let answer = ask(&running, "GET", fields);
        let (head, rest) = split(&answer);
        assert!(!head.contains("Trailer"), "{head}");
        assert_eq!(rest, "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    }
    let answer = exchange(running.address, b"GET / HTTP/1.0\r\nTE: trailers\r\n\r\n");
    assert_eq!(split(&answer).1, "onetwo");
    drop(running);
    assert!(!logged(folder.path()).contains("railer"), "that is the client's affair");
}

#[test]
fn the_connection_goes_on_behind_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve(folder.path(), PLAIN, |_| {});
    let one = "GET / HTTP/1.1\r\nHost: t\r\nTE: trailers\r\n";
    let answer = exchange(running.address, format!("{one}\r\n{one}Connection: close\r\n\r\n").as_bytes());
    assert_eq!(answer.matches("0\r\nX-Sum: 7\r\ngrpc-status: 0\r\n\r\n").count(), 2, "{answer}");
}

#[test]
fn a_response_without_a_body_has_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve(folder.path(), PLAIN, |_| {});
    assert_eq!(split(&ask(&running, "HEAD", TAKES)).1, "");
    for status in [Status::NO_CONTENT, Status::NOT_MODIFIED] {
        let running = serve(folder.path(), Answer { status, parts: &[], ..PLAIN }, |_| {});
        assert_eq!(split(&ask(&running, "GET", TAKES)).1, "", "{status}");
    }
    assert!(!logged(folder.path()).contains("dropped"), "that is as it has to be");
}

#[test]
fn a_content_length_leaves_no_place_and_the_log_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve(folder.path(), Answer { length: Some(6), ..PLAIN }, |_| {});
    for _ in 0..2 {
        let answer = ask(&running, "GET", TAKES);
        let (head, rest) = split(&answer);
        assert!(head.contains("\r\nContent-Length: 6\r\n"), "{head}");
        assert_eq!(rest, "onetwo");
    }
    wait_for_log(folder.path(), "leave the Content-Length out");
}

#[test]
fn a_body_that_is_compressed_or_empty_has_them_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let compressed = |settings: &mut Settings| settings.compression = Some(CompressionSettings::default());
    let fields = format!("{TAKES}Accept-Encoding: gzip\r\n");
    let end = "0\r\nX-Sum: 7\r\ngrpc-status: 0\r\n\r\n";
    let running = serve(folder.path(), PLAIN, compressed);
    let request = format!("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n");
    let mut stream = connect(running.address);
    stream.write_all(request.as_bytes()).expect("the server takes the request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server closes in time");
    let start = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
    let (head, mut rest) = answer.split_at(start);
    assert!(String::from_utf8_lossy(head).contains("Content-Encoding: gzip"));
    let mut coded = Vec::new();
    while !rest.starts_with(b"0\r\n") {
        let line = rest.windows(2).position(|two| two == b"\r\n").expect("a size");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).expect("ASCII"), 16);
        let (chunk, behind) = rest[line + 2..].split_at(size.expect("a size"));
        coded.extend_from_slice(chunk);
        rest = &behind[2..];
    }
    assert_eq!(String::from_utf8_lossy(rest), end);
    let mut text = String::new();
    GzDecoder::new(&coded[..]).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, "onetwo");
    let running = serve(folder.path(), Answer { parts: &[], ..PLAIN }, compressed);
    let answer = ask(&running, "GET", &fields);
    let (head, rest) = split(&answer);
    assert!(!head.contains("Content-Encoding"), "{head}");
    assert_eq!(rest, end);
}

#[test]
fn of_a_response_that_announces_them_no_ranges_are_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = Answer { field: ("Accept-Ranges", "bytes"), parts: &["onetwo"], ..PLAIN };
    let running = serve(folder.path(), answer, |_| {});
    let answer = ask(&running, "GET", "TE: trailers\r\nRange: bytes=1-2\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("\r\nonetwo\r\n0\r\nX-Sum: 7\r\n"),
        "{answer}"
    );
}

#[test]
fn an_invalid_one_cuts_the_response_and_one_for_heads_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = Answer { trailers: &[("X-Sum", "7"), ("X-Bad", "a\nb")], ..PLAIN };
    let running = serve(folder.path(), bad, |_| {});
    assert_eq!(split(&ask(&running, "GET", TAKES)).1, "3\r\none\r\n3\r\ntwo\r\n");
    wait_for_log(
        folder.path(),
        "the response was cut: a field behind its body cannot be sent: the value of the field \"X-Bad\"",
    );
    let forbidden = Answer { trailers: &[("Set-Cookie", "a=b"), ("X-Sum", "7")], ..PLAIN };
    let running = serve(folder.path(), forbidden, |_| {});
    assert_eq!(split(&ask(&running, "GET", TAKES)).1, "3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 7\r\n\r\n");
    wait_for_log(folder.path(), "the trailer Set-Cookie, which has a meaning only in the head");
}

#[test]
fn those_that_are_not_announced_are_sent_and_the_field_that_names_them_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let running = serve(folder.path(), Answer { announced: false, ..PLAIN }, |_| {});
    let answer = ask(&running, "GET", TAKES);
    let (head, rest) = split(&answer);
    assert!(!head.contains("Trailer"), "{head}");
    assert!(rest.ends_with("0\r\nX-Sum: 7\r\ngrpc-status: 0\r\n\r\n"), "{rest}");
    wait_for_log(folder.path(), "the application set Trailer, which belongs to the connection");
}

#[test]
fn a_file_in_the_place_of_the_body_has_its_length() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page.txt"), "a file").expect("written");
    let files = StaticSettings { precompressed: false, ..StaticSettings::default() };
    let files = StaticFiles::open(folder.path(), files).expect("the folder");
    let answer = Answer { field: ("X-Accel-Redirect", "/protected/page.txt"), ..PLAIN };
    let running = serve(folder.path(), answer, |settings| {
        settings.submissions = Submissions::default().with_root("/protected", files);
    });
    assert_eq!(split(&ask(&running, "GET", TAKES)).1, "a file");
    wait_for_log(folder.path(), "leave the Content-Length out");
}
