//! The messages of clients: request heads. httparse finds the parts, the rules are here.
//!
//! Sections below: the target.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};
use maitred_http::authority::{is_authority, is_authority_with_host};
use maitred_http::fields::{Span, is_token};
use maitred_http::{BodyLength, Method, RequestHead, Status, Version};

use super::fields::{Connection, Framing, adopt_fields};
use super::messages::{After, Messages, Read};
use crate::error::{Malformed, RequestError};
use crate::limits::{FIELD_SLOTS, Limits};

/// The messages that a server receives: any number of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests;

impl Messages for Requests {
    type Head = RequestHead;
    type Facts = HeadFacts;
    type Error = RequestError;

    const MANY: bool = true;
    const UNREADABLE: RequestError = SYNTAX;
    const TOO_LARGE: RequestError = RequestError::new(TOO_LARGE, "request head too large");
    const AFTER_MALFORMED: RequestError = RequestError::bad("a request before this one was refused");

    fn read(
        self,
        window: &[u8],
        head: &mut RequestHead,
        limits: &Limits,
    ) -> Result<Option<Read<HeadFacts>>, RequestError> {
        let read = read(window, head, limits)?;
        Ok(read.map(|(length, facts)| Read { length, facts, after: After::Body(head.body) }))
    }

    fn may_skip_line(skipped: u8, limits: &Limits) -> Result<(), RequestError> {
        match skipped > limits.max_empty_lines {
            true => Err(RequestError::bad("too many empty lines before a request")),
            false => Ok(()),
        }
    }

    fn check_start(window: &[u8]) -> Result<(), RequestError> {
        // For example a TLS hello, which may never have a line end.
        match window.first() {
            Some(first) if !first.is_ascii_graphic() && window != b"\r" => {
                Err(RequestError::bad("the request does not start with a method"))
            }
            _ => Ok(()),
        }
    }

    fn max_line(limits: &Limits) -> usize {
        limits.max_request_line()
    }

    fn endless_line(line: &[u8], limits: &Limits) -> RequestError {
        endless_request_line(line, limits)
    }

    fn check_line(line: &[u8], limits: &Limits) -> Result<(), RequestError> {
        check_request_line(line, limits)
    }

    fn note_refused(input: &[u8], head: &mut RequestHead) {
        note_request_line(input, head);
    }
}

/// Facts of a head that exist only in HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// No body follows, the request is complete. There is no [`End`](crate::Event::End) then.
    pub complete: bool,
    /// The peer wants to use the connection again (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// The peer waits for a 100 before it sends the body (RFC 9110 §10.1.1). Never set for HTTP/1.0
    /// or without a body.
    pub expect_continue: bool,
    /// The peer offers to change the protocol; the offers are in the `Upgrade` field (RFC 9110 §7.8).
    pub upgrade: bool,
    /// The form of the request target.
    pub target_form: TargetForm,
}

const SYNTAX: RequestError = RequestError::bad("malformed request head");
const TOO_LARGE: Status = Status::REQUEST_HEADER_FIELDS_TOO_LARGE;

/// Reads the head at the start of `window` into `head` and returns its length in bytes, or `None`
/// when it is not complete. The memory of `head` is used again: one copy takes all the bytes.
///
/// # Errors
/// As documented at [`Receiver::poll_event`](crate::Receiver::poll_event). The content of `head` is unspecified then.
fn read(
    window: &[u8],
    head: &mut RequestHead,
    limits: &Limits,
) -> Result<Option<(usize, HeadFacts)>, RequestError> {
    let mut slots = [const { MaybeUninit::<Header>::uninit() }; FIELD_SLOTS];
    let count = limits.max_fields.min(slots.len());
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(window, slots.get_mut(..count).unwrap_or_default());
    let length = match parsed {
        Ok(Parsed::Complete(length)) => length,
        Ok(Parsed::Partial) => return Ok(None),
        Err(Error::Version) => {
            let as_11 = with_version_11(window).ok_or_else(|| bad_version(window))?;
            return read(&as_11, head, limits);
        }
        Err(error) => return Err(refusal(error, window)),
    };
    let facts = take(window.get(..length).unwrap_or_default(), &request, head, limits)?;
    Ok(Some((length, facts)))
}

/// The longest part of a request line that is kept of a request that is refused.
const MAX_NOTED: usize = 1024;

/// Puts the readable part of the request line in `input` into `head`, which has no target, so that logs can show the
/// refused request; a dash for an unreadable part. Nothing of it has been checked.
pub fn note_request_line(input: &[u8], head: &mut RequestHead) {
    if !head.target().is_empty() {
        return;
    }
    let start = input.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(input.len());
    let line = input.get(start..).unwrap_or_default().split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let mut word = || words.next().filter(|word| !word.is_empty()).unwrap_or(b"-");
    let (method, target) = (word(), word());
    let is_method = method.len() <= 32 && is_token(method);
    head.method = Method::from_token(std::str::from_utf8(method).ok().filter(|_| is_method).unwrap_or("-"));
    let target = target.get(..MAX_NOTED).unwrap_or(target);
    head.target =
        head.fields.adopt(target).map_or_else(Span::default, |adopted| adopted.part(0, target.len()));
    head.path_and_query = head.target;
}

