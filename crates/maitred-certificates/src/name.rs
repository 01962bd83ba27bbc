//! Names of certificates: hosts and IP addresses, the files that belong to them, and whether an authority can certify them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name of a host (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253;

/// Names that no public authority certifies (RFC 6761, RFC 9476, and the registry of special-use domain names).
const LOCAL: [&str; 10] =
    ["alt", "example", "home.arpa", "internal", "invalid", "lan", "local", "localhost", "onion", "test"];

/// The file or folder of a name: `:` of an IPv6 address and `*` are `_` there.
pub(crate) fn file(name: &str) -> String {
    name.replace([':', '*'], "_")
}

/// The name of which this is the file or folder; none if it is of no name.
pub(crate) fn of_file(file: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    if !(1..=MAX_NAME).contains(&file.len()) || file.starts_with('.') || !file.bytes().all(is_plain) {
        return None;
    }
    let address = file.replace('_', ":");
    Some(match file.strip_prefix("_.") {
        Some(below) => format!("*.{below}"),
        None if address.parse::<Ipv6Addr>().is_ok() => address,
        None => file.to_owned(),
    })
}

/// Whether a public authority can certify the name.
pub fn is_public(name: &str) -> bool {
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => is_public_v4(address),
        Ok(IpAddr::V6(address)) => is_public_v6(address),
        Err(_) => {
            let is_below = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
            name.contains('.') && !LOCAL.into_iter().any(is_below)
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || is_shared
        || first == 0)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // All that is routed at present (RFC 4291 §2.4), without the network of documents.
    let [first, second, ..] = address.segments();
    first & 0xe000 == 0x2000 && !(first == 0x2001 && second == 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_file_and_a_file_its_name() {
        for (name, own) in
            [("shop.example", "shop.example"), ("192.0.2.7", "192.0.2.7"), ("::1", "__1"), ("*.a.b", "_.a.b")]
        {
            assert_eq!((file(name).as_str(), of_file(own).as_deref()), (own, Some(name)));
        }
        for file in ["", ".", "..", "a/b", "A.example", ".a", "a b", "ä", &"a".repeat(254)] {
            assert_eq!(of_file(file), None, "{file}");
        }
    }

    #[test]
    fn public_authorities_certify_public_names() {
        for name in
            ["maitred.dev", "a.b.co.uk", "xn--bcher-kva.ch", "8.8.8.8", "2606:4700::1", "mylocalhost.org"]
        {
            assert!(is_public(name), "{name}");
        }
        for name in [
            "localhost",
            "box",
            "a.localhost",
            "db.internal",
            "x.home.arpa",
            "shop.example",
            "10.0.0.1",
            "127.0.0.1",
            "100.64.0.1",
            "192.168.1.1",
            "::1",
            "fe80::1",
            "fd00::1",
            "2001:db8::7",
            "0.0.0.0",
        ] {
            assert!(!is_public(name), "{name}");
        }
    }
}
