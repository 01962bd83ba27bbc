//! The PROXY protocol, versions 1 and 2: a header of a proxy before the first byte of its client
//! (<https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt>).
//!
//! A listener has it or has it not; that is never guessed from the bytes (§5 there). The header comes once for each connection, so
//! it is nothing for proxies that send requests of several clients over one.

use std::net::{IpAddr, SocketAddr};

pub use crate::error::ProxyError;
use crate::node;
use crate::tlv;
pub use crate::tlv::{Tls, Tlv};

/// The longest header of version 1 in bytes, with its line end (§2.1).
pub const MAX_V1: usize = 107;

/// The shortest header: `PROXY UNKNOWN` and its line end.
const MIN_V1: usize = 15;

/// Bytes at the start of each header of version 2 (§2.2): the signature, version and command, family and protocol, the
/// length of the rest.
const FIXED_V2: usize = 16;

/// A limit for headers of version 2 that is enough for all that proxies send, certificates of clients included. Without those a header has
/// seldom more than 536 bytes.
pub const USUAL_LIMIT: usize = 4096;

/// The longest header of version 2: its length has 16 bits.
pub const MAX_V2: usize = FIXED_V2 + u16::MAX as usize;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// How far a header has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The header goes on.
    NeedMore {
        /// The whole header has so many bytes or more. A reader that stops there reads nothing behind it.
        at_least: usize,
    },
    /// The header is complete.
    Header(Header<'a>),
}

/// A complete header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The header's bytes. The client's bytes begin behind them.
    pub length: usize,
    /// Whose connection it is.
    pub source: Source,
    tlvs: &'a [u8],
}

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The proxy's own (`LOCAL`, such as a health check), or one it says nothing of (`UNKNOWN`, `UNSPEC`): the real ends of
    /// the connection count.
    Local,
    /// A client's over TCP. The addresses are as they were sent: an IPv4-mapped one is not made canonical.
    Inet {
        /// The client.
        source: SocketAddr,
        /// The address that the client connected to.
        destination: SocketAddr,
    },
    /// A client's over a Unix socket. The paths are not kept.
    Unix,
}

/// Reads the header that `data` begins with, of either version. `limit` is how many bytes one of version 2 may have,
/// [`USUAL_LIMIT`] for example; one of version 1 may have [`MAX_V1`].
///
/// # Errors
/// The bytes are no header, however they go on. The error comes at the first byte from which it is certain, addresses
/// and values excepted: those are read when the header is complete.
pub fn parse(data: &[u8], limit: usize) -> Result<Step<'_>, ProxyError> {
    match data.first() {
        None => Ok(Step::NeedMore { at_least: MIN_V1 }),
        Some(b'P') => parse_line(data),
        Some(b'\r') => parse_binary(data, limit),
        Some(_) => Err(ProxyError::Signature),
    }
}

/// Version 1 (§2.1).
fn parse_line(data: &[u8]) -> Result<Step<'_>, ProxyError> {
    let may_become = |start: &[u8]| data.iter().zip(start).all(|(byte, expected)| byte == expected);
    if !may_become(b"PROXY ") {
        return Err(ProxyError::Signature);
    }
    let unknown = may_become(b"PROXY UNKNOWN") && matches!(data.get(13), None | Some(b' ' | b'\r' | b'\n'));
    if !unknown && !may_become(b"PROXY TCP4 ") && !may_become(b"PROXY TCP6 ") {
        return Err(ProxyError::Protocol);
    }
    let end = data.iter().take(MAX_V1).position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(data.len());
    let length = end.saturating_add(2);
    if length > MAX_V1 {
        return Err(ProxyError::LineTooLong);
    }
    match data.get(end..).unwrap_or_default() {
        [] | [b'\r'] => return Ok(Step::NeedMore { at_least: length.max(MIN_V1) }),
        [b'\r', b'\n', ..] => {}
        _ => return Err(ProxyError::LineEnd),
    }
    let line = data.get(..end).unwrap_or_default();
    let source = if let Some(ends) = line.strip_prefix(b"PROXY TCP4 ") {
        ends_of_line(ends, IpAddr::is_ipv4)?
    } else if let Some(ends) = line.strip_prefix(b"PROXY TCP6 ") {
        ends_of_line(ends, IpAddr::is_ipv6)?
    } else {
        Source::Local
    };
    Ok(Step::Header(Header { length, source, tlvs: &[] }))
}

fn ends_of_line(text: &[u8], is_of_family: fn(&IpAddr) -> bool) -> Result<Source, ProxyError> {
    let mut words = text.split(|byte| *byte == b' ');
    let [Some(source), Some(destination), Some(source_port), Some(destination_port), None] =
        [words.next(), words.next(), words.next(), words.next(), words.next()]
    else {
        return Err(ProxyError::Line);
    };
    let address = |word: &[u8]| {
        let address = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
        address.filter(is_of_family).ok_or(ProxyError::Address)
    };
    let port = |word: &[u8]| {
        let port = node::port(word).filter(|_| word.len() == 1 || !word.starts_with(b"0"));
        port.ok_or(ProxyError::Port)
    };
    Ok(Source::Inet {
        source: SocketAddr::new(address(source)?, port(source_port)?),
        destination: SocketAddr::new(address(destination)?, port(destination_port)?),
    })
}

