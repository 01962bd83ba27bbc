//! Values in DER (X.690 §10), as certificates, revocation lists, OCSP responses and keys have them.
//!
//! A [`Reader`] is a position in bytes: it goes one value on, never past the end, and looks into no value by itself. So the caller decides
//! how deep it reads, and no input makes it recurse. Left out: tags above 30, which none of these formats has, and lengths without an end.

use std::fmt::Write;

use time::{Date, Month};

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(crate) const ENUMERATED: u8 = 0x0a;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `[number]` around a value of any kind, which is below 31 in all formats here.
pub(crate) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// `[number]` in the place of the tag of a value without parts.
pub(crate) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// A value: its tag with class and form, its content, and both with the length between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) whole: &'a [u8],
}

impl<'a> Value<'a> {
    /// The values in it if it has this tag.
    pub(crate) fn inside(&self, tag: u8) -> Option<Reader<'a>> {
        (self.tag == tag).then_some(Reader(self.content))
    }
}

/// Values one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value. `None` at the end, and for bytes that are no DER; then the position stays.
    pub(crate) fn any(&mut self) -> Option<Value<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // The shortest form is the only one (§10.1). Four bytes are 4 GiB.
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
                (length, (length >= 0x80 && digits.first() != Some(&0)).then_some(rest)?)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - rest.len())?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        self.0 = rest;
        Some(Value { tag, content, whole })
    }

    /// The next value if it has this tag.
    pub(crate) fn value(&mut self, tag: u8) -> Option<Value<'a>> {
        let mut ahead = *self;
        let value = ahead.any().filter(|value| value.tag == tag)?;
        *self = ahead;
        Some(value)
    }

    /// The content of the next value if it has this tag.
    pub(crate) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.value(tag).map(|value| value.content)
    }

    /// The values in the next value if it has this tag.
    pub(crate) fn inside(&mut self, tag: u8) -> Option<Self> {
        self.content(tag).map(Self)
    }

    /// All values that are left. `None`: one of them is no DER.
    pub(crate) fn all(mut self) -> Option<Vec<Value<'a>>> {
        let mut values = Vec::new();
        while !self.is_empty() {
            values.push(self.any()?);
        }
        Some(values)
    }

    /// A point in time in seconds since 1970, 0 for those before (RFC 5280 §4.1.2.5).
    pub(crate) fn time(&mut self) -> Option<u64> {
        let mut ahead = *self;
        let value = ahead.any()?;
        let text = std::str::from_utf8(value.content).ok()?.strip_suffix('Z')?;
        let (year, rest) = match value.tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year = number(year)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                text.split_at_checked(4).and_then(|(year, rest)| Some((number(year)?, rest)))?
            }
            _ => return None,
        };
        if rest.len() != 10 {
            return None;
        }
        let two =
            |from: usize| rest.get(from..from + 2).and_then(number).and_then(|two| u8::try_from(two).ok());
        let date = Date::from_calendar_date(year, Month::try_from(two(0)?).ok()?, two(2)?).ok()?;
        let time = date.with_hms(two(4)?, two(6)?, two(8)?).ok()?;
        *self = ahead;
        Some(u64::try_from(time.assume_utc().unix_timestamp()).unwrap_or(0))
    }
}

fn number(digits: &str) -> Option<i32> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// An object identifier as numbers with dots (X.690 §8.19), or in hexadecimal digits if it is none, or one of its numbers is beyond 64 bits.
pub(crate) fn dotted(identifier: &[u8]) -> String {
    try_dotted(identifier).unwrap_or_else(|| hex(identifier))
}

