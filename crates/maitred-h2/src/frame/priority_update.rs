//! PRIORITY_UPDATE (RFC 9218 §7.1): a priority for a stream that is open or to come.

use super::{Header, number};
use crate::error::ConnectionError;

/// Reads a complete payload: the stream that is meant, and the field's value.
/// Errors: it is on a stream itself, it is too short, or it means none that a client can open.
pub(crate) fn read_priority_update(header: Header, payload: &[u8]) -> Result<(u32, &[u8]), ConnectionError> {
    header.on_connection("PRIORITY_UPDATE on a stream")?;
    let short = ConnectionError::size("PRIORITY_UPDATE without a stream");
    let (stream, value) = payload.split_first_chunk::<4>().ok_or(short)?;
    match number(*stream) {
        stream if stream % 2 == 1 => Ok((stream, value)),
        _ => Err(ConnectionError::protocol("PRIORITY_UPDATE for a stream that no client opens")),
    }
}
