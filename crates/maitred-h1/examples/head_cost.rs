//! The cost of a head: nanoseconds per request head parsed and per response head written.
//!
//! `cargo run --release -p maitred-h1 --example head_cost`
#![expect(clippy::print_stdout, clippy::indexing_slicing, reason = "the figures are its purpose")]

use std::hint::black_box;
use std::time::Instant;

use maitred_h1::{Event, Limits, Receiver, Sender};
use maitred_http::{RequestHead, ResponseHead, Status, Version};

const BARE: &[u8] = b"GET /1k.html HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n";

const BROWSER: &[u8] = b"GET /static/css/site.css?v=12 HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    Connection: keep-alive\r\n\
    sec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\", \"Google Chrome\";v=\"140\"\r\n\
    sec-ch-ua-mobile: ?0\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n\
    sec-ch-ua-platform: \"Linux\"\r\n\
    Accept: text/css,*/*;q=0.1\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Dest: style\r\n\
    Referer: https://www.example.com/articles/2026/11/a-long-title-of-an-article\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
    If-None-Match: \"5f3a-1c2d3e4f5a6b\"\r\n\
    If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";

const ROUNDS: u32 = 2_000;

/// The best of many short runs: the noise of a shared machine only ever adds.
fn measure(title: &str, bytes: usize, mut work: impl FnMut()) {
    let best = (0..1_000)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{title:<44} {bytes:>5} bytes {best:>8.1} ns");
}

fn parse(title: &str, bytes: &[u8], cut: usize) {
    let mut receiver = Receiver::new();
    let mut head = RequestHead::default();
    let limits = Limits::default();
    measure(title, bytes.len(), || {
        if cut > 0 {
            let first = receiver.poll_event(black_box(&bytes[..cut]), &mut head, &limits);
            assert!(first.is_ok_and(|step| matches!(step.event, Event::NeedMore)));
        }
        let whole = receiver.poll_event(black_box(bytes), &mut head, &limits);
        assert!(whole.is_ok_and(|step| matches!(step.event, Event::Head(_))));
        black_box(&head);
    });
}

fn write(title: &str, head: &ResponseHead, length: Option<u64>) {
    let mut out = Vec::with_capacity(1024);
    let mut work = || {
        out.clear();
        let mut sender = Sender::new(Version::Http11, false, true);
        let report = sender.send_head(black_box(head), length, b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
        black_box(report.is_ok());
        black_box(sender.send_data(1024, &mut out));
        black_box(sender.finish(None, &mut out));
        out.len()
    };
    let bytes = work();
    measure(title, bytes, || {
        black_box(work());
    });
}

fn main() {
    parse("request head of wrk", BARE, 0);
    parse("request head of a browser", BROWSER, 0);
    parse("the same in two pieces", BROWSER, 600);
    let file = ResponseHead::new(Status::OK)
        .with("Content-Type", "text/html")
        .with("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        .with("ETag", "\"5f3a-1c2d3e4f5a6b\"")
        .with("Accept-Ranges", "bytes");
    write("response head of a static file", &file, Some(1024));
    let page = ResponseHead::new(Status::OK)
        .with("Content-Type", "text/html; charset=utf-8")
        .with("Cache-Control", "no-store")
        .with("Set-Cookie", "session=0123456789abcdef0123456789abcdef; HttpOnly; Path=/; SameSite=Lax");
    write("response head of a page, chunked", &page, None);
}
