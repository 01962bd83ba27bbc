//! The head of an outgoing request: checked, `Host` first, and with the framing that is decided here.
//!
//! Leaves out: the body, which the returned [`Sender`] frames, and fields that a client may add (`User-Agent`, `Accept`).

use maitred_http::authority::is_authority_with_host;
use maitred_http::body::content_length;
use maitred_http::fields::{is_token, is_value};
use maitred_http::{FieldSet, Method};

use crate::error::HeadError;
use crate::hop_by_hop::{TRAILER, hop_by_hop, names_close};
use crate::receiver::{Asked, authority_of};
use crate::sender::{Sender, all_or_nothing, field, write_length};

/// A request as an application declares it, before framing.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target in the form that the method and the server want (RFC 9112 §3.2), percent-encoded.
    pub target: &'a [u8],
    /// `host[:port]`, the value of `Host` unless that is among the fields or the target is of absolute form.
    pub authority: &'a [u8],
    /// The fields. `Connection` counts as far as it says `close`; the framing, `TE` and `Expect` as documented at
    /// [`Sender::of_request`]; other fields of the connection, and those that `Connection` names, are not sent.
    pub fields: &'a FieldSet,
    /// The length of the body; `None` where it is not known, or stands in `Content-Length`.
    pub length: Option<u64>,
    /// Whether a response may change the protocol to one of the field `Upgrade`.
    pub upgrade: bool,
}

/// The facts of a written head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestReport {
    /// The number of body bytes that have to follow; `None` for a chunked body.
    pub length: Option<u64>,
    /// The body should wait for a 100 (RFC 9110 §10.1.1).
    pub expect_continue: bool,
    /// The server was asked to close the connection after its response.
    pub close: bool,
    /// The part that decides how the response ends.
    pub asked: Asked,
}

impl Sender {
    /// Appends the head of `request` and returns the sender of its body. A body has the known length, else that of
    /// `Content-Length`, else it is chunked. `Content-Length: 0` is sent where the method lets a server expect a body. `TE` is sent
    /// where it says `trailers`, `Expect: 100-continue` with a body only, `Upgrade` where it was asked for.
    ///
    /// # Errors
    /// The request cannot be sent as given; nothing was appended.
    pub fn of_request(
        request: &OutgoingRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(Self, RequestReport), HeadError> {
        // A method may come as any text: HEAD in it decides all the same.
        let method = Method::from_token(request.method.as_str());
        let request = &OutgoingRequest { method: &method, ..*request };
        let named: Vec<&[u8]> = request.fields.all("connection").flat_map(options).collect();
        all_or_nothing(out, |out| {
            write_start(request, out)?;
            let mut deciding = Deciding::default();
            for (name, value) in request.fields.iter() {
                let is_hop = named.iter().any(|option| option.eq_ignore_ascii_case(name));
                if deciding.note(name, value, request.upgrade)? && (!is_hop || is_upgrade(name)) {
                    field(name, value, out);
                }
            }
            let report = deciding.report(request)?;
            deciding.write(request, report, out);
            Ok((Self::behind_request_head(report.length, !report.close), report))
        })
    }
}

/// The names in a value of `Connection`.
fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether this is the one field of the connection that is sent as it is, where it was asked for.
fn is_upgrade(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"upgrade")
}

