//! Compression of responses, over real sockets: who gets it, what the head says, and when a block can be decoded.

use std::io::{Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use crate::harness::{PATIENCE, Running, connect, read_all, read_response, settings, start, wait_until};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Content, Exchange, FileRange, Handler};
use maitred_server::figures::Format;
use maitred_server::{CompressionSettings, Routes};
use maitred_testkit::client::Client;

const ALL: [&str; 3] = ["gzip", "br", "zstd"];

fn serve(handler: impl Handler) -> Running {
    serve_with(CompressionSettings::default(), handler)
}

fn serve_with(compression: CompressionSettings, handler: impl Handler) -> Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.compression = Some(compression);
    start(settings)
}

fn body() -> String {
    (0..500).map(|number| format!("{{\"number\": {number}, \"text\": \"some words\"}}\n")).collect()
}

fn head() -> ResponseHead {
    ResponseHead::new(Status::OK).with("Content-Type", "application/json").with("ETag", "\"tag\"")
}

fn whole(exchange: Exchange) {
    let _ = exchange.respond(head(), body());
}

fn ask(address: std::net::SocketAddr, method: &str, accept: &str) -> Client {
    let mut stream = connect(address);
    write!(stream, "{method} / HTTP/1.1\r\nHost: t\r\nAccept-Encoding: {accept}\r\n\r\n").expect("asked");
    stream
}

/// Decodes what comes, as far as it can be decoded.
enum Decoder {
    Gzip(Box<flate2::write::GzDecoder<Vec<u8>>>),
    Zstd(Box<zstd_safe::DCtx<'static>>, Vec<u8>),
    /// All that has come: its decoder keeps what is not asked for.
    Brotli(Vec<u8>),
}

impl Decoder {
    fn new(coding: &str) -> Self {
        match coding {
            "gzip" => Self::Gzip(Box::new(flate2::write::GzDecoder::new(Vec::new()))),
            "zstd" => Self::Zstd(Box::new(zstd_safe::DCtx::create()), Vec::new()),
            "br" => Self::Brotli(Vec::new()),
            other => panic!("{other}"),
        }
    }

    /// All that has been decoded.
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Gzip(decoder) => {
                decoder.write_all(bytes).expect("gzip");
                decoder.flush().expect("gzip");
                decoder.get_ref().clone()
            }
            Self::Zstd(context, out) => {
                let mut input = zstd_safe::InBuffer::around(bytes);
                loop {
                    out.reserve(1 << 17);
                    let (filled, taken) = (out.len(), input.pos());
                    let mut output = zstd_safe::OutBuffer::around_pos(out, filled);
                    context.decompress_stream(&mut output, &mut input).expect("zstd");
                    if out.len() == filled && input.pos() == taken {
                        return out.clone();
                    }
                }
            }
            Self::Brotli(all) => {
                all.extend_from_slice(bytes);
                let mut decoder = brotli::Decompressor::new(&all[..], 4096);
                let (mut out, mut part) = (Vec::new(), [0; 4096]);
                while let Ok(count @ 1..) = decoder.read(&mut part) {
                    out.extend_from_slice(&part[..count]);
                }
                out
            }
        }
    }
}

fn decoded(coding: &str, bytes: &[u8]) -> String {
    String::from_utf8(Decoder::new(coding).feed(bytes)).expect("text")
}

fn read_head(stream: &mut Client) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole response head");
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("an ASCII head")
}

/// A chunk; empty at the end of the body, `None` where the connection ended before.
fn read_chunk(stream: &mut Client) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).expect("in time") == 0 {
            return None;
        }
        line.push(byte[0]);
    }
    let length = std::str::from_utf8(&line).expect("ASCII").trim_end();
    let mut chunk = vec![0; usize::from_str_radix(length, 16).expect("a size") + 2];
    stream.read_exact(&mut chunk).expect("a whole chunk");
    chunk.truncate(chunk.len() - 2);
    Some(chunk)
}

