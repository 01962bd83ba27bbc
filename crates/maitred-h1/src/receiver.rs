//! The receiving half: bytes in, events out.
//!
//! ```text
//!   ,----------------- a head without body ----------------.
//!   v                                                       |
//! Head --Content-Length--> Fixed --all data--> End --.      |
//!   |  `--chunked--> Chunked --last chunk--> Trailers |     |
//!   |                                          |      |     |
//!   ^------------------------------------------+------+-----'
//!
//! any --RequestError--> Failed (for ever)
//! ```
//!
//! Sections below: the head; framing; the target.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};
use maitred_http::{BodyLength, FieldSet, Method, RequestHead, Status, Version};

use crate::chunked::{Chunked, Progress};
use crate::error::RequestError;
use crate::limits::{FIELD_SLOTS, Limits};
use crate::lines::{line_end, section_end};
use crate::trailers;

/// The receiving half of a connection. It owns no buffer: the caller drops what was consumed, keeps
/// the rest and offers it again with more behind it.
#[derive(Debug, Default)]
pub struct Receiver {
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head(Scan),
    Fixed { left: u64 },
    Chunked(Chunked),
    Trailers { scanned: usize },
    End,
    Failed,
}

/// How far an incomplete head was looked through, so that no byte is searched twice.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    position: usize,
    empty_lines: u8,
    line_checked: bool,
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Scan::default())
    }
}

/// What one look at the input gave.
#[derive(Debug)]
pub struct Step<'a> {
    /// Bytes at the start of the input that are done with, whatever the event; data included.
    pub consumed: usize,
    /// What happened.
    pub event: Event<'a>,
}

/// What happened. A request is one `Head`; then, unless the head is [`complete`](HeadFacts::complete),
/// any number of `Data`, at most one `Trailers`, and `End`.
#[derive(Debug)]
pub enum Event<'a> {
    /// Nothing more can be said before more bytes arrive behind those that are left.
    NeedMore,
    /// A head is complete and stands in the [`RequestHead`] that was offered.
    Head(HeadFacts),
    /// Body bytes, decoded, never empty.
    Data(&'a [u8]),
    /// The trailer section of a chunked body, without fields that are forbidden there. Absent when
    /// the section is empty.
    Trailers(Box<FieldSet>),
    /// The body is complete. The next call looks for the next request.
    End,
}

impl Receiver {
    /// A receiver that waits for the first request.
    pub const fn new() -> Self {
        Self { state: State::Head(Scan { position: 0, empty_lines: 0, line_checked: false }) }
    }

