//! The chunked transfer coding (RFC 9112 §7.1), decoded byte by byte without looking back.
//!
//! ```text
//! Size --digit--> Digits --CR--> LineLf --LF--> Data --all of it--> DataCr --CR--> DataLf --LF--> Size
//!                  | |             ^              (size 0: the trailer section follows)
//!                  | `--SP HT--> Blank --;--> Extension(..) --CR--^
//!                  `--;-------------------------^
//! ```
//!
//! Extensions are read by their grammar ([`extension`](crate::extension)) and forgotten.

use crate::error::Malformed;
use crate::extension::Extension;
use crate::limits::Limits;

/// The decoder's place in a chunked body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunked {
    /// The size so far in a size line, the bytes left in data.
    size: u64,
    /// Bytes of extensions and blanks in all size lines so far.
    extensions: u32,
    /// Bytes of the present size line, CRLF not counted.
    line: u32,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Size,
    Digits,
    Blank,
    Extension(Extension),
    LineLf,
    Data,
    DataCr,
    DataLf,
}

/// The part of the body behind the consumed bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All bytes are used up.
    NeedMore,
    /// This many bytes of data, more than zero.
    Data(usize),
    /// The last chunk's size line is behind; the trailer section follows.
    Last,
}

/// 64 bits. More digits are refused even when they are zeros.
const MAX_DIGITS: u32 = 16;

impl Chunked {
    /// Reads on to the next data or to the end. The number is how many bytes of framing were
    /// consumed; data bytes are not in it, but are counted as taken.
    ///
    /// # Errors
    /// Anything but RFC 9112 §7.1, or a limit is passed.
    pub(crate) fn advance(&mut self, input: &[u8], limits: &Limits) -> Result<(usize, Progress), Malformed> {
        let mut rest = input;
        loop {
            let consumed = input.len() - rest.len();
            if self.phase == Phase::Data {
                return Ok((consumed, self.take_data(rest.len())));
            }
            let Some((byte, behind)) = rest.split_first() else {
                return Ok((consumed, Progress::NeedMore));
            };
            rest = behind;
            if self.framing_byte(*byte, limits)? {
                return Ok((consumed + 1, Progress::Last));
            }
        }
    }

    fn take_data(&mut self, available: usize) -> Progress {
        let length = usize::try_from(self.size).map_or(available, |size| size.min(available));
        self.size -= length as u64;
        if self.size == 0 {
            self.phase = Phase::DataCr;
        }
        if length == 0 { Progress::NeedMore } else { Progress::Data(length) }
    }

    /// One byte outside data; true behind the size line of the last chunk.
    fn framing_byte(&mut self, byte: u8, limits: &Limits) -> Result<bool, Malformed> {
        match (self.phase, byte) {
            (Phase::DataCr, b'\r') => self.phase = Phase::DataLf,
            (Phase::DataLf, b'\n') => self.phase = Phase::Size,
            (Phase::DataCr | Phase::DataLf, _) => {
                return Err(Malformed::ChunkEnd);
            }
            _ => return self.size_line_byte(byte, limits),
        }
        Ok(false)
    }

