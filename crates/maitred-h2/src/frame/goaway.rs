//! GOAWAY (RFC 9113 §6.8): the last of a connection.

use super::{GOAWAY, Header};
use crate::error::{ConnectionError, ErrorCode};

/// Checks a complete payload. Its last stream concerns streams that a server opens, and there are none.
/// Errors: it is on a stream, or too short.
pub(crate) fn read_goaway(header: Header) -> Result<(), ConnectionError> {
    header.on_connection("GOAWAY on a stream")?;
    if header.length >= 8 { Ok(()) } else { Err(ConnectionError::size("GOAWAY without 8 bytes")) }
}

pub(crate) fn put_goaway(last: u32, code: ErrorCode, text: &str, out: &mut Vec<u8>) {
    // The texts are ours, of some words.
    Header { length: 8 + text.len() as u32, kind: GOAWAY, flags: 0, stream: 0 }.put(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