    /// Whether the receiver stands between two requests: nothing of the next one was seen, the end
    /// of the one before was reported.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Head(Scan { position: 0, .. }))
    }

    /// How many bytes are left of a body of known length that is being received.
    pub fn fixed_left(&self) -> Option<u64> {
        match self.state {
            State::Fixed { left } => Some(left),
            _ => None,
        }
    }

    /// The caller has received so many bytes of that body elsewhere, at most as many as are [left](Self::fixed_left). Nothing that
    /// was offered here and not consumed may be waiting.
    pub fn skip_fixed(&mut self, bytes: u64) {
        if let State::Fixed { left } = self.state {
            let left = left.saturating_sub(bytes);
            self.state = if left == 0 { State::End } else { State::Fixed { left } };
        }
    }

    /// Looks at `input` and returns at most one event. `head` is written to only when the event is
    /// [`Event::Head`] or an error; its memory is used again. Call again with the rest of the input until
    /// [`Event::NeedMore`]. The events do not depend on how the bytes are cut.
    ///
    /// # Errors
    /// The request is refused; every later call is too. 400: malformed, or readable in two ways;
    /// 414: target too long; 417: an expectation other than `100-continue`; 431: head or trailers too
    /// large; 501: unknown transfer coding, or method too long; 505: another protocol version.
    pub fn poll_event<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut RequestHead,
        limits: &Limits,
    ) -> Result<Step<'a>, RequestError> {
        let polled = match self.state {
            State::Head(scan) => self.poll_head(scan, input, head, limits),
            State::Fixed { left } => Ok(self.poll_fixed(left, input)),
            State::Chunked(chunked) => self.poll_chunked(chunked, input, limits),
            State::Trailers { scanned } => self.poll_trailers(scanned, input, limits),
            State::End => {
                self.state = State::default();
                Ok(Step { consumed: 0, event: Event::End })
            }
            State::Failed => Err(RequestError::bad("a request before this one was refused")),
        };
        if polled.is_err() {
            self.state = State::Failed;
        }
        polled
    }

    fn poll_head<'a>(
        &mut self,
        mut scan: Scan,
        input: &[u8],
        head: &mut RequestHead,
        limits: &Limits,
    ) -> Result<Step<'a>, RequestError> {
        let skipped = scan.skip_empty_lines(input, limits)?;
        let rest = input.get(skipped..).unwrap_or_default();
        let window = rest.get(..limits.max_head).unwrap_or(rest);
        // Nearly every head arrives in one piece. What is wrong with one is said by the careful way
        // below, so that the answer is the same however the bytes are cut.
        if scan.position == 0
            && window.first().is_some_and(u8::is_ascii_graphic)
            && let Ok(Some((length, facts))) = read(window, head, limits)
        {
            return Ok(self.head_done(skipped + length, facts, head));
        }
        let Some(end) = scan.find_end(window, limits)? else {
            self.state = State::Head(scan);
            return Ok(Step { consumed: skipped, event: Event::NeedMore });
        };
        match read(window.get(..end).unwrap_or_default(), head, limits)? {
            Some((length, facts)) => Ok(self.head_done(skipped + length, facts, head)),
            None => Err(RequestError::bad("malformed request head")),
        }
    }

    fn head_done<'a>(&mut self, consumed: usize, facts: HeadFacts, head: &RequestHead) -> Step<'a> {
        self.state = match head.body {
            BodyLength::Fixed(left) if left > 0 => State::Fixed { left },
            BodyLength::Chunked => State::Chunked(Chunked::default()),
            BodyLength::Fixed(_) | BodyLength::Empty | BodyLength::UntilClose => State::default(),
        };
        Step { consumed, event: Event::Head(facts) }
    }

    fn poll_fixed<'a>(&mut self, left: u64, input: &'a [u8]) -> Step<'a> {
        let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let left = left - length as u64;
        self.state = if left == 0 { State::End } else { State::Fixed { left } };
        data(input, 0, length)
    }

    fn poll_chunked<'a>(
        &mut self,
        mut chunked: Chunked,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<Step<'a>, RequestError> {
        let (consumed, progress) = chunked.advance(input, limits)?;
        self.state = State::Chunked(chunked);
        match progress {
            Progress::NeedMore => Ok(Step { consumed, event: Event::NeedMore }),
            Progress::Data(length) => Ok(data(input, consumed, length)),
            Progress::Last => {
                let step = self.poll_trailers(0, input.get(consumed..).unwrap_or_default(), limits)?;
                Ok(Step { consumed: consumed + step.consumed, event: step.event })
            }
        }
    }

    fn poll_trailers<'a>(
        &mut self,
        scanned: usize,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<Step<'a>, RequestError> {
        if input.starts_with(b"\r\n") {
            self.state = State::default();
            return Ok(Step { consumed: 2, event: Event::End });
        }
        let window = input.get(..limits.max_trailers).unwrap_or(input);
        if let Some(end) = section_end(window, scanned)? {
            let trailers = trailers::read(window.get(..end).unwrap_or_default(), limits)?;
            self.state = State::End;
            return Ok(Step { consumed: end, event: Event::Trailers(Box::new(trailers)) });
        }
        if window.len() >= limits.max_trailers {
            let status = Status::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(RequestError::new(status, "trailer section too large"));
        }
        self.state = State::Trailers { scanned: window.len() };
        Ok(Step { consumed: 0, event: Event::NeedMore })
    }
}

/// `length` bytes of data behind `start` bytes of framing.
fn data(input: &[u8], start: usize, length: usize) -> Step<'_> {
    match input.get(start..start + length) {
        Some(bytes) if !bytes.is_empty() => Step { consumed: start + length, event: Event::Data(bytes) },
        _ => Step { consumed: start, event: Event::NeedMore },
    }
}

impl Scan {
    /// RFC 9112 §2.2: empty lines before a request line are skipped, for old clients that send one
    /// behind a body. Returns how many bytes they have.
    fn skip_empty_lines(&mut self, input: &[u8], limits: &Limits) -> Result<usize, RequestError> {
        let mut skipped = 0;
        while self.position == 0 && input.get(skipped..).is_some_and(|rest| rest.starts_with(b"\r\n")) {
            skipped += 2;
            self.empty_lines = self.empty_lines.saturating_add(1);
            if self.empty_lines > limits.max_empty_lines {
                return Err(RequestError::bad("too many empty lines before a request"));
            }
        }
        Ok(skipped)
    }

