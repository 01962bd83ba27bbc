//! Addresses and schemes as proxies write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, canonical, and its port where one is said.
pub(crate) type Node = (IpAddr, Option<u16>);

/// An entry of `X-Forwarded-For`: an address of either kind, with a port or without; an IPv6 address in brackets or without.
/// The field has no specification; these are the forms that proxies send.
pub(crate) fn entry(text: &[u8]) -> Option<Node> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    match text.parse::<IpAddr>() {
        Ok(address) => Some((address.to_canonical(), None)),
        Err(_) => with_port(text, decimal),
    }
}

/// A node of `Forwarded` that is an address (RFC 7239 §6): IPv6 in brackets. `unknown` and `_hidden` are none.
/// A port may be obfuscated (§6.2): it is none, then.
pub(crate) fn node(text: &[u8]) -> Option<Node> {
    with_port(std::str::from_utf8(text).ok()?, |port| match port.strip_prefix('_') {
        Some(name) => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            (!name.is_empty() && name.bytes().all(is_name)).then_some(None)
        }
        None => decimal(port),
    })
}

/// Whether it is `unknown` or an obfuscated name (RFC 7239 §6.2, §6.3), with a port or without: well-formed, but no address.
pub(crate) fn is_nobody(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
    let (name, _) = text.split_at_checked(end).unwrap_or_default();
    name.eq_ignore_ascii_case(b"unknown") || (name.first() == Some(&b'_') && name.len() > 1)
}

/// `IPv4`, `IPv4:port`, `[IPv6]` or `[IPv6]:port`.
fn with_port(text: &str, port: impl Fn(&str) -> Option<Option<u16>>) -> Option<Node> {
    let (address, behind): (IpAddr, &str) = match text.strip_prefix('[') {
        Some(inside) => {
            let (address, behind) = inside.split_once(']')?;
            (address.parse::<Ipv6Addr>().ok()?.into(), behind)
        }
        None => {
            let (address, behind) = text.split_at_checked(text.find(':').unwrap_or(text.len()))?;
            (address.parse::<Ipv4Addr>().ok()?.into(), behind)
        }
    };
    let port = match behind.strip_prefix(':') {
        Some(text) => port(text)?,
        None if behind.is_empty() => None,
        None => return None,
    };
    Some((address.to_canonical(), port))
}

fn decimal(port: &str) -> Option<Option<u16>> {
    self::port(port.as_bytes()).map(Some)
}

/// One to five digits, at most 65535.
pub(crate) fn port(text: &[u8]) -> Option<u16> {
    // Digits only: `u16::from_str` takes a plus sign, too.
    let is_number = text.len() <= 5 && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// Whether a scheme has TLS; `None` for a scheme that is not ours.
pub(crate) fn is_secure(scheme: &[u8]) -> Option<bool> {
    let is = |name: &[u8]| scheme.eq_ignore_ascii_case(name);
    if is(b"https") || is(b"wss") {
        Some(true)
    } else if is(b"http") || is(b"ws") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: Option<Node>) -> String {
        match node {
            Some((address, Some(port))) => format!("{address} {port}"),
            Some((address, None)) => address.to_string(),
            None => "-".to_owned(),
        }
    }

    #[test]
    fn addresses_of_both_fields() {
        for (text, in_list, in_element) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:80", "192.0.2.1 80", "192.0.2.1 80"),
            ("192.0.2.1:0", "192.0.2.1 0", "192.0.2.1 0"),
            ("192.0.2.1:", "-", "-"),
            ("192.0.2.1:65536", "-", "-"),
            ("192.0.2.1:000080", "-", "-"),
            ("192.0.2.1:+80", "-", "-"),
            ("192.0.2.1:_p", "-", "192.0.2.1"),
            ("192.0.2.1:_", "-", "-"),
            ("192.0.2.1:_p/q", "-", "-"),
            ("192.0.2.01", "-", "-"),
            ("192.0.2", "-", "-"),
            ("0x7f.0.0.1", "-", "-"),
            ("2001:db8::1", "2001:db8::1", "-"),
            ("[2001:db8::1]", "2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:80", "2001:db8::1 80", "2001:db8::1 80"),
            ("[2001:db8::1]:_x-y.z", "-", "2001:db8::1"),
            ("[2001:db8::1]80", "-", "-"),
            ("[2001:db8::1", "-", "-"),
            ("[192.0.2.1]", "-", "-"),
            ("fe80::1%eth0", "-", "-"),
            ("::ffff:192.0.2.1", "192.0.2.1", "-"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1 80", "192.0.2.1 80"),
            (" \t192.0.2.1 ", "192.0.2.1", "-"),
            ("unknown", "-", "-"),
            ("_hidden", "-", "-"),
            ("", "-", "-"),
            ("ä", "-", "-"),
        ] {
            assert_eq!(shown(entry(text.as_bytes())), in_list, "{text}");
            assert_eq!(shown(node(text.as_bytes())), in_element, "{text}");
        }
        assert_eq!(entry(b"\xff"), None);
    }
}
