//! The way from the fields of a block to a request head (RFC 9113 §8.2, §8.3), or to trailers.
//!
//! A malformed request resets the stream: it could smuggle a second request where a proxy translates it to HTTP/1.1. A
//! request that is only too large, or can be read in two ways, is an objection, which the server answers.

use maitred_http::authority::{is_authority, is_authority_with_host};
use maitred_http::body::content_length;
use maitred_http::fields::{Span, is_token, is_value};
use maitred_http::limits::MAX_METHOD;
use maitred_http::{BodyLength, Method, RequestHead, Status, Version};

use crate::event::HeadFacts;
use crate::priority::Priority;
use crate::settings::Settings;

/// The cost of a field beside its bytes (RFC 9113 §6.5.2).
pub(crate) const FIELD_COST: usize = 32;

/// Pieces of a cookie (RFC 9113 §8.2.3). Past it: 431.
///
/// Reason: each costs work, however short it is (CVE-2026-49975). Source: browsers keep at most 180 cookies for a site.
const MAX_CRUMBS: usize = 256;

const TOO_LARGE: Status = Status::REQUEST_HEADER_FIELDS_TOO_LARGE;

/// Bits for pseudo-fields that were there.
const METHOD: u8 = 1;
const SCHEME: u8 = 2;
const PATH: u8 = 4;
const AUTHORITY: u8 = 8;
const PROTOCOL: u8 = 16;

