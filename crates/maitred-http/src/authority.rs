//! Authorities, `host[:port]`: the target server of a request, in `Host` and in the target (RFC 9110 §7.2).
//!
//! Leaves out: the choice of one of our hosts (maitred-match, maitred-server).

/// Whether `text` is `uri-host [":" port]` (RFC 9110 §7.2), without user information. The host may be empty, as it may in RFC 3986
/// §3.2.2.
pub fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text.first() {
        Some(b'[') => {
            let Some(close) = text.iter().position(|byte| *byte == b']') else { return false };
            let literal = text.get(1..close).unwrap_or_default();
            if literal.is_empty() || !is_host(literal, true) {
                return false;
            }
            (&b""[..], text.get(close + 1..).unwrap_or_default())
        }
        _ => text.split_at_checked(host_length(text)).unwrap_or_default(),
    };
    is_host(host, false)
        && match port.split_first() {
            None => true,
            Some((b':', digits)) => is_port(digits),
            Some(_) => false,
        }
}

/// Whether these are the digits of a port, which has 16 bits, or none (RFC 3986 §3.2.3).
fn is_port(digits: &[u8]) -> bool {
    let number = |number: u32, digit: &u8| number * 10 + u32::from(digit.wrapping_sub(b'0'));
    digits.len() <= 5
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().fold(0, number) <= u32::from(u16::MAX)
}

/// Whether the text is an authority with a host that is not empty.
pub fn is_authority_with_host(text: &[u8]) -> bool {
    !matches!(text.first(), None | Some(b':')) && is_authority(text)
}

fn host_length(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b':').unwrap_or(text.len())
}

/// reg-name of RFC 3986 §3.2.2, or the content of brackets: a percent sign has two hexadecimal digits behind it (§2.1).
fn is_host(host: &[u8], colons: bool) -> bool {
    let mut rest = host;
    while let Some((byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'%', [first, second, behind @ ..])
                if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() =>
            {
                behind
            }
            (b'%', _) => return false,
            (b':', _) if colons => behind,
            _ if is_host_byte(*byte) => behind,
            _ => return false,
        };
    }
    true
}

/// Unreserved, percent sign and sub-delims.
fn is_host_byte(byte: u8) -> bool {
    HOST_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

const HOST_BYTES: [bool; 256] = {
    let mut left: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+,;=";
    let mut table = [false; 256];
    while let [byte, rest @ ..] = left {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[*byte as usize] = true;
        }
        left = rest;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        for good in [
            "a:65535",
            "a:00080",
            "a",
            "example.com",
            "a:80",
            "a:",
            "127.0.0.1:8000",
            "[::1]",
            "[::1]:80",
            "a_b",
            "x%41",
            "%e2%9C%93:80",
            "[fe80::1%25eth0]",
            "a,b",
        ] {
            assert!(is_authority_with_host(good.as_bytes()), "{good}");
        }
        for empty in ["", ":", ":80"] {
            assert!(is_authority(empty.as_bytes()) && !is_authority_with_host(empty.as_bytes()), "{empty}");
        }
        for bad in [
            "a b", "a/b", "u@a", "a:b", "a:1:2", "a:123456", "a:65536", "a:98777", "[::1", "[]", "[]:80",
            "[::1]x", "a?", "a#", "ä", "a\0", "a\\b", "<a>", "[a]b]:1", "a\"b", "::1", "a:+8", "%", "%zz",
            "a%4", "a%4:80", "%4g", "[::1%]", "[%zz]",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }
}
