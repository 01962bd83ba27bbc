//! SETTINGS (RFC 9113 §6.5): the limits of a peer.

use super::{ACK, Header, SETTINGS};
use crate::error::ConnectionError;

pub(crate) type Setting = (u16, u32);

const SETTING: usize = 6;

/// Reads a complete payload; `None` where it is an acknowledgement.
/// Errors: it is on a stream, or has not the length of one.
pub(crate) fn read_settings(header: Header, payload: &[u8]) -> Result<Option<&[u8]>, ConnectionError> {
    header.on_connection("SETTINGS on a stream")?;
    if header.has(ACK) {
        let is_empty = payload.is_empty();
        return if is_empty {
            Ok(None)
        } else {
            Err(ConnectionError::size("an acknowledgement with settings"))
        };
    }
    if !payload.len().is_multiple_of(SETTING) {
        return Err(ConnectionError::size("SETTINGS whose length is no multiple of 6"));
    }
    Ok(Some(payload))
}

pub(crate) fn each(payload: &[u8]) -> impl ExactSizeIterator<Item = Setting> {
    payload.chunks_exact(SETTING).map(|setting| match setting {
        [n0, n1, v0, v1, v2, v3] => {
            (u16::from_be_bytes([*n0, *n1]), u32::from_be_bytes([*v0, *v1, *v2, *v3]))
        }
        _ => (0, 0),
    })
}

pub(crate) fn put_settings(settings: Option<&[Setting]>, out: &mut Vec<u8>) {
    let (flags, settings) = settings.map_or((ACK, &[][..]), |settings| (0, settings));
    let length = (settings.len() * SETTING) as u32;
    Header { length, kind: SETTINGS, flags, stream: 0 }.put(out);
    for (number, value) in settings {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let settings = [(1, 4096), (0x9, 1), (0xffff, u32::MAX)];
        let mut out = Vec::new();
        put_settings(Some(&settings), &mut out);
        let header = Header::read(&out).expect("a header");
        let payload = read_settings(header, &out[9..]).expect("a frame").expect("settings");
        assert!(each(payload).eq(settings));
        out.clear();
        put_settings(None, &mut out);
        assert_eq!(read_settings(Header::read(&out).expect("a header"), b""), Ok(None));
    }
}