pub(crate) struct Reader<'a> {
    head: &'a mut RequestHead,
    cookie: &'a mut Vec<u8>,
    settings: &'a Settings,
    /// Bytes of all fields, those that are not kept among them, and the same with the cost of each.
    plain: usize,
    size: usize,
    fields: usize,
    crumbs: usize,
    seen: u8,
    regular: bool,
    path: Span,
    authority: Span,
    has_host: bool,
    protocol: Option<Span>,
    content_type: Option<Span>,
    length: Option<u64>,
    expects_continue: bool,
    priority: Option<Priority>,
    malformed: Option<&'static str>,
    objection: Option<(Status, &'static str)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(head: &'a mut RequestHead, cookie: &'a mut Vec<u8>, settings: &'a Settings) -> Self {
        head.clear();
        head.version = Version::Http2;
        cookie.clear();
        Self {
            head,
            cookie,
            settings,
            plain: 0,
            size: 0,
            fields: 0,
            crumbs: 0,
            seen: 0,
            regular: false,
            path: Span::default(),
            authority: Span::default(),
            has_host: false,
            protocol: None,
            content_type: None,
            length: None,
            expects_continue: false,
            priority: None,
            malformed: None,
            objection: None,
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn plain(&self) -> usize {
        self.plain
    }

    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        let plain = name.len() + value.len();
        self.plain = self.plain.saturating_add(plain);
        self.size = self.size.saturating_add(plain + FIELD_COST);
        if self.malformed.is_some() || self.is_too_large() {
            return;
        }
        if self.size > self.settings.max_head {
            return self.object(TOO_LARGE, "request head too large");
        }
        let taken = match name.first() {
            Some(b':') => self.pseudo_field(name, value),
            _ => self.regular_field(name, value),
        };
        self.malformed = taken.err();
    }

    /// Whether the rest is not looked at any more.
    fn is_too_large(&self) -> bool {
        self.objection.is_some_and(|(status, _)| status == TOO_LARGE)
    }

    /// The first objection counts, but one for which the rest is not looked at.
    fn object(&mut self, status: Status, reason: &'static str) {
        if self.objection.is_none() || status == TOO_LARGE {
            self.objection = Some((status, reason));
        }
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if self.regular {
            return Err("a pseudo-field behind a field");
        }
        let bit = match name {
            b":method" => METHOD,
            b":scheme" => SCHEME,
            b":path" => PATH,
            b":authority" => AUTHORITY,
            b":protocol" if self.settings.connect => PROTOCOL,
            _ => return Err("a pseudo-field that no request has"),
        };
        if self.seen & bit != 0 {
            return Err("a pseudo-field is there twice");
        }
        self.seen |= bit;
        match bit {
            METHOD => self.method(value),
            SCHEME => self.scheme(value),
            PATH => self.path(value),
            AUTHORITY => {
                if !is_authority_with_host(value) {
                    return Err("invalid :authority");
                }
                self.authority = self.adopt(value);
                Ok(())
            }
            _ => {
                if !is_token(value) {
                    return Err(":protocol is no token");
                }
                self.protocol = Some(self.adopt(value));
                Ok(())
            }
        }
    }

    fn method(&mut self, value: &[u8]) -> Result<(), &'static str> {
        match std::str::from_utf8(value) {
            Ok(method) if is_token(value) => {
                if method.len() > MAX_METHOD {
                    self.object(Status::NOT_IMPLEMENTED, "method too long");
                } else {
                    self.head.method = Method::from_token(method);
                }
                Ok(())
            }
            _ => Err(":method is no token"),
        }
    }

    fn scheme(&mut self, value: &[u8]) -> Result<(), &'static str> {
        // The server knows by the connection whether it is secure.
        if value.eq_ignore_ascii_case(b"https") || value.eq_ignore_ascii_case(b"http") {
            return Ok(());
        }
        let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        if !value.first().is_some_and(u8::is_ascii_alphabetic) || !value.iter().all(is_scheme) {
            return Err("invalid :scheme");
        }
        self.object(Status::BAD_REQUEST, "unknown scheme");
        Ok(())
    }

    fn path(&mut self, value: &[u8]) -> Result<(), &'static str> {
        if value.len() > self.settings.max_target {
            self.object(Status::URI_TOO_LONG, "request target too long");
            return Ok(());
        }
        // As in HTTP/1: no RFC allows a '#' here, and parsers differ in whether it ends the path.
        if !value.iter().fold(true, |all, byte| all & matches!(byte, b'!'..=b'~') & (*byte != b'#')) {
            return Err("invalid character in :path");
        }
        if value.first() != Some(&b'/') && value != b"*" {
            return Err(":path does not start with a slash");
        }
        self.path = self.adopt(value);
        Ok(())
    }

    fn regular_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if !self.regular {
            self.pseudo_fields_end();
        }
        check_name(name)?;
        check_value(name, value)?;
        if name == b"cookie" {
            self.crumb(value);
            return Ok(());
        }
        self.fields += 1;
        if self.fields > self.settings.max_fields {
            self.object(TOO_LARGE, "too many fields");
            return Ok(());
        }
        if name.len() + value.len() > self.settings.max_field_line {
            self.object(TOO_LARGE, "field too large");
            return Ok(());
        }
        match name {
            b"host" => return self.host(name, value),
            b"expect" => self.expect(value),
            b"priority" => self.priority = Priority::said(self.priority, value),
            b"content-type" => {
                let differs = |first| self.head.fields.bytes(first) != value;
                if self.content_type.is_some_and(differs) {
                    self.object(Status::BAD_REQUEST, "Content-Type is there twice, with two values");
                }
                self.content_type = Some(self.store(name, value));
                return Ok(());
            }
            b"content-length" => {
                let length = content_length(value).ok_or("Content-Length is not one number below 2^64")?;
                if self.length.replace(length).is_some() {
                    return Err("Content-Length is there twice");
                }
            }
            _ => {}
        }
        self.store(name, value);
        Ok(())
    }

    /// The head of HTTP/1 that this one stands for has a Host first.
    fn pseudo_fields_end(&mut self) {
        self.regular = true;
        if self.seen & AUTHORITY != 0 {
            let name = self.adopt(b"host");
            self.head.fields.push_spans(name, self.authority);
        }
    }

    fn host(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if std::mem::replace(&mut self.has_host, true) {
            return Err("Host is there twice");
        }
        if self.seen & AUTHORITY != 0 {
            let authority = self.head.fields.bytes(self.authority);
            return match authority.eq_ignore_ascii_case(value) {
                true => Ok(()),
                false => Err("Host and :authority differ"),
            };
        }
        if !is_authority(value) {
            return Err("invalid Host");
        }
        self.authority = self.store(name, value);
        Ok(())
    }

    fn expect(&mut self, value: &[u8]) {
        // A list (RFC 9110 §10.1.1), whose empty elements say nothing (§5.6.1.2).
        let elements = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        for element in elements.filter(|element| !element.is_empty()) {
            if element.eq_ignore_ascii_case(b"100-continue") {
                self.expects_continue = true;
            } else {
                self.object(Status::EXPECTATION_FAILED, "unknown expectation");
            }
        }
    }

    fn crumb(&mut self, value: &[u8]) {
        self.crumbs += 1;
        if self.crumbs > MAX_CRUMBS {
            return self.object(TOO_LARGE, "too many pieces of a cookie");
        }
        if self.crumbs > 1 {
            self.cookie.extend_from_slice(b"; ");
        }
        self.cookie.extend_from_slice(value);
        if b"cookie".len() + self.cookie.len() > self.settings.max_field_line {
            self.object(TOO_LARGE, "field too large");
        }
    }

    fn store(&mut self, name: &[u8], value: &[u8]) -> Span {
        let (name, value) = (self.adopt(name), self.adopt(value));
        self.head.fields.push_spans(name, value);
        value
    }

    /// A head is far smaller than the largest set of fields.
    fn adopt(&mut self, bytes: &[u8]) -> Span {
        self.head.fields.adopt(bytes).unwrap_or_default()
    }

    /// Completes the head; `ends` where no body follows. Returns the facts that are not in it, and the length of the
    /// body if it is declared and still to come.
    /// Errors: the reason why the request is malformed.
    pub(crate) fn finish(mut self, ends: bool) -> Result<(HeadFacts, Option<u64>), &'static str> {
        if let Some(reason) = self.malformed {
            return Err(reason);
        }
        let unknown = if ends { BodyLength::Empty } else { BodyLength::Chunked };
        let mut facts = HeadFacts { ends, priority: self.priority, ..HeadFacts::default() };
        (self.head.target, self.head.path_and_query) = (self.path, self.path);
        self.head.authority = self.authority;
        if self.is_too_large() {
            self.head.body = unknown;
            facts.objection = self.objection;
            return Ok((facts, None));
        }
        if !self.regular {
            self.pseudo_fields_end();
        }
        if self.crumbs > 0 {
            let cookie = std::mem::take(self.cookie);
            self.store(b"cookie", &cookie);
            *self.cookie = cookie;
        }
        self.head.body = match self.length {
            None => unknown,
            Some(0) => BodyLength::Fixed(0),
            Some(_) if ends => return Err("Content-Length of a request without a body"),
            Some(length) => BodyLength::Fixed(length),
        };
        self.targets()?;
        // An http URI has a host (RFC 9110 §4.2.1).
        if self.authority.is_empty() {
            self.object(Status::BAD_REQUEST, "neither :authority nor Host names a host");
        }
        facts.protocol = self.protocol;
        facts.asterisk = self.head.path_and_query() == b"*";
        facts.expect_continue = self.expects_continue && !ends && self.length != Some(0);
        facts.objection = self.objection;
        Ok((facts, self.length.filter(|_| !ends)))
    }

    /// RFC 9113 §8.3.1, §8.5; RFC 8441 §4.
    fn targets(&mut self) -> Result<(), &'static str> {
        if self.seen & METHOD == 0 {
            return Err(":method is missing");
        }
        let is_connect = self.head.method == Method::Connect;
        if is_connect && self.protocol.is_none() {
            if self.seen & (SCHEME | PATH) != 0 {
                return Err("CONNECT with :scheme or :path");
            }
            let authority = self.head.authority();
            if self.seen & AUTHORITY == 0 || !has_port(authority) {
                return Err(":authority of CONNECT is not host:port");
            }
            (self.head.target, self.head.path_and_query) = (self.authority, self.authority);
            return Ok(());
        }
        if self.protocol.is_some() && (!is_connect || self.seen & AUTHORITY == 0) {
            return Err(":protocol without CONNECT and :authority");
        }
        if self.seen & SCHEME == 0 || self.seen & PATH == 0 {
            return Err(":scheme or :path is missing");
        }
        if self.head.path_and_query() == b"*" && self.head.method != Method::Options {
            return Err("a :path that only OPTIONS has");
        }
        Ok(())
    }
}