/// The content behind the first 16 bytes.
#[derive(Clone, Copy)]
enum Block {
    /// The content is of no interest.
    Skipped,
    Four,
    Six,
    Unix,
}

impl Block {
    /// The kind of block by version and command, family and protocol, as far as they have come.
    fn of(command: Option<&u8>, family: Option<&u8>) -> Result<Self, ProxyError> {
        let Some(command) = command else { return Ok(Self::Skipped) };
        match (command >> 4, command & 0x0f) {
            (2, 0) => return Ok(Self::Skipped),
            (2, 1) => {}
            (2, _) => return Err(ProxyError::Command),
            _ => return Err(ProxyError::Version),
        }
        match family.map(|family| (family >> 4, family & 0x0f)) {
            None => Ok(Self::Skipped),
            Some((4.., _) | (_, 3..)) => Err(ProxyError::Family),
            // The specification does not say where values would begin, or which connection they describe.
            Some((0, _) | (_, 0)) => Ok(Self::Skipped),
            Some((_, 2)) => Err(ProxyError::Datagram),
            Some((1, _)) => Ok(Self::Four),
            Some((2, _)) => Ok(Self::Six),
            Some((_, _)) => Ok(Self::Unix),
        }
    }

    fn addresses(self) -> usize {
        match self {
            Self::Skipped => 0,
            Self::Four => 12,
            Self::Six => 36,
            Self::Unix => 216,
        }
    }
}

/// Version 2 (§2.2).
fn parse_binary(data: &[u8], limit: usize) -> Result<Step<'_>, ProxyError> {
    if data.iter().zip(SIGNATURE).any(|(byte, expected)| byte != expected) {
        return Err(ProxyError::Signature);
    }
    let block = Block::of(data.get(12), data.get(13))?;
    let Some([first, second]) = data.get(14..FIXED_V2) else {
        return Ok(Step::NeedMore { at_least: FIXED_V2 });
    };
    let rest = usize::from(u16::from_be_bytes([*first, *second]));
    let length = FIXED_V2 + rest;
    if length > limit {
        return Err(ProxyError::TooLong);
    }
    if rest < block.addresses() {
        return Err(ProxyError::AddressesCutOff);
    }
    let Some(header) = data.get(..length) else {
        return Ok(Step::NeedMore { at_least: length });
    };
    let behind = header.get(FIXED_V2..).unwrap_or_default();
    let (source, tlvs) = match block {
        Block::Skipped => (Source::Local, &[][..]),
        Block::Four => ends::<4>(behind).ok_or(ProxyError::AddressesCutOff)?,
        Block::Six => ends::<16>(behind).ok_or(ProxyError::AddressesCutOff)?,
        Block::Unix => (Source::Unix, behind.get(block.addresses()..).unwrap_or_default()),
    };
    tlv::check(header, tlvs)?;
    Ok(Step::Header(Header { length, source, tlvs }))
}

/// Two addresses of `N` bytes, their ports, and the bytes behind them.
fn ends<const N: usize>(bytes: &[u8]) -> Option<(Source, &[u8])>
where
    IpAddr: From<[u8; N]>,
{
    let (source, behind) = bytes.split_first_chunk::<N>()?;
    let (destination, behind) = behind.split_first_chunk::<N>()?;
    let (source_port, behind) = behind.split_first_chunk::<2>()?;
    let (destination_port, behind) = behind.split_first_chunk::<2>()?;
    let end =
        |address: &[u8; N], port: &[u8; 2]| SocketAddr::new((*address).into(), u16::from_be_bytes(*port));
    let source =
        Source::Inet { source: end(source, source_port), destination: end(destination, destination_port) };
    Some((source, behind))
}

impl<'a> Header<'a> {
    /// The values behind the addresses, padding left out. [`Source::Local`] has none: its block is passed over unread.
    pub fn tlvs(&self) -> impl Iterator<Item = Tlv<'a>> + use<'a> {
        tlv::all(self.tlvs)
    }

    /// The protocol that was agreed on with the client, such as `h2`.
    pub fn alpn(&self) -> Option<&'a [u8]> {
        tlv::find(self.tlvs, Tlv::ALPN)
    }

    /// The host name the client passed, in TLS the server name. Its content has not been checked.
    pub fn authority(&self) -> Option<&'a [u8]> {
        tlv::find(self.tlvs, Tlv::AUTHORITY)
    }

    /// The proxy's identifier of the connection, at most 128 bytes of any kind.
    pub fn unique_id(&self) -> Option<&'a [u8]> {
        tlv::find(self.tlvs, Tlv::UNIQUE_ID)
    }

    /// The proxy's account of TLS between its client and itself.
    pub fn tls(&self) -> Option<Tls<'a>> {
        tlv::find(self.tlvs, Tlv::TLS).and_then(Tls::read)
    }
}

#[cfg(test)]
mod tests;
