//! Admission of requests, before their filters: a WebSocket must be asked for rightly, a client may make so many requests, connections
//! may hold so much memory, and where a listener says so, http is redirected to https before a filter asks for a secret.

use std::borrow::Cow;

use maitred_filters::Answer;
use maitred_h1::HeadFacts;
use maitred_http::{BodyLength, Method, RequestHead, ResponseHead, Status};
use maitred_limits::Rule;

use crate::destination::Destination;
use crate::link::{Link, Received};
use crate::response::Response;
use crate::stages::{refuse, respond};
use crate::stream::Stream;
use crate::stream::websocket::{Objection, VERSION, asked};

/// Reason of a refusal, and the seconds until another request may be admitted.
pub struct NotNow {
    status: Status,
    text: &'static str,
    seconds: u64,
}

/// Admits the request or refuses it: with 503 where memory is short (`buffer-budget` and `head-budget`, which are on by default), with
/// 429 or 503 by limits on clients, of which none is set by default. Costs two loads where no limit is set.
///
/// # Errors
/// The refusal.
pub fn admit<'a>(link: &impl Link<'a>, stream: &Stream) -> Result<(), NotNow> {
    let site = link.site();
    let peer = link.client_of(stream).peer;
    if site.guard.budget.is_over() && !stream.destination.is_engine() {
        site.guard.applied.note(Rule::BufferBudget, peer, &site.log);
        let text = "503 Service Unavailable: the server is short of memory\n";
        return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
    }
    if stream.queue.is_none() && link.lacks_room(stream) {
        let text = "503 Service Unavailable: the server is short of memory\n";
        return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
    }
    site.guard.request(peer, link.now(), &site.log).map_err(|seconds| {
        let text = "429 Too Many Requests: this client makes more requests than it may (--client-rate)\n";
        NotNow { status: Status::TOO_MANY_REQUESTS, text, seconds }
    })
}

/// Answers with 429 or 503. The connection stays after a 429, unless the unwanted body of the request is still to
/// come.
pub fn answer_not_now<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, refusal: NotNow) -> Received {
    let NotNow { status, text, seconds } = refusal;
    let is_complete = stream.facts.is_some_and(|facts| facts.complete);
    let response = Response::text(status, text)
        .with("Retry-After", seconds.to_string())
        .keep_alive(is_complete && status == Status::TOO_MANY_REQUESTS);
    respond(link, stream, response)
}

/// Checks whether a request of HTTP/1.1 or an extended CONNECT asks for a WebSocket that its handler may accept.
/// A malformed request is answered.
pub fn offer_websocket<'a>(
    link: &mut impl Link<'a>,
    mut stream: Box<Stream>,
) -> Result<Box<Stream>, Received> {
    let is_framed = stream.websocket;
    let facts = stream.facts.unwrap_or_default();
    let asks = is_framed || facts.upgrade && names(&stream.request.head, "upgrade", b"websocket");
    if !asks {
        return Ok(stream);
    }
    let takes = stream.destination.application().is_some_and(|handler| handler.takes_websockets());
    if !takes || link.site().websockets.is_none() {
        if !is_framed {
            // A server may ignore the field (RFC 9110 §7.8).
            return Ok(stream);
        }
        let reason = "there is no WebSocket here";
        return Err(refuse(link, stream, Status::NOT_IMPLEMENTED, reason));
    }
    match asked(&stream.request.head, facts, is_framed) {
        Ok(offer) => {
            let head = &mut stream.request.head;
            // Filters, rules and the log see the same request with every protocol.
            (head.method, head.body) = (Method::Get, BodyLength::Empty);
            stream.websocket = true;
            stream.request.websocket = true;
            stream.offer = Some(Box::new(offer));
            // With or without a WebSocket, no other request is read behind this one.
            stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
            Ok(stream)
        }
        Err(Objection::Version) => {
            link.site().websocket_counters.note_refused();
            Err(answer_version(link, stream))
        }
        Err(Objection::Bad(reason)) => {
            link.site().websocket_counters.note_refused();
            Err(refuse(link, stream, Status::BAD_REQUEST, reason))
        }
    }
}

/// Answers with the supported version (RFC 6455 §4.4).
fn answer_version<'a>(link: &mut impl Link<'a>, stream: Box<Stream>) -> Received {
    const TEXT: &str = "426 Upgrade Required: this server speaks version 13 of WebSocket\n";
    let response = Response::text(Status::UPGRADE_REQUIRED, TEXT)
        .with("Sec-WebSocket-Version", VERSION)
        .keep_alive(false);
    respond(link, stream, response)
}

/// Whether a list field contains this name, in any case.
fn names(head: &RequestHead, field: &str, name: &[u8]) -> bool {
    let mut values = head.fields.all(field).flat_map(|value| value.split(|byte| *byte == b','));
    values.any(|value| value.trim_ascii().eq_ignore_ascii_case(name))
}

/// The target of the redirect, with https at `port`; none if the request names no host or path.
pub fn https_address(head: &RequestHead, port: u16) -> Option<Vec<u8>> {
    let host = without_port(head.authority());
    if host.is_empty() || head.method == Method::Connect || !head.path().starts_with(b"/") {
        return None;
    }
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    Some([b"https://", host, port.as_bytes(), head.path_and_query()].concat())
}

/// The host of an authority (RFC 3986 §3.2.2): an IPv6 address has its colons in brackets.
fn without_port(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(place) if authority[place] == b':' => &authority[..place],
        _ => authority,
    }
}

/// Returns the redirect of a request, if any. Health checks get none: a balancer asks without TLS. Requests that
/// came to the proxy by TLS get none, since the redirect would never end.
pub fn redirect<'a>(link: &impl Link<'a>, stream: &Stream) -> Option<Answer> {
    let port = link.redirect_port()?;
    let head = &stream.request.head;
    if link.client_of(stream).secure || matches!(stream.destination, Destination::Health) {
        return None;
    }
    let answer = |head| Answer { head, body: Cow::Borrowed(b"".as_slice()), suspicion: None };
    Some(match https_address(head, port) {
        Some(location) => answer(ResponseHead::new(Status::PERMANENT_REDIRECT).with("Location", location)),
        // HTTP/1.0 without Host, or `OPTIONS *`: the request has no address for a redirect.
        None => answer(ResponseHead::new(Status::BAD_REQUEST)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_another_scheme_and_the_port_of_https() {
        for (authority, target, port, expected) in [
            ("shop.example", "/a?b=1", 443, Some("https://shop.example/a?b=1")),
            ("shop.example:80", "/", 443, Some("https://shop.example/")),
            ("shop.example:8080", "/a", 8443, Some("https://shop.example:8443/a")),
            ("[::1]:80", "/", 443, Some("https://[::1]/")),
            ("[::1]", "//evil.example", 8443, Some("https://[::1]:8443//evil.example")),
            ("", "/", 443, None),
            ("shop.example", "*", 443, None),
        ] {
            let mut head = RequestHead::default();
            head.authority = head.fields.adopt(authority.as_bytes()).unwrap_or_default();
            head.path_and_query = head.fields.adopt(target.as_bytes()).unwrap_or_default();
            let address = https_address(&head, port).map(|address| String::from_utf8(address).unwrap());
            assert_eq!(address.as_deref(), expected);
        }
    }
}
