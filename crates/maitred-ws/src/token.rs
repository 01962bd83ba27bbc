//! Tokens of HTTP (RFC 9110 §5.6.2), which the handshake's fields are made of.

/// Whether this byte may stand in a token.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// The token that `text` is. `None` if it is none.
pub(crate) fn token(text: &[u8]) -> Option<&str> {
    let is_token = !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte));
    if is_token { str::from_utf8(text).ok() } else { None }
}

/// `text` without spaces and tabs at its ends.
pub(crate) fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_no_separators() {
        assert_eq!(token(b"permessage-deflate"), Some("permessage-deflate"));
        for other in [&b""[..], b"a b", b"a;b", b"a=b", b"\"a\"", b"\xff", b"a\x00"] {
            assert_eq!(token(other), None, "{other:?}");
        }
    }

    #[test]
    fn blanks_go_at_both_ends() {
        assert_eq!(trimmed(b" \t a b\t "), b"a b");
        assert_eq!(trimmed(b" \t "), b"");
    }
}
