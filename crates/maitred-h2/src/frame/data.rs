//! DATA (RFC 9113 §6.1): a part of a body. Its payload is never gathered, so that only the start of one is read here.

use super::{DATA, END_STREAM, Header, PADDED};
use crate::error::ConnectionError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    /// Bytes before the content: the length of the padding, where there is one.
    pub(crate) before: u32,
    pub(crate) content: u32,
    pub(crate) padding: u32,
    pub(crate) ends: bool,
}

impl Data {
    /// Reads how a frame is made; `None` where the length of its padding has not come yet.
    /// Errors: it is on no stream, or there is more padding than payload.
    pub(crate) fn read(header: Header, payload: &[u8]) -> Result<Option<Self>, ConnectionError> {
        header.on_stream("DATA on stream 0")?;
        let ends = header.has(END_STREAM);
        if !header.has(PADDED) {
            return Ok(Some(Self { before: 0, content: header.length, padding: 0, ends }));
        }
        if header.length == 0 {
            return Err(ConnectionError::size("DATA without the length of its padding"));
        }
        let Some(padding) = payload.first() else { return Ok(None) };
        let padding = u32::from(*padding);
        match (header.length - 1).checked_sub(padding) {
            Some(content) => Ok(Some(Self { before: 1, content, padding, ends })),
            None => Err(ConnectionError::protocol("DATA with more padding than payload")),
        }
    }

    pub(crate) fn put(stream: u32, length: u32, ends: bool, out: &mut Vec<u8>) {
        Header { length, kind: DATA, flags: if ends { END_STREAM } else { 0 }, stream }.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_within_the_payload() {
        let header = |length, flags, stream| Header { length, kind: DATA, flags, stream };
        let data = |before, content, padding, ends| Ok(Some(Data { before, content, padding, ends }));
        assert_eq!(Data::read(header(4, END_STREAM, 1), b""), data(0, 4, 0, true));
        assert_eq!(Data::read(header(0, 0, 1), b""), data(0, 0, 0, false));
        assert_eq!(Data::read(header(4, PADDED, 1), b""), Ok(None));
        assert_eq!(Data::read(header(4, PADDED, 1), b"\x02"), data(1, 1, 2, false));
        assert_eq!(Data::read(header(4, PADDED, 1), b"\x03"), data(1, 0, 3, false));
        let code = |read: Result<_, ConnectionError>| read.expect_err("refused").code;
        use crate::error::ErrorCode::{FrameSizeError, ProtocolError};
        assert_eq!(code(Data::read(header(4, PADDED, 1), b"\x04")), ProtocolError);
        assert_eq!(code(Data::read(header(0, PADDED, 1), b"")), FrameSizeError);
        assert_eq!(code(Data::read(header(4, 0, 0), b"")), ProtocolError);
    }
}
