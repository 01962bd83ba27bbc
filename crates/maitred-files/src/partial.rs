//! Ranges of an application's response (RFC 9110 §14): the parts of a complete body that a client asks for.
//!
//! An application allows it by `Accept-Ranges: bytes` in a 200 to GET. Then the body has to be there at once, in memory
//! or as a file; a body that comes in parts is sent as a whole, because its end may never come.
//!
//! `If-Range` holds for a strong entity tag only: whether the content changed twice within the second of its
//! `Last-Modified`, only the application could know (§8.8.2.2). Other conditions are the application's.

use std::hash::{BuildHasher, Hasher, RandomState};

use maitred_http::conditional::{self, Validators};
use maitred_http::multipart::{self, Parts};
use maitred_http::range::{self, ByteRange, Ranges};
use maitred_http::{Method, RequestHead, ResponseHead, Status};
use maitred_runtime::{Content, FileRange, Owner};

/// A part of a body in memory up to this size is copied; a longer one keeps the whole.
const MAX_COPIED: u64 = 16 * 1024;

/// Whether the parts that the client asks for may be taken out of the response with this head.
pub fn is_wanted(request: &RequestHead, head: &ResponseHead) -> bool {
    head.status == Status::OK
        && head.fields.first("accept-ranges").is_some_and(|units| units.eq_ignore_ascii_case(b"bytes"))
        && request.method == Method::Get
        && request.fields.contains("range")
        && !head.fields.contains("content-range")
        && conditional::ranges_count(&request.fields, &validators(head))
}

fn validators(head: &ResponseHead) -> Validators<'_> {
    let etag = head.fields.first("etag").and_then(|tag| str::from_utf8(tag).ok());
    Validators { etag, last_modified: None }
}

/// The response with the parts in the place of a whole body.
pub struct Partial {
    /// The head of the response.
    pub head: ResponseHead,
    /// The length of its body, in bytes.
    pub length: u64,
    /// The parts in this order, at least one.
    pub parts: Vec<Content>,
}

/// The parts of `body` that the client asks for.
///
/// # Errors
/// It gets all of it, which comes back.
pub fn parts(request: &RequestHead, head: &ResponseHead, body: Content) -> Result<Partial, Content> {
    let total = body.len();
    match range::parse(request.fields.first("range").unwrap_or_default(), total) {
        Ranges::Ignored => Err(body),
        Ranges::Unsatisfiable => Ok(unsatisfiable(head, total)),
        Ranges::Satisfiable(ranges) => {
            // Several parts keep the same bytes.
            let body = match body {
                Content::Bytes(bytes) => Content::Owned(Owner::new(bytes)),
                other => other,
            };
            match ranges[..] {
                [] => Err(body),
                [range] => {
                    let mut head = partial(head);
                    head.fields.set("Content-Range", multipart::content_range(range, total));
                    Ok(Partial { head, length: range.len(), parts: vec![part(&body, range)] })
                }
                _ => Ok(several(head, &body, &ranges)),
            }
        }
    }
}

/// The head of a 206, which has all of the 200's fields but the length (RFC 9110 §15.3.7).
fn partial(head: &ResponseHead) -> ResponseHead {
    let mut head =
        ResponseHead { status: Status::PARTIAL_CONTENT, reason: None, fields: head.fields.clone() };
    head.fields.remove("Content-Length");
    head
}

fn several(head: &ResponseHead, body: &Content, ranges: &[ByteRange]) -> Partial {
    let content_type = head.fields.first("content-type").and_then(|value| str::from_utf8(value).ok());
    let parts = Parts::new(content_type, body.len(), ranges, boundary());
    let mut head = partial(head);
    head.fields.set("Content-Type", parts.content_type());
    let mut contents = Vec::with_capacity(2 * ranges.len() + 1);
    for (part_head, range) in parts.iter() {
        contents.push(Content::Bytes(part_head.to_vec()));
        contents.push(part(body, range));
    }
    contents.push(Content::Bytes(parts.closing().to_vec()));
    Partial { head, length: parts.content_length(), parts: contents }
}

/// 416 with the length of the body (RFC 9110 §15.5.17). Fields that describe the content go; those for the client or
/// for proxies stay.
fn unsatisfiable(head: &ResponseHead, total: u64) -> Partial {
    const TEXT: &str = "416 Range Not Satisfiable\n";
    let mut head =
        ResponseHead { status: Status::RANGE_NOT_SATISFIABLE, reason: None, fields: head.fields.clone() };
    let of_content = [
        "Content-Disposition",
        "Content-Encoding",
        "Content-Language",
        "Content-Length",
        "Content-Location",
        "Content-Digest",
        "Repr-Digest",
        "ETag",
        "Last-Modified",
        "Expires",
        "Cache-Control",
    ];
    for name in of_content {
        head.fields.remove(name);
    }
    head.fields.set("Content-Type", "text/plain; charset=utf-8");
    head.fields.set("Content-Range", multipart::unsatisfied_range(total));
    Partial { head, length: TEXT.len() as u64, parts: vec![Content::Static(TEXT.as_bytes())] }
}

fn part(body: &Content, range: ByteRange) -> Content {
    if let Content::File(file) = body {
        let file = file.clone();
        return Content::File(FileRange { offset: file.offset + range.first, length: range.len(), ..file });
    }
    let slice = Slice { whole: body.clone(), first: range.first as usize, end: range.last as usize + 1 };
    if range.len() <= MAX_COPIED {
        Content::Bytes(slice.as_ref().to_vec())
    } else {
        Content::Owned(Owner::new(slice))
    }
}

struct Slice {
    whole: Content,
    first: usize,
    end: usize,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.whole.bytes().unwrap_or_default();
        bytes.get(self.first..self.end).unwrap_or_default()
    }
}

/// 128 bits that cannot be foretold: SipHash of nothing under keys that the standard library takes
/// from the system's random source once per thread and changes for every state.
pub fn boundary() -> u128 {
    let word = || u128::from(RandomState::new().build_hasher().finish());
    word() << 64 | word()
}
