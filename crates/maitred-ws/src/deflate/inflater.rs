//! Messages inflated (RFC 7692 §7.2.2).

use zlib_rs::{Inflate, InflateFlush, Status};

/// Bytes of memory: the window of 32 KiB, which zlib-rs makes for any agreed size, tables for two codes, and the rest
/// of the state.
pub(super) const MEMORY: usize = 48 * 1024;

/// The bytes that a sender takes off the end of a message (RFC 7692 §7.2.1): the lengths of an empty block that is not
/// compressed.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The window with which zlib inflates, as the power of two of its bytes. The largest one also where a smaller one was
/// agreed on: otherwise the cuts of the input would decide whether a reference further back is found.
const BITS: u8 = 15;

/// Inflates messages that come in pieces.
pub(crate) struct Inflater {
    inflate: Inflate,
    /// Bytes have come since the last message, or since a block that said it was the last one.
    begun: bool,
}

/// The result of one step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Bytes of the input that are used up.
    pub(crate) used: usize,
    /// Bytes that were appended. As many as there was room for: there may be more without further input.
    pub(crate) made: usize,
    /// The input is not the output of deflate. Bytes that were appended before are good.
    pub(crate) broken: bool,
}

impl Inflater {
    /// Bytes of memory that it takes.
    pub(crate) const MEMORY: usize = MEMORY;

    pub(crate) fn new() -> Self {
        Self { inflate: Inflate::new(false, BITS), begun: false }
    }

    /// Inflates some of `input`, and appends at most `room` bytes, which is not 0.
    pub(crate) fn step(&mut self, input: &[u8], room: usize, out: &mut Vec<u8>) -> Step {
        let start = out.len();
        out.resize(start + room, 0);
        let place = out.get_mut(start..).unwrap_or_default();
        let (used, made, result) = self.run(input, place, InflateFlush::NoFlush);
        out.truncate(start + made);
        self.begun |= used > 0;
        let mut broken = result.is_none();
        if result == Some(Status::StreamEnd) {
            // A block that is marked as the last one (§7.2.3.4). A stream of its own follows, with an empty window.
            self.inflate.reset(false);
            self.begun = false;
        } else if used == 0 && made == 0 && !input.is_empty() {
            broken = true;
        }
        Step { used, made, broken }
    }

    /// The message is complete, and all of it was given. Whether it ends where a block ends.
    pub(crate) fn finish(&mut self) -> bool {
        if !self.begun {
            // No bytes at all, or the last block was called that: there is nothing to put the tail behind.
            return true;
        }
        self.begun = false;
        // Behind the tail a block has ended, so that the byte behind it stays. Inside of a block it would be taken, or bytes appear.
        let [a, b, c, d] = TAIL;
        let ended = self.run(&[a, b, c, d, 0], &mut [0; 1], InflateFlush::Block);
        // And no bits are left of the tail: the next bytes are read as they are meant, here another empty block.
        let empty = self.run(&[0, a, b, c, d], &mut [0; 1], InflateFlush::NoFlush);
        ended == (4, 0, Some(Status::Ok)) && empty == (5, 0, Some(Status::Ok))
    }

