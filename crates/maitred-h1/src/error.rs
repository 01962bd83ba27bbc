//! Errors of messages and of heads: the cause, and the part of the connection that is lost.

use std::fmt;

use maitred_http::Status;

/// The peer sent a request that is not answered by a handler. The connection is lost with it: where
/// the next request would start is no longer certain. Answer with `status` and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// The status to answer with: 400, 414, 417, 431, 501 or 505.
    pub status: Status,
    /// The reason, for the error log; contains nothing the peer sent.
    pub reason: &'static str,
}

impl RequestError {
    pub(crate) const fn new(status: Status, reason: &'static str) -> Self {
        Self { status, reason }
    }

    pub(crate) const fn bad(reason: &'static str) -> Self {
        Self::new(Status::BAD_REQUEST, reason)
    }
}

impl From<Malformed> for RequestError {
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.status(), malformed.reason())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.reason)
    }
}

impl std::error::Error for RequestError {}

/// The kinds of messages that are not HTTP/1, cut off, or readable in two ways. The connection is lost with such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    // Lines and fields.
    /// A line ends in LF without CR.
    BareLf,
    /// A field name is not a token, is missing, or the line is folded.
    FieldName,
    /// A field value has a control character.
    FieldValue,
    /// A line end is none.
    LineEnd,
    /// There are more fields than the limit.
    TooManyFields,
    /// A field is longer than the limit.
    FieldTooLarge,
    // Framing fields.
    /// Both `Content-Length` and `Transfer-Encoding` (RFC 9112 §6.3).
    TwoLengths,
    /// `Content-Length` or `Transfer-Encoding` is there twice.
    RepeatedLength,
    /// `Content-Length` is not one number below 2^64.
    ContentLength,
    /// `Transfer-Encoding` in HTTP/1.0 (RFC 9112 §6.1).
    EncodingInHttp10,
    /// A transfer coding without a name.
    EmptyCoding,
    /// `chunked` is not the final transfer coding.
    ChunkedNotLast,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// `chunked` is applied more than once.
    ChunkedTwice,
    // Chunks and trailers.
    /// A chunk size is not one hexadecimal number.
    ChunkSize,
    /// A chunk size has more than 16 digits.
    ChunkDigits,
    /// A chunk-size line is longer than the limit.
    ChunkLineTooLong,
    /// A chunk-size line has a CR within.
    ChunkLineCr,
    /// A chunk extension does not follow its grammar.
    ChunkExtension,
    /// A chunk extension has a control character.
    ChunkExtensionControl,
    /// The extensions of a body are longer than the limit.
    ChunkExtensionsTooLong,
    /// The data of a chunk does not end in CRLF.
    ChunkEnd,
    /// A trailer is no field.
    Trailer,
    /// There are more trailers than the limit.
    TooManyTrailers,
    /// The trailer section is longer than the limit.
    TrailersTooLarge,
    // Responses only.
    /// The peer does not begin with a status line of HTTP.
    StatusLine,
    /// The status line names another version than HTTP/1.
    Version,
    /// The status is not three digits from 100 to 999.
    StatusCode,
    /// The reason phrase has a control character.
    Reason,
    /// The head is longer than the limit.
    HeadTooLarge,
    /// The peer changes the protocol, which the request has not asked for.
    UnaskedSwitch,
    /// The peer closed before any byte of a response.
    NoResponse,
    /// The peer closed within the head.
    CutInHead,
    /// The peer closed before the length that it had declared.
    ShortBody,
    /// The peer closed before the last chunk and its trailers.
    CutInChunks,
    /// A response before this one was malformed.
    AfterMalformed,
}