#[test]
fn a_complete_body_is_compressed_and_has_its_length() {
    let running = serve(whole);
    for coding in ALL {
        let mut stream = ask(running.address, "GET", coding);
        for again in 0..2 {
            let (head, compressed) = read_response(&mut stream);
            assert!(head.contains(&format!("\r\nContent-Encoding: {coding}\r\n")), "{head}");
            assert!(head.contains("\r\nVary: Accept-Encoding\r\n"), "{head}");
            assert!(head.contains("\r\nETag: W/\"tag\"\r\n"), "{head}");
            assert!(!head.contains("Transfer-Encoding"), "{head}");
            assert!(compressed.len() * 5 < body().len(), "{coding}: {}", compressed.len());
            assert!(decoded(coding, &compressed) == body(), "{coding} {again}");
            if again == 0 {
                write!(stream, "GET / HTTP/1.1\r\nHost: t\r\nAccept-Encoding: {coding}\r\n\r\n")
                    .expect("asked");
            }
        }
    }
}

#[test]
fn a_client_without_accepted_codings_gets_the_body_and_vary() {
    let running = serve(whole);
    for accept in ["", "identity", "gzip;q=0", "deflate", "*;q=0"] {
        let (head, sent) = read_response(&mut ask(running.address, "GET", accept));
        assert!(!head.contains("Content-Encoding"), "{accept}: {head}");
        assert!(
            head.contains("\r\nVary: Accept-Encoding\r\n") && head.contains("\r\nETag: \"tag\"\r\n"),
            "{head}"
        );
        assert_eq!(sent, body().as_bytes(), "{accept}");
    }
}

#[test]
fn without_compression_nothing_is_said() {
    let running = crate::harness::serve(whole);
    let (head, sent) = read_response(&mut ask(running.address, "GET", "gzip"));
    assert!(!head.contains("Vary") && !head.contains("Content-Encoding"), "{head}");
    assert_eq!(sent, body().as_bytes());
}

#[test]
fn what_does_not_become_smaller_is_sent_as_it_is() {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(4000)
    .collect();
    let sent = noise.clone();
    let running = serve(move |exchange: Exchange| {
        let _ = exchange.respond(head(), noise.clone());
    });
    let (head, received) = read_response(&mut ask(running.address, "GET", "gzip"));
    assert!(!head.contains("Content-Encoding") && head.contains("\r\nVary: Accept-Encoding\r\n"), "{head}");
    assert_eq!(received, sent);
}

