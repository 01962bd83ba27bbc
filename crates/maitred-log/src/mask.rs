//! Addresses without the part that tells one person from another.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many bits of an address are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Of IPv4, at most 32.
    pub v4: u8,
    /// Of IPv6, at most 128.
    pub v6: u8,
}

impl Default for Mask {
    /// What a network is given as a rule: 24 and 48.
    fn default() -> Self {
        Self { v4: 24, v6: 48 }
    }
}

impl Mask {
    /// The address with the other bits zero. An IPv4 address in the form of IPv6 is one of IPv4.
    pub fn apply(self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4.min(32))).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6.min(128))).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}
