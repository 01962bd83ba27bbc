//! The Huffman code (RFC 7541 appendix B), and tables that are computed from it when this crate is built.
//!
//! The code is canonical: codes of the same length are consecutive numbers in the order of their symbols, and longer
//! ones follow shorter ones. So the lengths define the code.

#[rustfmt::skip]
pub(super) const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code; that of EOS is the last one of this length, all ones.
pub(super) const LONGEST: usize = 30;

pub(super) static CODES: [u32; 256] = DERIVED.codes;

/// The byte whose code the next eight bits begin with, and the length of its code in the low byte. 0 where the code is
/// longer than eight bits.
pub(super) static SHORT: [u16; 256] = DERIVED.short;

/// How many bits are looked up to find two bytes.
pub(super) const TWO_BITS: usize = 12;

/// The one byte or two whose codes the next bits begin with.
pub(super) static TWO: [Two; 1 << TWO_BITS] = two();

#[derive(Clone, Copy)]
pub(super) struct Two {
    pub(super) bytes: [u8; 2],
    pub(super) length: u8,
    /// How many bytes there are. 0 where the first code is longer than the bits.
    pub(super) count: u8,
}

/// The codes of more than eight bits, by length.
pub(super) static LONG: [Long; LONGEST + 1] = DERIVED.long;

/// The bytes in the order of their codes.
pub(super) static ORDERED: [u8; 256] = DERIVED.ordered;

/// The codes of one length.
#[derive(Clone, Copy)]
pub(super) struct Long {
    /// The first number of 32 bits that begins with a longer code. EOS counts as longer than all.
    pub(super) end: u32,
    pub(super) first: u32,
    /// The place of that code's byte in the order.
    pub(super) place: u16,
}

struct Derived {
    codes: [u32; 256],
    short: [u16; 256],
    long: [Long; LONGEST + 1],
    ordered: [u8; 256],
}

const DERIVED: Derived = derive();

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and nothing else")]
const fn derive() -> Derived {
    let mut codes = [0; 256];
    let mut short = [0; 256];
    let mut long = [Long { end: 0, first: 0, place: 0 }; LONGEST + 1];
    let mut ordered = [0; 256];
    let mut next: u32 = 0;
    let mut place = 0;
    let mut length = 1;
    while length <= LONGEST {
        next <<= 1;
        long[length].first = next;
        long[length].place = place as u16;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = next;
                ordered[place] = symbol as u8;
                if length <= 8 {
                    let start = (next as usize) << (8 - length);
                    let mut at = start;
                    while at < start + (1 << (8 - length)) {
                        short[at] = (symbol as u16) << 8 | length as u16;
                        at += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        long[length].end = next << (32 - length);
        length += 1;
    }
    // One code is left, of ones only: EOS. So no length is wrong alone.
    assert!(next == (1 << LONGEST) - 1 && place == 256);
    Derived { codes, short, long, ordered }
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and nothing else")]
const fn two() -> [Two; 1 << TWO_BITS] {
    let mut table = [Two { bytes: [0, 0], length: 0, count: 0 }; 1 << TWO_BITS];
    let mut bits = 0;
    while bits < 1 << TWO_BITS {
        let one = DERIVED.short[bits >> (TWO_BITS - 8)];
        if one != 0 {
            let [first, length] = one.to_be_bytes();
            let rest = (bits << length) & ((1 << TWO_BITS) - 1);
            let [second, more] = DERIVED.short[rest >> (TWO_BITS - 8)].to_be_bytes();
            let fits = more != 0 && (length + more) as usize <= TWO_BITS;
            table[bits] = if fits {
                Two { bytes: [first, second], length: length + more, count: 2 }
            } else {
                Two { bytes: [first, 0], length, count: 1 }
            };
        }
        bits += 1;
    }
    table
}
