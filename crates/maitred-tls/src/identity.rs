//! A certificate with its key: reading it, checking that both belong together, and facts about it.
//!
//! Leaves out: whether clients trust the certificate. Only they know.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use rustls::sign::{CertifiedKey, SigningKey};
use zeroize::Zeroizing;

use crate::certificate::{self, CertificateInfo};
use crate::encrypted_key::{EncryptedKey, Unreadable};
use crate::ocsp::{self, OcspFault, OcspTimes};
use crate::pem::{self, PemFault, Sections};
use crate::x509::Certificate;

/// A certificate with its key, and for which names it is.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(crate) plain: Arc<CertifiedKey>,
    pub(crate) stapled: Option<Arc<CertifiedKey>>,
    pub(crate) told: Vec<String>,
    pub(crate) hearer: Option<Hearer>,
    pub(crate) info: IdentityInfo,
}

/// A function that hears names of clients.
#[derive(Clone)]
pub(crate) struct Hearer(pub(crate) Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Hearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hearer")
    }
}

/// Facts about a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityInfo {
    /// The names for which it is chosen: those that were set, or else those in the certificate. In lower case.
    pub names: Vec<String>,
    /// The fields of the certificate.
    pub certificate: CertificateInfo,
    /// How many certificates the chain has, this one among them.
    pub chain: usize,
    /// The first certificate of the chain that the next one has not issued, counted from 1; clients may not be able to verify such a chain.
    pub chain_gap: Option<usize>,
    /// When the stapled OCSP response may be used; `None`: there is none.
    pub ocsp: Option<OcspTimes>,
    /// It is ordered from an authority (ACME), or stands in for such a certificate.
    pub is_ordered: bool,
}

impl IdentityInfo {
    /// Whether it is a self-signed certificate in the place of one that is ordered.
    pub fn stands_in(&self) -> bool {
        self.is_ordered && self.certificate.is_self_signed
    }

    /// Warnings for the operator, in sentences without a full stop: why browsers refuse the certificate at this time,
    /// in seconds since 1970.
    pub fn warnings(&self, now: u64) -> Vec<String> {
        let certificate = &self.certificate;
        let mut warnings = Vec::new();
        let mut warn = |is: bool, text: &str| {
            if is {
                warnings.push(text.to_owned());
            }
        };
        warn(now >= certificate.not_after, "the certificate has expired");
        warn(now < certificate.not_before, "the certificate is not valid yet; is the clock right?");
        warn(
            certificate.names.is_empty(),
            "the certificate has no name in it (subjectAltName), so clients refuse it",
        );
        warn(
            !certificate.is_for_servers,
            "the certificate is not for servers (its extended key usage lacks serverAuth), so clients refuse it",
        );
        warn(
            certificate.is_authority,
            "the certificate is that of an authority (CA:TRUE), so some clients refuse it",
        );
        if let Some(gap) = self.chain_gap {
            warn(
                true,
                &format!(
                    "certificate {gap} of the chain was not issued by the next one; put each behind the one it has issued",
                ),
            );
        }
        warn(
            self.chain == 1 && !certificate.is_self_signed,
            "the certificate stands alone; if an intermediate authority has issued it, put that certificate behind it",
        );
        match self.ocsp {
            Some(times) => warn(!times.is_current(now), "the OCSP response is out of date and is not sent"),
            None => warn(
                certificate.must_staple,
                "the certificate asks for a stapled OCSP response (must-staple), and there is none",
            ),
        }
        warnings
    }
}

