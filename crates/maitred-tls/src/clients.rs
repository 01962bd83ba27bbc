//! Certificates of clients: the authorities that they are verified by, and revocation lists.
//!
//! The whole chain is looked up in the revocation lists (CRLs, RFC 5280 §5) if there are any: every authority of the
//! chain needs a list, and one whose next update is past is not accepted. All of that is verified in full handshakes
//! only; a resumed session has the result of the first one. So tickets are bound to [`Trust`]: another one opens none
//! of them.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, Der, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientCertVerifierBuilder, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertRevocationListError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use crate::certificate::CertificateInfo;
use crate::distinguished_name;
use crate::noted::note;
use crate::pem::{PemFault, Sections};
use crate::provider::provider;
use crate::x509::{Certificate, RevocationList};

/// Whether clients are asked for a certificate (RFC 8446 §4.3.2).
#[derive(Clone, Debug, Default)]
pub enum ClientPolicy {
    /// Clients are not asked for a certificate.
    #[default]
    None,
    /// Clients are asked, and may have none. A client whose certificate cannot be verified is refused.
    Optional(Trust),
    /// Only clients with a certificate that can be verified are let in.
    Required(Trust),
}

impl ClientPolicy {
    /// The authorities and lists, if clients are asked for a certificate.
    pub fn trust(&self) -> Option<&Trust> {
        match self {
            Self::None => None,
            Self::Optional(trust) | Self::Required(trust) => Some(trust),
        }
    }
}

/// The authorities by which certificates of clients are verified, and their revocation lists.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    roots: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateInfo>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    revocations: Vec<CrlInfo>,
}

/// Facts about a list of revoked certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrlInfo {
    /// Whose certificates are on it, by RFC 4514.
    pub issuer: String,
    /// When it was made, in seconds since 1970.
    pub this_update: u64,
    /// The end of its validity, in seconds since 1970.
    pub next_update: u64,
    /// How many certificates are on it.
    pub revoked: usize,
}

/// Why authorities or revocation lists cannot be used. The text has no file name: the caller that has read the file
/// puts it in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustError {
    /// The file of authorities cannot be read.
    AuthorityFile(PemFault),
    /// The file of authorities has no certificate but these sections.
    NoAuthority(String),
    /// This one of the certificates, counted from 1, cannot be an authority.
    Authority(usize, String),
    /// The file of revocation lists cannot be read.
    CrlFile(PemFault),
    /// The file of revocation lists has none but these sections.
    NoCrl(String),
    /// This one of the revocation lists, counted from 1, cannot be used.
    Crl(usize, String),
    /// No authority was given.
    Nobody,
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AuthorityFile(fault) => write!(f, "the authorities for clients cannot be read: {fault}"),
            Self::NoAuthority(labels) => {
                write!(f, "there is no section CERTIFICATE but {labels}; it takes the certificates of authorities in PEM")
            }
            Self::Authority(number, fault) => {
                write!(f, "certificate {number} of the file cannot be an authority for clients: {fault}")
            }
            Self::CrlFile(fault) => write!(f, "the list of revoked certificates cannot be read: {fault}"),
            Self::NoCrl(labels) => {
                write!(f, "there is no section X509 CRL but {labels}; it takes lists of revoked certificates in PEM or DER")
            }
            Self::Crl(number, fault) => {
                write!(f, "list {number} of revoked certificates cannot be used: {fault}")
            }
            Self::Nobody => f.write_str(
                "clients are asked for certificates, and no authority is given by which they could be verified",
            ),
        }
    }
}

impl std::error::Error for TrustError {}

impl Trust {
    /// Believes the authorities in this file, too: certificates in PEM, or one in DER.
    ///
    /// # Errors
    /// When there is none, or one that cannot be read.
    pub fn add_authorities(&mut self, file: &[u8]) -> Result<(), TrustError> {
        let ders: Vec<Vec<u8>> = match Sections::read(file) {
            Ok(sections) => {
                let found: Vec<_> = sections.certificates().map(<[u8]>::to_vec).collect();
                if found.is_empty() {
                    return Err(TrustError::NoAuthority(sections.labels()));
                }
                found
            }
            Err(PemFault::Binary) => vec![file.to_vec()],
            Err(fault) => return Err(TrustError::AuthorityFile(fault)),
        };
        for (index, der) in ders.into_iter().enumerate() {
            let fault = |fault: &dyn fmt::Display| TrustError::Authority(index + 1, fault.to_string());
            let certificate = Certificate::read(&der).map_err(|error| fault(&error))?;
            let info = CertificateInfo::new(&certificate);
            let der = CertificateDer::from(der);
            RootCertStore::empty().add(der.clone()).map_err(|error| fault(&error))?;
            self.authorities.push(info);
            self.roots.push(der);
        }
        Ok(())
    }

