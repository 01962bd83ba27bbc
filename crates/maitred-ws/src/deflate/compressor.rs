//! Messages compressed (RFC 7692 §7.2.1).

use zlib_rs::{Deflate as Zlib, DeflateConfig, DeflateFlush, Status};

use super::Deflate;

/// How hard it tries, 0 to 9. For messages of some hundred bytes 5 takes as long as 2, and makes them shorter.
const LEVEL: i32 = 5;

/// The bytes with which deflate ends a message; they are not sent (RFC 7692 §7.2.1).
const TAIL: &[u8] = &[0, 0, 0xff, 0xff];

/// The most bytes in a block that is not compressed.
const MAX_STORED: usize = 65535;

/// Compresses messages. With take-over a message may refer to those before, so that there is one compressor for a connection.
/// Without it one compressor may serve all connections with the same window. Memory is taken for the first message.
pub struct Compressor {
    zlib: Option<Zlib>,
    bits: u8,
    takeover: bool,
}

impl Compressor {
    /// A compressor with the agreed parameters; it takes no memory yet.
    pub fn new(deflate: &Deflate) -> Self {
        Self { zlib: None, bits: deflate.server_bits, takeover: deflate.server_takeover }
    }

    /// Bytes of memory that it takes: 0 before the first message.
    pub fn held(&self) -> usize {
        if self.zlib.is_some() { memory(self.bits) } else { 0 }
    }

    /// Appends the payload of a compressed message, without the four bytes `00 00 ff ff` at its end. With take-over the message has to be
    /// sent as it was compressed, as later ones may refer to it.
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) {
        if message.is_empty() {
            // §7.2.3.6. Deflate would say nothing when it has nothing new.
            return out.push(0);
        }
        let start = out.len();
        let bits = self.bits;
        let zlib = match &mut self.zlib {
            Some(zlib) => {
                if !self.takeover {
                    zlib.reset();
                }
                zlib
            }
            none => none.insert(Zlib::new_with_config(config(bits))),
        };
        if compress(zlib, message, out).is_none() {
            // zlib-rs has no reason to refuse. Uncompressed it refers to nothing, and the next message to nothing before it.
            self.zlib = None;
            out.truncate(start);
            store(message, out);
        }
    }
}

/// Bytes of memory for a window of this power of two: it and room for as much again, chains over it, the heads of the chains, symbols
/// and output that wait, and the codes.
pub(super) fn memory(bits: u8) -> usize {
    const HEADS: usize = 128 * 1024;
    const STATE: usize = 8 * 1024;
    let window = 1_usize << bits;
    2 * window + 2 * window + HEADS + (7 << (mem_level(bits) + 6)) + STATE
}

/// The memory for symbols goes with the window: the level 8 of zlib with its largest window, a step less for each half of it.
const fn mem_level(bits: u8) -> i32 {
    bits as i32 - 7
}

fn config(bits: u8) -> DeflateConfig {
    // Negative: without a header.
    DeflateConfig { window_bits: -i32::from(bits), mem_level: mem_level(bits), ..DeflateConfig::new(LEVEL) }
}

/// `None` if zlib refuses.
fn compress(zlib: &mut Zlib, mut message: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // The room left is more than the six bytes without which zlib would flush again.
    const LEAST_ROOM: usize = 64;
    let mut room = LEAST_ROOM + message.len() / 2;
    loop {
        let start = out.len();
        out.resize(start + room, 0);
        let (read, written) = (zlib.total_in(), zlib.total_out());
        let result = zlib.compress(message, out.get_mut(start..)?, DeflateFlush::SyncFlush);
        let made = (zlib.total_out() - written) as usize;
        out.truncate(start + made);
        message = message.get((zlib.total_in() - read) as usize..)?;
        match result {
            Ok(Status::Ok) if made == room => room = LEAST_ROOM + message.len() + message.len() / 8,
            // Nothing was left to write when the room was used up to the last byte.
            Ok(Status::Ok | Status::BufError) if message.is_empty() => break,
            _ => return None,
        }
    }
    if !out.ends_with(TAIL) {
        return None;
    }
    out.truncate(out.len() - TAIL.len());
    Some(())
}