/// Why a certificate and a key cannot be used. The text has no file name: the caller that has read the files puts it in
/// front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The certificate file cannot be read.
    CertificateFile(PemFault),
    /// The key file cannot be read.
    KeyFile(PemFault),
    /// The certificate file has no certificate but these sections.
    NoCertificate(String),
    /// This one of the certificates, counted from 1, is broken.
    Certificate(usize, String),
    /// The key file has no key but these sections.
    NoKey(String),
    /// The key is encrypted, and no password was given.
    EncryptedKey,
    /// The key is encrypted, and none of the passwords opens it.
    WrongPassword,
    /// The key is encrypted in a way that is not read, and in which.
    UnknownEncryption(&'static str),
    /// Decryption of the key would take too long or too much memory. The text names the encryption and the limit.
    CostlyEncryption(String),
    /// The key is of a kind that TLS or this server does not know, or broken.
    Key(String),
    /// The key is that of another certificate; if it is that of a later one in the file, its number, counted from 1.
    OtherKey(Option<usize>),
    /// The OCSP response cannot be stapled to this certificate.
    Ocsp(OcspFault),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CertificateFile(fault) => write!(f, "the certificate cannot be read: {fault}"),
            Self::KeyFile(fault) => write!(f, "the key cannot be read: {fault}"),
            Self::NoCertificate(labels) if labels.contains("PRIVATE KEY") => write!(
                f,
                "there is no certificate but {labels}; have the files of certificate and key been exchanged?"
            ),
            Self::NoCertificate(labels) if labels.contains("CERTIFICATE REQUEST") => write!(
                f,
                "there is a request for a certificate ({labels}) and no certificate; send the request to an authority, and use what it gives back"
            ),
            Self::NoCertificate(labels) => {
                write!(f, "there is no section CERTIFICATE but {labels}; it takes the chain of certificates in PEM")
            }
            Self::Certificate(number, fault) => write!(f, "certificate {number} of the file is broken: {fault}"),
            Self::NoKey(labels) => write!(
                f,
                "there is no private key but {labels}; it takes a section PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
            ),
            Self::EncryptedKey => f.write_str(
                "the key is encrypted, and there is no password for it; name a file that has its password with tls-key-password, or decrypt the key with `openssl pkey -in KEY -out NEW` and let nobody but the server read the new file",
            ),
            Self::WrongPassword => f.write_str(
                "the key is encrypted, and no password of tls-key-password opens it; try the password with `openssl pkey -in KEY -noout`",
            ),
            Self::UnknownEncryption(how) => write!(
                f,
                "the key is encrypted {how}, which is not read; write it anew with `openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW`"
            ),
            Self::CostlyEncryption(how) => write!(
                f,
                "the key is encrypted {how}; write it anew with `openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW`, which needs less"
            ),
            Self::Key(fault) => write!(
                f,
                "the key cannot be used: {fault}; it takes RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519"
            ),
            Self::OtherKey(Some(number)) => write!(
                f,
                "the key belongs to certificate {number} of the file; put the server's own certificate first, and those of authorities behind it"
            ),
            Self::OtherKey(None) => f.write_str(
                "the key does not belong to the certificate; use the key from which the certificate was requested",
            ),
            Self::Ocsp(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// Reads a certificate and its key.
    ///
    /// `certificate` is PEM (RFC 7468): the server's own certificate, then those of the intermediate authorities. `key` is PEM: PKCS#8, PKCS#1 or
    /// SEC 1, not encrypted. Both may stand in one file, which is given twice then. Other sections are passed over.
    ///
    /// # Errors
    /// When something is missing or broken, or the key is not that of the first certificate.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Self::from_encrypted_pem(certificate, key, &[])
    }

    /// The same; the key may be encrypted (PKCS#8, RFC 5958 §3, by a scheme of RFC 8018 §6.2) with one of these passwords.
    ///
    /// # Errors
    /// As those of [`from_pem`](Self::from_pem), or no password opens the key.
    pub fn from_encrypted_pem(
        certificate: &[u8],
        key: &[u8],
        passwords: &[&[u8]],
    ) -> Result<Self, IdentityError> {
        let sections = Sections::read(certificate).map_err(IdentityError::CertificateFile)?;
        let chain: Vec<CertificateDer<'static>> =
            sections.certificates().map(|der| CertificateDer::from(der.to_vec())).collect();
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate(sections.labels()));
        }
        let sections = Sections::read(key).map_err(IdentityError::KeyFile)?;
        Self::new(chain, signing_key(&sections, passwords)?)
    }

    /// `chain` is not empty.
    pub(crate) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: Arc<dyn SigningKey>,
    ) -> Result<Self, IdentityError> {
        let mut parsed = Vec::with_capacity(chain.len());
        for (index, der) in chain.iter().enumerate() {
            let broken = |fault: &str| IdentityError::Certificate(index + 1, fault.to_owned());
            parsed.push(Certificate::read(der).map_err(broken)?);
        }
        let fits = |certificate: &Certificate<'_>| {
            key.public_key().is_none_or(|public| public.as_ref() == certificate.key.whole)
        };
        match parsed.iter().position(fits) {
            Some(0) => {}
            other => return Err(IdentityError::OtherKey(other.map(|index| index + 1))),
        }
        let Some(own) = parsed.first() else { return Err(IdentityError::NoCertificate(String::new())) };
        let certificate = CertificateInfo::new(own);
        let issued = |pair: &[Certificate<'_>]| match pair {
            [certificate, issuer] => certificate.issuer.whole == issuer.subject.whole,
            _ => true,
        };
        let info = IdentityInfo {
            names: certified_names(&certificate),
            certificate,
            chain: parsed.len(),
            chain_gap: parsed.windows(2).position(|pair| !issued(pair)).map(|index| index + 1),
            ocsp: None,
            is_ordered: false,
        };
        let plain = Arc::new(CertifiedKey::new(chain, key));
        Ok(Self { plain, stapled: None, told: Vec::new(), hearer: None, info })
    }

    /// Tells `hear` each name for which a client gets this certificate, in the turn of its connection.
    pub fn with_hearer(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hearer = Some(Hearer(Arc::new(hear)));
        self
    }

    /// The same certificate, as one that is [ordered](IdentityInfo::is_ordered).
    pub fn ordered(mut self) -> Self {
        self.info.is_ordered = true;
        self
    }

    /// Uses the certificate for these names, before any other one: names and patterns of virtual hosts (`shop.example`,
    /// `*.shop.example`). The names in the certificate do not count then.
    pub fn for_names<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let normal = |name: N| certificate::normal_name(name.as_ref());
        self.told.extend(names.into_iter().map(normal));
        if !self.told.is_empty() {
            self.info.names.clone_from(&self.told);
        }
        self
    }

    /// Staples this OCSP response, in DER (RFC 6066 §8; TLS 1.3: RFC 8446 §4.4.2.1), as long as it is current. Clients verify its signature.
    ///
    /// # Errors
    /// When it is no response, one for another certificate, or one that does not say "good".
    pub fn with_ocsp(mut self, response: Vec<u8>) -> Result<Self, IdentityError> {
        let own = self.plain.cert.first().map(|der| Certificate::read(der));
        let Some(Ok(own)) = own else { return Err(IdentityError::Ocsp(OcspFault::OtherCertificate)) };
        self.info.ocsp = Some(ocsp::read(&response, &own).map_err(IdentityError::Ocsp)?);
        let mut stapled = (*self.plain).clone();
        stapled.ocsp = Some(response);
        self.stapled = Some(Arc::new(stapled));
        Ok(self)
    }

    /// Facts about the certificate.
    pub fn info(&self) -> &IdentityInfo {
        &self.info
    }

    /// The certificates in DER, the server's own first.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.cert.iter().map(AsRef::as_ref)
    }

    /// Whether the key is RSA, which more old clients can use, and which costs more.
    pub(crate) fn is_rsa(&self) -> bool {
        self.plain.key.algorithm() == SignatureAlgorithm::RSA
    }

    pub(crate) fn has_address(&self) -> bool {
        self.info.certificate.names.iter().any(|name| name.parse::<std::net::IpAddr>().is_ok())
    }

    pub(crate) fn at(&self, now: u64) -> &Arc<CertifiedKey> {
        match (&self.stapled, self.info.ocsp) {
            (Some(stapled), Some(times)) if times.is_current(now) => stapled,
            _ => &self.plain,
        }
    }
}