/// Judges a request line that has arrived completely, before the fields have.
///
/// # Errors
/// As [`read`].
fn check_request_line(line: &[u8], limits: &Limits) -> Result<(), RequestError> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse(line) {
        Ok(_) => check_lengths(
            request.method.unwrap_or_default().len(),
            request.path.unwrap_or_default().len(),
            limits,
        ),
        Err(Error::Version) => {
            let as_11 = with_version_11(line).ok_or_else(|| bad_version(line))?;
            check_request_line(&as_11, limits)
        }
        Err(error) => Err(refusal(error, line)),
    }
}

/// The refusal of a request line that is longer than any within the limits and has not ended yet.
fn endless_request_line(line: &[u8], limits: &Limits) -> RequestError {
    let method = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    check_lengths(method, usize::MAX, limits).err().unwrap_or(SYNTAX)
}

fn check_lengths(method: usize, target: usize, limits: &Limits) -> Result<(), RequestError> {
    if method > limits.max_method {
        return Err(RequestError::new(Status::NOT_IMPLEMENTED, "method too long"));
    }
    if target > limits.max_target {
        return Err(RequestError::new(Status::URI_TOO_LONG, "request target too long"));
    }
    Ok(())
}

fn refusal(error: Error, window: &[u8]) -> RequestError {
    match error {
        Error::Version => bad_version(window),
        Error::TooManyHeaders => Malformed::TooManyFields.into(),
        Error::HeaderName => Malformed::FieldName.into(),
        Error::HeaderValue => Malformed::FieldValue.into(),
        Error::NewLine => Malformed::LineEnd.into(),
        Error::Token => RequestError::bad("malformed request line"),
        Error::Status => SYNTAX,
    }
}

