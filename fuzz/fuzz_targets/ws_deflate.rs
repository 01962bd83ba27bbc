//! Compressed messages of a client. Input: a byte of choices, and records of a length and so many bytes, each a whole message.
//!
//! A slow inflater, bit by bit, makes the same of them or refuses them, too; however the bytes are cut it is the same; no more is
//! made than is allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_ws::{DeflateSettings, Event, Failure, Limits, Opcode, Receiver, negotiate, put_frame_head};

const LIMITS: Limits = Limits { message: 1 << 17, fragments: 1, ratio: 5000, ratio_from: 0 };

fuzz_target!(|input: &[u8]| {
    let Some((choices, mut rest)) = input.split_first() else { return };
    let takeover = choices & 1 != 0;
    let mut messages = Vec::new();
    while let [low, high, behind @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (message, behind) = behind.split_at(length.min(behind.len()));
        messages.push(message);
        rest = behind;
    }
    let expected = slow(&messages, takeover);
    for piece in [usize::MAX, 1, 2 + input.len() / 5] {
        let got = received(&messages, takeover, piece);
        assert!(got == expected, "pieces of {piece}: {} and {}", told(&got), told(&expected));
    }
});

/// The messages, and the code of the one that fails.
type Seen = Vec<Result<Vec<u8>, u16>>;

fn told(seen: &Seen) -> String {
    let told: Vec<_> = seen.iter().map(|one| one.as_ref().map(Vec::len)).collect();
    format!("{told:?}")
}

fn received(messages: &[&[u8]], takeover: bool, piece: usize) -> Seen {
    let settings = DeflateSettings { max_window_bits: 15, takeover };
    let deflate =
        negotiate([&b"permessage-deflate"[..]].into_iter(), &settings).expect("what everybody offers");
    let mut receiver = Receiver::new(LIMITS, Some(&deflate));
    let mut seen = Vec::new();
    for message in messages {
        let mut frame = Vec::new();
        put_frame_head(Opcode::Binary, true, true, message.len() as u64, &mut frame);
        frame[1] |= 128;
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(message);
        match one(&mut receiver, &frame, piece) {
            Ok(message) => seen.push(Ok(message)),
            Err(failure) => {
                seen.push(Err(failure.code));
                break;
            }
        }
    }
    seen
}

fn one(receiver: &mut Receiver, frame: &[u8], piece: usize) -> Result<Vec<u8>, Failure> {
    let mut message = Vec::new();
    for piece in frame.chunks(piece.min(frame.len())) {
        let (used, event) = receiver.poll(piece, &mut message)?;
        assert!(used == piece.len() && message.len() as u64 <= LIMITS.message);
        if let Event::Message { length, .. } = event {
            assert_eq!(length, message.len() as u64);
            return Ok(message);
        }
    }
    panic!("a whole frame is no message");
}

fn slow(messages: &[&[u8]], takeover: bool) -> Seen {
    let (mut slow, mut seen) = (Slow::default(), Vec::new());
    for message in messages {
        if !takeover {
            slow = Slow::default();
        }
        slow.before = slow.window.len();
        match slow.message(message) {
            Ok(()) => seen.push(Ok(slow.window[slow.before..].to_vec())),
            Err(code) => {
                seen.push(Err(code));
                break;
            }
        }
    }
    seen
}

/// RFC 1951, with canonical codes that are read bit by bit.
#[derive(Default)]
struct Slow {
    /// The message with its tail, the bits of the message, and those that are read.
    input: Vec<u8>,
    end: usize,
    at: usize,
    /// The whole output, the begin of this message in it, and the first byte that may be referred to.
    window: Vec<u8>,
    before: usize,
    begin: usize,
}

/// The bits end, or are invalid.
const BAD: u16 = 1007;

impl Slow {
    fn message(&mut self, message: &[u8]) -> Result<(), u16> {
        self.input = [message, &[0, 0, 0xff, 0xff]].concat();
        (self.end, self.at) = (8 * message.len(), 0);
        // Whether nothing has come since the message or a stream began: then there is nothing that the tail would complete.
        let mut fresh = true;
        while !(fresh && self.at == self.end) && self.at < 8 * self.input.len() {
            fresh = self.block()?;
            if fresh {
                self.at = self.at.next_multiple_of(8);
                self.begin = self.window.len();
                // The tail is that of a block which is not the last one.
                if self.at > self.end {
                    return Err(BAD);
                }
            }
        }
        Ok(())
    }

    /// Whether it is the last one of a stream.
    fn block(&mut self) -> Result<bool, u16> {
        let last = self.bits(1)? == 1;
        match self.bits(2)? {
            0 => {
                self.at = self.at.next_multiple_of(8);
                let (length, check) = (self.bits(16)?, self.bits(16)?);
                if length != !check & 0xffff {
                    return Err(BAD);
                }
                for _ in 0..length {
                    let byte = self.bits(8)? as u8;
                    self.put(byte)?;
                }
            }
            1 => {
                let length = |symbol| match symbol {
                    144..256 => 9,
                    256..280 => 7,
                    _ => 8,
                };
                let lengths: Vec<u8> = (0..288).map(length).collect();
                self.codes(&Code::new(&lengths), &Code::new(&[5; 32]))?;
            }
            2 => {
                let (literals, distances) = self.tables()?;
                self.codes(&literals, &distances)?;
            }
            _ => return Err(BAD),
        }
        Ok(last)
    }

