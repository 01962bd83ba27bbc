//! The parts of an OCSP response (RFC 6960 §4.2.1) that a server has to check before it staples it (RFC 6066 §8).
//!
//! Its signature is not verified: clients do that.

use std::fmt;

use aws_lc_rs::digest::{self, Algorithm};

use crate::der::{ENUMERATED, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, explicit};
use crate::x509::Certificate;

/// Why a response cannot be stapled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OcspFault {
    /// No OCSP response in DER.
    Form,
    /// The file is PEM or other text.
    Text,
    /// The responder has refused to answer (RFC 6960 §4.2.1 `responseStatus`).
    Refused(u8),
    /// The response is for another certificate.
    OtherCertificate,
    /// The response says that the certificate has been revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
}

impl fmt::Display for OcspFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("it is no OCSP response in DER"),
            Self::Text => f.write_str(
                "it is text, and DER is needed; `openssl ocsp … -respout FILE` writes it",
            ),
            Self::Refused(status) => {
                let name = match status {
                    1 => "malformedRequest",
                    2 => "internalError",
                    3 => "tryLater",
                    5 => "sigRequired",
                    6 => "unauthorized",
                    _ => "an unknown status",
                };
                write!(f, "the OCSP responder has refused to answer ({name}, {status}); fetch a response again")
            }
            Self::OtherCertificate => f.write_str(
                "the OCSP response is for another certificate; fetch one for the first certificate of the chain",
            ),
            Self::Revoked => {
                f.write_str("the OCSP response says that the certificate has been revoked; get a new certificate")
            }
            Self::Unknown => f.write_str(
                "the OCSP responder does not know the certificate; ask the responder that the certificate names, or wait until it knows it",
            ),
        }
    }
}

impl std::error::Error for OcspFault {}

/// The points in time between which a response may be used, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspTimes {
    /// `thisUpdate`.
    pub from: u64,
    /// `nextUpdate`; `None`: newer information is always available (RFC 6960 §4.2.2.1).
    pub until: Option<u64>,
}

impl OcspTimes {
    /// Whether clients take the response at this time.
    pub fn is_current(&self, now: u64) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until)
    }
}

pub(crate) fn read(response: &[u8], certificate: &Certificate<'_>) -> Result<OcspTimes, OcspFault> {
    for single in singles(response)? {
        let single = single.ok_or(OcspFault::Form)?;
        let issuer_is_same = match single.hash {
            Some(hash) => digest::digest(hash, certificate.issuer.whole).as_ref() == single.issuer_name_hash,
            // A hash that we do not know; the serial number has to do.
            None => true,
        };
        if single.serial != certificate.serial || !issuer_is_same {
            continue;
        }
        return match single.status {
            0 => Ok(single.times),
            1 => Err(OcspFault::Revoked),
            _ => Err(OcspFault::Unknown),
        };
    }
    Err(OcspFault::OtherCertificate)
}

struct Single<'a> {
    hash: Option<&'static Algorithm>,
    issuer_name_hash: &'a [u8],
    serial: &'a [u8],
    /// The number of the tag of `CertStatus`: 0 good, 1 revoked, 2 unknown.
    status: u8,
    times: OcspTimes,
}

/// id-pkix-ocsp-basic, 1.3.6.1.5.5.7.48.1.1.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// id-sha1, 1.3.14.3.2.26.
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];
/// id-sha256, 2.16.840.1.101.3.4.2.1.
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];

/// Every `SingleResponse`; `None` in the place of one that cannot be read.
fn singles(response: &[u8]) -> Result<impl Iterator<Item = Option<Single<'_>>>, OcspFault> {
    let is_text = || response.starts_with(b"-----BEGIN") || response.starts_with(b"MII");
    let no_der = || if is_text() { OcspFault::Text } else { OcspFault::Form };
    let mut outer = Reader::new(response).inside(SEQUENCE).ok_or_else(no_der)?;
    match outer.content(ENUMERATED).ok_or(OcspFault::Form)? {
        [0] => {}
        [status] => return Err(OcspFault::Refused(*status)),
        _ => return Err(OcspFault::Form),
    }
    let mut rest = basic(outer).ok_or(OcspFault::Form)?;
    Ok(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let single = single(&mut rest);
        if single.is_none() {
            rest = Reader::new(&[]);
        }
        Some(single)
    }))
}

fn basic(mut outer: Reader<'_>) -> Option<Reader<'_>> {
    let mut bytes = outer.inside(explicit(0))?.inside(SEQUENCE)?;
    if bytes.content(OBJECT_IDENTIFIER)? != BASIC {
        return None;
    }
    let mut data = bytes.inside(OCTET_STRING)?.inside(SEQUENCE)?.inside(SEQUENCE)?;
    // The version where it is not the first, the responder as [1] or [2], and the time of making.
    data.value(explicit(0));
    data.value(explicit(1)).or_else(|| data.value(explicit(2)))?;
    data.time()?;
    data.inside(SEQUENCE)
}

fn single<'a>(bytes: &mut Reader<'a>) -> Option<Single<'a>> {
    let mut single = bytes.inside(SEQUENCE)?;
    let mut id = single.inside(SEQUENCE)?;
    let hash = match id.inside(SEQUENCE)?.content(OBJECT_IDENTIFIER)? {
        SHA1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        SHA256 => Some(&digest::SHA256),
        _ => None,
    };
    let issuer_name_hash = id.content(OCTET_STRING)?;
    id.content(OCTET_STRING)?;
    let serial = id.content(INTEGER)?;
    // With parts, as `revoked` has them, or without.
    let status = single.any().map(|status| status.tag).filter(|tag| tag & 0xc0 == 0x80)? & 0x1f;
    let from = single.time()?;
    let until = match single.inside(explicit(0)) {
        Some(mut explicit) => Some(explicit.time()?),
        None => None,
    };
    Some(Single { hash, issuer_name_hash, serial, status, times: OcspTimes { from, until } })
}
