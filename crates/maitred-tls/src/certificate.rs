//! The fields of a certificate (RFC 5280), as text and numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest;
use base64ct::{Base64UrlUnpadded, Encoding};

use crate::der::{dotted, hex};
use crate::distinguished_name;
use crate::x509::{Certificate, GeneralName, PublicKey};

/// The fields of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Names of hosts, in lower case, and addresses, from the subject's alternative names (§4.2.1.6).
    pub names: Vec<String>,
    /// The subject by RFC 4514.
    pub subject: String,
    /// The last common name of the subject, not escaped.
    pub common_name: Option<String>,
    /// The issuer by RFC 4514.
    pub issuer: String,
    /// The serial number in hexadecimal digits, two for each byte, without zeros in front.
    pub serial: String,
    /// The start of its validity, in seconds since 1970.
    pub not_before: u64,
    /// The end of its validity, in seconds since 1970.
    pub not_after: u64,
    /// The kind of key, such as `ECDSA P-256` or `RSA 2048`.
    pub key: String,
    /// SHA-256 of the certificate in hexadecimal digits.
    pub fingerprint: String,
    /// Whether subject and issuer are the same.
    pub is_self_signed: bool,
    /// Whether it may issue others (`CA:TRUE`).
    pub is_authority: bool,
    /// Whether its extended key usage allows servers, or says nothing.
    pub is_for_servers: bool,
    /// Whether it asks for a stapled OCSP response (RFC 7633).
    pub must_staple: bool,
    /// Its name in renewal information (RFC 9773 §4.1): the key of its issuer and its serial number; `None`: it names no key of its issuer.
    pub renewal_id: Option<String>,
}

impl CertificateInfo {
    pub(crate) fn new(certificate: &Certificate<'_>) -> Self {
        let names = certificate.alternative_names().into_iter().filter_map(|name| match name {
            GeneralName::Dns(name) => Some(normal_name(name)),
            GeneralName::Address(bytes) => ip_address(bytes).map(|address| address.to_string()),
            _ => None,
        });
        Self {
            names: names.collect(),
            subject: distinguished_name::text(&certificate.subject),
            common_name: distinguished_name::common_name(&certificate.subject),
            issuer: distinguished_name::text(&certificate.issuer),
            serial: serial(certificate.serial),
            not_before: certificate.not_before,
            not_after: certificate.not_after,
            key: key(&certificate.key),
            fingerprint: hex(digest::digest(&digest::SHA256, certificate.whole).as_ref()),
            is_self_signed: certificate.subject.whole == certificate.issuer.whole,
            is_authority: certificate.is_authority(),
            is_for_servers: certificate.is_for_servers(),
            must_staple: must_staple(certificate),
            renewal_id: certificate.issuer_key().map(|key| {
                let [key, serial] = [key, certificate.serial].map(Base64UrlUnpadded::encode_string);
                format!("{key}.{serial}")
            }),
        }
    }
}

/// A name of a host as it is compared and shown: in lower case, without a dot at its end.
pub(crate) fn normal_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

pub(crate) fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)))
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::from(Ipv6Addr::from(bytes))))
        .ok()
}

/// A positive number has a zero byte in front if its first bit is set (X.690 §8.3).
pub(crate) fn serial(bytes: &[u8]) -> String {
    match bytes {
        [0, rest @ ..] if !rest.is_empty() => hex(rest),
        _ => hex(bytes),
    }
}

fn key(key: &PublicKey<'_>) -> String {
    match key.algorithm {
        // 1.2.840.113549.1.1.1 (RFC 8017)
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1] => {
            key.rsa_bits().map_or_else(|| "RSA".to_owned(), |bits| format!("RSA {bits}"))
        }
        // 1.2.840.10045.2.1 (RFC 5480), its curves 1.2.840.10045.3.1.7, 1.3.132.0.34, 1.3.132.0.35
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1] => match key.curve {
            Some([0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]) => "ECDSA P-256".to_owned(),
            Some([0x2b, 0x81, 4, 0, 0x22]) => "ECDSA P-384".to_owned(),
            Some([0x2b, 0x81, 4, 0, 0x23]) => "ECDSA P-521".to_owned(),
            _ => "ECDSA on another curve".to_owned(),
        },
        // 1.3.101.112 and 113 (RFC 8410)
        [0x2b, 0x65, 0x70] => "Ed25519".to_owned(),
        [0x2b, 0x65, 0x71] => "Ed448".to_owned(),
        other => format!("of kind {}", dotted(other)),
    }
}

/// The extension id-pe-tlsfeature, 1.3.6.1.5.5.7.1.24, with status_request (5).
fn must_staple(certificate: &Certificate<'_>) -> bool {
    certificate.extensions.contains(&(&[0x2b, 6, 1, 5, 5, 7, 1, 0x18], &[0x30, 3, 2, 1, 5]))
}