    /// Bytes used up and made; `None` if that cannot be inflated.
    fn run(&mut self, input: &[u8], place: &mut [u8], flush: InflateFlush) -> (usize, usize, Option<Status>) {
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(input, place, flush).ok();
        // Not more than the lengths of two slices.
        let used = (self.inflate.total_in() - read) as usize;
        let made = (self.inflate.total_out() - written) as usize;
        (used, made, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole message, in pieces.
    fn inflated(inflater: &mut Inflater, message: &[u8], piece: usize, room: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for mut piece in message.chunks(piece) {
            loop {
                let step = inflater.step(piece, room, &mut out);
                if step.broken {
                    return None;
                }
                piece = &piece[step.used..];
                if piece.is_empty() && step.made < room {
                    break;
                }
            }
        }
        inflater.finish().then_some(out)
    }

    #[track_caller]
    fn check(messages: &[(&[u8], Option<&[u8]>)]) {
        for (piece, room) in [(1, 1), (1, 100), (2, 3), (100, 1), (100, 100)] {
            let mut inflater = Inflater::new();
            for (message, expected) in messages {
                let got = inflated(&mut inflater, message, piece, room);
                assert_eq!(got.as_deref(), *expected, "{message:x?} in pieces of {piece}, room of {room}");
            }
        }
    }

    #[test]
    fn one_block() {
        // RFC 7692 §7.2.3.1.
        check(&[(b"\xf2\x48\xcd\xc9\xc9\x07\x00", Some(b"Hello"))]);
    }

    #[test]
    fn a_window_goes_over_messages() {
        // RFC 7692 §7.2.3.2.
        check(&[
            (b"\xf2\x48\xcd\xc9\xc9\x07\x00", Some(b"Hello")),
            (b"\xf2\x00\x11\x00\x00", Some(b"Hello")),
        ]);
    }

    #[test]
    fn a_block_without_compression() {
        // RFC 7692 §7.2.3.3.
        check(&[(b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", Some(b"Hello"))]);
    }

    #[test]
    fn a_block_that_says_it_is_the_last() {
        // RFC 7692 §7.2.3.4.
        let message = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";
        check(&[(message, Some(b"Hello")), (message, Some(b"Hello"))]);
        // And without the empty block behind it, as deflate leaves it when it is told that this is all.
        check(&[(&message[..7], Some(b"Hello")), (message, Some(b"Hello"))]);
    }

    #[test]
    fn two_blocks() {
        // RFC 7692 §7.2.3.5.
        check(&[(b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", Some(b"Hello"))]);
    }

    #[test]
    fn an_empty_message() {
        // RFC 7692 §7.2.3.6, and one without any byte.
        check(&[
            (b"\x00", Some(b"")),
            (b"", Some(b"")),
            (b"\xf2\x48\xcd\xc9\xc9\x07\x00", Some(b"Hello")),
            (b"", Some(b"")),
            (b"\xf2\x00\x11\x00\x00", Some(b"Hello")),
        ]);
    }

    #[test]
    fn a_message_ends_where_a_block_ends() {
        let whole = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
        for end in 1..whole.len() {
            check(&[(&whole[..end], None)]);
        }
        let stored = b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00";
        for end in 2..stored.len() - 1 {
            check(&[(&stored[..end], None)]);
        }
        // The lengths of the empty block, which the sender has to take off.
        check(&[(b"\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff", None)]);
    }

    #[test]
    fn bytes_behind_the_last_block_are_inflated_too() {
        check(&[(b"\xf3\x48\xcd\xc9\xc9\x07\x00garbage", None)]);
        check(&[(b"\xf3\x48\xcd\xc9\xc9\x07\x00\xf3\x48\xcd\xc9\xc9\x07\x00", Some(b"HelloHello"))]);
    }

    /// Bits from the lowest of each byte on, as deflate has them.
    #[derive(Default)]
    struct Bits(Vec<bool>);

    impl Bits {
        /// A number, its lowest bit first.
        fn number(&mut self, bits: usize, value: usize) {
            self.0.extend((0..bits).map(|bit| value >> bit & 1 == 1));
        }

        /// A code, its highest bit first.
        fn code(&mut self, bits: usize, value: usize) {
            self.0.extend((0..bits).rev().map(|bit| value >> bit & 1 == 1));
        }

        fn bytes(self) -> Vec<u8> {
            assert_eq!(self.0.len() % 8, 0);
            let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
            self.0.chunks(8).map(byte).collect()
        }
    }

    #[test]
    fn a_tail_that_ends_a_block_by_chance_is_refused() {
        let mut bits = Bits::default();
        // A block with fixed codes and three characters of 9 bits, so that the next part ends with a byte.
        bits.number(3, 0b010);
        for _ in 0..3 {
            bits.code(9, 0b1_1001_0000);
        }
        bits.code(7, 0);
        // A block with codes of its own: 257 lengths, 8 for distances, 14 for lengths; 0 stands for no code and 1 for three bits.
        bits.number(3, 0b100);
        bits.number(5, 0);
        bits.number(5, 7);
        bits.number(4, 10);
        for place in 0..14 {
            bits.number(3, usize::from(place == 3 || place == 13));
        }
        // Seven characters. The tail has 16 zeros, no codes; nine ones, the end of the block and the distances; and that end, 111.
        for character in 0..240 {
            bits.code(1, usize::from(character < 7));
        }
        let message = bits.bytes();
        check(&[(&message, None)]);
    }

    #[test]
    fn bytes_that_are_not_deflate_are_refused() {
        // A block of the fourth kind, lengths that do not fit, a window that is not there.
        for broken in [&b"\x06"[..], b"\x00\x05\x00\xfa\xfe", b"\xf2\x00\x11\x00\x00"] {
            check(&[(broken, None)]);
        }
    }
}
