//! What a client sent, made harmless for a line of text or of JSON.

use std::io::Write as _;

use crate::format::Escape;
use crate::text::{Text, is_plain};

/// Appends what a client sent.
#[inline]
pub(crate) fn push_escaped(out: &mut Text, bytes: &[u8], escape: Escape) {
    match escape {
        _ if is_plain(bytes) => out.push(bytes),
        Escape::Text => push_printable(out, bytes),
        Escape::Json => push_json(out, bytes),
    }
}

/// A quotation mark and a backslash get a backslash, everything outside printable ASCII is `\xNN`.
#[cold]
fn push_printable(out: &mut Text, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.push(&[b'\\', *byte]),
            0x20..=0x7e => out.push(&[*byte]),
            // Writing to memory does not fail.
            _ => _ = write!(out, "\\x{byte:02x}"),
        }
    }
}

/// The inside of a JSON string (RFC 8259, section 7), all in ASCII; what is not UTF-8 is U+FFFD.
#[cold]
fn push_json(out: &mut Text, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.push(&[b'\\', character as u8]),
                ' '..='~' => out.push(&[character as u8]),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
        }
        if !chunk.invalid().is_empty() {
            out.push(b"\\ufffd");
        }
    }
}
