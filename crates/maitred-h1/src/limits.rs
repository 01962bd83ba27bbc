//! How much of a message is accepted. Body size is not limited here: the server knows the route.

use maitred_http::limits::{
    MAX_CHUNK_EXTENSIONS, MAX_CHUNK_LINE, MAX_FIELD_LINE, MAX_FIELDS, MAX_HEAD, MAX_METHOD, MAX_TARGET,
    MAX_TRAILER_FIELDS, MAX_TRAILERS,
};

/// Limits for one connection. A value equal to a limit is accepted, one more is refused. The defaults have their
/// reasons and sources in [`maitred_http::limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, from the request line to the blank line, both included. Past it: 431.
    pub max_head: usize,
    /// Bytes of a method. Past it: 501.
    pub max_method: usize,
    /// Bytes of a request target. Past it: 414.
    pub max_target: usize,
    /// Fields in a head; more than [`MAX_FIELDS`], 200 of a response, has no effect. Past it: 431.
    pub max_fields: usize,
    /// Bytes of one field, name and value. Past it: 431.
    pub max_field_line: usize,
    /// Empty lines before a request line. Past it: 400.
    pub max_empty_lines: u8,
    /// Bytes of a chunk-size line with its extensions, without CRLF. Past it: 400.
    pub max_chunk_line: usize,
    /// Bytes of all chunk extensions of one body. Past it: 400.
    pub max_chunk_extensions: usize,
    /// Bytes of a trailer section with its blank line. Past it: 431.
    pub max_trailers: usize,
    /// Fields in a trailer section; more than [`MAX_FIELDS`] has no effect. Past it: 431.
    pub max_trailer_fields: usize,
}

/// The most fields that can be parsed: their slots stand on the stack, 32 bytes each.
pub(crate) const FIELD_SLOTS: usize = MAX_FIELDS;

/// The same of a response. Source: twice hyper's 100, as servers of applications send more fields than browsers.
pub(crate) const RESPONSE_FIELD_SLOTS: usize = 200;

/// Source: RFC 9112 §2.2 asks for at least one; one more for a client that ends a body with CRLF
/// and starts a request with it too.
const MAX_EMPTY_LINES: u8 = 2;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_head: MAX_HEAD,
            max_method: MAX_METHOD,
            max_target: MAX_TARGET,
            max_fields: MAX_FIELDS,
            max_field_line: MAX_FIELD_LINE,
            max_empty_lines: MAX_EMPTY_LINES,
            max_chunk_line: MAX_CHUNK_LINE,
            max_chunk_extensions: MAX_CHUNK_EXTENSIONS,
            max_trailers: MAX_TRAILERS,
            max_trailer_fields: MAX_TRAILER_FIELDS,
        }
    }
}

impl Limits {
    /// The limits for a server, which has been chosen, while a client has come: one field may fill a head, and there may be
    /// 200 of them. Limits of the start line do not matter.
    pub fn of_responses() -> Self {
        Self { max_fields: RESPONSE_FIELD_SLOTS, max_field_line: MAX_HEAD, ..Self::default() }
    }

    /// The longest request line that can be within the limits: method, space, target, space,
    /// version, CRLF.
    pub(crate) fn max_request_line(&self) -> usize {
        self.max_method.saturating_add(self.max_target).saturating_add(" ".len() + " HTTP/1.1\r\n".len())
    }
}
