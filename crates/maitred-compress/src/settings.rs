//! The operator's settings of compression.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use maitred_http::coding::Coding;
use maitred_http::fields::is_token;

use maitred_match::{BadPattern, PathPattern};

/// The responses that are compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionSettings {
    /// The codings in use, the preferred one first: it decides where a client accepts several alike.
    pub codings: Vec<CodingLevel>,
    /// The types of content that are compressed.
    pub types: Vec<TypePattern>,
    /// A response whose length is known and less, in bytes, is not compressed.
    pub min_length: u64,
    /// The paths whose responses are not compressed.
    pub except: Vec<PathPattern>,
    /// Bytes that the compressors of all unfinished responses may take together. A response that begins beyond is not compressed.
    pub memory: u64,
}

/// The types that are compressed unless others are named: those of which text is the most part.
pub const TYPES: &[&str] = &[
    "text/*",
    "*+json",
    "*+xml",
    "application/json",
    "application/javascript",
    "application/x-javascript",
    "application/xml",
    "application/wasm",
    "application/x-ndjson",
    "application/rtf",
    "font/ttf",
    "font/otf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// The codings unless others are named. Measured (bench/results/compression.md): zstd:3 takes a quarter of the time of gzip:6 for 3 %
/// more bytes, and br:5 twice the time for 5 to 10 % fewer.
pub const CODINGS: &[&str] = &["zstd:3", "gzip:6", "br:5"];

impl Default for CompressionSettings {
    fn default() -> Self {
        let codings = CODINGS.iter().filter_map(|text| text.parse().ok()).collect();
        let types = TYPES.iter().filter_map(|text| text.parse().ok()).collect();
        Self { codings, types, min_length: 1024, except: Vec::new(), memory: 64 * 1024 * 1024 }
    }
}

impl CompressionSettings {
    /// The level of a coding that is in use.
    pub fn level(&self, coding: Coding) -> Option<u8> {
        self.codings.iter().find(|known| known.coding == coding).map(|known| known.level)
    }

    /// The codings in the order of preference.
    pub fn order(&self) -> impl Iterator<Item = Coding> {
        self.codings.iter().map(|known| known.coding)
    }

    /// Whether a response with this `Content-Type` is compressed.
    pub fn has_type(&self, content_type: &[u8]) -> bool {
        let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        self.types.iter().any(|pattern| pattern.matches(media_type))
    }
}

/// A coding, and how hard it tries: `gzip:6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingLevel {
    /// The coding, not [`Coding::Identity`].
    pub coding: Coding,
    /// 1 to 9 for gzip and zstd, 1 to 6 for br: beyond, one response takes tens of MiB of memory.
    pub level: u8,
}

/// The levels of a coding.
fn levels(coding: Coding) -> RangeInclusive<u8> {
    match coding {
        Coding::Brotli => 1..=6,
        Coding::Identity | Coding::Gzip | Coding::Zstd => 1..=9,
    }
}

impl FromStr for CodingLevel {
    type Err = BadPattern;

    /// A name alone has its usual level.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let usual = CODINGS.iter().filter_map(|known| known.split_once(':'));
        let Some((_, usual)) = usual.into_iter().find(|(known, _)| *known == name) else {
            let what = format!("'{name}' is no coding that responses are compressed with");
            return Err(BadPattern::new(what, "write gzip, br or zstd"));
        };
        let known = Coding::named(name.as_bytes()).unwrap_or(Coding::Identity);
        let range = levels(known);
        let number = level.unwrap_or(usual);
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| number.parse().ok()).flatten().filter(|level| range.contains(level));
        let Some(level) = number else {
            let what = format!("'{text}' has no level of {name}");
            let remedy = format!("write {name}:{} to {name}:{}", range.start(), range.end());
            return Err(BadPattern::new(what, remedy));
        };
        Ok(Self { coding: known, level })
    }
}

impl fmt::Display for CodingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.coding.name(), self.level)
    }
}

