//! Redirects from http to https, before a filter asks the client for a secret in clear text.

use crate::connection::wire::Wire;
use std::borrow::Cow;

use maitred_filters::Answer;
use maitred_http::{Method, RequestHead, ResponseHead, Status};

use super::Context;
use super::stream::Stream;
use crate::destination::Destination;

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
pub(super) fn redirect(wire: &Wire, context: &Context<'_>, stream: &Stream) -> Option<Answer> {
    let listening = context.group.groups.listeners.get(wire.listener as usize)?;
    let port = listening.redirect()?;
    let head = &stream.request.head;
    if wire.client_of(stream).secure || matches!(stream.destination, Destination::Health) {
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
