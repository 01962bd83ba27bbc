//! PRIORITY (RFC 9113 §6.3): the place in a tree of streams, which is deprecated. It is checked, and there is no tree.

use super::{Header, number};
use crate::error::ConnectionError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) stream: u32,
}

impl Dependency {
    /// Weight and exclusive bit say nothing here.
    pub(crate) fn read([s0, s1, s2, s3, _weight]: [u8; 5]) -> Self {
        Self { stream: number([s0, s1, s2, s3]) }
    }
}

/// Reads a complete payload; `None` where it has not the length of one, which is an error of the stream.
/// Errors: it is on no stream.
pub(crate) fn read_priority(header: Header, payload: &[u8]) -> Result<Option<Dependency>, ConnectionError> {
    header.on_stream("PRIORITY on stream 0")?;
    Ok(payload.try_into().ok().map(Dependency::read))
}