    /// Looks through the bytes of `window` that are new and returns where the head ends. The request line
    /// is judged as soon as it is there, the fields when all of them are.
    fn find_end(&mut self, window: &[u8], limits: &Limits) -> Result<Option<usize>, RequestError> {
        match window {
            [] | [b'\r'] => return Ok(None),
            // Not the start of a method: for example a TLS hello, which may never have a line end.
            [first, ..] if !first.is_ascii_graphic() => {
                return Err(RequestError::bad("the request does not start with a method"));
            }
            _ => {}
        }
        if !self.line_checked {
            let line = window.get(..limits.max_request_line()).unwrap_or(window);
            let Some(end) = line_end(line, self.position)? else {
                if line.len() >= limits.max_request_line() {
                    return Err(endless_request_line(line, limits));
                }
                if window.len() >= limits.max_head {
                    return Err(too_large());
                }
                self.position = window.len();
                return Ok(None);
            };
            check_request_line(window.get(..end).unwrap_or_default(), limits)?;
            self.line_checked = true;
            self.position = end;
        }
        let end = section_end(window, self.position)?;
        self.position = window.len();
        if end.is_none() && window.len() >= limits.max_head {
            return Err(too_large());
        }
        Ok(end)
    }
}

fn too_large() -> RequestError {
    RequestError::new(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, "request head too large")
}

// ---- The head ----
//
// Reading a request head: httparse finds the parts, the rules are here.

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

    let parts = parse(&head.method, path.as_bytes())?;
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

// ---- Framing ----
//
// How long the request's body is (RFC 9112 §6), refusing what could be read in two ways.

/// What the framing fields of a head say, gathered while its fields are walked.
#[derive(Default)]
pub(crate) struct Framing<'a> {
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    repeated: bool,
}

impl<'a> Framing<'a> {
    pub(crate) fn content_length(&mut self, value: &'a [u8]) {
        self.repeated |= self.content_length.replace(value).is_some();
    }

    pub(crate) fn transfer_encoding(&mut self, value: &'a [u8]) {
        self.repeated |= self.transfer_encoding.replace(value).is_some();
    }

    /// The length of the body.
    ///
    /// # Errors
    /// 400 for everything that has been used to smuggle requests; 501 for an unknown coding.
    pub(crate) fn body_length(&self, version: Version) -> Result<BodyLength, RequestError> {
        match (self.content_length, self.transfer_encoding) {
            (None, None) => Ok(BodyLength::Empty),
            (Some(_), Some(_)) => {
                Err(RequestError::bad("both Content-Length and Transfer-Encoding (RFC 9112 section 6.3)"))
            }
            _ if self.repeated => Err(RequestError::bad("a framing field is there twice")),
            (Some(value), None) => parse_content_length(value).map(BodyLength::Fixed),
            (None, Some(_)) if version == Version::Http10 => {
                Err(RequestError::bad("Transfer-Encoding in HTTP/1.0 (RFC 9112 section 6.1)"))
            }
            (None, Some(value)) => check_codings(value).map(|()| BodyLength::Chunked),
        }
    }
}

/// A number of bytes in decimal digits and nothing else (RFC 9110 §8.6). A list of equal numbers
/// may be accepted by the RFC; no client sends one, and a sign or white space is how filters are
/// passed by.
fn parse_content_length(value: &[u8]) -> Result<u64, RequestError> {
    parse_decimal(value).ok_or(RequestError::bad("Content-Length is not one number below 2^64"))
}

/// A decimal number of digits alone; `None` when it is empty, has anything else, or overflows.
pub(crate) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Only `chunked`, once and alone, is understood (RFC 9112 §6.1, §7).
fn check_codings(value: &[u8]) -> Result<(), RequestError> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let codings: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if codings.iter().any(|coding| coding.is_empty()) {
        return Err(RequestError::bad("an empty transfer coding"));
    }
    if codings.iter().any(|coding| !is_chunked(coding)) {
        if codings.iter().rev().skip(1).any(is_chunked) {
            return Err(RequestError::bad("chunked is not the final transfer coding"));
        }
        return Err(RequestError::new(Status::NOT_IMPLEMENTED, "unknown transfer coding"));
    }
    Err(RequestError::bad("chunked is applied more than once"))
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
pub(crate) struct Parts {
    pub(crate) form: TargetForm,
    /// Start and length of the authority within the target.
    pub(crate) authority: (usize, usize),
    /// Where path and query start; they reach to the end of the target.
    pub(crate) path: usize,
}

/// Takes a target apart.
///
/// # Errors
/// 400 for a form that does not fit the method, an unknown scheme, a malformed authority, a
/// fragment, or a byte outside printable ASCII.
pub(crate) fn parse(method: &Method, target: &[u8]) -> Result<Parts, RequestError> {
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
    if matches!(authority.first(), None | Some(b':')) || !is_authority(authority) {
        return Err(RequestError::bad("invalid authority in the request target"));
    }
    Ok(Parts { form: TargetForm::Absolute, authority: (start, length), path: start + length })
}

