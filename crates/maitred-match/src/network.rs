//! The condition on the client: an address or a network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::pattern::BadPattern;

/// Addresses with the same first bits: `10.0.0.0/8`, `fd00::/8`, or one address. An IPv4-mapped IPv6 address or
/// network is the IPv4 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// Canonical, with zeros behind the prefix.
    address: IpAddr,
    /// The length of the prefix in bits, at most that of the address.
    prefix: u8,
}

/// The bits before an IPv4 address in an IPv4-mapped one (RFC 4291 §2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

impl Network {
    /// The network with this prefix around an address; `None`: the prefix is longer than the address.
    pub fn around(address: IpAddr, prefix: u8) -> Option<Self> {
        if prefix > bits(address) {
            return None;
        }
        let mapped = match address {
            IpAddr::V6(six) => six.to_ipv4_mapped().zip(prefix.checked_sub(MAPPED_PREFIX)),
            IpAddr::V4(_) => None,
        };
        let (address, prefix) = mapped.map_or((address, prefix), |(four, rest)| (four.into(), rest));
        Some(Self { address: first_bits(address, prefix), prefix })
    }

    /// Whether the address, which is canonical ([`IpAddr::to_canonical`]), is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && first_bits(address, self.prefix) == self.address
    }

    /// Bits that all of its addresses have in common.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl FromStr for Network {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why: &str| {
            let remedy = "write an address or a network, such as 10.0.0.0/8, 192.0.2.7 or fd00::/8";
            BadPattern::new(format!("the client '{text}' {why}"), remedy)
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad("is no address"))?;
        let bits = bits(address);
        let network = prefix.map_or(Some(bits), decimal).and_then(|prefix| Self::around(address, prefix));
        let network =
            network.ok_or_else(|| bad(&format!("has no number from 0 to {bits} behind its '/'")))?;
        let is_exact = match (address, network.address) {
            (IpAddr::V6(six), IpAddr::V4(four)) => six.to_ipv4_mapped() == Some(four),
            (address, network) => address == network,
        };
        if !is_exact {
            let what = format!("the client '{text}' has bits behind its prefix");
            return Err(BadPattern::new(what, format!("did you mean '{network}'?")));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if self.prefix == bits(self.address) { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Digits only: `u8::from_str` takes a plus sign, too.
fn decimal(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with zeros behind the first `prefix` bits.
fn first_bits(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_both_kinds_hold_their_addresses_and_no_others() {
        for (text, yes, no) in [
            ("10.0.0.0/8", &["10.0.0.0", "10.255.1.2"][..], &["11.0.0.0", "9.255.255.255", "::"][..]),
            ("192.0.2.7", &["192.0.2.7"], &["192.0.2.6"]),
            ("192.0.2.8/31", &["192.0.2.8", "192.0.2.9"], &["192.0.2.10"]),
            ("0.0.0.0/0", &["0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"], &["::1"]),
            ("::/0", &["::1", "ff00::"], &["1.2.3.4", "::ffff:1.2.3.4"]),
            ("fd00::/8", &["fd00::1", "fdff::"], &["fc00::1", "fe00::"]),
            ("::1", &["::1"], &["::2", "0.0.0.1"]),
            ("::ffff:10.0.0.0/104", &["10.1.2.3", "::ffff:10.1.2.3"], &["11.1.2.3"]),
            ("::ffff:10.0.0.1", &["10.0.0.1"], &["10.0.0.2"]),
        ] {
            let network: Network = text.parse().expect(text);
            let contains =
                |address: &str| network.contains(address.parse::<IpAddr>().expect(address).to_canonical());
            for address in yes {
                assert!(contains(address), "{text} and {address}");
            }
            for address in no {
                assert!(!contains(address), "{text} and {address}");
            }
            assert_eq!(network.to_string().parse(), Ok(network), "{text}");
        }
    }

    #[test]
    fn an_invalid_network_is_an_error_with_its_remedy() {
        for (text, part) in [
            ("", "the client '' is no address; write an address or a network"),
            ("localhost", "is no address"),
            ("10.0.0/8", "is no address"),
            ("10.0.0.0/33", "has no number from 0 to 32 behind its '/'"),
            ("10.0.0.0/", "has no number from 0 to 32"),
            ("10.0.0.0/+8", "has no number from 0 to 32"),
            ("::/129", "has no number from 0 to 128"),
            ("10.1.2.3/8", "has bits behind its prefix; did you mean '10.0.0.0/8'?"),
            ("::ffff:10.1.2.3/104", "did you mean '10.0.0.0/8'?"),
        ] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
