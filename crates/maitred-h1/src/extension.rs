//! The grammar of chunk extensions (RFC 9112 §7.1.1), byte by byte:
//!
//! ```text
//! *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
//! ```
//!
//! Bytes that another parser could read as the end of the line or of a quoted string are refused.

/// The place in the extensions of a size line, behind the first semicolon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Behind a semicolon.
    #[default]
    Begin,
    Name,
    /// Blanks behind a name: an equals sign or a semicolon has to follow.
    NameBlank,
    /// Behind an equals sign.
    Equals,
    Value,
    Quoted,
    /// Behind a backslash in a quoted string.
    Escaped,
    QuoteEnd,
    /// Blanks behind a value: a semicolon has to follow.
    ValueBlank,
}

impl Extension {
    /// The place behind `byte`, which is no control character but a tab; `None` where it may not stand.
    pub(crate) fn next(self, byte: u8) -> Option<Self> {
        let is_blank = matches!(byte, b' ' | b'\t');
        let is_token = maitred_http::fields::is_token(&[byte]);
        match (self, byte) {
            (Self::Begin, _) if is_blank => Some(Self::Begin),
            (Self::Begin | Self::Name, _) if is_token => Some(Self::Name),
            (Self::Name | Self::NameBlank, _) if is_blank => Some(Self::NameBlank),
            (Self::Name | Self::NameBlank, b'=') => Some(Self::Equals),
            (Self::Equals, _) if is_blank => Some(Self::Equals),
            (Self::Equals, b'"') => Some(Self::Quoted),
            (Self::Equals | Self::Value, _) if is_token => Some(Self::Value),
            (Self::Value | Self::QuoteEnd | Self::ValueBlank, _) if is_blank => Some(Self::ValueBlank),
            (Self::Quoted, b'"') => Some(Self::QuoteEnd),
            (Self::Quoted, b'\\') => Some(Self::Escaped),
            (Self::Quoted | Self::Escaped, _) if byte != b'\r' => Some(Self::Quoted),
            (Self::Name | Self::NameBlank | Self::Value | Self::QuoteEnd | Self::ValueBlank, b';') => {
                Some(Self::Begin)
            }
            _ => None,
        }
    }

    /// Whether the line may end here.
    pub(crate) fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Value | Self::QuoteEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(text: &str) -> bool {
        let end = text.bytes().try_fold(Extension::default(), Extension::next);
        end.is_some_and(Extension::may_end)
    }

    #[test]
    fn names_with_and_without_values() {
        for text in ["a", "a=b", "a;b=c;d", " a = b ; c", "a=\"\"", "a=\"x;\\\" y\tü\"", "a=\"x\" ;b", "a;b"]
        {
            assert!(is_one(text), "{text}");
        }
        for text in [
            "",
            " ",
            ";",
            "a;",
            "=x",
            "a=",
            "a= ",
            "a=\"x",
            "a=\"x\\\"",
            "a=\"x\"y",
            "a b",
            "a=b c",
            "a=b ",
            "a ",
            "ü",
            "a=ü",
            "a==b",
            "\"a\"",
            "a=b=c",
            "a,b",
            "a=\"\r\"",
            "a=\"\\\r\"",
        ] {
            assert!(!is_one(text), "{text:?}");
        }
    }
}