impl Malformed {
    /// The reason in words; contains nothing the peer sent.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BareLf => "a line ends in LF without CR",
            Self::FieldName => "malformed field name, or a folded line",
            Self::FieldValue => "control character in a field value",
            Self::LineEnd => "malformed line end",
            Self::TooManyFields => "too many fields",
            Self::FieldTooLarge => "field too large",
            Self::TwoLengths => "both Content-Length and Transfer-Encoding (RFC 9112 section 6.3)",
            Self::RepeatedLength => "a framing field is there twice",
            Self::ContentLength => "Content-Length is not one number below 2^64",
            Self::EncodingInHttp10 => "Transfer-Encoding in HTTP/1.0 (RFC 9112 section 6.1)",
            Self::EmptyCoding => "an empty transfer coding",
            Self::ChunkedNotLast => "chunked is not the final transfer coding",
            Self::UnknownCoding => "unknown transfer coding",
            Self::ChunkedTwice => "chunked is applied more than once",
            Self::ChunkSize => "invalid chunk size",
            Self::ChunkDigits => "chunk size of more than 16 digits",
            Self::ChunkLineTooLong => "chunk-size line too long",
            Self::ChunkLineCr => "bare CR in a chunk-size line",
            Self::ChunkExtension => "malformed chunk extension",
            Self::ChunkExtensionControl => "control character in a chunk extension",
            Self::ChunkExtensionsTooLong => "too many bytes of chunk extensions",
            Self::ChunkEnd => "chunk data does not end in CRLF",
            Self::Trailer => "malformed trailer",
            Self::TooManyTrailers => "too many trailers",
            Self::TrailersTooLarge => "trailer section too large",
            Self::StatusLine => "the response does not begin with a status line",
            Self::Version => "the response is of another version than HTTP/1",
            Self::StatusCode => "the status is not three digits from 100 to 999",
            Self::Reason => "control character in the reason phrase",
            Self::HeadTooLarge => "response head too large",
            Self::UnaskedSwitch => "the server changes the protocol unasked",
            Self::NoResponse => "the server closed the connection without a response",
            Self::CutInHead => "the server closed the connection within the head of its response",
            Self::ShortBody => "the server closed the connection before the end of the body's length",
            Self::CutInChunks => "the server closed the connection before the last chunk",
            Self::AfterMalformed => "a response before this one was malformed",
        }
    }

    /// The status that answers a request with this fault.
    const fn status(self) -> Status {
        match self {
            Self::TooManyFields | Self::FieldTooLarge | Self::TooManyTrailers | Self::TrailersTooLarge => {
                Status::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::UnknownCoding => Status::NOT_IMPLEMENTED,
            _ => Status::BAD_REQUEST,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Malformed {}

/// The application gave a head that cannot be sent. Nothing was appended; another head may be sent in its place, and only
/// this message is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// A field name is not a token (RFC 9110 §5.6.2). The name is made printable.
    InvalidName(String),
    /// The value of the named field contains CR, LF, NUL or another control character (RFC 9110 §5.5).
    InvalidValue(String),
    /// The reason phrase contains a control character.
    InvalidReason,
    /// `Content-Length` is not a number, or several differ.
    ContentLength,
    /// A status below 200 does not end an exchange; see [`Sender::send_interim`](crate::Sender::send_interim).
    InterimStatus(Status),
    /// No status of an interim response that an application may send.
    NotInterim(Status),
    /// The head was sent already, or the response has ended.
    AlreadySent,
    /// The method of a request is not a token.
    InvalidMethod,
    /// The target of a request has no form that fits its method, or a byte outside printable ASCII (RFC 9112 §3.2).
    InvalidTarget,
    /// `Host` is there twice, or is no authority.
    InvalidHost,
    /// `Transfer-Encoding` of a request is not `chunked`, or stands beside a length.
    TransferEncoding,
    /// `Expect` of a request is not `100-continue`.
    Expectation,
    /// A request of this method has no body.
    Body,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(name) => write!(f, "the field name {name:?} is not a token"),
            Self::InvalidValue(name) => {
                write!(f, "the value of the field {name:?} contains a line break or control character")
            }
            Self::InvalidReason => f.write_str("the reason phrase contains a control character"),
            Self::ContentLength => f.write_str("Content-Length is not one single number"),
            Self::InterimStatus(status) => write!(f, "{status} is no final status"),
            Self::NotInterim(status) => write!(f, "{status} is no interim status from 102 to 199"),
            Self::AlreadySent => f.write_str("the response head was sent already"),
            Self::InvalidMethod => f.write_str("the method is not a token"),
            Self::InvalidTarget => {
                f.write_str("the request target does not fit the method, or is not printable ASCII")
            }
            Self::InvalidHost => f.write_str("Host is not one host with a port"),
            Self::TransferEncoding => f.write_str("Transfer-Encoding is not chunked, or the length is known"),
            Self::Expectation => f.write_str("Expect is not 100-continue"),
            Self::Body => f.write_str("CONNECT and TRACE have no body"),
        }
    }
}

impl std::error::Error for HeadError {}
