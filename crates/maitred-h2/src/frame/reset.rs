//! RST_STREAM (RFC 9113 §6.4): nothing more of a stream.

use super::{Header, RST_STREAM};
use crate::error::{ConnectionError, ErrorCode};

/// Checks a complete payload. The code is not read: with any code the response is not wanted any more.
/// Errors: it is on no stream, or has not the length of one.
pub(crate) fn read_reset(header: Header) -> Result<(), ConnectionError> {
    header.on_stream("RST_STREAM on stream 0")?;
    if header.length == 4 { Ok(()) } else { Err(ConnectionError::size("RST_STREAM without 4 bytes")) }
}

pub(crate) fn put_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    Header { length: 4, kind: RST_STREAM, flags: 0, stream }.put(out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}
