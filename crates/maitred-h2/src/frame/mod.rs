//! Frames (RFC 9113 §4.1, §6; RFC 9218 §7.1): one file for each type. Each reads the frames of a client and writes
//! those of a server.

mod continuation;
mod data;
mod goaway;
mod headers;
mod ping;
mod priority;
mod priority_update;
mod reset;
mod settings;
mod window_update;

pub(crate) use continuation::put_split;
pub(crate) use data::Data;
pub(crate) use goaway::{put_goaway, read_goaway};
pub(crate) use headers::{Headers, put_headers};
pub(crate) use ping::{put_ping, read_ping};
pub(crate) use priority::{Dependency, read_priority};
pub(crate) use priority_update::read_priority_update;
pub(crate) use reset::{put_reset, read_reset};
pub(crate) use settings::{each as each_setting, put_settings, read_settings};
pub(crate) use window_update::{put_window_update, read_window_update};

use crate::error::ConnectionError;

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PUSH_PROMISE: u8 = 0x5;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;
pub(crate) const PRIORITY_UPDATE: u8 = 0x10;

/// Flags; the two with the number 1 are of different types.
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const HAS_PRIORITY: u8 = 0x20;

/// The largest number of a stream, and the largest window.
pub(crate) const MAX_31: u32 = (1 << 31) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the payload, below 2^24.
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Header {
    pub(crate) const LENGTH: usize = 9;

    /// The header at the start of `data`, if it is complete. The reserved bit is ignored.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let ([l0, l1, l2, kind, flags, s0, s1, s2, s3], _) = data.split_first_chunk::<{ Self::LENGTH }>()?;
        Some(Self {
            length: u32::from_be_bytes([0, *l0, *l1, *l2]),
            kind: *kind,
            flags: *flags,
            stream: u32::from_be_bytes([*s0, *s1, *s2, *s3]) & MAX_31,
        })
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    pub(crate) fn bytes(self) -> [u8; Self::LENGTH] {
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn on_stream(self, reason: &'static str) -> Result<(), ConnectionError> {
        if self.stream == 0 { Err(ConnectionError::protocol(reason)) } else { Ok(()) }
    }

    fn on_connection(self, reason: &'static str) -> Result<(), ConnectionError> {
        if self.stream == 0 { Ok(()) } else { Err(ConnectionError::protocol(reason)) }
    }
}

/// A number of 31 bits behind a bit that is reserved.
fn number(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & MAX_31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header { length: 0x0001_0203, kind: 9, flags: 0x25, stream: 0x7fff_fffe };
        let mut out = Vec::new();
        header.put(&mut out);
        assert_eq!(out, [1, 2, 3, 9, 0x25, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(Header::read(&out), Some(header));
        assert_eq!(Header::read(&out[..8]), None);
        out[5] |= 0x80;
        assert_eq!(Header::read(&out), Some(header), "the reserved bit is ignored");
    }
}
