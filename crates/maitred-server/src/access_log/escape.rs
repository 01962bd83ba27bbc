//! What a client sent, made harmless for a line of text or of JSON.

use std::io::Write as _;

/// Bytes looked at together: as many as fit into a register of every processor of today.
const TOGETHER: usize = 16;

fn needs_care(byte: u8) -> bool {
    !(0x20..=0x7e).contains(&byte) | (byte == b'"') | (byte == b'\\')
}

/// How many of the first bytes are printable ASCII that needs no care: all of them, or a multiple of [`TOGETHER`].
fn plain(bytes: &[u8]) -> usize {
    // Without a branch for each byte, so that it is compiled to a few instructions for all of them.
    let is_plain = |bytes: &[u8]| !bytes.iter().fold(false, |any, byte| any | needs_care(*byte));
    let (chunks, rest) = bytes.as_chunks::<TOGETHER>();
    let count = chunks.iter().take_while(|chunk| is_plain(&chunk[..])).count();
    if count == chunks.len() && is_plain(rest) { bytes.len() } else { count * TOGETHER }
}

/// A quotation mark and a backslash get a backslash, everything outside printable ASCII is `\xNN`.
pub(super) fn push_printable(out: &mut Vec<u8>, bytes: &[u8]) {
    let (plain, rest) = bytes.split_at(plain(bytes));
    out.extend_from_slice(plain);
    for byte in rest {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

/// The inside of a JSON string (RFC 8259, section 7), all in ASCII; what is not UTF-8 is U+FFFD.
pub(super) fn push_json(out: &mut Vec<u8>, bytes: &[u8]) {
    let (plain, rest) = bytes.split_at(plain(bytes));
    out.extend_from_slice(plain);
    for chunk in rest.utf8_chunks() {
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
