//! Telling a client that speaks HTTP in clear text where TLS is spoken.

/// The longest method that is looked for, in bytes: the longest registered one (`UPDATEREDIRECTREF`) has 17.
const MAX_METHOD: usize = 20;

/// Whether these first bytes of a connection are those of an HTTP request in clear text, and not of TLS: an upper-case
/// method, a space, and the first byte of a target (RFC 9112 §3). Of fewer bytes, whether they can become that: one
/// letter is enough.
pub fn is_plain_http(first: &[u8]) -> bool {
    let is_of_method = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    let length = first.iter().take(MAX_METHOD + 1).take_while(|byte| is_of_method(byte)).count();
    let method = first.get(..length).unwrap_or_default();
    if !method.first().is_some_and(u8::is_ascii_uppercase) || length > MAX_METHOD || method == b"PROXY" {
        return false;
    }
    match first.get(length..).unwrap_or_default() {
        [] | [b' '] => true,
        // CONNECT asks for a host and a port, all others for a path, a URI or "*".
        [b' ', byte, ..] => match method {
            b"CONNECT" => byte.is_ascii_alphanumeric() || *byte == b'[',
            _ => matches!(byte, b'/' | b'*' | b'h' | b'H'),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_clear_text_are_told() {
        for first in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"POST /x",
            b"OPTIONS * HTTP/1.1",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET http://shop.example/",
            b"CONNECT shop.example:443",
            b"CONNECT [::1]:443",
            b"M-SEARCH * HTTP/1.1",
            b"GET ",
            b"G",
        ] {
            assert!(is_plain_http(first), "{}", first.escape_ascii());
        }
    }

    #[test]
    fn other_protocols_are_not_requests() {
        for first in [
            &b""[..],
            b"\x16\x03\x01\x02\x00\x01",
            b"\x80\x2e\x01\x03\x01",
            b"\x15\x03\x01\x00\x02\x02\x28",
            b"SSH-2.0-OpenSSH",
            b"PROXY TCP4 192.0.2.1",
            b"\r\n\r\n\0\r\nQUIT\n",
            b"EHLO mail.example",
            b"get / HTTP/1.1",
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZ /",
            b"GET\t/",
        ] {
            assert!(!is_plain_http(first), "{}", first.escape_ascii());
        }
    }
}