/// Whether `bytes` are `uri-host [":" port]` (RFC 9110 §7.2); empty is one.
pub(crate) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.first() {
        Some(b'[') => {
            let Some(close) = bytes.iter().position(|byte| *byte == b']') else {
                return false;
            };
            let (host, behind) = bytes.split_at_checked(close + 1).unwrap_or_default();
            let literal = host.get(1..close).unwrap_or_default();
            if literal.is_empty() || !is_host(literal, true) {
                return false;
            }
            (&b""[..], behind)
        }
        _ => bytes.split_at_checked(host_length(bytes)).unwrap_or_default(),
    };
    is_host(host, false)
        && match port.split_first() {
            None => true,
            Some((b':', digits)) => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
            Some(_) => false,
        }
}

fn host_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len())
}

/// reg-name of RFC 3986 §3.2.2, or what stands in brackets: a percent sign has two hexadecimal digits behind it (§2.1).
fn is_host(host: &[u8], colons: bool) -> bool {
    let mut rest = host;
    while let Some((byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'%', [first, second, behind @ ..])
                if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() =>
            {
                behind
            }
            (b'%', _) => return false,
            (b':', _) if colons => behind,
            _ if is_host_byte(*byte) => behind,
            _ => return false,
        };
    }
    true
}

/// Unreserved, percent sign and sub-delims.
fn is_host_byte(byte: u8) -> bool {
    HOST_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

const HOST_BYTES: [bool; 256] = {
    let mut left: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+,;=";
    let mut table = [false; 256];
    while let [byte, rest @ ..] = left {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[*byte as usize] = true;
        }
        left = rest;
    }
    table
};

#[cfg(test)]
mod framing_tests {
    use super::*;

    fn length(version: Version, lengths: &[&str], codings: &[&str]) -> Result<BodyLength, u16> {
        let mut framing = Framing::default();
        lengths.iter().for_each(|value| framing.content_length(value.as_bytes()));
        codings.iter().for_each(|value| framing.transfer_encoding(value.as_bytes()));
        framing.body_length(version).map_err(|error| error.status.code())
    }

    #[test]
    fn content_length_is_one_number_of_digits() {
        let cases: &[(&[&str], Result<BodyLength, u16>)] = &[
            (&[], Ok(BodyLength::Empty)),
            (&["0"], Ok(BodyLength::Fixed(0))),
            (&["0005"], Ok(BodyLength::Fixed(5))),
            (&["18446744073709551615"], Ok(BodyLength::Fixed(u64::MAX))),
            (&["18446744073709551616"], Err(400)),
            (&["99999999999999999999999"], Err(400)),
            (&[""], Err(400)),
            (&["+5"], Err(400)),
            (&["-5"], Err(400)),
            (&["5 "], Err(400)),
            (&["0x5"], Err(400)),
            (&["5,5"], Err(400)),
            (&["5, 6"], Err(400)),
            (&["5", "5"], Err(400)),
            (&["5", "6"], Err(400)),
        ];
        for (values, expected) in cases {
            assert_eq!(length(Version::Http11, values, &[]), *expected, "{values:?}");
        }
    }

    #[test]
    fn transfer_encoding_is_chunked_once_and_alone() {
        let cases: &[(&[&str], Result<BodyLength, u16>)] = &[
            (&["chunked"], Ok(BodyLength::Chunked)),
            (&["Chunked"], Ok(BodyLength::Chunked)),
            (&["chunked", "chunked"], Err(400)),
            (&["chunked, chunked"], Err(400)),
            (&["chunked, gzip"], Err(400)),
            (&["gzip, chunked"], Err(501)),
            (&["gzip"], Err(501)),
            (&["identity"], Err(501)),
            (&["xchunked"], Err(501)),
            (&["chunked;q=1"], Err(501)),
            (&["\u{b}chunked"], Err(501)),
            (&[""], Err(400)),
            (&["chunked,"], Err(400)),
            (&[",chunked"], Err(400)),
        ];
        for (values, expected) in cases {
            assert_eq!(length(Version::Http11, &[], values), *expected, "{values:?}");
        }
        assert_eq!(length(Version::Http10, &[], &["chunked"]), Err(400));
        assert_eq!(length(Version::Http11, &["5"], &["chunked"]), Err(400));
        assert_eq!(length(Version::Http11, &["0"], &["identity"]), Err(400));
    }
}

#[cfg(test)]
mod target_tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in [
            "",
            "a",
            "example.com",
            "a:80",
            "a:",
            "127.0.0.1:8000",
            "[::1]",
            "[::1]:80",
            "a_b",
            "x%41",
            "%e2%9C%93:80",
            "[fe80::1%25eth0]",
            "a,b",
        ] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b", "a/b", "u@a", "a:b", "a:1:2", "a:123456", "[::1", "[]", "[::1]x", "a?", "a#", "ä", "a\0",
            "a\\b", "<a>", "[a]b]:1", "a\"b", "::1", "a:+8", "%", "%zz", "a%4", "a%4:80", "%4g", "[::1%]",
            "[%zz]",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

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