/// The head with 1.1 in the place of a higher minor version, as which it is read (RFC 9110 §2.5); `None` for any other version.
fn with_version_11(head: &[u8]) -> Option<Vec<u8>> {
    let line = memchr::memchr(b'\r', head)?;
    let digit = line.checked_sub(1)?;
    let higher =
        matches!(head.get(..line), Some([.., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9']));
    higher.then(|| {
        let mut as_11 = head.to_vec();
        as_11.get_mut(digit).into_iter().for_each(|digit| *digit = b'1');
        as_11
    })
}

/// 505 for a well-formed version of another major number, such as the preface of HTTP/2.
fn bad_version(window: &[u8]) -> RequestError {
    let line = window.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    match (words.next(), words.next()) {
        (Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']), None) => {
            RequestError::new(Status::HTTP_VERSION_NOT_SUPPORTED, "protocol version not supported")
        }
        _ => RequestError::bad("malformed protocol version"),
    }
}

/// Fills `head` from the parsed `request`, which stands in `bytes` and nothing behind it.
fn take(
    bytes: &[u8],
    request: &httparse::Request<'_, '_>,
    head: &mut RequestHead,
    limits: &Limits,
) -> Result<HeadFacts, RequestError> {
    let method = request.method.unwrap_or_default();
    let path = request.path.unwrap_or_default();
    check_lengths(method.len(), path.len(), limits)?;

    head.clear();
    head.method = Method::from_token(method);
    head.version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let mut known = Known::default();
    let adopted = adopt_fields(bytes, request.headers, &mut head.fields, limits, |field, value| {
        known.note(field, value)
    })?
    .ok_or(Requests::TOO_LARGE)?;

    let parts = parse(&head.method, path.as_bytes())?;
    let start = (path.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    head.target = adopted.part(start, path.len());
    head.path_and_query = adopted.part(start + parts.path, path.len() - parts.path);
    known.check_host(head.version)?;
    known.check_content_type()?;
    head.authority = match parts.form {
        TargetForm::Absolute | TargetForm::Authority => {
            adopted.part(start + parts.authority.0, parts.authority.1)
        }
        TargetForm::Origin | TargetForm::Asterisk => known.host_span,
    };
    if parts.form == TargetForm::Absolute {
        complete_path(head)?;
    }
    head.body = known.framing.of_request(head.version)?;
    known.facts(head, parts.form)
}

/// Gives an absolute-form target with an empty path the path it stands for: `*` for OPTIONS
/// (RFC 9112 §3.2.4), else `/` (RFC 9110 §4.2.3).
fn complete_path(head: &mut RequestHead) -> Result<(), RequestError> {
    let rest = head.fields.bytes(head.path_and_query);
    if rest.first() == Some(&b'/') {
        return Ok(());
    }
    let path: &[u8] = if rest.is_empty() && head.method == Method::Options { b"*" } else { b"/" };
    let whole = [path, rest].concat();
    head.path_and_query = head.fields.adopt(&whole).ok_or(Requests::TOO_LARGE)?;
    Ok(())
}

/// The fields HTTP/1 itself looks at.
#[derive(Default)]
struct Known<'a> {
    framing: Framing<'a>,
    host: Option<&'a [u8]>,
    host_span: Span,
    hosts: usize,
    expect: Expect,
    content_type: Option<&'a [u8]>,
    types_differ: bool,
    has_upgrade: bool,
    connection: Connection,
}

#[derive(Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Nothing,
    Continue,
    Unknown,
}

impl<'a> Known<'a> {
    // The length tells most fields apart, so that a usual field costs one comparison of a byte.
    fn note(&mut self, field: &Header<'a>, value: Span) {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => {
                self.host = Some(field.value);
                self.host_span = value;
                self.hosts += 1;
            }
            6 if is("expect") => self.note_expect(field.value),
            7 if is("upgrade") => self.has_upgrade = true,
            10 if is("connection") => self.connection.note(field.value),
            12 if is("content-type") => {
                self.types_differ |=
                    self.content_type.replace(field.value).is_some_and(|first| first != field.value);
            }
            14 if is("content-length") => self.framing.content_length(field.value),
            17 if is("transfer-encoding") => self.framing.transfer_encoding(field.value),
            _ => {}
        }
    }

    fn note_expect(&mut self, value: &[u8]) {
        // A list (RFC 9110 §10.1.1), whose empty elements say nothing (§5.6.1.2).
        let elements = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        for element in elements.filter(|element| !element.is_empty()) {
            if !element.eq_ignore_ascii_case(b"100-continue") {
                self.expect = Expect::Unknown;
            } else if self.expect == Expect::Nothing {
                self.expect = Expect::Continue;
            }
        }
    }

    /// RFC 9112 §3.2: one Host in HTTP/1.1, at most one in 1.0, and a valid one.
    fn check_host(&self, version: Version) -> Result<(), RequestError> {
        match self.host {
            _ if self.hosts > 1 => Err(RequestError::bad("Host is there twice")),
            None if version == Version::Http11 => Err(RequestError::bad("Host is missing")),
            Some(host) if !is_authority(host) => Err(RequestError::bad("invalid Host")),
            _ => Ok(()),
        }
    }

    /// A field that may be there once can be read in two ways if it is not (RFC 9110 §5.3): a filter that takes the first type and an
    /// application that takes the last see two bodies.
    fn check_content_type(&self) -> Result<(), RequestError> {
        match self.types_differ {
            true => Err(RequestError::bad("Content-Type is there twice, with two values")),
            false => Ok(()),
        }
    }

    fn facts(&self, head: &RequestHead, target_form: TargetForm) -> Result<HeadFacts, RequestError> {
        let is_11 = head.version == Version::Http11;
        // RFC 9110 §10.1.1: HTTP/1.0 has no expectations; an unknown one may be answered with 417.
        if is_11 && self.expect == Expect::Unknown {
            return Err(RequestError::new(Status::EXPECTATION_FAILED, "unknown expectation"));
        }
        let complete = matches!(head.body, BodyLength::Empty | BodyLength::Fixed(0));
        Ok(HeadFacts {
            complete,
            keep_alive: self.connection.persists(head.version),
            expect_continue: is_11 && !complete && self.expect == Expect::Continue,
            upgrade: is_11 && self.connection.upgrade && self.has_upgrade,
            target_form,
        })
    }
}

// ---- The target ----
//
// The request target (RFC 9112 §3.2) and the authority a request is for.

/// The form a request target has (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, only with CONNECT
    Authority,
    /// `*`, only with OPTIONS
    Asterisk,
}

/// Where the parts stand in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    form: TargetForm,
    /// Start and length of the authority within the target.
    authority: (usize, usize),
    /// Where path and query start; they reach to the end of the target.
    path: usize,
}

/// The authority in a target of absolute form, empty in the other forms; `None` for a target that a client may not send.
pub(crate) fn authority_of<'a>(method: &Method, target: &'a [u8]) -> Option<&'a [u8]> {
    let parts = parse(method, target).ok()?;
    match parts.form {
        TargetForm::Absolute => target.get(parts.authority.0..parts.authority.0 + parts.authority.1),
        TargetForm::Origin | TargetForm::Authority | TargetForm::Asterisk => Some(&[]),
    }
}

