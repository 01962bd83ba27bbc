//! The encoder's list of names: their place in the static table, and whether their values are worth an entry.

use Indexing::{Never, Usual, Without};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexing {
    /// The fields go into the table where their values come again.
    Usual,
    /// Their values differ from response to response: an entry would only push others out.
    Without,
    /// Their values are secrets, which could be guessed by the length of text that is compressed with them, also behind
    /// other hops (RFC 7541 §7.1.3).
    Never,
}

/// The first index of a lower-case name in the static table, 0 for none, and the treatment of its fields.
type Known = (&'static str, u8, Indexing);

/// Every name of the static table, and further names of secrets.
const KNOWN: [Known; 59] = [
    (":authority", 1, Usual),
    (":method", 2, Usual),
    (":path", 4, Usual),
    (":scheme", 6, Usual),
    (":status", 8, Usual),
    ("accept-charset", 15, Usual),
    ("accept-encoding", 16, Usual),
    ("accept-language", 17, Usual),
    ("accept-ranges", 18, Usual),
    ("accept", 19, Usual),
    ("access-control-allow-origin", 20, Usual),
    ("age", 21, Without),
    ("allow", 22, Usual),
    ("authorization", 23, Never),
    ("cache-control", 24, Usual),
    ("content-disposition", 25, Usual),
    ("content-encoding", 26, Usual),
    ("content-language", 27, Usual),
    ("content-length", 28, Without),
    ("content-location", 29, Without),
    ("content-range", 30, Without),
    ("content-type", 31, Usual),
    ("cookie", 32, Never),
    ("date", 33, Usual),
    ("etag", 34, Without),
    ("expect", 35, Usual),
    ("expires", 36, Usual),
    ("from", 37, Usual),
    ("host", 38, Usual),
    ("if-match", 39, Usual),
    ("if-modified-since", 40, Usual),
    ("if-none-match", 41, Usual),
    ("if-range", 42, Usual),
    ("if-unmodified-since", 43, Usual),
    ("last-modified", 44, Without),
    ("link", 45, Usual),
    ("location", 46, Without),
    ("max-forwards", 47, Usual),
    ("proxy-authenticate", 48, Usual),
    ("proxy-authorization", 49, Never),
    ("range", 50, Usual),
    ("referer", 51, Usual),
    ("refresh", 52, Usual),
    ("retry-after", 53, Usual),
    ("server", 54, Usual),
    ("set-cookie", 55, Never),
    ("strict-transport-security", 56, Usual),
    ("transfer-encoding", 57, Usual),
    ("user-agent", 58, Usual),
    ("vary", 59, Usual),
    ("via", 60, Usual),
    ("www-authenticate", 61, Usual),
    ("authentication-info", 0, Never),
    ("proxy-authentication-info", 0, Never),
    ("x-api-key", 0, Never),
    ("x-auth-token", 0, Never),
    ("x-csrf-token", 0, Never),
    ("x-csrftoken", 0, Never),
    ("x-xsrf-token", 0, Never),
];

/// Chosen by trial so that no two known names share a slot, which the compiler checks.
const MULTIPLIER: u64 = 0xa697_73ac_eeb8_65fb;

/// A hash of a name without regard to case: of its length and up to eight bytes at either end. Its top bits are the best.
#[inline]
pub(super) const fn hash(name: &[u8]) -> u64 {
    /// Makes letters small. Other bytes become others; equal ones stay equal.
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let (start, end) = if let (Some(start), Some(end)) = (name.first_chunk(), name.last_chunk()) {
        (u64::from_le_bytes(*start), u64::from_le_bytes(*end))
    } else {
        (short_word(name), 0)
    };
    let folded = (start | SMALL) ^ (end | SMALL).rotate_left(29);
    folded.wrapping_add(name.len() as u64).wrapping_mul(MULTIPLIER)
}

/// The name's index in the static table, 0 for none, and the treatment of its fields. `hash` is that of `name`.
#[inline]
pub(super) fn find(hash: u64, name: &[u8]) -> (usize, Indexing) {
    let known = SLOTS.get(slot(hash)).and_then(|place| KNOWN.get(usize::from(*place)));
    match known {
        Some((known, index, indexing)) if is_same(known.as_bytes(), name) => (usize::from(*index), *indexing),
        _ => (0, Usual),
    }
}

/// Whether two names differ by the case of letters at most.
#[inline]
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let (Some(last), Some(other_last)) = (one.last_chunk(), other.last_chunk()) {
        let (words, _) = one.as_chunks();
        let (other_words, _) = other.as_chunks();
        // The last eight bytes may have been compared already, which does no harm.
        is_same_word(u64::from_le_bytes(*last), u64::from_le_bytes(*other_last))
            && words
                .iter()
                .zip(other_words)
                .all(|(word, other)| is_same_word(u64::from_le_bytes(*word), u64::from_le_bytes(*other)))
    } else {
        is_same_word(short_word(one), short_word(other))
    }
}

/// Less than eight bytes as one number.
#[inline]
pub(super) const fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(start), Some(end)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u32::from_le_bytes(*start) as u64) | ((u32::from_le_bytes(*end) as u64) << 32);
    }
    match *bytes {
        [a, b, c, ..] => (a as u64) | ((b as u64) << 8) | ((c as u64) << 16),
        [a, b] => (a as u64) | ((b as u64) << 8),
        [a] => a as u64,
        [] => 0,
    }
}

/// Whether eight bytes differ by the case of letters at most, all of them at once.
#[inline]
fn is_same_word(one: u64, other: u64) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let differing = one ^ other;
    if differing & !each(0x20) != 0 {
        return false;
    }
    let small = one | each(0x20);
    let low = small & each(0x7f);
    // The top bit of each byte: it is `a` or behind, and not behind `z`, and ASCII.
    let letters = (low + each(0x80 - b'a')) & !(low + each(0x7f - b'z')) & !small & each(0x80);
    (differing << 2) & !letters == 0
}

/// A slot's place in `KNOWN`; a place behind its end in empty ones.
static SLOTS: [u8; 256] = slots();

const fn slot(hash: u64) -> usize {
    (hash >> 56) as usize
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and nothing else")]
const fn slots() -> [u8; 256] {
    let mut slots = [u8::MAX; 256];
    let mut place = 0;
    while place < KNOWN.len() {
        let slot = slot(hash(KNOWN[place].0.as_bytes()));
        assert!(slots[slot] == u8::MAX, "two names share a slot");
        slots[slot] = place as u8;
        place += 1;
    }
    slots
}
