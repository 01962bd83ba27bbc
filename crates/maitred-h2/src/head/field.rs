//! The syntax of fields (RFC 9113 §8.2), in a head and in trailers.

use maitred_http::fields::{is_token, is_value};

use super::FIELD_COST;

/// Looks at a name and whether it may be in HTTP/2.
/// Errors: it makes the message malformed, and why.
pub(super) fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_usual = |byte: u8| byte.is_ascii_lowercase() | (byte == b'-');
    // Without a way out in the middle the compiler takes many bytes at a time.
    let usual = name.iter().fold(true, |all, byte| all & is_usual(*byte));
    let is_lower = || is_token(name) && !name.iter().any(u8::is_ascii_uppercase);
    if name.is_empty() || !(usual || is_lower()) {
        return Err("a name of a field is no token in lower case");
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" | b"transfer-encoding" => {
            Err("a field that belongs to a connection of HTTP/1")
        }
        _ => Ok(()),
    }
}

/// Looks at the value of the field `name`.
pub(super) fn check_value(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if is_blank(value.first()) || is_blank(value.last()) || !is_value(value) {
        return Err("a control character in the value of a field, or a blank around it");
    }
    // It names one thing at most (RFC 9113 §8.2.2).
    if name == b"te" && !value.eq_ignore_ascii_case(b"trailers") {
        return Err("TE other than trailers");
    }
    Ok(())
}

/// Checks trailers, or fields of which nothing is kept.
#[derive(Default)]
pub(crate) struct Trailers {
    plain: usize,
    size: usize,
    malformed: Option<&'static str>,
}

impl Trailers {
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn plain(&self) -> usize {
        self.plain
    }

    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        let plain = name.len() + value.len();
        self.plain = self.plain.saturating_add(plain);
        self.size = self.size.saturating_add(plain + FIELD_COST);
        if self.malformed.is_none() {
            self.malformed = check_name(name).and_then(|()| check_value(name, value)).err();
        }
    }

    pub(crate) fn are_malformed(&self) -> bool {
        self.malformed.is_some()
    }
}