/// Types of content: `text/html`, `text/*` or `*+json`. Compared without case and without parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern {
    /// The type in lower case.
    text: Box<str>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    /// `*` last.
    Start,
    /// `*` first.
    End,
}

impl TypePattern {
    fn matches(&self, media_type: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let same = |part: Option<&[u8]>| part.is_some_and(|part| part.eq_ignore_ascii_case(text));
        match self.form {
            Form::Whole => same(Some(media_type)),
            Form::Start => same(media_type.get(..text.len())),
            Form::End => same(media_type.len().checked_sub(text.len()).and_then(|at| media_type.get(at..))),
        }
    }
}

impl FromStr for TypePattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |name: &str| is_token(name.as_bytes()) && !name.contains('*');
        let (rest, form) = if let Some(suffix) = text.strip_prefix('*') {
            (suffix.strip_prefix('+').filter(|name| is_name(name)).and(Some(suffix)), Form::End)
        } else if let Some(all) = text.strip_suffix('*') {
            (all.strip_suffix('/').filter(|name| is_name(name)).and(Some(all)), Form::Start)
        } else {
            let parts = text.split_once('/');
            (parts.filter(|(kind, name)| is_name(kind) && is_name(name)).and(Some(text)), Form::Whole)
        };
        let Some(rest) = rest else {
            let what = format!("'{text}' is no type of content");
            return Err(BadPattern::new(what, "write a type such as text/html, text/* or *+json"));
        };
        Ok(Self { text: rest.to_ascii_lowercase().into(), form })
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Whole => f.write_str(&self.text),
            Form::Start => write!(f, "{}*", self.text),
            Form::End => write!(f, "*{}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_all_there() {
        let settings = CompressionSettings::default();
        assert_eq!((settings.codings.len(), settings.types.len()), (CODINGS.len(), TYPES.len()));
        let texts: Vec<String> = settings.types.iter().map(ToString::to_string).collect();
        assert_eq!(texts, TYPES);
        let texts: Vec<String> = settings.codings.iter().map(ToString::to_string).collect();
        assert_eq!(texts, CODINGS);
    }

    #[test]
    fn a_type_is_found_without_regard_to_case_and_parameters() {
        let settings = CompressionSettings::default();
        for (content_type, expected) in [
            ("text/html; charset=utf-8", true),
            ("TEXT/HTML", true),
            ("text/event-stream", true),
            ("application/json", true),
            (" application/json ;charset=utf-8", true),
            ("application/problem+json", true),
            ("image/svg+xml", true),
            ("application/wasm", true),
            ("application/json5x", false),
            ("application/octet-stream", false),
            ("image/png", false),
            ("video/mp4", false),
            ("text", false),
            ("", false),
            ("+json", true),
        ] {
            assert_eq!(settings.has_type(content_type.as_bytes()), expected, "{content_type}");
        }
    }

    #[test]
    fn an_unknown_coding_or_type_is_an_error_with_its_remedy() {
        for (text, part) in [
            ("deflate", "'deflate' is no coding that responses are compressed with; write gzip, br or zstd"),
            ("identity", "is no coding"),
            ("GZIP", "is no coding"),
            ("gzip:0", "'gzip:0' has no level of gzip; write gzip:1 to gzip:9"),
            ("br:11", "write br:1 to br:6"),
            ("zstd:+3", "write zstd:1 to zstd:9"),
            ("zstd:", "has no level"),
        ] {
            let error = text.parse::<CodingLevel>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
        for text in ["", "*", "text", "text/", "/html", "*/*", "*json", "text/*x", "a b/c", "text/html; a=b"]
        {
            assert!(text.parse::<TypePattern>().is_err(), "{text}");
        }
        assert_eq!("br".parse::<CodingLevel>().map(|known| known.to_string()), Ok("br:5".to_owned()));
        assert_eq!("Text/*".parse::<TypePattern>().map(|known| known.to_string()), Ok("text/*".to_owned()));
    }
}