fn try_dotted(identifier: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut number = 0_u64;
    for byte in identifier {
        number = number.checked_mul(0x80)?.checked_add(u64::from(byte & 0x7f))?;
        if byte & 0x80 != 0 {
            continue;
        }
        // To write to a text cannot fail.
        let _ = match text.is_empty() {
            true => {
                let first = (number / 40).min(2);
                write!(text, "{first}.{}", number - 40 * first)
            }
            false => write!(text, ".{number}"),
        };
        number = 0;
    }
    identifier.last().filter(|last| *last & 0x80 == 0)?;
    Some(text)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_ends_where_its_length_says() {
        let long = [&[4, 0x81, 0x80][..], &[7; 0x80], &[5, 0]].concat();
        let mut reader = Reader::new(&long);
        assert_eq!(reader.inside(SEQUENCE), None);
        assert_eq!(reader.content(OCTET_STRING), Some(&[7; 0x80][..]));
        assert_eq!(reader.any(), Some(Value { tag: 5, content: &[], whole: &[5, 0] }));
        assert!(reader.is_empty() && reader.any().is_none());
    }

    #[test]
    fn what_is_no_der_is_refused() {
        for bytes in [
            &[4][..],
            &[4, 1],
            // Longer forms than needed, no end, five bytes of length, a tag above 30.
            &[4, 0x81, 1, 0],
            &[&[4, 0x82, 0, 0x80][..], &[0; 0x80]].concat(),
            &[0x30, 0x80, 0, 0],
            &[4, 0x85, 0, 0, 0, 0, 1, 0],
            &[0x1f, 1, 0],
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.any(), None, "{bytes:?}");
            assert_eq!(reader, Reader::new(bytes));
            assert_eq!(reader.all(), None);
        }
        assert_eq!(Reader::new(&[]).all(), Some(Vec::new()));
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let time = |tag: u8, text: &str| {
            let length = u8::try_from(text.len()).expect("short");
            Reader::new(&[&[tag, length], text.as_bytes()].concat()).time()
        };
        assert_eq!(time(UTC_TIME, "270115080000Z"), Some(1_800_000_000));
        assert_eq!(time(GENERALIZED_TIME, "20270115080000Z"), Some(1_800_000_000));
        assert_eq!(time(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        assert_eq!(time(UTC_TIME, "500101000000Z"), Some(0));
        for text in [
            "270115080000",
            "2701150800Z",
            "271315080000Z",
            "270230080000Z",
            "270115246000Z",
            "27011508000+Z",
            "",
        ] {
            assert_eq!(time(UTC_TIME, text), None, "{text}");
            assert_eq!(time(GENERALIZED_TIME, &format!("20{text}")), None, "{text}");
        }
    }

    #[test]
    fn identifiers_have_dots() {
        assert_eq!(dotted(&[0x2b, 6, 1, 4, 1, 0x8b, 0x3a, 0]), "1.3.6.1.4.1.1466.0");
        assert_eq!(dotted(&[0x55, 4, 3]), "2.5.4.3");
        assert_eq!(dotted(&[0x88, 0x37]), "2.999");
        assert_eq!(dotted(&[0x2b, 0x80]), "2b80");
        assert_eq!(dotted(&[0xff; 11]), "ff".repeat(11));
        assert_eq!(dotted(&[]), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_values_and_a_rest(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            let mut read = 0;
            while let Some(value) = reader.any() {
                read += value.whole.len();
                prop_assert!(value.whole.ends_with(value.content) && value.whole[0] == value.tag);
            }
            prop_assert_eq!(reader.0, &bytes[read..]);
            _ = (Reader::new(&bytes).time(), dotted(&bytes));
        }

        #[test]
        fn a_value_of_any_length_is_read(tag in 0_u8..31, length in 0_usize..70_000) {
            let [a, b, c, d] = u32::try_from(length).expect("small").to_be_bytes();
            let head: &[u8] = match length {
                0..=0x7f => &[tag, d],
                0x80..=0xff => &[tag, 0x81, d],
                0x100..=0xffff => &[tag, 0x82, c, d],
                _ => &[tag, 0x83, b, c, d],
            };
            let content = vec![a; length];
            let whole = [head, &content].concat();
            prop_assert_eq!(Reader::new(&whole).any(), Some(Value { tag, content: &content, whole: &whole }));
        }
    }
}
