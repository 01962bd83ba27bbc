//! PING (RFC 9113 §6.7): whether the other side is there.

use super::{ACK, Header, PING};
use crate::error::ConnectionError;

/// Reads a complete payload: the bytes to send back, and whether they have come back.
/// Errors: it is on a stream, or has not the length of one.
pub(crate) fn read_ping(header: Header, payload: &[u8]) -> Result<([u8; 8], bool), ConnectionError> {
    header.on_connection("PING on a stream")?;
    let bytes = payload.try_into().map_err(|_| ConnectionError::size("PING without 8 bytes"))?;
    Ok((bytes, header.has(ACK)))
}

pub(crate) fn put_ping(bytes: [u8; 8], acknowledges: bool, out: &mut Vec<u8>) {
    Header { length: 8, kind: PING, flags: if acknowledges { ACK } else { 0 }, stream: 0 }.put(out);
    out.extend_from_slice(&bytes);
}
