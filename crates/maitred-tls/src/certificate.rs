//! The fields of a certificate (RFC 5280), as text and numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::distinguished_name;

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
}

impl CertificateInfo {
    pub(crate) fn new(certificate: &X509Certificate<'_>) -> Self {
        let usage = certificate.extended_key_usage().ok().flatten();
        let names = alternative_names(certificate).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(normal_name(name)),
            GeneralName::IPAddress(bytes) => ip_address(bytes).map(|address| address.to_string()),
            _ => None,
        });
        Self {
            names: names.collect(),
            subject: distinguished_name::text(certificate.subject()),
            common_name: distinguished_name::common_name(certificate.subject()),
            issuer: distinguished_name::text(certificate.issuer()),
            serial: serial(certificate.raw_serial()),
            not_before: seconds(certificate.validity().not_before),
            not_after: seconds(certificate.validity().not_after),
            key: key(certificate.public_key()),
            fingerprint: hex(digest::digest(&digest::SHA256, certificate.as_raw()).as_ref()),
            is_self_signed: certificate.subject().as_raw() == certificate.issuer().as_raw(),
            is_authority: certificate.is_ca(),
            is_for_servers: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
            must_staple: must_staple(certificate),
        }
    }
}

/// A name of a host as it is compared and shown: in lower case, without a dot at its end.
pub(crate) fn normal_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

pub(crate) fn alternative_names<'a>(
    certificate: &'a X509Certificate<'a>,
) -> impl Iterator<Item = &'a GeneralName<'a>> {
    certificate.extensions().iter().flat_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => names.general_names.as_slice(),
        _ => &[],
    })
}

pub(crate) fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)))
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::from(Ipv6Addr::from(bytes))))
        .ok()
}

/// 0 for times before 1970.
pub(crate) fn seconds(time: ASN1Time) -> u64 {
    u64::try_from(time.timestamp()).unwrap_or(0)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A positive number has a zero byte in front if its first bit is set (X.690 §8.3).
pub(crate) fn serial(bytes: &[u8]) -> String {
    match bytes {
        [0, rest @ ..] if !rest.is_empty() => hex(rest),
        _ => hex(bytes),
    }
}

fn key(key: &SubjectPublicKeyInfo<'_>) -> String {
    // 1.2.840.10045.3.1.7, 1.3.132.0.34, 1.3.132.0.35
    let curve = || match key.algorithm.parameters.as_ref().map(|curve| curve.data) {
        Some([0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]) => "P-256",
        Some([0x2b, 0x81, 4, 0, 0x22]) => "P-384",
        Some([0x2b, 0x81, 4, 0, 0x23]) => "P-521",
        _ => "on another curve",
    };
    match key.parsed() {
        Ok(PublicKey::RSA(key)) => format!("RSA {}", key.key_size()),
        Ok(PublicKey::EC(_)) => format!("ECDSA {}", curve()),
        _ => match key.algorithm.algorithm.as_bytes() {
            // 1.3.101.112 and 113 (RFC 8410)
            [0x2b, 0x65, 0x70] => "Ed25519".to_owned(),
            [0x2b, 0x65, 0x71] => "Ed448".to_owned(),
            _ => format!("of kind {}", key.algorithm.algorithm.to_id_string()),
        },
    }
}

/// The extension id-pe-tlsfeature, 1.3.6.1.5.5.7.1.24, with status_request (5).
fn must_staple(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| {
        extension.oid.as_bytes() == [0x2b, 6, 1, 5, 5, 7, 1, 0x18] && extension.value == [0x30, 3, 2, 1, 5]
    })
}
