//! Answers to the challenges of a certificate authority (ACME): by HTTP (RFC 8555 §8.3), and in a handshake (RFC 8737).
//!
//! Leaves out: where the answers are kept. An order puts them there, and every process that listens finds them.

/// The key authorisations of the challenges that are open now.
///
/// Both functions run in the turn of a connection, so an implementation reads at most one small file.
pub trait Challenges: Send + Sync {
    /// The key authorisation of HTTP-01 for this token. The token [is well-formed](is_token).
    fn http(&self, token: &str) -> Option<String>;

    /// The key authorisation of TLS-ALPN-01 for this name: a host in lower case without a dot at its end, or an IP address as RFC 5952 writes it.
    fn tls_alpn(&self, name: &str) -> Option<String>;
}

/// The longest token that is looked for, in bytes. Authorities send 43: 256 random bits (RFC 8555 §8.1 asks for 128 at least).
pub const MAX_TOKEN: usize = 128;

/// Whether this is the token of a challenge: base64url without padding (RFC 8555 §8.3). Such a token is a safe name of a file.
pub fn is_token(token: &[u8]) -> bool {
    let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_TOKEN).contains(&token.len()) && token.iter().all(is_base64url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_base64url_of_at_most_128_bytes() {
        for token in ["LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0", "a", "-_", &"a".repeat(128)] {
            assert!(is_token(token.as_bytes()), "{token}");
        }
        for token in ["", ".", "..", "a/b", "a=", "a%41", "a.b", "a\0", "ä", &"a".repeat(129)] {
            assert!(!is_token(token.as_bytes()), "{token}");
        }
    }
}