/// The names that a certificate is for; the common name counts if there is no other (RFC 9525 forgets it; old
/// certificates have nothing else).
fn certified_names(certificate: &CertificateInfo) -> Vec<String> {
    let is_host = |name: &&String| {
        name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-*".contains(&byte))
    };
    if certificate.names.is_empty() {
        certificate.common_name.iter().filter(is_host).map(|name| certificate::normal_name(name)).collect()
    } else {
        certificate.names.clone()
    }
}

fn signing_key(sections: &Sections, passwords: &[&[u8]]) -> Result<Arc<dyn SigningKey>, IdentityError> {
    let (label, key) = match sections.keys().next() {
        Some((label, der)) => {
            let key = match label {
                "PRIVATE KEY" => PrivateKeyDer::from(PrivatePkcs8KeyDer::from(der.to_vec())),
                "RSA PRIVATE KEY" => PrivatePkcs1KeyDer::from(der.to_vec()).into(),
                "EC PRIVATE KEY" => PrivateSec1KeyDer::from(der.to_vec()).into(),
                other => return Err(IdentityError::Key(format!("it is of the form {other}"))),
            };
            (label, key)
        }
        None if sections.has_encrypted_key() => {
            let opened = decrypted(sections, passwords)?;
            (pem::ENCRYPTED_KEY, PrivatePkcs8KeyDer::from(opened.to_vec()).into())
        }
        None => return Err(IdentityError::NoKey(sections.labels())),
    };
    rustls::crypto::aws_lc_rs::sign::any_supported_type(&key)
        .map_err(|_| IdentityError::Key(format!("the section {label} is broken or of an unknown kind")))
}

fn decrypted(sections: &Sections, passwords: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let Some(der) = sections.all(pem::ENCRYPTED_KEY).next() else {
        return Err(IdentityError::UnknownEncryption("in the form that OpenSSL had before 2010"));
    };
    let key = EncryptedKey::read(der).map_err(|fault| match fault {
        Unreadable::FirstScheme => IdentityError::UnknownEncryption("by a scheme of PKCS#5 version 1"),
        Unreadable::TooCostly(how) => IdentityError::CostlyEncryption(how),
        Unreadable::Unknown => IdentityError::Key(format!(
            "the section {} is broken or encrypted in an unknown way",
            pem::ENCRYPTED_KEY
        )),
    })?;
    if passwords.is_empty() {
        return Err(IdentityError::EncryptedKey);
    }
    passwords.iter().find_map(|password| key.decrypt(password)).ok_or(IdentityError::WrongPassword)
}