/// Takes a target apart.
///
/// # Errors
/// 400 for a form that does not fit the method, an unknown scheme, a malformed authority, a
/// fragment, or a byte outside printable ASCII.
fn parse(method: &Method, target: &[u8]) -> Result<Parts, RequestError> {
    if *method == Method::Connect {
        if !is_authority(target) || !target.contains(&b':') {
            return Err(RequestError::bad("the target of CONNECT is not host:port"));
        }
        return Ok(Parts { form: TargetForm::Authority, authority: (0, target.len()), path: 0 });
    }
    // No RFC allows a '#' here, and parsers differ in whether it ends the path.
    if target.iter().any(|byte| !matches!(byte, b'!'..=b'~') || *byte == b'#') {
        return Err(RequestError::bad("invalid character in the request target"));
    }
    if target.first() == Some(&b'/') {
        return Ok(Parts { form: TargetForm::Origin, authority: (0, 0), path: 0 });
    }
    if target == b"*" && *method == Method::Options {
        return Ok(Parts { form: TargetForm::Asterisk, authority: (0, 0), path: 0 });
    }
    parse_absolute(target)
}

fn parse_absolute(target: &[u8]) -> Result<Parts, RequestError> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    let Some(start) = scheme.map(str::len) else {
        return Err(RequestError::bad("the request target has no known form"));
    };
    let behind = target.get(start..).unwrap_or_default();
    let length = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
    let authority = behind.get(..length).unwrap_or_default();
    // RFC 9110 §4.2.1: an http URI without a host is invalid. User information is refused with it,
    // as §4.2.4 recommends for references from elsewhere.
    if !is_authority_with_host(authority) {
        return Err(RequestError::bad("invalid authority in the request target"));
    }
    Ok(Parts { form: TargetForm::Absolute, authority: (start, length), path: start + length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_refused_request_the_line_is_known_as_far_as_it_can_be_read() {
        let long = [b"GET /".as_slice(), &[b'a'; 5000]].concat();
        let cases: [(&[u8], &str, usize, &[u8]); 7] = [
            (b"GET /a?b HTTP/9.9\r\n\r\n", "GET", 4, b"/a?b"),
            (b"\r\nPOST /a\x01 HTTP/1.1\r\n", "POST", 3, b"/a\x01"),
            (b"GET /a b HTTP/1.1\r\n", "GET", 2, b"/a"),
            (b"G\x00T /a", "-", 2, b"/a"),
            (b"GET", "GET", 1, b"-"),
            (b"", "-", 1, b"-"),
            (&long, "GET", MAX_NOTED, b"/aaa"),
        ];
        for (input, method, length, target) in cases {
            let mut head = RequestHead::default();
            note_request_line(input, &mut head);
            assert_eq!(
                (head.method.as_str(), head.target().len()),
                (method, length),
                "{}",
                input.escape_ascii()
            );
            assert!(head.target().starts_with(target), "{}", head.target().escape_ascii());
        }
    }
}

#[cfg(test)]
mod target_tests {
    use super::*;

    #[test]
    fn forms() {
        fn parts(method: Method, target: &str) -> Result<(TargetForm, &str, &str), RequestError> {
            let Parts { form, authority: (start, length), path } = parse(&method, target.as_bytes())?;
            Ok((form, &target[start..start + length], &target[path..]))
        }
        use TargetForm::*;
        assert_eq!(parts(Method::Get, "/a?b"), Ok((Origin, "", "/a?b")));
        assert_eq!(parts(Method::Get, "//a/b"), Ok((Origin, "", "//a/b")));
        assert_eq!(parts(Method::Get, "/{|}\"<>^`"), Ok((Origin, "", "/{|}\"<>^`")));
        assert_eq!(parts(Method::Options, "*"), Ok((Asterisk, "", "*")));
        assert_eq!(parts(Method::Connect, "a:443"), Ok((Authority, "a:443", "a:443")));
        assert_eq!(parts(Method::Get, "http://a:8/b?c"), Ok((Absolute, "a:8", "/b?c")));
        assert_eq!(parts(Method::Get, "HTTPS://a"), Ok((Absolute, "a", "")));
        assert_eq!(parts(Method::Get, "http://a?q"), Ok((Absolute, "a", "?q")));
        for (method, target) in [
            (Method::Get, "*"),
            (Method::Get, "a"),
            (Method::Get, "a:443"),
            (Method::Get, "ftp://a/"),
            (Method::Get, "http:///a"),
            (Method::Get, "http://:80/"),
            (Method::Get, "http://u@a/"),
            (Method::Get, "http://"),
            (Method::Get, "/a#b"),
            (Method::Get, "/ä"),
            (Method::Get, "/\u{7f}"),
            (Method::Connect, "a"),
            (Method::Connect, "/"),
            (Method::Options, "**"),
        ] {
            assert_eq!(parts(method, target).map_err(|e| e.status.code()), Err(400), "{target}");
        }
    }
}
