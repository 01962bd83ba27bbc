//! Challenges of a certificate authority by HTTP (RFC 8555 §8.3), which the engine answers before anything else has a say.
//!
//! Promises: neither hosts, redirects, filters, limits nor handlers see such a request. Without `acme` other requests cost one load, with it the
//! comparison of the path. A token that is not known is the application's.

use maitred_http::{Method, ResponseHead, Status};
use maitred_tls::is_token;

use crate::link::Link;
use crate::response::Response;
use crate::stream::Stream;

/// The folder of the paths (RFC 8555 §8.3).
const FOLDER: &[u8] = b"/.well-known/acme-challenge/";

/// The answer to the request, if the request asks for the key authorisation of a challenge that is open.
pub fn answer_challenge<'a>(link: &impl Link<'a>, stream: &Stream) -> Option<Response> {
    let challenges = link.site().challenges.as_ref()?;
    let head = &stream.request.head;
    let token = head.path().strip_prefix(FOLDER)?;
    if !is_token(token) || !matches!(head.method, Method::Get | Method::Head) {
        return None;
    }
    let token = std::str::from_utf8(token).ok()?;
    let mut found = None;
    // A file is read.
    link.beside_interpreter(&mut || found = challenges.http(token));
    let head = ResponseHead::new(Status::OK)
        .with("Content-Type", "application/octet-stream")
        .with("Cache-Control", "no-store");
    found.map(|text| Response::with_content(head, text.into()))
}