    /// Accepts the lists of revoked certificates in this file, too: lists in PEM, or one in DER. From the first one on,
    /// every authority in the chain of a client needs a list.
    ///
    /// # Errors
    /// When there is none, or one that cannot be read, or one without a next update, of version 1, with changes only,
    /// or by another authority than the issuer.
    pub fn add_crls(&mut self, file: &[u8]) -> Result<(), TrustError> {
        let ders: Vec<Vec<u8>> = match Sections::read(file) {
            Ok(sections) => {
                let found: Vec<_> = sections.all("X509 CRL").map(<[u8]>::to_vec).collect();
                if found.is_empty() {
                    return Err(TrustError::NoCrl(sections.labels()));
                }
                found
            }
            Err(PemFault::Binary) => vec![file.to_vec()],
            Err(fault) => return Err(TrustError::CrlFile(fault)),
        };
        for (index, der) in ders.into_iter().enumerate() {
            let fault = |fault: String| TrustError::Crl(index + 1, fault);
            let list = RevocationList::read(&der).map_err(|error| fault(error.to_owned()))?;
            if !list.has_version {
                return Err(fault(
                    "it is of version 1; `openssl ca -gencrl` writes version 2 if there is a `crlnumber` in its configuration"
                        .to_owned(),
                ));
            }
            let list_der = CertificateRevocationListDer::from(der.clone());
            check(list_der.clone()).map_err(fault)?;
            let next = list.next_update.ok_or_else(|| fault("it has no next update".to_owned()))?;
            self.revocations.push(CrlInfo {
                issuer: distinguished_name::text(&list.issuer),
                this_update: list.this_update,
                next_update: next,
                revoked: list.revoked,
            });
            self.lists.push(list_der);
        }
        Ok(())
    }

    /// The authorities, in the order of the files.
    pub fn authorities(&self) -> &[CertificateInfo] {
        &self.authorities
    }

    /// The lists of revoked certificates, in the order of the files.
    pub fn crls(&self) -> &[CrlInfo] {
        &self.revocations
    }

    /// When the first of the lists is no longer believed, in seconds since 1970.
    pub fn until(&self) -> Option<u64> {
        self.revocations.iter().map(|list| list.next_update).min()
    }

    /// A number for all of it, in `context`.
    pub(crate) fn digest(&self, context: &mut Context) {
        let mut all = |ders: &mut dyn Iterator<Item = &[u8]>| {
            for der in ders {
                context.update(&(der.len() as u64).to_be_bytes());
                context.update(der);
            }
            context.update(&[0xff; 8]);
        };
        all(&mut self.roots.iter().map(AsRef::as_ref));
        all(&mut self.lists.iter().map(AsRef::as_ref));
    }
}

/// The rules by which clients are verified, as 32 bytes: another policy, authority or list makes other bytes.
pub(crate) fn generation(policy: &ClientPolicy) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(match policy {
        ClientPolicy::None => b"none",
        ClientPolicy::Optional(_) => b"optional",
        ClientPolicy::Required(_) => b"required",
    });
    if let Some(trust) = policy.trust() {
        trust.digest(&mut context);
    }
    let mut generation = [0; 32];
    generation.copy_from_slice(context.finish().as_ref());
    generation
}

/// The verifier of client certificates for rustls.
/// Errors: when there is no authority.
pub(crate) fn verifier(policy: &ClientPolicy) -> Result<Arc<dyn ClientCertVerifier>, TrustError> {
    let Some(trust) = policy.trust() else { return Ok(WebPkiClientVerifier::no_client_auth()) };
    if trust.roots.is_empty() {
        return Err(TrustError::Nobody);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trust.roots.iter().cloned());
    let builder = builder(roots, trust.lists.clone());
    let inner = match policy {
        ClientPolicy::Required(_) => builder.build(),
        _ => builder.allow_unauthenticated().build(),
    };
    // Both were checked one by one when they were added.
    inner.map(|inner| Arc::new(Verifier(inner)) as _).map_err(|error| TrustError::Crl(1, error.to_string()))
}

fn builder(
    roots: RootCertStore,
    lists: Vec<CertificateRevocationListDer<'static>>,
) -> ClientCertVerifierBuilder {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider()))
        .with_crls(lists)
        .enforce_revocation_expiration()
}

/// Whether the library takes this list of revoked certificates. It says so only when it makes a verifier, which needs an authority: any will do.
fn check(list: CertificateRevocationListDer<'static>) -> Result<(), String> {
    let anybody = TrustAnchor {
        subject: Der::from_slice(b""),
        subject_public_key_info: Der::from_slice(b""),
        name_constraints: None,
    };
    match builder(RootCertStore { roots: vec![anybody] }, vec![list]).build() {
        Ok(_) => Ok(()),
        Err(VerifierBuilderError::InvalidCrl(error)) => Err(match error {
            CertRevocationListError::UnsupportedDeltaCrl => {
                "it has changes only (a delta CRL); give the complete list".to_owned()
            }
            CertRevocationListError::UnsupportedIndirectCrl => {
                "it is not by the issuer of the certificates (an indirect CRL), which is not supported"
                    .to_owned()
            }
            other => format!("{other:?}"),
        }),
        Err(other) => Err(other.to_string()),
    }
}

#[derive(Debug)]
struct Verifier(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Verifier {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.verify_client_cert(certificate, intermediates, now).inspect_err(|_| {
            let subject = Certificate::read(certificate)
                .ok()
                .map(|certificate| distinguished_name::text(&certificate.subject).into_boxed_str());
            note(|noted| noted.client = subject);
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
