//! The request target (RFC 9112 §3.2) and the authority a request is for.

use maitred_http::Method;

use crate::error::RequestError;

/// The form a request target has (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, only with CONNECT
    Authority,
    /// `*`, only with OPTIONS
    Asterisk,
}

/// Where the parts stand in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) form: TargetForm,
    /// Start and length of the authority within the target.
    pub(crate) authority: (usize, usize),
    /// Where path and query start; they reach to the end of the target.
    pub(crate) path: usize,
}

/// Takes a target apart.
///
/// # Errors
/// 400 for a form that does not fit the method, an unknown scheme, a malformed authority, a
/// fragment, or a byte outside printable ASCII.
pub(crate) fn parse(method: &Method, target: &[u8]) -> Result<Parts, RequestError> {
    if *method == Method::Connect {
        if !is_authority(target) || !target.contains(&b':') {
            return Err(RequestError::bad("the target of CONNECT is not host:port"));
        }
        return Ok(Parts { form: TargetForm::Authority, authority: (0, target.len()), path: 0 });
    }
    // No RFC allows a '#' here, and parsers differ in whether it ends the path.
    if target.iter().any(|byte| !matches!(byte, b'!'..=b'~') || *byte == b'#') {
        return Err(RequestError::bad("invalid character in the request target"));
    }
    if target.first() == Some(&b'/') {
        return Ok(Parts { form: TargetForm::Origin, authority: (0, 0), path: 0 });
    }
    if target == b"*" && *method == Method::Options {
        return Ok(Parts { form: TargetForm::Asterisk, authority: (0, 0), path: 0 });
    }
    parse_absolute(target)
}

fn parse_absolute(target: &[u8]) -> Result<Parts, RequestError> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    let Some(start) = scheme.map(str::len) else {
        return Err(RequestError::bad("the request target has no known form"));
    };
    let behind = target.get(start..).unwrap_or_default();
    let length = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
    let authority = behind.get(..length).unwrap_or_default();
    // RFC 9110 §4.2.1: an http URI without a host is invalid. User information is refused with it,
    // as §4.2.4 recommends for references from elsewhere.
    if matches!(authority.first(), None | Some(b':')) || !is_authority(authority) {
        return Err(RequestError::bad("invalid authority in the request target"));
    }
    Ok(Parts { form: TargetForm::Absolute, authority: (start, length), path: start + length })
}

/// Whether `bytes` are `uri-host [":" port]` (RFC 9110 §7.2); empty is one.
pub(crate) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes.first() {
        Some(b'[') => {
            let Some(close) = bytes.iter().position(|byte| *byte == b']') else {
                return false;
            };
            let (host, behind) = bytes.split_at_checked(close + 1).unwrap_or_default();
            let literal = host.get(1..close).unwrap_or_default();
            if literal.is_empty() || !is_host(literal, true) {
                return false;
            }
            (&b""[..], behind)
        }
        _ => bytes.split_at_checked(host_length(bytes)).unwrap_or_default(),
    };
    is_host(host, false)
        && match port.split_first() {
            None => true,
            Some((b':', digits)) => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
            Some(_) => false,
        }
}

fn host_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len())
}

/// reg-name of RFC 3986 §3.2.2, or what stands in brackets: a percent sign has two hexadecimal digits behind it (§2.1).
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
            "",
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
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b", "a/b", "u@a", "a:b", "a:1:2", "a:123456", "[::1", "[]", "[::1]x", "a?", "a#", "ä", "a\0",
            "a\\b", "<a>", "[a]b]:1", "a\"b", "::1", "a:+8", "%", "%zz", "a%4", "a%4:80", "%4g", "[::1%]",
            "[%zz]",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn forms() {
        fn parts(method: Method, target: &str) -> Result<(TargetForm, &str, &str), RequestError> {
            let Parts { form, authority: (start, length), path } = parse(&method, target.as_bytes())?;
            Ok((form, &target[start..start + length], &target[path..]))
        }
        use TargetForm::*;
        assert_eq!(parts(Method::Get, "/a?b"), Ok((Origin, "", "/a?b")));
        assert_eq!(parts(Method::Get, "//a/b"), Ok((Origin, "", "//a/b")));
        assert_eq!(parts(Method::Get, "/{|}\"<>^`"), Ok((Origin, "", "/{|}\"<>^`")));
        assert_eq!(parts(Method::Options, "*"), Ok((Asterisk, "", "*")));
        assert_eq!(parts(Method::Connect, "a:443"), Ok((Authority, "a:443", "a:443")));
        assert_eq!(parts(Method::Get, "http://a:8/b?c"), Ok((Absolute, "a:8", "/b?c")));
        assert_eq!(parts(Method::Get, "HTTPS://a"), Ok((Absolute, "a", "")));
        assert_eq!(parts(Method::Get, "http://a?q"), Ok((Absolute, "a", "?q")));
        for (method, target) in [
            (Method::Get, "*"),
            (Method::Get, "a"),
            (Method::Get, "a:443"),
            (Method::Get, "ftp://a/"),
            (Method::Get, "http:///a"),
            (Method::Get, "http://:80/"),
            (Method::Get, "http://u@a/"),
            (Method::Get, "http://"),
            (Method::Get, "/a#b"),
            (Method::Get, "/ä"),
            (Method::Get, "/\u{7f}"),
            (Method::Connect, "a"),
            (Method::Connect, "/"),
            (Method::Options, "**"),
        ] {
            assert_eq!(parts(method, target).map_err(|e| e.status.code()), Err(400), "{target}");
        }
    }
}
