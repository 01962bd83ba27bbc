//! WINDOW_UPDATE (RFC 9113 §6.9): credit.

use super::{Header, WINDOW_UPDATE, number};
use crate::error::ConnectionError;

/// Reads a complete payload: how many bytes, which may be none.
/// Errors: it has not the length of one.
pub(crate) fn read_window_update(payload: &[u8]) -> Result<u32, ConnectionError> {
    let bytes = payload.try_into().map_err(|_| ConnectionError::size("WINDOW_UPDATE without 4 bytes"))?;
    Ok(number(bytes))
}

pub(crate) fn put_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    Header { length: 4, kind: WINDOW_UPDATE, flags: 0, stream }.put(out);
    out.extend_from_slice(&bytes.to_be_bytes());
}
