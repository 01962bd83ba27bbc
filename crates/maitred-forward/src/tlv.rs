//! The values behind the addresses in version 2 of the PROXY protocol: each with a type and a length (§2.2 of its
//! specification).

use crate::crc32c::crc32c;
use crate::error::ProxyError;

/// A value with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// The type. Unknown ones are to be passed over.
    pub kind: u8,
    /// The value.
    pub value: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// The protocol that was agreed on with the client (§2.2.1).
    pub const ALPN: u8 = 0x01;
    /// The host name the client passed, in TLS the server name (§2.2.2).
    pub const AUTHORITY: u8 = 0x02;
    /// The checksum of the header (§2.2.3).
    pub const CRC32C: u8 = 0x03;
    /// Padding (§2.2.4).
    pub const NOOP: u8 = 0x04;
    /// An identifier of the connection, up to 128 bytes (§2.2.5).
    pub const UNIQUE_ID: u8 = 0x05;
    /// TLS between client and proxy (§2.2.6).
    pub const TLS: u8 = 0x20;
    /// The version of TLS, in [`Tls`].
    pub const TLS_VERSION: u8 = 0x21;
    /// The common name of the client's certificate, in [`Tls`].
    pub const TLS_COMMON_NAME: u8 = 0x22;
    /// The cipher, in [`Tls`].
    pub const TLS_CIPHER: u8 = 0x23;

    /// The first value of a block and the bytes behind it; `None` if it is cut off.
    fn first(block: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let ([kind, length @ ..], behind) = block.split_first_chunk::<3>()?;
        let (value, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some((Self { kind: *kind, value }, behind))
    }
}

/// The most bytes of a unique identifier (§2.2.5).
const MAX_UNIQUE_ID: usize = 128;

/// All of a block that was checked, padding left out.
pub(crate) fn all(block: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let (tlv, behind) = Tlv::first(rest)?;
        rest = behind;
        Some(tlv)
    })
    .filter(|tlv| tlv.kind != Tlv::NOOP)
}

/// Checks the block that ends `header`: every value is whole, and the checksum is right if there is one.
pub(crate) fn check(header: &[u8], block: &[u8]) -> Result<(), ProxyError> {
    let mut checksum = None;
    let mut rest = block;
    while !rest.is_empty() {
        let (tlv, behind) = Tlv::first(rest).ok_or(ProxyError::TlvCutOff)?;
        rest = behind;
        match tlv.kind {
            Tlv::CRC32C => {
                let sum = <[u8; 4]>::try_from(tlv.value).map_err(|_| ProxyError::ChecksumForm)?;
                if checksum.replace((u32::from_be_bytes(sum), behind)).is_some() {
                    return Err(ProxyError::ChecksumForm);
                }
            }
            Tlv::UNIQUE_ID if tlv.value.len() > MAX_UNIQUE_ID => return Err(ProxyError::UniqueIdTooLong),
            Tlv::TLS => check_nested(tlv.value)?,
            _ => {}
        }
    }
    let Some((sent, behind)) = checksum else { return Ok(()) };
    // Made with zeros in its own place.
    let before = header.len().saturating_sub(behind.len() + 4);
    let before = header.get(..before).unwrap_or_default();
    let sum = crc32c(before.iter().chain(&[0; 4]).chain(behind));
    if sum == sent { Ok(()) } else { Err(ProxyError::Checksum) }
}

fn check_nested(value: &[u8]) -> Result<(), ProxyError> {
    let mut rest = Tls::read(value).ok_or(ProxyError::TlsCutOff)?.nested;
    while !rest.is_empty() {
        rest = Tlv::first(rest).ok_or(ProxyError::TlsCutOff)?.1;
    }
    Ok(())
}

/// A proxy's account of TLS between its client and itself (§2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls<'a> {
    /// 1: the client connected with TLS; 2: it gave a certificate on this connection; 4: it gave one in this session.
    pub client: u8,
    /// 0: the client gave a certificate, and it was verified.
    pub verify: u32,
    nested: &'a [u8],
}

impl<'a> Tls<'a> {
    pub(crate) fn read(value: &'a [u8]) -> Option<Self> {
        let ([client, verify @ ..], nested) = value.split_first_chunk::<5>()?;
        Some(Self { client: *client, verify: u32::from_be_bytes(*verify), nested })
    }

    /// Whether the client's connection has TLS.
    pub fn is_secure(&self) -> bool {
        self.client & 0x01 != 0
    }

    /// Whether the client gave a certificate, on this connection or in its session.
    pub fn has_certificate(&self) -> bool {
        self.client & 0x06 != 0
    }

    /// Whether the client gave a certificate that the proxy verified.
    pub fn is_verified(&self) -> bool {
        self.has_certificate() && self.verify == 0
    }

    /// Every value in this one.
    pub fn tlvs(&self) -> impl Iterator<Item = Tlv<'a>> + use<'a> {
        all(self.nested)
    }

    /// The version of TLS, such as `TLSv1.3`.
    pub fn version(&self) -> Option<&'a [u8]> {
        find(self.nested, Tlv::TLS_VERSION)
    }

    /// The cipher, by its OpenSSL name in general: `TLS_AES_256_GCM_SHA384`.
    pub fn cipher(&self) -> Option<&'a [u8]> {
        find(self.nested, Tlv::TLS_CIPHER)
    }

    /// The common name of the client's certificate. It means something only if that [was verified](Self::is_verified).
    pub fn common_name(&self) -> Option<&'a [u8]> {
        find(self.nested, Tlv::TLS_COMMON_NAME)
    }
}

/// The first value of a type.
pub(crate) fn find(block: &[u8], kind: u8) -> Option<&[u8]> {
    all(block).find(|tlv| tlv.kind == kind).map(|tlv| tlv.value)
}
