//! UTF-8 (RFC 3629) that comes in pieces.

/// Checks text that comes in pieces, and refuses it at the first byte with which it cannot be UTF-8 any more, also where a character
/// is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf8 {
    /// The bytes of a character that is not complete.
    begun: [u8; 4],
    length: u8,
}

/// No continuation makes it UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUtf8;

impl Utf8 {
    /// Checks the next piece.
    ///
    /// # Errors
    /// When all pieces so far cannot be the beginning of UTF-8. Results for further pieces then mean nothing.
    pub fn check(&mut self, mut piece: &[u8]) -> Result<(), NotUtf8> {
        while self.length > 0 {
            let [byte, rest @ ..] = piece else { return Ok(()) };
            self.add(*byte)?;
            piece = rest;
        }
        match str::from_utf8(piece) {
            Ok(_) => Ok(()),
            // The standard library tells at which byte it goes wrong; without a length it only ends too early.
            Err(error) if error.error_len().is_some() => Err(NotUtf8),
            Err(error) => {
                for byte in piece.get(error.valid_up_to()..).unwrap_or_default() {
                    self.add(*byte)?;
                }
                Ok(())
            }
        }
    }

    /// Whether no character is begun that is not complete.
    pub fn is_complete(&self) -> bool {
        self.length == 0
    }

    /// One byte of a character that is longer than one.
    fn add(&mut self, byte: u8) -> Result<(), NotUtf8> {
        let place = self.begun.get_mut(usize::from(self.length)).ok_or(NotUtf8)?;
        *place = byte;
        self.length += 1;
        match str::from_utf8(self.begun.get(..usize::from(self.length)).unwrap_or_default()) {
            Ok(_) => self.length = 0,
            Err(error) if error.error_len().is_some() => return Err(NotUtf8),
            Err(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The byte at which the text is refused when it comes byte by byte.
    fn refused_at(text: &[u8]) -> Option<usize> {
        let mut utf8 = Utf8::default();
        text.iter().position(|byte| utf8.check(&[*byte]).is_err())
    }

    #[test]
    fn it_fails_inside_a_character() {
        // Autobahn 6.4.1 to 6.4.4: a code point above U+10FFFF.
        let before = "κόσμε".as_bytes();
        let text = [before, b"\xf4\x90\x80\x80edited"].concat();
        assert_eq!(refused_at(&text), Some(before.len() + 1));
        assert_eq!(refused_at(b"\xe0\x80"), Some(1), "longer than it has to be");
        assert_eq!(refused_at(b"\xed\xa0"), Some(1), "a surrogate");
        assert_eq!(refused_at(b"\xc0"), Some(0));
        assert_eq!(refused_at(b"\xf5"), Some(0));
        assert_eq!(refused_at(b"a\x80"), Some(1));
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut utf8 = Utf8::default();
        for byte in "𝄞".as_bytes() {
            assert_eq!(utf8.check(&[*byte]), Ok(()));
        }
        assert!(utf8.is_complete());
        assert_eq!(utf8.check(b"a\xc3"), Ok(()));
        assert!(!utf8.is_complete());
        assert_eq!(utf8.check(b""), Ok(()));
        assert_eq!(utf8.check(b"\xa9b"), Ok(()));
        assert!(utf8.is_complete());
    }

    /// Bytes that are nearly text.
    fn nearly_text() -> impl Strategy<Value = Vec<u8>> {
        let edges = prop::sample::select(vec![
            0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
            0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ]);
        let piece = prop_oneof![
            4 => any::<char>().prop_map(|character| character.to_string().into_bytes()),
            1 => edges.prop_map(|byte| vec![byte]),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn in_any_pieces_the_result_is_that_of_the_standard_library(text in nearly_text(), cuts in proptest::collection::vec(0usize..40, 0..5)) {
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            ends.extend([0, text.len()]);
            ends.sort_unstable();
            let mut utf8 = Utf8::default();
            let failed = ends.windows(2).find(|two| utf8.check(&text[two[0]..two[1]]).is_err()).map(|two| two[1]);
            match str::from_utf8(&text) {
                Ok(_) => prop_assert!(failed.is_none() && utf8.is_complete()),
                Err(error) => match error.error_len() {
                    None => prop_assert!(failed.is_none() && !utf8.is_complete()),
                    Some(length) => {
                        // The piece that has the byte at which it goes wrong: the last one of the length, or the one behind it.
                        let latest = error.valid_up_to() + length;
                        let piece = ends.iter().copied().find(|end| *end > latest).unwrap_or(text.len());
                        prop_assert!(failed.is_some_and(|end| end <= piece));
                        prop_assert!(refused_at(&text).is_some_and(|at| at <= latest));
                    }
                },
            }
        }
    }
}