/// Appends a message in blocks that are not compressed.
fn store(message: &[u8], out: &mut Vec<u8>) {
    for block in message.chunks(MAX_STORED) {
        // Not more than 16 bits.
        let length = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deflate::{DeflateSettings, Inflater, negotiate};

    fn agreed(bits: u8, takeover: bool) -> Deflate {
        let settings = DeflateSettings { max_window_bits: bits, takeover };
        negotiate([&b"permessage-deflate; client_max_window_bits"[..]].into_iter(), &settings)
            .expect("agreed")
    }

    fn inflated(inflater: &mut Inflater, mut message: &[u8]) -> Option<Vec<u8>> {
        const ROOM: usize = 1000;
        let mut out = Vec::new();
        loop {
            let step = inflater.step(message, ROOM, &mut out);
            message = &message[step.used..];
            if step.broken {
                return None;
            }
            if message.is_empty() && step.made < ROOM {
                return inflater.finish().then_some(out);
            }
        }
    }

    fn noise() -> impl Iterator<Item = u8> {
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        std::iter::successors(Some(1_u32), next).map(|state| (state >> 24) as u8)
    }

    /// Text with words that come again at all distances, and bytes without a pattern.
    fn text(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut text = Vec::new();
        while text.len() < length {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 30 {
                0 => text.extend_from_slice(&state.to_be_bytes()),
                _ => text.extend_from_slice(format!("word{} ", (state >> 16) % 1000).as_bytes()),
            }
        }
        text.truncate(length);
        text
    }

    #[test]
    fn the_empty_message_of_the_rfc() {
        // RFC 7692 §7.2.3.6.
        let mut compressor = Compressor::new(&agreed(15, true));
        for _ in 0..2 {
            let mut out = Vec::new();
            compressor.compress(b"", &mut out);
            assert_eq!(out, [0]);
        }
        assert_eq!(compressor.held(), 0);
    }

    #[test]
    fn with_takeover_the_second_message_is_shorter() {
        let lengths = |takeover| {
            let mut compressor = Compressor::new(&agreed(15, takeover));
            [(); 2].map(|()| {
                let mut out = Vec::new();
                compressor.compress(b"a message that comes twice", &mut out);
                out.len()
            })
        };
        let [first, second] = lengths(true);
        assert!(second < first / 2, "{first} and {second}");
        let [first, second] = lengths(false);
        assert_eq!(first, second);
    }

    #[test]
    fn without_takeover_it_refers_to_nothing_before() {
        let mut compressor = Compressor::new(&agreed(15, false));
        for message in [&b"one message"[..], b"one message and another"] {
            let mut out = Vec::new();
            compressor.compress(message, &mut out);
            assert_eq!(inflated(&mut Inflater::new(), &out).as_deref(), Some(message));
        }
    }

    #[test]
    fn it_stays_inside_the_window() {
        for bits in 9..=15 {
            // Bytes without a pattern, twice: they are found again if they are not too far back.
            let compressed = |distance: usize| {
                let half: Vec<u8> = noise().take(distance).collect();
                let mut out = Vec::new();
                Compressor::new(&agreed(bits, true)).compress(&half.repeat(2), &mut out);
                out.len()
            };
            let window = 1 << bits;
            assert!(compressed(window + 1) > 2 * window, "{bits} bits");
            assert!(compressed(window / 4) < window / 2, "{bits} bits");
        }
    }

    #[test]
    fn earlier_content_stays() {
        let mut out = b"before".to_vec();
        Compressor::new(&agreed(15, true)).compress(b"Hello", &mut out);
        assert_eq!(
            inflated(&mut Inflater::new(), out.strip_prefix(b"before").expect("it stays")).as_deref(),
            Some(&b"Hello"[..])
        );
    }

    #[test]
    fn stored_blocks_are_a_message() {
        for length in [1, 65535, 65536, 200_000] {
            let (message, mut out) = (text(length), Vec::new());
            store(&message, &mut out);
            assert!(inflated(&mut Inflater::new(), &out) == Some(message), "{length}");
        }
    }

    proptest! {
        #[test]
        fn compressed_messages_are_inflated_again(
            messages in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..300),
                    proptest::collection::vec(prop::sample::select(b"ab".to_vec()), 0..3000),
                    (0usize..100_000).prop_map(text),
                ],
                0..5,
            ),
            takeover: bool,
            bits in 9u8..=15,
        ) {
            let mut compressor = Compressor::new(&agreed(bits, takeover));
            let mut inflater = Inflater::new();
            for message in messages {
                let mut out = Vec::new();
                compressor.compress(&message, &mut out);
                if !takeover {
                    inflater = Inflater::new();
                }
                prop_assert!(message.is_empty() || compressor.held() > 0, "zlib has not refused");
                prop_assert!(inflated(&mut inflater, &out) == Some(message));
            }
        }
    }
}
