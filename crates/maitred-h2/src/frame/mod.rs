//! Frames (RFC 9113 §4.1, §6): one file for each type.

pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
