//! The fields of the opening handshake (RFC 6455 §4).

use std::fmt;

use base64ct::{Base64, Encoding};
use sha1::{Digest, Sha1};

use crate::token::{token, trimmed};

/// The text that is hashed behind the key (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The value of `Sec-WebSocket-Accept` for the value of `Sec-WebSocket-Key` (RFC 6455 §4.2.2). `None` if that is not the base64 of 16
/// bytes (§4.2.1). Bits of the last character that stand for nothing may have any value: there are clients that choose 22 characters
/// by chance.
pub fn accept_key(key: &[u8]) -> Option<[u8; 28]> {
    let (digits, padding) = key.split_at_checked(22)?;
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if padding != b"==" || !digits.iter().all(is_digit) {
        return None;
    }
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    let mut accept = [0; 28];
    // 20 bytes are 28 characters.
    Base64::encode(&digest, &mut accept).ok()?;
    Some(accept)
}

/// A field that does not have the form that its definition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The reason, for the error log and the peer; contains nothing the peer sent.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for Malformed {}

/// The most subprotocols that a client may offer. Each is compared with all before it.
const MAX_SUBPROTOCOLS: usize = 64;

/// The subprotocols that the values of `Sec-WebSocket-Protocol` name (RFC 6455 §4.1, §11.3.4), in the order the client
/// prefers them. Several fields are one list; empty elements are left out (RFC 9110 §5.6.1.2), and so are repeated
/// names.
///
/// # Errors
/// When an element is not a token, or there are more than 64 different ones.
pub fn subprotocols<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Vec<&'a str>, Malformed> {
    let mut found = Vec::new();
    let elements = values.flat_map(|value| value.split(|byte| *byte == b',')).map(trimmed);
    for element in elements.filter(|element| !element.is_empty()) {
        let name = token(element).ok_or(Malformed { reason: "a subprotocol is not a token" })?;
        if found.contains(&name) {
            continue;
        }
        if found.len() == MAX_SUBPROTOCOLS {
            return Err(Malformed { reason: "more than 64 subprotocols" });
        }
        found.push(name);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(values: &[&'a str]) -> Result<Vec<&'a str>, Malformed> {
        subprotocols(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 6455 §1.3.
        let accept = accept_key(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept.as_ref().map(|accept| &accept[..]), Some(&b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="[..]));
    }

    #[test]
    fn a_key_is_the_base64_of_16_bytes() {
        for key in [
            "",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZQ===",
            "dGhlIHNhbXBsZSBub25jZQAA",
            "dGhlIHNhbXBsZSBub25jZ===",
            "dGhlIHNhbXBsZSBub25jZ-==",
            " GhlIHNhbXBsZSBub25jZQ==",
            "dGhlIHNhbXBsZSBub25jZSE=",
            "SGVsbG8sIHdvcmxkIQ==",
        ] {
            assert_eq!(accept_key(key.as_bytes()), None, "{key}");
        }
        assert!(accept_key(b"////////////////////++==").is_some());
        assert!(accept_key(b"dGhlIHNhbXBsZSBub25jZR==").is_some(), "bits that stand for nothing");
    }

    #[test]
    fn subprotocols_are_one_list_in_order() {
        assert_eq!(names(&["chat, superchat"]), Ok(vec!["chat", "superchat"]));
        assert_eq!(names(&["b", " a ,b,\tc", "a"]), Ok(vec!["b", "a", "c"]));
        assert_eq!(names(&[]), Ok(vec![]));
        assert_eq!(names(&[" , ,,"]), Ok(vec![]));
        assert_eq!(names(&["Chat,chat"]), Ok(vec!["Chat", "chat"]), "case counts");
    }

    #[test]
    fn a_subprotocol_is_a_token() {
        for value in ["a b", "a;b", "\"a\"", "a,b=c", "é"] {
            let error = names(&[value]).expect_err(value);
            assert_eq!(error.reason, "a subprotocol is not a token");
        }
    }

    #[test]
    fn subprotocols_are_few() {
        let list = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>().join(",");
        assert_eq!(names(&[&list(64), "p0"]).map(|names| names.len()), Ok(64));
        assert!(names(&[&list(65)]).is_err());
    }
}
