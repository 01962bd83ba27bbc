//! A certificate for development: self-signed, so every browser asks once whether it is to be trusted.

use std::fmt;

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;

use crate::clock::Clock;
use crate::identity::Identity;
use crate::key::Key;

/// How long it is valid, in days. Short enough that it is not left on a server for years.
const DAYS: u64 = 90;

const DAY: u64 = 24 * 60 * 60;

/// Certificate and key as text, to be kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate.
    pub certificate: String,
    /// The key, not encrypted: only the server should be able to read the file.
    pub key: String,
}

impl fmt::Debug for Pem {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Why there is no certificate for development.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DevelopmentError {
    /// No name was given.
    NoName,
    /// A name that cannot stand in a certificate: it has characters other than ASCII.
    Name(String),
    /// The certificate could not be made.
    Making(String),
}

impl fmt::Display for DevelopmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a certificate for development needs a name or an address"),
            Self::Name(name) => write!(
                f,
                "{name:?} cannot stand in a certificate; write it in ASCII, an international name in its form with xn--"
            ),
            Self::Making(fault) => write!(f, "the certificate for development cannot be made: {fault}"),
        }
    }
}

impl std::error::Error for DevelopmentError {}

impl Identity {
    /// Makes a self-signed certificate for development: a new ECDSA key on P-256, for these names and addresses, valid for 90 days from
    /// `clock` on, not an authority. Also as text, to be kept: a browser that has been told to trust it then asks no second time.
    ///
    /// # Errors
    /// When there is no name, or one that is not ASCII.
    pub fn development(names: &[String], clock: Clock) -> Result<(Self, Pem), DevelopmentError> {
        if names.is_empty() {
            return Err(DevelopmentError::NoName);
        }
        if let Some(name) = names.iter().find(|name| name.is_empty() || !name.is_ascii()) {
            return Err(DevelopmentError::Name(name.clone()));
        }
        make(names, clock())
    }
}

fn make(names: &[String], now: u64) -> Result<(Identity, Pem), DevelopmentError> {
    let (certificate, key) = self_signed(names, now, Vec::new())?;
    let pem = Pem { certificate: crate::pem::encode("CERTIFICATE", &certificate), key: key.pem() };
    let identity = Identity::from_pem(pem.certificate.as_bytes(), pem.key.as_bytes())
        .map_err(|error| DevelopmentError::Making(error.to_string()))?;
    Ok((identity, pem))
}

/// A certificate with its new key, for these names, with these extensions beside the usual ones.
pub(crate) fn self_signed(
    names: &[String],
    now: u64,
    extensions: Vec<CustomExtension>,
) -> Result<(CertificateDer<'static>, Key), DevelopmentError> {
    let making = |error: &dyn fmt::Display| DevelopmentError::Making(error.to_string());
    let time = |seconds: u64| {
        OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(i64::MAX))
            .map_err(|error| making(&error))
    };
    let mut params = CertificateParams::new(names).map_err(|error| making(&error))?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "maitred, for development");
    subject.push(DnType::CommonName, names.first().map(String::as_str).unwrap_or_default());
    params.distinguished_name = subject;
    // The clocks of two machines are seldom the same.
    params.not_before = time(now.saturating_sub(DAY))?;
    params.not_after = time(now.saturating_add(DAYS * DAY))?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = Key::generate().ok_or_else(|| making(&"the system has no random numbers"))?;
    params.serial_number = Some(key.serial());
    params.custom_extensions = extensions;
    let certificate = params.self_signed(&key).map_err(|error| making(&error))?;
    Ok((certificate.into(), key))
}