/// Whether an authority that is valid says a port.
fn has_port(authority: &[u8]) -> bool {
    let behind =
        authority.iter().rposition(|byte| *byte == b':').and_then(|colon| authority.get(colon + 1..));
    behind.is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
}

// ---- The syntax of fields (RFC 9113 §8.2), in a head and in trailers ----

/// Looks at a name and whether it may be in HTTP/2.
/// Errors: it makes the message malformed, and why.
fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_usual = |byte: u8| byte.is_ascii_lowercase() | (byte == b'-');
    // Without a way out in the middle the compiler takes many bytes at a time.
    let usual = name.iter().fold(true, |all, byte| all & is_usual(*byte));
    let is_lower = || is_token(name) && !name.iter().any(u8::is_ascii_uppercase);
    if name.is_empty() || !(usual || is_lower()) {
        return Err("a name of a field is no token in lower case");
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" | b"transfer-encoding" => {
            Err("a field that belongs to a connection of HTTP/1")
        }
        _ => Ok(()),
    }
}

/// Looks at the value of the field `name`.
fn check_value(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_blank(value.first()) || is_blank(value.last()) || !is_value(value) {
        return Err("a control character in the value of a field, or a blank around it");
    }
    // It names one thing at most (RFC 9113 §8.2.2).
    if name == b"te" && !value.eq_ignore_ascii_case(b"trailers") {
        return Err("TE other than trailers");
    }
    Ok(())
}

/// Checks trailers, or fields of which nothing is kept.
#[derive(Default)]
pub(crate) struct Trailers {
    plain: usize,
    size: usize,
    malformed: Option<&'static str>,
}

impl Trailers {
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn plain(&self) -> usize {
        self.plain
    }

    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        let plain = name.len() + value.len();
        self.plain = self.plain.saturating_add(plain);
        self.size = self.size.saturating_add(plain + FIELD_COST);
        if self.malformed.is_none() {
            self.malformed = check_name(name).and_then(|()| check_value(name, value)).err();
        }
    }

    pub(crate) fn are_malformed(&self) -> bool {
        self.malformed.is_some()
    }
}
