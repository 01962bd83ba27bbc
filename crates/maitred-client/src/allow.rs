//! The addresses that a call may connect to: a guard against requests that a stranger's URL sends into the own network.
//!
//! The check is made on the address that is connected, at every connect: a name that resolves differently a moment later
//! changes nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use maitred_match::Network;

/// The addresses that may be connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Allow {
    /// All addresses, and Unix sockets.
    #[default]
    All,
    /// Addresses of the public network, which are those that no registry of special addresses lists (RFC 6890).
    Public,
    /// Addresses of these networks.
    Networks(Arc<[Network]>),
}

/// Source: the IANA registry of special IPv4 addresses, without those for anycast that are public; multicast and class E.
const NOT_PUBLIC_IPV4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only addresses that are given out for the public network.
const PUBLIC_IPV6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The exceptions within: protocols (Teredo among them), documentation, 6to4, which can mean any IPv4 address.
const NOT_PUBLIC_IPV6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

impl Allow {
    /// Whether `address` may be connected.
    pub fn allows(&self, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::Public => is_public(address),
            Self::Networks(networks) => {
                networks.iter().any(|network| network.contains(address.to_canonical()))
            }
        }
    }
}

/// An IPv6 address that means an IPv4 one is not public: there is no need to write a public address in that way.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let is_in = |(network, prefix): &(Ipv4Addr, u8)| {
                (address.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(*prefix)
            };
            !NOT_PUBLIC_IPV4.iter().any(is_in)
        }
        IpAddr::V6(address) => {
            let is_in = |(network, prefix): &(Ipv6Addr, u8)| {
                (address.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(*prefix)
            };
            is_in(&PUBLIC_IPV6) && !NOT_PUBLIC_IPV6.iter().any(is_in)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn special_addresses_are_not_public() {
        for text in "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 \
             172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 \
             203.0.113.9 224.0.0.1 239.1.2.3 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 \
             ::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:db8::1 2002:7f00:1::1 3fff::1 \
             5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1"
            .split_ascii_whitespace()
        {
            assert!(!Allow::Public.allows(address(text)), "{text}");
            assert!(Allow::All.allows(address(text)), "{text}");
        }
        for text in "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 \
             192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00:1450::1 2001:4860:4860::8888 2003::1"
            .split_ascii_whitespace()
        {
            assert!(Allow::Public.allows(address(text)), "{text}");
        }
    }

    #[test]
    fn networks_are_those_that_are_named() {
        let networks = ["10.0.0.0/8", "192.168.7.7", "fd00::/8", "0.0.0.0/32"];
        let networks: Result<Vec<Network>, _> = networks.into_iter().map(str::parse).collect();
        let allow = Allow::Networks(networks.expect("networks").into());
        for text in ["10.9.8.7", "192.168.7.7", "fd00::9", "::ffff:10.0.0.1", "0.0.0.0"] {
            assert!(allow.allows(address(text)), "{text}");
        }
        for text in ["11.0.0.1", "192.168.7.8", "fc00::9", "::ffff:11.0.0.1", "8.8.8.8", "0.0.0.1", "::"] {
            assert!(!allow.allows(address(text)), "{text}");
        }
    }
}
