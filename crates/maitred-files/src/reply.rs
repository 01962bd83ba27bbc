//! The answer to one request for a resource: which form, under which conditions, which ranges.

use std::sync::Arc;

use maitred_http::coding::{Accepted, Coding};
use maitred_http::conditional::{self, Validators, Verdict};
use maitred_http::multipart::{self, Parts};
use maitred_http::range::{self, ByteRange, Ranges};
use maitred_http::{FieldSet, Method, RequestHead, ResponseHead, Status};
use maitred_runtime::Content;

use crate::partial;
use crate::resource::{Resource, Variant};
use crate::{Answer, Body, refusal};

/// The answer to a GET or HEAD.
pub(crate) fn answer(resource: &Resource, request: &RequestHead) -> Answer {
    let asked = Asked::of(&request.fields);
    let variant = if asked.codings && resource.varies() {
        let accepted = Accepted::of(request.fields.all("accept-encoding"));
        resource.variant(accepted.choose(Coding::COMPRESSED, |coding| resource.has(coding)))
    } else {
        resource.original()
    };
    answer_with(variant, &asked, request)
}

/// The same where it is known in which form.
pub(crate) fn answer_in(resource: &Resource, coding: Coding, request: &RequestHead) -> Answer {
    answer_with(resource.variant(coding), &Asked::of(&request.fields), request)
}

fn answer_with(variant: &Variant, asked: &Asked, request: &RequestHead) -> Answer {
    if !asked.conditions {
        return whole(variant, &request.method);
    }
    let validators = Validators { etag: Some(&variant.entity_tag), last_modified: variant.last_modified };
    match conditional::evaluate(&request.method, &request.fields, &validators) {
        Verdict::NotModified => {
            Answer { head: Arc::clone(&variant.not_modified), length: 0, body: Body::Empty, note: None }
        }
        Verdict::PreconditionFailed => refusal::precondition_failed(&request.method),
        Verdict::Proceed { ranges: true } if variant.has_ranges => ranged(variant, request),
        Verdict::Proceed { .. } => whole(variant, &request.method),
    }
}

/// What the request asks about a representation, found in one pass over its fields.
#[derive(Default)]
struct Asked {
    /// There is an `Accept-Encoding`.
    codings: bool,
    /// There is a `Range` or a condition (every condition's name starts with `If-`).
    conditions: bool,
}

impl Asked {
    fn of(fields: &FieldSet) -> Self {
        let mut asked = Self::default();
        for (name, _) in fields.iter() {
            match name {
                [b'i' | b'I', b'f' | b'F', b'-', ..] => asked.conditions = true,
                [b'r' | b'R', ..] => asked.conditions |= name.eq_ignore_ascii_case(b"range"),
                [b'a' | b'A', ..] => asked.codings |= name.eq_ignore_ascii_case(b"accept-encoding"),
                _ => {}
            }
        }
        asked
    }
}

fn whole(variant: &Variant, method: &Method) -> Answer {
    let body = if *method == Method::Head { Body::Empty } else { Body::One(variant.whole()) };
    Answer { head: Arc::clone(&variant.full), length: variant.length, body, note: None }
}

/// The answer to a GET with a `Range` field that counts.
fn ranged(variant: &Variant, request: &RequestHead) -> Answer {
    let field = request.fields.first("range").unwrap_or_default();
    match range::parse(field, variant.length) {
        Ranges::Ignored => whole(variant, &request.method),
        Ranges::Unsatisfiable => unsatisfiable(variant),
        Ranges::Satisfiable(ranges) => match ranges[..] {
            [] => whole(variant, &request.method),
            [range] => single(variant, range),
            _ => several(variant, &ranges),
        },
    }
}

fn unsatisfiable(variant: &Variant) -> Answer {
    let head = refusal::text_head(Status::RANGE_NOT_SATISFIABLE)
        .with("Content-Range", multipart::unsatisfied_range(variant.length));
    refusal::text(&Method::Get, &Arc::new(head), "416 Range Not Satisfiable\n")
}

fn single(variant: &Variant, range: ByteRange) -> Answer {
    let mut head = ResponseHead::clone(&variant.full);
    head.status = Status::PARTIAL_CONTENT;
    head.fields.push("Content-Range", multipart::content_range(range, variant.length));
    let content = variant.part(range.first, range.len());
    Answer { head: Arc::new(head), length: range.len(), body: Body::One(content), note: None }
}

fn several(variant: &Variant, ranges: &[ByteRange]) -> Answer {
    let parts = Parts::new(Some(variant.media_type), variant.length, ranges, partial::boundary());
    let mut head = ResponseHead::clone(&variant.full);
    head.status = Status::PARTIAL_CONTENT;
    head.fields.remove("Content-Type");
    head.fields.push("Content-Type", parts.content_type());
    let mut body = Vec::with_capacity(2 * ranges.len() + 1);
    for (part_head, range) in parts.iter() {
        body.push(Content::Bytes(part_head.to_vec()));
        body.push(variant.part(range.first, range.len()));
    }
    body.push(Content::Bytes(parts.closing().to_vec()));
    Answer { head: Arc::new(head), length: parts.content_length(), body: Body::Many(body), note: None }
}