#[test]
fn small_bodies_and_what_the_application_refuses_are_sent_as_they_are() {
    let running = serve(|exchange: Exchange| {
        let path = exchange.request().head.path().to_vec();
        let head = match &path[..] {
            b"/small" => head(),
            b"/refused" => head().with("Content-Encoding", "identity"),
            b"/no-transform" => head().with("Cache-Control", "no-transform"),
            b"/encoded" => head().with("Content-Encoding", "x-own"),
            b"/part" => ResponseHead { status: Status::PARTIAL_CONTENT, ..head() }
                .with("Content-Range", "bytes 0-1/3"),
            _ => head().with("Content-Type", "image/png"),
        };
        let _ = exchange.respond(head, if path == b"/small" { "small".to_owned() } else { body() });
    });
    for path in ["/small", "/refused", "/no-transform", "/encoded", "/part", "/image"] {
        let mut stream = connect(running.address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
        let (head, sent) = read_response(&mut stream);
        let expected = if path == "/small" { "small".to_owned() } else { body() };
        assert_eq!(sent, expected.as_bytes(), "{path}");
        assert_eq!(head.contains("Content-Encoding"), path == "/encoded", "{path}: {head}");
        assert!(!head.contains("Vary"), "{path}: {head}");
    }
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let running = serve(whole);
    let mut stream = ask(running.address, "HEAD", "gzip");
    let head = read_head(&mut stream);
    for field in ["Content-Encoding: gzip", "Vary: Accept-Encoding", "ETag: W/\"tag\""] {
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{head}");
    }
    assert!(!head.contains("Content-Length") && !head.contains("Transfer-Encoding"), "{head}");
    write!(stream, "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").expect("asked");
    assert!(read_all(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"), "nothing stood behind the head");
}

#[test]
fn a_304_says_the_tag_that_the_client_was_told() {
    let running = serve(|exchange: Exchange| {
        let _ = exchange.respond(ResponseHead::new(Status::NOT_MODIFIED).with("ETag", "\"tag\""), "");
    });
    for (asked, expected) in [("W/\"tag\"", "W/\"tag\""), ("\"tag\"", "\"tag\"")] {
        let mut stream = connect(running.address);
        write!(stream, "GET / HTTP/1.1\r\nHost: t\r\nIf-None-Match: {asked}\r\n\r\n").expect("asked");
        let head = read_head(&mut stream);
        assert!(head.contains(&format!("\r\nETag: {expected}\r\n")), "{asked}: {head}");
    }
}

/// Sends an event for each message of the test, and ends when the test drops the sender.
fn events(told: Receiver<String>) -> impl Handler {
    let told = Mutex::new(told);
    move |exchange: Exchange| {
        let head = ResponseHead::new(Status::OK).with("Content-Type", "text/event-stream");
        let mut stream = exchange.start(head, None).expect("a client");
        while let Ok(event) = told.lock().expect("one client").recv_timeout(PATIENCE) {
            stream.send(event).expect("a client");
        }
        stream.finish();
    }
}

#[test]
fn every_event_can_be_decoded_before_the_next_one_is_there() {
    for coding in ALL {
        let (tell, told) = mpsc::channel();
        let running = serve(events(told));
        let mut stream = ask(running.address, "GET", coding);
        let (mut decoder, mut sent) = (Decoder::new(coding), String::new());
        for number in 0..20 {
            let event = format!("data: event {number}\n\n");
            sent.push_str(&event);
            // The next one is not made before this one was decoded.
            tell.send(event).expect("the handler listens");
            if number == 0 {
                let head = read_head(&mut stream);
                assert!(head.contains(&format!("\r\nContent-Encoding: {coding}\r\n")), "{head}");
                assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"), "{head}");
            }
            let chunk = read_chunk(&mut stream).expect("an event");
            assert_eq!(String::from_utf8(decoder.feed(&chunk)).expect("text"), sent, "{coding}");
        }
        drop(tell);
        let last = read_chunk(&mut stream).expect("the end of the coding");
        assert!(!last.is_empty(), "{coding}");
        decoder.feed(&last);
        assert_eq!(read_chunk(&mut stream), Some(Vec::new()), "{coding}: the end of the body");
    }
}

#[test]
fn a_stream_to_http_1_0_ends_with_the_connection() {
    let running = serve(|exchange: Exchange| {
        let mut stream = exchange.start(head(), None).expect("a client");
        stream.send(body()).expect("a client");
        stream.finish();
    });
    let mut stream = connect(running.address);
    write!(stream, "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
    let head = read_head(&mut stream);
    assert!(head.contains("\r\nContent-Encoding: gzip\r\n") && !head.contains("chunked"), "{head}");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end");
    assert!(decoded("gzip", &rest) == body());
}

#[test]
fn a_body_shorter_than_declared_is_cut_where_it_ended_and_a_longer_one_at_its_length() {
    let running = serve(|exchange: Exchange| {
        let more = exchange.request().head.path() == b"/longer";
        let length = if more { body().len() - 10 } else { body().len() + 10 };
        let mut stream = exchange.start(head(), Some(length as u64)).expect("a client");
        let _ = stream.send(body());
        stream.finish();
    });
    for path in ["/shorter", "/longer"] {
        let mut stream = connect(running.address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
        let head = read_head(&mut stream);
        assert!(head.contains("\r\nContent-Encoding: gzip\r\n"), "{head}");
        let mut decoder = Decoder::new("gzip");
        let mut received = Vec::new();
        let ended = loop {
            match read_chunk(&mut stream) {
                Some(chunk) if chunk.is_empty() => break true,
                Some(chunk) => received = decoder.feed(&chunk),
                None => break false,
            }
        };
        assert_eq!(ended, path == "/longer", "{path}: whether the body has an end");
        let expected = if path == "/longer" { body().len() - 10 } else { body().len() };
        assert!(received == body().as_bytes()[..expected], "{path}");
    }
}

#[test]
fn an_aborted_stream_has_its_head_and_no_end() {
    let running = serve(|exchange: Exchange| {
        let stream = exchange.start(head(), None).expect("a client");
        stream.abort("tried");
    });
    let mut stream = ask(running.address, "GET", "gzip");
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(read_chunk(&mut stream), None);
}

#[test]
fn an_empty_stream_and_one_without_a_length_that_ends_at_once_are_whole() {
    let running = serve(|exchange: Exchange| {
        let empty = exchange.request().head.path() == b"/empty";
        let stream = exchange.start(head(), None).expect("a client");
        if empty {
            stream.finish();
        } else {
            let _ = stream.finish_with(maitred_runtime::Last::Given("short".into()));
        }
    });
    for (path, expected) in [("/empty", ""), ("/short", "short")] {
        let mut stream = connect(running.address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
        let (head, sent) = read_response(&mut stream);
        assert!(
            !head.contains("Content-Encoding") && head.contains("\r\nContent-Length: "),
            "{path}: {head}"
        );
        assert_eq!(sent, expected.as_bytes());
    }
}

#[test]
fn a_file_is_sent_as_it_is_and_compressed_within_a_stream() {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(body().as_bytes()).expect("written");
    let range = FileRange { file: Arc::new(file), offset: 0, length: body().len() as u64 };
    let running = serve(move |exchange: Exchange| {
        if exchange.request().head.path() == b"/whole" {
            let _ = exchange.respond(head(), Content::File(range.clone()));
        } else {
            let mut stream = exchange.start(head(), None).expect("a client");
            stream.send("first\n").expect("a client");
            stream.send(Content::File(range.clone())).expect("a client");
            stream.finish();
        }
    });
    let mut stream = connect(running.address);
    write!(stream, "GET /whole HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
    let (head, sent) = read_response(&mut stream);
    assert!(!head.contains("Content-Encoding") && sent == body().as_bytes(), "{head}");
    write!(stream, "GET /stream HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n").expect("asked");
    read_head(&mut stream);
    let mut decoder = Decoder::new("gzip");
    let mut received = Vec::new();
    while let Some(chunk) = read_chunk(&mut stream).filter(|chunk| !chunk.is_empty()) {
        received = decoder.feed(&chunk);
    }
    assert!(String::from_utf8(received).expect("text") == format!("first\n{}", body()));
}

#[test]
fn streams_beyond_the_memory_are_sent_as_they_are() {
    let (tell, told) = mpsc::channel();
    let settings = CompressionSettings { memory: 1000, ..CompressionSettings::default() };
    let running = serve_with(settings, events(told));
    let mut stream = ask(running.address, "GET", "gzip");
    tell.send("data: 1\n\n".to_owned()).expect("the handler listens");
    let head = read_head(&mut stream);
    assert!(!head.contains("Content-Encoding") && head.contains("\r\nVary: Accept-Encoding\r\n"), "{head}");
    assert_eq!(read_chunk(&mut stream).expect("an event"), b"data: 1\n\n");
}

#[test]
fn what_was_compressed_is_counted() {
    let running = serve(whole);
    read_response(&mut ask(running.address, "GET", "br"));
    let line = |name: &str, coding: &str| {
        let start = format!("maitred_compressed_{name}{{coding=\"{coding}\"}} ");
        let metrics = running.server.figures().page(Format::Prometheus);
        let value = metrics.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned);
        value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse::<u64>().expect("a number")
    };
    wait_until("the response is counted", || line("responses_total", "br") == 1);
    assert_eq!(line("input_bytes_total", "br"), body().len() as u64);
    assert!((1..body().len() as u64 / 5).contains(&line("output_bytes_total", "br")));
    assert_eq!(line("responses_total", "gzip"), 0);
}
