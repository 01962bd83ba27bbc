//! Text that is put together of short pieces: a line has some twenty of them, and there is a line for each request.

use std::io;

/// Bytes of a register of every processor of today: as many are copied and looked at together.
const TOGETHER: usize = 16;

/// Room behind the text whenever something is appended, so that a short piece is copied whole registers at a time.
const SPARE: usize = 2 * TOGETHER;

/// See the module text.
#[derive(Default)]
pub(crate) struct Text {
    /// The text, and behind it what there was before.
    bytes: Vec<u8>,
    length: usize,
}

/// A text that is known long before it is needed, and is copied whole, whatever its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    register: [u8; TOGETHER],
    length: u8,
}

impl Short {
    /// A text as several of them.
    pub(crate) fn all(text: &[u8]) -> impl Iterator<Item = Self> {
        text.chunks(TOGETHER).map(|part| {
            let mut register = [0; TOGETHER];
            register[..part.len()].copy_from_slice(part);
            Self { register, length: part.len() as u8 }
        })
    }
}

impl Text {
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn push_short(&mut self, text: Short) {
        if let Some(to) = self.room(TOGETHER).first_chunk_mut() {
            *to = text.register;
        }
        self.length += usize::from(text.length);
    }

    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) {
        copy(self.room(text.len()), text);
        self.length += text.len();
    }

    /// Takes what is behind `length` away.
    pub(crate) fn split_off(&mut self, length: usize) -> Vec<u8> {
        let behind = self.as_bytes().get(length..).unwrap_or_default().to_vec();
        self.length = self.length.min(length);
        behind
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// What is behind the text: at least `count` bytes and [`SPARE`].
    #[inline]
    fn room(&mut self, count: usize) -> &mut [u8] {
        if self.bytes.len() - self.length < count + SPARE {
            self.grow(count);
        }
        &mut self.bytes[self.length..]
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        self.bytes.resize((self.length + count + SPARE).next_power_of_two(), 0);
    }
}

impl io::Write for Text {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies into the beginning of `to`, which has room for it. Short texts are not worth a call: two registers that overlap are
/// enough for each.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        0 => {}
        1 => copy_ends::<1>(to, from),
        2..4 => copy_ends::<2>(to, from),
        4..8 => copy_ends::<4>(to, from),
        8..16 => copy_ends::<8>(to, from),
        16..=32 => copy_ends::<16>(to, from),
        length => to[..length].copy_from_slice(from),
    }
}

/// Of a text of `N` to twice as many bytes.
#[inline]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    let to = &mut to[..from.len()];
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}

/// Whether a text can stand in a line as it is: printable ASCII without quotation mark and backslash. Without a branch for each
/// byte, as these are nearly all there is.
#[inline]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    match text.len() {
        0 => true,
        1 => are_plain::<1>(text),
        2..4 => are_plain::<2>(text),
        4..8 => are_plain::<4>(text),
        8..16 => are_plain::<8>(text),
        _ => {
            let (registers, _) = text.as_chunks::<TOGETHER>();
            registers.iter().all(is_plain_register) && text.last_chunk().is_some_and(is_plain_register)
        }
    }
}

/// The first and the last `N` bytes.
#[inline]
fn are_plain<const N: usize>(text: &[u8]) -> bool {
    let mut register = [b' '; TOGETHER];
    if let (Some(to), Some(from)) = (register.first_chunk_mut::<N>(), text.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (register.last_chunk_mut::<N>(), text.last_chunk()) {
        *to = *from;
    }
    is_plain_register(&register)
}

#[inline]
fn is_plain_register(register: &[u8; TOGETHER]) -> bool {
    !register.iter().fold(false, |any, byte| any | needs_care(*byte))
}

#[inline]
fn needs_care(byte: u8) -> bool {
    !(0x20..=0x7e).contains(&byte) | (byte == b'"') | (byte == b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_of_any_length_follow_each_other(pieces in vec(vec(any::<u8>(), 0..100), 0..30)) {
            let mut text = Text::default();
            for _ in 0..2 {
                text.clear();
                pieces.iter().for_each(|piece| text.push(piece));
                prop_assert_eq!(text.as_bytes(), pieces.concat());
                text.clear();
                pieces.iter().flat_map(|piece| Short::all(piece)).for_each(|piece| text.push_short(piece));
                prop_assert_eq!(text.as_bytes(), pieces.concat());
            }
        }

        #[test]
        fn a_single_byte_makes_the_difference(length in 1..100_usize, byte: u8, at: prop::sample::Index) {
            let mut text = vec![b'~'; length];
            prop_assert!(is_plain(&text));
            text[at.index(length)] = byte;
            let stands = (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
            prop_assert_eq!(is_plain(&text), stands);
        }
    }

    #[test]
    fn what_is_split_off_is_gone() {
        let mut text = Text::default();
        text.push(b"one two");
        assert_eq!(text.split_off(3), b" two");
        assert_eq!((text.as_bytes(), text.len()), (&b"one"[..], 3));
    }
}
