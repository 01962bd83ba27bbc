//! Chunked bodies. Input: the bytes behind the head of a chunked request.
//!
//! However the bytes are cut the events are the same; a body that is accepted is the one a plain decoder
//! finds; sent again by our own sender it is read as the same body.
#![no_main]

mod events;

use events::{Seen, events, events_of_any_cut};
use libfuzzer_sys::fuzz_target;
use maitred_h1::Sender;
use maitred_http::{ResponseHead, Status, Version};

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fuzz_target!(|input: &[u8]| {
    let stream = [HEAD, input].concat();
    let seen = events_of_any_cut(&stream).0;
    if let Some(body) = first_body(&seen) {
        assert_eq!(reference(input).as_ref(), Some(&body), "accepted a body that is none");
        check_sent_again(&body, input.len());
    }
});

/// The first request's body, if it ended.
fn first_body(seen: &[Seen]) -> Option<Vec<u8>> {
    let end = seen.iter().position(|seen| matches!(seen, Seen::End))?;
    let mut body = Vec::new();
    for seen in &seen[..end] {
        if let Seen::Body(bytes) = seen {
            body.extend_from_slice(bytes);
        }
    }
    Some(body)
}

/// RFC 9112 §7.1.3 as it stands there.
fn reference(mut input: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = input.windows(2).position(|two| two == b"\r\n")?;
        let behind = input[..end].iter().position(|byte| b"; \t".contains(byte)).unwrap_or(end);
        let (line, extensions) = (std::str::from_utf8(&input[..behind]).ok()?, &input[behind..end]);
        if !are_extensions(extensions) {
            return None;
        }
        if line.starts_with('+') {
            return None;
        }
        let size = usize::try_from(u64::from_str_radix(line, 16).ok()?).ok()?;
        input = &input[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(input.get(..size)?);
        input = input.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

/// RFC 9112 §7.1.1, from the left, piece by piece.
fn are_extensions(mut rest: &[u8]) -> bool {
    let token = |text: &[u8]| {
        let is = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        text.iter().position(|byte| !is(byte)).unwrap_or(text.len())
    };
    while !rest.is_empty() {
        let Some(behind) = blanks(rest).strip_prefix(b";") else { return false };
        rest = blanks(behind);
        let name = token(rest);
        if name == 0 {
            return false;
        }
        rest = &rest[name..];
        if let Some(value) = blanks(rest).strip_prefix(b"=") {
            let value = blanks(value);
            let length = match value.strip_prefix(b"\"") {
                Some(text) => match quoted(text) {
                    Some(length) => length + 1,
                    None => return false,
                },
                None => token(value),
            };
            if length == 0 {
                return false;
            }
            rest = &value[length..];
        }
    }
    true
}

fn blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !b" \t".contains(byte)).unwrap_or(text.len());
    &text[end..]
}

/// The length of a quoted string behind its first mark, the last one included.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if text.get(at + 1)?.is_ascii_control() && text[at + 1] != b'\t' => return None,
            b'\\' => at += 2,
            byte if byte.is_ascii_control() && *byte != b'\t' => return None,
            _ => at += 1,
        }
    }
}

fn check_sent_again(body: &[u8], seed: usize) {
    let mut out = Vec::new();
    let mut sender = Sender::new(Version::Http11, false, true);
    let sent = sender.send_head(&ResponseHead::new(Status::OK), None, &[b'd'; 29], &mut out);
    assert!(sent.is_ok());
    let head = out.len();
    for part in body.chunks(1 + seed % 97) {
        let plan = sender.send_data(part.len() as u64, &mut out);
        assert_eq!((plan.allowed, plan.surplus), (part.len() as u64, 0));
        out.extend_from_slice(part);
        out.extend_from_slice(plan.suffix);
    }
    assert!(sender.finish(None, &mut out).reusable);
    let (seen, consumed) = events(&[HEAD, &out[head..]].concat(), usize::MAX);
    assert_eq!((first_body(&seen).as_deref(), consumed), (Some(body), HEAD.len() + out.len() - head));
}
