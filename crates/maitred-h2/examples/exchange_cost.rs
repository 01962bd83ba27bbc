//! The cost of an exchange: nanoseconds per request received and response sent, without bodies' bytes.
//!
//! `cargo run --release -p maitred-h2 --example exchange_cost`
#![expect(clippy::print_stdout, clippy::panic, reason = "the figures are its purpose")]

use std::hint::black_box;
use std::time::Instant;

use maitred_h2::hpack::Encoder;
use maitred_h2::{Connection, Event, Settings};
use maitred_http::{RequestHead, ResponseHead, Status};

const BARE: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":path", "/1k.html"), (":authority", "127.0.0.1:8000")];

const BROWSER: &[(&str, &str)] = &[
    (":method", "GET"),
    (":authority", "www.example.com"),
    (":scheme", "https"),
    (":path", "/static/css/site.css?v=12"),
    ("sec-ch-ua", "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\", \"Google Chrome\";v=\"140\""),
    ("sec-ch-ua-mobile", "?0"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("accept", "text/css,*/*;q=0.1"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-dest", "style"),
    ("referer", "https://www.example.com/articles/2026/11/a-long-title-of-an-article"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
    ("cookie", "session=0123456789abcdef0123456789abcdef"),
    ("cookie", "theme=dark"),
    ("priority", "u=0"),
];

/// Requests of one connection.
const REQUESTS: u32 = 1_000;

/// Frames of requests on the streams 1, 3, 5 ...
fn requests(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for number in 0..REQUESTS {
        let start = bytes.len();
        bytes.extend_from_slice(&[0, 0, 0, 1, 5]);
        bytes.extend_from_slice(&(2 * number + 1).to_be_bytes());
        let block = bytes.len();
        encoder.begin(&mut bytes);
        fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut bytes));
        let length = ((bytes.len() - block) as u16).to_be_bytes();
        if let Some(place) = bytes.get_mut(start + 1..start + 3) {
            place.copy_from_slice(&length);
        }
    }
    bytes
}

/// The best of many short runs: the noise of a shared machine only ever adds.
fn measure(title: &str, fields: &[(&str, &str)], response: &ResponseHead) {
    let (bytes, mut head, mut control) = (requests(fields), RequestHead::default(), Vec::new());
    let mut out = Vec::with_capacity(1 << 20);
    let best = (0..300)
        .map(|_| {
            let mut connection = Connection::new(Settings::default());
            let (mut rest, start) = (&bytes[..], Instant::now());
            out.clear();
            loop {
                match connection.poll(black_box(rest), 0, &mut head, &mut control) {
                    Ok((used, Event::Head { stream, .. })) => {
                        rest = rest.get(used..).unwrap_or_default();
                        connection.put_head(stream, black_box(response), false, &mut out);
                        connection.put_data(stream, 1024, true, &mut out);
                    }
                    Ok((_, Event::NeedMore)) => break,
                    other => panic!("{other:?}"),
                }
            }
            start.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
        })
        .fold(f64::INFINITY, f64::min);
    let size = |bytes: usize| bytes as f64 / f64::from(REQUESTS);
    println!("{title:<40} {:>7.1} bytes in {:>7.1} out {best:>8.1} ns", size(bytes.len()), size(out.len()));
}

fn main() {
    let file = ResponseHead::new(Status::OK)
        .with("Content-Type", "text/html")
        .with("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        .with("ETag", "\"5f3a-1c2d3e4f5a6b\"")
        .with("Content-Length", "1024")
        .with("Server", "maitred")
        .with("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
    measure("h2load, a static file", BARE, &file);
    measure("a browser, a static file", BROWSER, &file);
}
