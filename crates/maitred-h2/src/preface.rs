//! The first bytes of a client (RFC 9113 §3.4).

pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether bytes begin a connection of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    /// The bytes are a preface.
    Yes,
    /// The bytes are no preface.
    No,
    /// The bytes are the beginning of a preface, and more are needed.
    Perhaps,
}

/// Looks at the first bytes of a connection in clear text, where a client may know before that the server has HTTP/2 (RFC 9113
/// §3.3).
pub fn preface(data: &[u8]) -> Preface {
    if data.starts_with(PREFACE) {
        Preface::Yes
    } else if PREFACE.starts_with(data) {
        Preface::Perhaps
    } else {
        Preface::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for length in 0..PREFACE.len() {
            assert_eq!(preface(&PREFACE[..length]), Preface::Perhaps, "{length}");
        }
        assert_eq!(preface(PREFACE), Preface::Yes);
        assert_eq!(preface(&[PREFACE, &b"\0\0"[..]].concat()), Preface::Yes);
        for other in
            ["G", "PRI * HTTP/2.0\r\n\r\nXX", "P / HTTP/1.1\r\n", "pri * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16"]
        {
            assert_eq!(preface(other.as_bytes()), Preface::No, "{other}");
        }
    }
}