    fn size_line_byte(&mut self, byte: u8, limits: &Limits) -> Result<bool, Malformed> {
        if !matches!(byte, b'\r' | b'\n') {
            self.line = self.line.saturating_add(1);
            if self.line as usize > limits.max_chunk_line {
                return Err(Malformed::ChunkLineTooLong);
            }
        }
        match (self.phase, byte) {
            (Phase::Size | Phase::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (Phase::Digits, b'\r') => self.phase = Phase::LineLf,
            (Phase::Digits | Phase::Blank, b';') => {
                self.extension_byte(Phase::Extension(Extension::default()), limits)?;
            }
            (Phase::Digits | Phase::Blank, b' ' | b'\t') => self.extension_byte(Phase::Blank, limits)?,
            (Phase::Extension(extension), b'\r') if extension.may_end() => self.phase = Phase::LineLf,
            (Phase::Extension(extension), b'\t' | b'\r' | b' '..=b'~' | 0x80..) => {
                let next = extension.next(byte).ok_or(Malformed::ChunkExtension)?;
                self.extension_byte(Phase::Extension(next), limits)?;
            }
            (Phase::LineLf, b'\n') => {
                self.line = 0;
                let last = self.size == 0;
                self.phase = if last { Phase::Size } else { Phase::Data };
                return Ok(last);
            }
            (Phase::LineLf, _) => return Err(Malformed::ChunkLineCr),
            (Phase::Extension(_), _) => {
                return Err(Malformed::ChunkExtensionControl);
            }
            _ => return Err(Malformed::ChunkSize),
        }
        Ok(false)
    }

    fn digit(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.line > MAX_DIGITS {
            return Err(Malformed::ChunkDigits);
        }
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        self.size = (self.size << 4) | u64::from(value);
        self.phase = Phase::Digits;
        Ok(())
    }

    fn extension_byte(&mut self, phase: Phase, limits: &Limits) -> Result<(), Malformed> {
        self.phase = phase;
        self.extensions = self.extensions.saturating_add(1);
        if self.extensions as usize > limits.max_chunk_extensions {
            return Err(Malformed::ChunkExtensionsTooLong);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decoded data and the bytes behind the last size line, or the reason of the refusal.
    fn decode(mut input: &[u8], limits: &Limits) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
        let mut chunked = Chunked::default();
        let mut data = Vec::new();
        loop {
            let (consumed, progress) = chunked.advance(input, limits).map_err(Malformed::reason)?;
            input = &input[consumed..];
            match progress {
                Progress::NeedMore => return Err("incomplete"),
                Progress::Data(length) => {
                    data.extend_from_slice(&input[..length]);
                    input = &input[length..];
                }
                Progress::Last => return Ok((data, input.to_vec())),
            }
        }
    }

    fn refusal(input: &str) -> &'static str {
        decode(input.as_bytes(), &Limits::default()).expect_err(input)
    }

    #[test]
    fn chunks_are_joined_and_the_trailer_section_is_left() {
        let decoded = decode(b"5\r\nhello\r\nA;x=\"y\"\r\n, world...\r\n000\r\nrest", &Limits::default());
        assert_eq!(decoded, Ok((b"hello, world...".to_vec(), b"rest".to_vec())));
        assert_eq!(decode(b"1 ; a\r\nx\r\n0\t;b\r\n", &Limits::default()), Ok((b"x".to_vec(), vec![])));
    }

    #[test]
    fn malformed_framing_is_refused_with_its_reason() {
        for (input, reason) in [
            ("\r\n", "invalid chunk size"),
            (";x\r\n", "invalid chunk size"),
            ("g\r\n", "invalid chunk size"),
            ("0x5\r\n", "invalid chunk size"),
            ("-1\r\n", "invalid chunk size"),
            ("+1\r\n", "invalid chunk size"),
            (" 5\r\n", "invalid chunk size"),
            ("5\nhello", "invalid chunk size"),
            ("5 \r\nhello", "invalid chunk size"),
            ("5\rhello", "bare CR in a chunk-size line"),
            ("5;a\rb\n", "bare CR in a chunk-size line"),
            ("5;\r\nhello", "malformed chunk extension"),
            ("5;=x\r\nhello", "malformed chunk extension"),
            ("5;a=\"x\r\nhello", "malformed chunk extension"),
            ("5;a \r\nhello", "malformed chunk extension"),
            ("5;a\nhello\r\n", "control character in a chunk extension"),
            ("5;\0\r\n", "control character in a chunk extension"),
            ("5\r\nhello0\r\n", "chunk data does not end in CRLF"),
            ("5\r\nhello\n0\r\n", "chunk data does not end in CRLF"),
            ("5\r\nhello\rX", "chunk data does not end in CRLF"),
            ("00000000000000001\r\n", "chunk size of more than 16 digits"),
            ("10000000000000000\r\n", "chunk size of more than 16 digits"),
        ] {
            assert_eq!(refusal(input), reason, "{input:?}");
        }
    }

    #[test]
    fn sixteen_digits_are_a_size() {
        let mut chunked = Chunked::default();
        let progress = chunked.advance(b"ffffffffffffffff\r\nabc", &Limits::default());
        assert_eq!(progress, Ok((18, Progress::Data(3))));
        assert_eq!(chunked.size, u64::MAX - 3);
    }

    #[test]
    fn a_size_line_at_its_limit_passes_and_one_byte_more_does_not() {
        let limits = Limits { max_chunk_line: 6, ..Limits::default() };
        assert!(decode(b"1;abcd\r\nx\r\n0\r\n", &limits).is_ok());
        assert_eq!(decode(b"1;abcde\r\nx\r\n0\r\n", &limits), Err("chunk-size line too long"));
    }

    #[test]
    fn extensions_are_counted_over_the_whole_body() {
        let limits = Limits { max_chunk_extensions: 6, ..Limits::default() };
        assert!(decode(b"1;ab\r\nx\r\n1;ab\r\nx\r\n0\r\n", &limits).is_ok());
        let over = decode(b"1;ab\r\nx\r\n1;ab\r\nx\r\n0;a\r\n", &limits);
        assert_eq!(over, Err("too many bytes of chunk extensions"));
    }
}
