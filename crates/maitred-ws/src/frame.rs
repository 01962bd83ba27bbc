//! The head of a frame (RFC 6455 §5.2).
//!
//! ```text
//!  fin rsv1 rsv2 rsv3 opcode:4 | masked length:7 | length: 0, 16 or 64 bits | mask: 32 bits | payload
//! ```

use crate::control::MAX_CONTROL;
use crate::failure::Failure;
use crate::mask::Mask;

/// The most bytes in the head of a client's frame: 2, a length of 8, a mask of 4.
pub(crate) const MAX_HEAD: usize = 14;

/// The type of a frame (RFC 6455 §11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Goes on with the message that a frame before has begun.
    Continuation = 0x0,
    /// Begins a message of text.
    Text = 0x1,
    /// Begins a message of bytes.
    Binary = 0x2,
    /// The peer sends nothing more.
    Close = 0x8,
    /// Asks for a pong with the same payload.
    Ping = 0x9,
    /// Answers a ping, or nothing.
    Pong = 0xa,
}

impl Opcode {
    const fn new(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return None,
        })
    }

    /// Whether it is no part of a message.
    pub const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The state of the connection that decides which frames are valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Messages may be compressed.
    pub(crate) deflate: bool,
    /// A message is begun and not complete.
    pub(crate) in_message: bool,
}

/// The head of a client's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) fin: bool,
    /// The message that it begins is compressed (RFC 7692 §6).
    pub(crate) compressed: bool,
    pub(crate) opcode: Opcode,
    pub(crate) length: u64,
    pub(crate) mask: Mask,
}

/// The head that `bytes` begin with, and its length. `None` if it is not complete.
///
/// # Errors
/// As soon as the bytes that are there break a rule.
pub(crate) fn head(bytes: &[u8], context: Context) -> Result<Option<(Head, usize)>, Failure> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let fin = first & 0x80 != 0;
    let compressed = first & 0x40 != 0;
    let opcode = Opcode::new(first & 0x0f).ok_or(Failure::protocol("a frame has a reserved opcode"))?;
    if first & 0x30 != 0 || compressed && !context.deflate {
        return Err(Failure::protocol("a frame has a reserved bit that no extension uses"));
    }
    if compressed && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(Failure::protocol("only the first frame of a message can say that it is compressed"));
    }
    match opcode {
        Opcode::Continuation if !context.in_message => {
            return Err(Failure::protocol("a frame continues a message, but none is begun"));
        }
        Opcode::Text | Opcode::Binary if context.in_message => {
            return Err(Failure::protocol("a message begins inside another one"));
        }
        _ => {}
    }
    let short = second & 0x7f;
    if opcode.is_control() {
        if !fin {
            return Err(Failure::protocol("a control frame is in fragments"));
        }
        if usize::from(short) > MAX_CONTROL {
            return Err(Failure::protocol("a control frame is longer than 125 bytes"));
        }
    }
    if second & 0x80 == 0 {
        return Err(Failure::protocol("a frame of a client is not masked"));
    }
    let Some((length, rest)) = length(short, rest)? else { return Ok(None) };
    let Some((key, payload)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let head = Head { fin, compressed, opcode, length, mask: Mask::new(*key) };
    Ok(Some((head, bytes.len() - payload.len())))
}