    fn tables(&mut self) -> Result<(Code, Code), u16> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let (literals, distances) = (257 + self.bits(5)? as usize, 1 + self.bits(5)? as usize);
        let count = 4 + self.bits(4)? as usize;
        if literals > 286 || distances > 30 {
            return Err(BAD);
        }
        let mut lengths = [0; 19];
        for place in &ORDER[..count] {
            lengths[*place] = self.bits(3)? as u8;
        }
        let code = Code::new(&lengths);
        if code.left != 0 {
            return Err(BAD);
        }
        let mut lengths = Vec::new();
        while lengths.len() < literals + distances {
            let (value, times) = match self.symbol(&code)? {
                16 => (*lengths.last().ok_or(BAD)?, 3 + self.bits(2)?),
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length as u8, 1),
            };
            lengths.extend((0..times).map(|_| value));
        }
        if lengths.len() > literals + distances || lengths[256] == 0 {
            return Err(BAD);
        }
        let (one, other) = lengths.split_at(literals);
        let (one, other) = (Code::new(one), Code::new(other));
        if !one.is_good() || !other.is_good() {
            return Err(BAD);
        }
        Ok((one, other))
    }

    fn codes(&mut self, literals: &Code, distances: &Code) -> Result<(), u16> {
        const LENGTHS: [(u32, u32); 29] = [
            (3, 0),
            (4, 0),
            (5, 0),
            (6, 0),
            (7, 0),
            (8, 0),
            (9, 0),
            (10, 0),
            (11, 1),
            (13, 1),
            (15, 1),
            (17, 1),
            (19, 2),
            (23, 2),
            (27, 2),
            (31, 2),
            (35, 3),
            (43, 3),
            (51, 3),
            (59, 3),
            (67, 4),
            (83, 4),
            (99, 4),
            (115, 4),
            (131, 5),
            (163, 5),
            (195, 5),
            (227, 5),
            (258, 0),
        ];
        loop {
            let symbol = self.symbol(literals)?;
            let (base, extra) = match symbol {
                0..256 => {
                    self.put(symbol as u8)?;
                    continue;
                }
                256 => return Ok(()),
                _ => *LENGTHS.get(symbol - 257).ok_or(BAD)?,
            };
            let length = base + self.bits(extra)?;
            let symbol = self.symbol(distances)? as u32;
            let distance = match symbol {
                0..4 => 1 + symbol,
                4..30 => {
                    let extra = symbol / 2 - 1;
                    1 + ((2 + symbol % 2) << extra) + self.bits(extra)?
                }
                _ => return Err(BAD),
            };
            for _ in 0..length {
                let from =
                    self.window.len().checked_sub(distance as usize).filter(|from| *from >= self.begin);
                let byte = self.window[from.ok_or(BAD)?];
                self.put(byte)?;
            }
        }
    }

    /// A byte of the message: not of the tail, and not beyond the longest one.
    fn put(&mut self, byte: u8) -> Result<(), u16> {
        if self.at > self.end {
            return Err(BAD);
        }
        self.window.push(byte);
        if (self.window.len() - self.before) as u64 > LIMITS.message { Err(1009) } else { Ok(()) }
    }

    fn bits(&mut self, count: u32) -> Result<u32, u16> {
        let mut number = 0;
        for place in 0..count {
            let byte = self.input.get(self.at / 8).ok_or(BAD)?;
            number |= u32::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Ok(number)
    }

    fn symbol(&mut self, code: &Code) -> Result<usize, u16> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for length in 1..16 {
            value |= self.bits(1)?;
            let count = code.counts[length];
            if value < first + count {
                return Ok(code.symbols[(index + value - first) as usize]);
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        Err(BAD)
    }
}

/// A canonical code (RFC 1951 §3.2.2).
struct Code {
    counts: [u32; 16],
    symbols: Vec<usize>,
    /// The free part of all codes of 15 bits: below 0 there are too many.
    left: i64,
}

impl Code {
    fn new(lengths: &[u8]) -> Self {
        let (mut counts, mut symbols) = ([0; 16], Vec::new());
        for (length, count) in counts.iter_mut().enumerate().skip(1) {
            let before = symbols.len();
            let of_length = lengths.iter().enumerate().filter(|(_, one)| usize::from(**one) == length);
            symbols.extend(of_length.map(|(symbol, _)| symbol));
            *count = (symbols.len() - before) as u32;
        }
        let left = (1..16).fold(1 << 15, |left, length| left - (i64::from(counts[length]) << (15 - length)));
        Self { counts, symbols, left }
    }

    /// Complete, or one code of one bit, or none (which zlib takes for distances).
    fn is_good(&self) -> bool {
        self.left == 0 || self.left > 0 && self.counts[2..].iter().all(|count| *count == 0)
    }
}
