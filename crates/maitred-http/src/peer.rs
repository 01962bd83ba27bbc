//! The sender of requests: an address, or a process on this machine.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection, or the client of a proxy there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An internet address. The port is 0 where a proxy has not told it.
    Ip(SocketAddr),
    /// A process that has come by a Unix socket.
    Unix,
}

impl Peer {
    /// The address; an IPv4-mapped IPv6 address is the IPv4 one. None by a Unix socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip().to_canonical()),
            Self::Unix => None,
        }
    }

    /// The port, if it is known.
    pub fn port(self) -> Option<u16> {
        match self {
            Self::Ip(address) => Some(address.port()).filter(|port| *port != 0),
            Self::Unix => None,
        }
    }

    /// The peer without the port: all connections of an address are one.
    pub fn without_port(self) -> Self {
        match self {
            Self::Ip(address) => Self::Ip(SocketAddr::new(address.ip(), 0)),
            Self::Unix => Self::Unix,
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Peer {
    /// `192.0.2.1:99`, `192.0.2.1` without a port, or `unix:` (as nginx writes it).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ip(), self.port()) {
            (Some(address), Some(port)) => SocketAddr::new(address, port).fmt(f),
            (Some(address), None) => address.fmt(f),
            (None, _) => f.write_str("unix:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_peer_is_shown_with_its_known_parts() {
        let shown = |address: IpAddr, port| Peer::Ip(SocketAddr::new(address, port)).to_string();
        let (four, six) = (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        assert_eq!(shown(four.into(), 99), "192.0.2.1:99");
        assert_eq!(shown(four.to_ipv6_mapped().into(), 99), "192.0.2.1:99");
        assert_eq!(shown(six.into(), 0), "2001:db8::1");
        assert_eq!(shown(six.into(), 9), "[2001:db8::1]:9");
        assert_eq!(Peer::Unix.to_string(), "unix:");
        assert_eq!((Peer::Unix.ip(), Peer::Unix.port()), (None, None));
    }
}