/// The length of the payload, and the bytes behind it. It has to be in the shortest form.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, Failure> {
    const LONGER: Failure = Failure::protocol("the length of a frame is not in its shortest form");
    match short {
        126 => {
            let Some((bytes, rest)) = rest.split_first_chunk() else { return Ok(None) };
            let length = u64::from(u16::from_be_bytes(*bytes));
            if length < 126 { Err(LONGER) } else { Ok(Some((length, rest))) }
        }
        127 => {
            let Some((bytes, rest)) = rest.split_first_chunk() else { return Ok(None) };
            let length = u64::from_be_bytes(*bytes);
            if length >> 63 != 0 {
                return Err(Failure::protocol("the length of a frame has its highest bit set"));
            }
            if length <= u64::from(u16::MAX) { Err(LONGER) } else { Ok(Some((length, rest))) }
        }
        short => Ok(Some((u64::from(short), rest))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Context = Context { deflate: false, in_message: false };
    const INSIDE: Context = Context { deflate: false, in_message: true };
    const DEFLATE: Context = Context { deflate: true, in_message: false };

    #[track_caller]
    fn refused(bytes: &[u8], context: Context, reason: &str) {
        let failure = head(bytes, context).expect_err(reason);
        assert_eq!((failure.code, failure.reason), (1002, reason));
    }

    #[test]
    fn a_head_has_one_of_three_lengths() {
        let read = |bytes: &[u8]| head(bytes, ALONE).expect("a good head");
        let (short, used) = read(b"\x81\x85\x37\xfa\x21\x3d\x7f").expect("complete");
        assert_eq!((short.length, used, short.fin, short.opcode), (5, 6, true, Opcode::Text));
        assert_eq!(short.mask, Mask::new(*b"\x37\xfa\x21\x3d"));
        let (middle, used) = read(b"\x02\xfe\x01\x00mask").expect("complete");
        assert_eq!((middle.length, used, middle.fin, middle.opcode), (256, 8, false, Opcode::Binary));
        let (long, used) = read(b"\x82\xff\0\0\0\0\0\x01\0\0mask").expect("complete");
        assert_eq!((long.length, used), (65536, MAX_HEAD));
    }

    #[test]
    fn it_waits_for_all_of_a_head() {
        for whole in [&b"\x81\x85mask"[..], b"\x81\xfe\x01\0mask", b"\x81\xff\0\0\0\0\0\x01\0\0mask"] {
            for end in 0..whole.len() {
                assert_eq!(head(&whole[..end], ALONE), Ok(None), "{end} of {whole:?}");
            }
            assert!(head(whole, ALONE).is_ok_and(|head| head.is_some()));
        }
    }

    #[test]
    fn a_client_masks_every_frame() {
        refused(b"\x81\x05", ALONE, "a frame of a client is not masked");
        refused(b"\x89\x00", ALONE, "a frame of a client is not masked");
    }

    #[test]
    fn reserved_opcodes_are_refused() {
        for opcode in [3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf] {
            refused(&[0x80 | opcode, 0x80], INSIDE, "a frame has a reserved opcode");
        }
    }

    #[test]
    fn reserved_bits_are_refused() {
        for bits in [0x10, 0x20, 0x30, 0x40, 0x70] {
            refused(&[0x81 | bits, 0x80], ALONE, "a frame has a reserved bit that no extension uses");
        }
        for bits in [0x10, 0x20, 0x50] {
            refused(&[0x81 | bits, 0x80], DEFLATE, "a frame has a reserved bit that no extension uses");
        }
    }

    #[test]
    fn the_first_frame_says_that_a_message_is_compressed() {
        assert!(
            head(b"\xc1\x80mask", DEFLATE).is_ok_and(|head| head.is_some_and(|(head, _)| head.compressed))
        );
        assert!(
            head(b"\x42\x80mask", DEFLATE).is_ok_and(|head| head.is_some_and(|(head, _)| head.compressed))
        );
        let inside = Context { deflate: true, in_message: true };
        for first in [0xc0, 0xc8, 0xc9, 0xca] {
            refused(
                &[first, 0x80],
                inside,
                "only the first frame of a message can say that it is compressed",
            );
        }
    }

    #[test]
    fn control_frames_are_whole_and_short() {
        for opcode in [8, 9, 10] {
            refused(&[opcode, 0x80], ALONE, "a control frame is in fragments");
            refused(&[0x80 | opcode, 0xfe], ALONE, "a control frame is longer than 125 bytes");
            assert!(head(&[0x80 | opcode, 0xfd, 0, 0, 0, 0], INSIDE).is_ok_and(|head| head.is_some()));
        }
    }

    #[test]
    fn frames_of_messages_stand_in_order() {
        refused(b"\x80\x80", ALONE, "a frame continues a message, but none is begun");
        refused(b"\x00\x80", ALONE, "a frame continues a message, but none is begun");
        refused(b"\x81\x80", INSIDE, "a message begins inside another one");
        refused(b"\x02\x80", INSIDE, "a message begins inside another one");
    }

    #[test]
    fn a_length_is_in_its_shortest_form() {
        refused(b"\x82\xfe\x00\x7d", ALONE, "the length of a frame is not in its shortest form");
        refused(b"\x82\xff\0\0\0\0\0\0\xff\xff", ALONE, "the length of a frame is not in its shortest form");
        refused(b"\x82\xff\x80\0\0\0\0\0\0\0", ALONE, "the length of a frame has its highest bit set");
    }
}
