//! The parts of an OCSP response (RFC 6960 §4.2.1) that a server has to check before it staples it (RFC 6066 §8).
//!
//! Its signature is not verified: clients do that.

use std::fmt;

use aws_lc_rs::digest::{self, Algorithm};
use x509_parser::asn1_rs::{Any, Class, FromDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::time::ASN1Time;

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

pub(crate) fn read(response: &[u8], certificate: &X509Certificate<'_>) -> Result<OcspTimes, OcspFault> {
    for single in singles(response)? {
        let single = single.ok_or(OcspFault::Form)?;
        let issuer_is_same = match single.hash {
            Some(hash) => {
                digest::digest(hash, certificate.issuer().as_raw()).as_ref() == single.issuer_name_hash
            }
            // A hash that we do not know; the serial number has to do.
            None => true,
        };
        if single.serial != certificate.raw_serial() || !issuer_is_same {
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
    /// The tag of `CertStatus`: 0 good, 1 revoked, 2 unknown.
    status: u32,
    times: OcspTimes,
}

const INTEGER: u32 = 2;
const OCTET_STRING: u32 = 4;
const OBJECT_IDENTIFIER: u32 = 6;
const ENUMERATED: u32 = 10;
const SEQUENCE: u32 = 16;
const GENERALIZED_TIME: u32 = 24;

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
    let mut outer = response;
    let mut outer = universal(&mut outer, SEQUENCE).ok_or_else(no_der)?;
    match universal(&mut outer, ENUMERATED).ok_or(OcspFault::Form)? {
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
            rest = &[];
        }
        Some(single)
    }))
}

fn basic(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut bytes = context(&mut bytes, 0)?;
    let mut bytes = universal(&mut bytes, SEQUENCE)?;
    if universal(&mut bytes, OBJECT_IDENTIFIER)? != BASIC {
        return None;
    }
    let mut octets = universal(&mut bytes, OCTET_STRING)?;
    let mut basic = universal(&mut octets, SEQUENCE)?;
    let mut data = universal(&mut basic, SEQUENCE)?;
    // Version [0] where it is not the first, responder [1] or [2], time of making.
    let (mut class, mut tag) = any(&mut data).map(|any| (any.class(), any.tag().0))?;
    if (class, tag) == (Class::ContextSpecific, 0) {
        (class, tag) = any(&mut data).map(|any| (any.class(), any.tag().0))?;
    }
    if class != Class::ContextSpecific || !matches!(tag, 1 | 2) {
        return None;
    }
    universal(&mut data, GENERALIZED_TIME)?;
    universal(&mut data, SEQUENCE)
}

fn single<'a>(bytes: &mut &'a [u8]) -> Option<Single<'a>> {
    let mut single = universal(bytes, SEQUENCE)?;
    let mut id = universal(&mut single, SEQUENCE)?;
    let mut algorithm = universal(&mut id, SEQUENCE)?;
    let hash = match universal(&mut algorithm, OBJECT_IDENTIFIER)? {
        SHA1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        SHA256 => Some(&digest::SHA256),
        _ => None,
    };
    let issuer_name_hash = universal(&mut id, OCTET_STRING)?;
    universal(&mut id, OCTET_STRING)?;
    let serial = universal(&mut id, INTEGER)?;
    let status = any(&mut single).filter(|any| any.class() == Class::ContextSpecific)?.tag().0;
    let from = time(&mut single)?;
    let until = match context(&mut single, 0) {
        Some(mut explicit) => Some(time(&mut explicit)?),
        None => None,
    };
    Some(Single { hash, issuer_name_hash, serial, status, times: OcspTimes { from, until } })
}

fn any<'a>(bytes: &mut &'a [u8]) -> Option<Any<'a>> {
    let (rest, any) = Any::from_der(bytes).ok()?;
    *bytes = rest;
    Some(any)
}

fn universal<'a>(bytes: &mut &'a [u8], tag: u32) -> Option<&'a [u8]> {
    any(bytes).filter(|any| any.class() == Class::Universal && any.tag().0 == tag).map(|any| any.data)
}

/// Takes nothing if the next value has another tag.
fn context<'a>(bytes: &mut &'a [u8], tag: u32) -> Option<&'a [u8]> {
    let mut ahead = *bytes;
    let found = any(&mut ahead).filter(|any| any.class() == Class::ContextSpecific && any.tag().0 == tag)?;
    *bytes = ahead;
    Some(found.data)
}

fn time(bytes: &mut &[u8]) -> Option<u64> {
    let (rest, time) = ASN1Time::from_der(bytes).ok()?;
    *bytes = rest;
    u64::try_from(time.timestamp()).ok()
}
