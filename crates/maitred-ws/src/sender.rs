//! Frames of a server, which are not masked (RFC 6455 §5.1).

use crate::control::MAX_CONTROL;
use crate::frame::Opcode;

/// Appends the head of a frame whose payload of `length` bytes the caller sends behind it. `fin`: it ends its message. `compressed`:
/// it begins a message that a [`Compressor`](crate::Compressor) made (RFC 7692 §6), which only the first frame says.
pub fn put_frame_head(kind: Opcode, fin: bool, compressed: bool, length: u64, out: &mut Vec<u8>) {
    let first = u8::from(fin) << 7 | u8::from(compressed) << 6 | kind as u8;
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length), _) if length < 126 => out.extend_from_slice(&[first, length]),
        (_, Ok(length)) => {
            let [high, low] = length.to_be_bytes();
            out.extend_from_slice(&[first, 126, high, low]);
        }
        _ => {
            out.extend_from_slice(&[first, 127]);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends a ping (RFC 6455 §5.5.2). Of a payload over 125 bytes it takes the first ones.
pub fn put_ping(payload: &[u8], out: &mut Vec<u8>) {
    put_control(Opcode::Ping, payload, out);
}

/// Appends a pong (RFC 6455 §5.5.3). Of a payload over 125 bytes it takes the first ones.
pub fn put_pong(payload: &[u8], out: &mut Vec<u8>) {
    put_control(Opcode::Pong, payload, out);
}

fn put_control(kind: Opcode, payload: &[u8], out: &mut Vec<u8>) {
    let payload = payload.get(..MAX_CONTROL).unwrap_or(payload);
    put_frame_head(kind, true, false, payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Appends a close frame (RFC 6455 §5.5.1). The reason is cut to 123 bytes, between two characters. Without a code, and with one that
/// no endpoint may send ([`is_close_code`]; 1005, 1006 and 1015 are among them), there is no payload and no reason.
pub fn put_close(code: Option<u16>, reason: &str, out: &mut Vec<u8>) {
    const MAX_REASON: usize = MAX_CONTROL - 2;
    let Some(code) = code.filter(|code| is_close_code(*code)) else {
        return put_frame_head(Opcode::Close, true, false, 0, out);
    };
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = reason.get(..end).unwrap_or_default();
    put_frame_head(Opcode::Close, true, false, 2 + reason.len() as u64, out);
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

/// Whether a close frame may have this code (RFC 6455 §7.4; 1012 to 1014 are in IANA's registry of close codes).
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: Opcode, fin: bool, compressed: bool, length: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame_head(kind, fin, compressed, length, &mut out);
        out
    }

    fn close(code: Option<u16>, reason: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_close(code, reason, &mut out);
        out
    }

    #[test]
    fn the_heads_in_the_rfc() {
        // RFC 6455 §5.7.
        assert_eq!(head(Opcode::Text, true, false, 5), b"\x81\x05");
        assert_eq!(head(Opcode::Text, false, false, 3), b"\x01\x03");
        assert_eq!(head(Opcode::Continuation, true, false, 2), b"\x80\x02");
        assert_eq!(head(Opcode::Binary, true, false, 256), b"\x82\x7e\x01\x00");
        assert_eq!(head(Opcode::Binary, true, false, 65536), b"\x82\x7f\0\0\0\0\0\x01\0\0");
        // RFC 7692 §7.2.3.1.
        assert_eq!(head(Opcode::Text, true, true, 7), b"\xc1\x07");
        let mut ping = Vec::new();
        put_ping(b"Hello", &mut ping);
        assert_eq!(ping, b"\x89\x05Hello");
    }

    #[test]
    fn a_length_takes_the_shortest_form() {
        assert_eq!(head(Opcode::Binary, true, false, 125), b"\x82\x7d");
        assert_eq!(head(Opcode::Binary, true, false, 126), b"\x82\x7e\0\x7e");
        assert_eq!(head(Opcode::Binary, true, false, 255), b"\x82\x7e\0\xff");
        assert_eq!(head(Opcode::Binary, true, false, 65535), b"\x82\x7e\xff\xff");
    }

    #[test]
    fn payloads_of_control_frames_are_cut() {
        let mut pong = Vec::new();
        put_pong(&[b'x'; 200], &mut pong);
        assert_eq!((&pong[..2], pong.len()), (&b"\x8a\x7d"[..], 127));
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(close(Some(1000), "bye"), b"\x88\x05\x03\xe8bye");
        let long = format!("{}{}", "x".repeat(122), "é");
        assert_eq!(close(Some(1001), &long), [b"\x88\x7c\x03\xe9", "x".repeat(122).as_bytes()].concat());
        assert_eq!(close(Some(1001), &"x".repeat(123)).len(), 127);
    }

    #[test]
    fn reserved_codes_leave_no_payload() {
        for code in
            [None, Some(0), Some(999), Some(1004), Some(1005), Some(1006), Some(1015), Some(2999), Some(5000)]
        {
            assert_eq!(close(code, "a reason"), b"\x88\x00", "{code:?}");
        }
        for code in
            [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]
        {
            assert!(is_close_code(code), "{code}");
        }
    }
}
