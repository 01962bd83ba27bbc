//! The application's account of its own time: the value of a `Server-Timing` field
//! (<https://www.w3.org/TR/server-timing/#the-server-timing-header-field>).
//!
//! ```text
//! db;dur=28.3;desc="38 statements", cache;desc=hit
//! ```
//! Promises: any bytes are read without error, as the specification says; text that is no metric is left out.

use std::borrow::Cow;

/// One entry of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing<'a> {
    /// A token (RFC 9110 §5.6.2), as it was written.
    pub name: &'a str,
    /// `dur`, from milliseconds to nanoseconds; 0 where it is missing or no number from 0 to 2^64 ns.
    pub nanos: u64,
    /// `desc`, without its quotation marks; empty where it is missing. Bytes that are no UTF-8 are replaced.
    pub description: Cow<'a, str>,
}

/// The entries of one field's value.
pub fn parse(value: &[u8]) -> impl Iterator<Item = Timing<'_>> {
    let mut left = Reader(value);
    std::iter::from_fn(move || {
        while !left.0.is_empty() {
            if let Some(timing) = left.entry() {
                return Some(timing);
            }
        }
        None
    })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next entry with the comma behind it; none if there is no name.
    fn entry(&mut self) -> Option<Timing<'a>> {
        self.skip_space();
        let name = self.token();
        let (mut duration, mut description) = (None, None);
        loop {
            self.skip_to(b";,");
            if !self.take(b';') {
                self.take(b',');
                break;
            }
            self.skip_space();
            let parameter = self.token();
            let value = self.value();
            // The first one counts.
            if parameter.eq_ignore_ascii_case("dur") {
                duration.get_or_insert(value);
            } else if parameter.eq_ignore_ascii_case("desc") {
                description.get_or_insert(value);
            }
        }
        let nanos = duration.and_then(|text: Cow<'_, [u8]>| nanos(&text)).unwrap_or_default();
        let description = match description.unwrap_or_default() {
            Cow::Borrowed(text) => String::from_utf8_lossy(text),
            Cow::Owned(text) => String::from_utf8_lossy(&text).into_owned().into(),
        };
        (!name.is_empty()).then_some(Timing { name, nanos, description })
    }

    /// Reads the value behind an equals sign: a token or a quoted string; empty if there is neither.
    fn value(&mut self) -> Cow<'a, [u8]> {
        self.skip_space();
        if !self.take(b'=') {
            return Cow::default();
        }
        self.skip_space();
        if self.take(b'"') { self.quoted() } else { self.token().as_bytes().into() }
    }

    /// RFC 9110 §5.6.4, behind the first mark. One that does not end reaches to the end.
    fn quoted(&mut self) -> Cow<'a, [u8]> {
        let end = self.0.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(self.0.len());
        let (plain, rest) = self.0.split_at(end);
        self.0 = rest;
        if self.0.first() != Some(&b'\\') {
            self.take(b'"');
            return plain.into();
        }
        let mut text = plain.to_vec();
        while let Some((byte, rest)) = self.0.split_first() {
            self.0 = rest;
            match byte {
                b'"' => break,
                b'\\' => {
                    let (escaped, rest) = self.0.split_at(self.0.len().min(1));
                    text.extend_from_slice(escaped);
                    self.0 = rest;
                }
                byte => text.push(*byte),
            }
        }
        text.into()
    }

    fn token(&mut self) -> &'a str {
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let end = self.0.iter().position(|byte| !is_token(byte)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        // Of ASCII letters only.
        std::str::from_utf8(token).unwrap_or_default()
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        let end = self.0.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(self.0.len());
        self.0 = &self.0[end..];
    }

    /// Skips to the next of these bytes: text in between is no valid entry.
    fn skip_to(&mut self, any: &[u8]) {
        let end = self.0.iter().position(|byte| any.contains(byte)).unwrap_or(self.0.len());
        self.0 = &self.0[end..];
    }
}

/// Nanoseconds of a decimal number of milliseconds.
fn nanos(text: &[u8]) -> Option<u64> {
    let millis: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    let nanos = (millis * 1e6).round();
    (0.0..u64::MAX as f64).contains(&nanos).then_some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &str) -> Vec<(String, u64, String)> {
        let of = |timing: Timing<'_>| (timing.name.to_owned(), timing.nanos, timing.description.into_owned());
        parse(value.as_bytes()).map(of).collect()
    }

    fn entry(name: &str, nanos: u64, description: &str) -> (String, u64, String) {
        (name.to_owned(), nanos, description.to_owned())
    }

    #[test]
    fn several_entries_with_parameters() {
        assert_eq!(
            read("db;dur=28.3;desc=\"38 statements\", cache;desc=hit , app ; DUR = 5"),
            [entry("db", 28_300_000, "38 statements"), entry("cache", 0, "hit"), entry("app", 5_000_000, "")]
        );
    }

    #[test]
    fn the_first_of_two_parameters_counts_and_unknown_ones_do_not() {
        assert_eq!(read("a;x=\"1,2;dur=3\";dur=1;dur=2;desc=u;desc=v"), [entry("a", 1_000_000, "u")]);
    }

    #[test]
    fn quotes_keep_commas_and_backslashes_escape() {
        assert_eq!(read(r#"a;desc="x, \"y\" \\ ; z";dur=1"#), [entry("a", 1_000_000, r#"x, "y" \ ; z"#)]);
        assert_eq!(read("a;desc=\"open"), [entry("a", 0, "open")]);
    }

    #[test]
    fn text_without_an_entry_or_a_duration_is_left_out() {
        assert_eq!(read(", ,=3;dur=9,ok;dur=1 junk;dur=2,\"q\""), [entry("ok", 1_000_000, "")]);
        for wrong in ["-1", "nan", "inf", "1e300", "x", "", "\"\""] {
            assert_eq!(read(&format!("a;dur={wrong}")), [entry("a", 0, "")], "{wrong}");
        }
        assert_eq!(read("a;dur=\"2.5\""), [entry("a", 2_500_000, "")]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(value in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&value).count() <= value.len());
        }

        #[test]
        fn any_text_of_its_signs_is_read_to_its_end(value in "[a-c;,=\"\\\\ .0-9]{0,80}") {
            for timing in parse(value.as_bytes()) {
                prop_assert!(!timing.name.is_empty());
            }
        }

        #[test]
        fn a_written_entry_is_read_back(name in "[a-z]{1,9}", millis in 0..1_000_000_000_u64, text in "[ -~]{0,30}") {
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            let value = format!("x, {name};dur={}.{:03};desc=\"{quoted}\",y", millis / 1000, millis % 1000);
            prop_assert_eq!(
                read(&value),
                [entry("x", 0, ""), entry(&name, millis * 1000, &text), entry("y", 0, "")]
            );
        }
    }
}