/// The request line, and `Host` (RFC 9110 §7.2 wants it first).
fn write_start(request: &OutgoingRequest<'_>, out: &mut Vec<u8>) -> Result<(), HeadError> {
    let method = request.method.as_str().as_bytes();
    if !is_token(method) {
        return Err(HeadError::InvalidMethod);
    }
    let named = authority_of(request.method, request.target).ok_or(HeadError::InvalidTarget)?;
    let mut hosts = request.fields.all("host");
    let host = hosts.next().unwrap_or(if named.is_empty() { request.authority } else { named });
    // RFC 9112 §3.2.2: servers differ in which of the two they follow.
    let differs = !named.is_empty() && !host.eq_ignore_ascii_case(named);
    let is_good = host.is_empty() || is_authority_with_host(host);
    if hosts.next().is_some() || differs || !is_good {
        return Err(HeadError::InvalidHost);
    }
    for part in [method, b" ", request.target, b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    field(b"Host", host, out);
    Ok(())
}

/// The fields that matter for decisions of the client.
#[derive(Default)]
struct Deciding {
    length: Option<u64>,
    chunked: bool,
    expects: bool,
    close: bool,
    trailers: bool,
    upgrade: bool,
}

impl Deciding {
    /// Looks at a field; whether it is sent as it is.
    fn note(&mut self, name: &[u8], value: &[u8], upgrade: bool) -> Result<bool, HeadError> {
        if !is_token(name) {
            return Err(HeadError::InvalidName(name.escape_ascii().to_string()));
        }
        if !is_value(value) {
            return Err(HeadError::InvalidValue(name.escape_ascii().to_string()));
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let is_chunked = value.eq_ignore_ascii_case(b"chunked");
        match name.len() {
            4 if is("host") => Ok(false),
            14 if is("content-length") => {
                let length = content_length(value).ok_or(HeadError::ContentLength)?;
                match self.length.replace(length) {
                    Some(before) if before != length => Err(HeadError::ContentLength),
                    _ => Ok(false),
                }
            }
            14 if is("http2-settings") => Ok(false),
            17 if is("transfer-encoding") && is_chunked && !self.chunked => {
                self.chunked = true;
                Ok(false)
            }
            17 if is("transfer-encoding") => Err(HeadError::TransferEncoding),
            6 if is("expect") && value.eq_ignore_ascii_case(b"100-continue") => {
                self.expects = true;
                Ok(false)
            }
            6 if is("expect") => Err(HeadError::Expectation),
            2 if is("te") => {
                self.trailers |= value.eq_ignore_ascii_case(b"trailers");
                Ok(false)
            }
            7 if is_upgrade(name) => {
                self.upgrade |= upgrade;
                Ok(upgrade)
            }
            10 if is("connection") => {
                self.close |= names_close(value);
                Ok(false)
            }
            _ => Ok(hop_by_hop(name).is_none_or(|hop| hop == TRAILER || hop == "Proxy-Authorization")),
        }
    }

    fn report(&self, request: &OutgoingRequest<'_>) -> Result<RequestReport, HeadError> {
        let length = match (request.length, self.length) {
            (Some(known), Some(declared)) if known != declared => return Err(HeadError::ContentLength),
            (known, declared) => known.or(declared),
        };
        if self.chunked && length.is_some() {
            return Err(HeadError::TransferEncoding);
        }
        if length != Some(0) && matches!(request.method, Method::Connect | Method::Trace) {
            return Err(HeadError::Body);
        }
        let asked = match Asked::by(request.method) {
            Asked::Ordinary if self.upgrade => Asked::Upgrade,
            other => other,
        };
        Ok(RequestReport {
            length,
            expect_continue: self.expects && length != Some(0),
            close: self.close,
            asked,
        })
    }

    /// Appends the fields that were decided, and the blank line.
    fn write(&self, request: &OutgoingRequest<'_>, report: RequestReport, out: &mut Vec<u8>) {
        let wants_body = matches!(request.method, Method::Post | Method::Put | Method::Patch);
        match report.length {
            None => field(b"Transfer-Encoding", b"chunked", out),
            Some(0) if !wants_body && self.length.is_none() => {}
            Some(length) => write_length(length, out),
        }
        if report.expect_continue {
            field(b"Expect", b"100-continue", out);
        }
        if self.trailers {
            field(b"TE", b"trailers", out);
        }
        let options = [(report.close, &b"close"[..]), (self.upgrade, b"upgrade"), (self.trailers, b"TE")];
        let options: Vec<&[u8]> = options.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        if !options.is_empty() {
            field(b"Connection", &options.join(&b", "[..]), out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&str, &str)]) -> FieldSet {
        let mut set = FieldSet::new();
        fields.iter().for_each(|(name, value)| assert!(set.push(name, value)));
        set
    }

    /// The head of a request as text with `|` for line ends.
    fn written(
        method: Method,
        target: &str,
        length: Option<u64>,
        given: &[(&str, &str)],
    ) -> Result<(String, RequestReport), HeadError> {
        let upgrade = given.iter().any(|(name, _)| *name == "Upgrade");
        let request = OutgoingRequest {
            method: &method,
            target: target.as_bytes(),
            authority: b"a:81",
            fields: &fields(given),
            length,
            upgrade,
        };
        let mut out = b"before".to_vec();
        let sent = Sender::of_request(&request, &mut out);
        let head = String::from_utf8(out.split_off(6)).expect("text").replace("\r\n", "|");
        assert!(sent.is_ok() || head.is_empty(), "{head}");
        sent.map(|(_, report)| (head, report))
    }

    #[test]
    fn heads() {
        for (method, target, length, given, expected) in [
            (Method::Get, "/", Some(0), &[][..], "GET / HTTP/1.1|Host: a:81||"),
            (
                Method::Get,
                "/a?b",
                Some(0),
                &[("Accept", "*/*"), ("HOST", "b"), ("Connection", "keep-alive"), ("Keep-Alive", "5")],
                "GET /a?b HTTP/1.1|Host: b|Accept: */*||",
            ),
            (Method::Post, "/", Some(0), &[], "POST / HTTP/1.1|Host: a:81|Content-Length: 0||"),
            (Method::Delete, "/", Some(0), &[], "DELETE / HTTP/1.1|Host: a:81||"),
            (
                Method::Get,
                "/",
                Some(0),
                &[("Content-Length", "0"), ("Expect", "100-continue")],
                "GET / HTTP/1.1|Host: a:81|Content-Length: 0||",
            ),
            (
                Method::Put,
                "/",
                Some(3),
                &[("content-length", "3"), ("Connection", "x, close"), ("expect", "100-Continue")],
                "PUT / HTTP/1.1|Host: a:81|Content-Length: 3|Expect: 100-continue|Connection: close||",
            ),
            (
                Method::Put,
                "/",
                None,
                &[("Content-Length", "3")],
                "PUT / HTTP/1.1|Host: a:81|Content-Length: 3||",
            ),
            (
                Method::Patch,
                "/",
                None,
                &[("Transfer-Encoding", "chunked"), ("Trailer", "x"), ("TE", "trailers")],
                "PATCH / HTTP/1.1|Host: a:81|Trailer: x|Transfer-Encoding: chunked|TE: trailers|Connection: TE||",
            ),
            (Method::Options, "*", Some(0), &[], "OPTIONS * HTTP/1.1|Host: a:81||"),
            (
                Method::Get,
                "http://b/x",
                Some(0),
                &[("Proxy-Authorization", "Basic x"), ("TE", "gzip")],
                "GET http://b/x HTTP/1.1|Host: b|Proxy-Authorization: Basic x||",
            ),
            (
                Method::Get,
                "/",
                Some(0),
                &[("Upgrade", "websocket")],
                "GET / HTTP/1.1|Host: a:81|Upgrade: websocket|Connection: upgrade||",
            ),
            (
                Method::Get,
                "http://b:1",
                Some(0),
                &[
                    ("Host", "B:1"),
                    ("HTTP2-Settings", "x"),
                    ("X-Hop", "1"),
                    ("Connection", "y, x-hop, HTTP2-Settings"),
                ],
                "GET http://b:1 HTTP/1.1|Host: B:1||",
            ),
            (
                Method::Get,
                "/",
                Some(0),
                &[("Connection", "Upgrade"), ("Upgrade", "websocket")],
                "GET / HTTP/1.1|Host: a:81|Upgrade: websocket|Connection: upgrade||",
            ),
            (
                Method::Other("POST".into()),
                "/",
                Some(0),
                &[],
                "POST / HTTP/1.1|Host: a:81|Content-Length: 0||",
            ),
        ] {
            assert_eq!(written(method, target, length, given).expect(expected).0, expected);
        }
    }

    #[test]
    fn nothing_is_injected() {
        use HeadError::*;
        let name = |name: &str| InvalidName(name.to_owned());
        let token = |method: &str| Method::Other(method.into());
        for (method, target, length, given, expected) in [
            (token("GET /x HTTP/1.1\r\nA:"), "/", Some(0), &[][..], InvalidMethod),
            (token(""), "/", Some(0), &[], InvalidMethod),
            (Method::Get, "", Some(0), &[], InvalidTarget),
            (Method::Get, "/ HTTP/1.1\r\nA: b", Some(0), &[], InvalidTarget),
            (Method::Get, "/ä", Some(0), &[], InvalidTarget),
            (Method::Get, "/#a", Some(0), &[], InvalidTarget),
            (Method::Get, "*", Some(0), &[], InvalidTarget),
            (Method::Connect, "a", Some(0), &[], InvalidTarget),
            (Method::Get, "/", Some(0), &[("Host", "a\r\nA: b")], InvalidHost),
            (Method::Get, "/", Some(0), &[("Host", "a/b")], InvalidHost),
            (Method::Get, "/", Some(0), &[("Host", ":80")], InvalidHost),
            (Method::Get, "http://b/", Some(0), &[("Host", "a")], InvalidHost),
            (Method::Get, "http://b@c/", Some(0), &[], InvalidTarget),
            (token("CONNECT"), "/", Some(0), &[], InvalidTarget),
            (Method::Get, "/", Some(0), &[("Host", "a"), ("Host", "a")], InvalidHost),
            (Method::Get, "/", Some(0), &[("A: b\r\nC", "d")], name("A: b\\r\\nC")),
            (Method::Get, "/", Some(0), &[("", "d")], name("")),
            (Method::Get, "/", Some(0), &[("A", "b\r\nC: d")], InvalidValue("A".to_owned())),
            (Method::Get, "/", Some(0), &[("A", "b\0")], InvalidValue("A".to_owned())),
            (Method::Post, "/", Some(3), &[("Content-Length", "4")], ContentLength),
            (Method::Post, "/", None, &[("Content-Length", "+4")], ContentLength),
            (Method::Post, "/", None, &[("Content-Length", "4"), ("Content-Length", "5")], ContentLength),
            (Method::Post, "/", None, &[("Transfer-Encoding", "gzip, chunked")], TransferEncoding),
            (
                Method::Post,
                "/",
                None,
                &[("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
                TransferEncoding,
            ),
            (Method::Post, "/", Some(1), &[("Expect", "x")], Expectation),
            (Method::Trace, "/", Some(1), &[], Body),
            (Method::Connect, "a:1", None, &[], Body),
        ] {
            assert_eq!(written(method, target, length, given), Err(expected), "{target:?} {given:?}");
        }
    }

    #[test]
    fn the_report_says_what_has_to_follow() {
        let report = |method, length, given| written(method, "/", length, given).expect("a good head").1;
        let put = report(Method::Put, Some(3), &[("Expect", "100-continue"), ("Connection", "close")]);
        let expected =
            RequestReport { length: Some(3), expect_continue: true, close: true, asked: Asked::Ordinary };
        assert_eq!(put, expected);
        assert_eq!(report(Method::Post, None, &[]).length, None);
        assert_eq!(report(Method::Head, Some(0), &[]).asked, Asked::Head);
        assert_eq!(report(Method::Other("HEAD".into()), Some(0), &[]).asked, Asked::Head);
        assert_eq!(report(Method::Get, Some(0), &[("Upgrade", "x")]).asked, Asked::Upgrade);
        assert!(!report(Method::Get, Some(0), &[("Expect", "100-continue")]).expect_continue);
    }
}
