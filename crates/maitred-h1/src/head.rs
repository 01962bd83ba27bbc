//! Reading a request head: httparse finds the parts, the rules are here.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};
use maitred_http::{BodyLength, Method, RequestHead, Status, Version};

use crate::error::RequestError;
use crate::framing::Framing;
use crate::limits::{FIELD_SLOTS, Limits};
pub use crate::target::TargetForm;
use crate::target::{self, is_authority};

/// What a head says that only HTTP/1 knows.
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
/// As documented at [`Receiver::poll_event`](crate::Receiver::poll_event). What stands in `head`
/// then is unspecified.
pub(crate) fn read(
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

/// Judges a request line that has arrived completely, before the fields have.
///
/// # Errors
/// As [`read`].
pub(crate) fn check_request_line(line: &[u8], limits: &Limits) -> Result<(), RequestError> {
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
pub(crate) fn endless_request_line(line: &[u8], limits: &Limits) -> RequestError {
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
        Error::TooManyHeaders => RequestError::new(TOO_LARGE, "too many fields"),
        Error::HeaderName => RequestError::bad("malformed field name, or a folded line"),
        Error::HeaderValue => RequestError::bad("control character in a field value"),
        Error::NewLine => RequestError::bad("malformed line end"),
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
    let adopted = head.fields.adopt(bytes).ok_or(RequestError::new(TOO_LARGE, "request head too large"))?;
    let place = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);

    let mut known = Known::default();
    for field in request.headers.iter() {
        let at = place(field.name.as_bytes());
        check_line_end(bytes, at)?;
        if field.name.len() + field.value.len() > limits.max_field_line {
            return Err(RequestError::new(TOO_LARGE, "field too large"));
        }
        let value = adopted.part(place(field.value), field.value.len());
        head.fields.push_spans(adopted.part(at, field.name.len()), value);
        known.note(field, value);
    }
    // The line before the blank one, and the blank one.
    check_line_end(bytes, bytes.len().saturating_sub(2))?;
    check_line_end(bytes, bytes.len())?;

    let parts = target::parse(&head.method, path.as_bytes())?;
    let start = place(path.as_bytes());
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
    head.body = known.framing.body_length(head.version)?;
    known.facts(head, parts.form)
}

/// httparse takes a bare LF for a line end; here every line ends in CRLF.
fn check_line_end(bytes: &[u8], end: usize) -> Result<(), RequestError> {
    match end.checked_sub(2).and_then(|start| bytes.get(start..end)) {
        Some(b"\r\n") => Ok(()),
        _ => Err(RequestError::bad("a line ends in LF without CR")),
    }
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
    head.path_and_query =
        head.fields.adopt(&whole).ok_or(RequestError::new(TOO_LARGE, "request head too large"))?;
    Ok(())
}

/// The fields HTTP/1 itself looks at.
#[derive(Default)]
struct Known<'a> {
    framing: Framing<'a>,
    host: Option<&'a [u8]>,
    host_span: maitred_http::fields::Span,
    hosts: usize,
    expect: Expect,
    content_type: Option<&'a [u8]>,
    types_differ: bool,
    has_upgrade: bool,
    close: bool,
    keep_alive: bool,
    upgrade: bool,
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
    fn note(&mut self, field: &Header<'a>, value: maitred_http::fields::Span) {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => {
                self.host = Some(field.value);
                self.host_span = value;
                self.hosts += 1;
            }
            6 if is("expect") => self.note_expect(field.value),
            7 if is("upgrade") => self.has_upgrade = true,
            10 if is("connection") => self.note_connection(field.value),
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

    fn note_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
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
            keep_alive: !self.close && (is_11 || self.keep_alive),
            expect_continue: is_11 && !complete && self.expect == Expect::Continue,
            upgrade: is_11 && self.upgrade && self.has_upgrade,
            target_form,
        })
    }
}
