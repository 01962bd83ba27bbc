//! What a client sent, made harmless for a line of text or of JSON.

use std::io::Write as _;

use crate::format::Escape;

#[inline]
pub(crate) fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], escape: Escape) {
    match escape {
        _ if is_plain(bytes) => out.extend_from_slice(bytes),
        Escape::Text => push_printable(out, bytes),
        Escape::Json => push_json(out, bytes),
    }
}

/// Whether a text can stand in a line as it is: printable ASCII without quotation mark and backslash. Without a branch for each byte.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    let needs_care = |byte: u8| !(b' '..=b'~').contains(&byte) | (byte == b'"') | (byte == b'\\');
    !text.iter().fold(false, |any, byte| any | needs_care(*byte))
}

/// A quotation mark and a backslash get a backslash, everything outside printable ASCII is `\xNN`.
#[cold]
fn push_printable(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            // Writing to memory does not fail.
            _ => _ = write!(out, "\\x{byte:02x}"),
        }
    }
}

/// The inside of a JSON string (RFC 8259, section 7), all in ASCII; what is not UTF-8 is U+FFFD.
#[cold]
fn push_json(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                ' '..='~' => out.push(character as u8),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
}
