//! The terms of sessions with servers: which servers are trusted, and as which client.
//!
//! Promises: a server has proven that it has the key of its certificate, without verification too. Sessions of the same terms
//! resume each other by tickets; those of different terms never.
//!
//! Leaves out: revocation of certificates; files.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DEFAULT_VERSIONS, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, SupportedProtocolVersion,
};

use crate::clock::{Clock, Time, system_clock};
use crate::identity::Identity;
use crate::noted::note;
use crate::pem::Sections;
use crate::provider::provider;
use crate::server_fault::note_server;
use crate::x509::Certificate;

/// The authorities that servers are verified by.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Adds the certificates in this file, in PEM or one in DER, and says how many. Certificates that cannot be an
    /// authority are passed over: bundles of a system have some.
    pub fn add(&mut self, file: &[u8]) -> usize {
        let before = self.0.len();
        let mut add = |der: &[u8]| {
            let der = CertificateDer::from(der.to_vec());
            if Certificate::read(&der).is_ok() && RootCertStore::empty().add(der.clone()).is_ok() {
                self.0.push(der);
            }
        };
        match Sections::read(file) {
            Ok(sections) => sections.certificates().for_each(&mut add),
            Err(_) => add(file),
        }
        self.0.len() - before
    }
}

/// Settings of the terms.
#[derive(Clone, Debug)]
pub struct OutgoingSettings<'a> {
    /// The authorities by which servers are verified; `None`: any certificate is taken.
    pub authorities: Option<Authorities>,
    /// The client's certificate.
    pub identity: Option<&'a Identity>,
    /// The protocols that are offered (ALPN), in their order.
    pub protocols: Vec<Vec<u8>>,
    /// The clock, for the dates of certificates.
    pub clock: Clock,
}

impl Default for OutgoingSettings<'_> {
    /// No authority is trusted.
    fn default() -> Self {
        let authorities = Some(Authorities::default());
        Self { authorities, identity: None, protocols: Vec::new(), clock: system_clock }
    }
}

/// The terms of sessions with servers.
#[derive(Clone)]
pub struct OutgoingTerms {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) has_certificate: bool,
}

impl fmt::Debug for OutgoingTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingTerms").finish_non_exhaustive()
    }
}

impl OutgoingTerms {
    /// New terms, without tickets.
    ///
    /// # Errors
    /// There are authorities to verify by, but none among them; or the library refuses its own settings.
    pub fn new(settings: OutgoingSettings<'_>) -> Result<Self, String> {
        Self::with_versions(settings, DEFAULT_VERSIONS)
    }

    pub(crate) fn with_versions(
        settings: OutgoingSettings<'_>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Self, String> {
        let config =
            ClientConfig::builder_with_details(Arc::clone(provider()), Arc::new(Time(settings.clock)));
        let config = config.with_protocol_versions(versions).map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match settings.authorities {
            Some(authorities) => Arc::new(ByAuthorities::new(authorities, settings.clock)?),
            None => Arc::new(AnyCertificate),
        };
        let own = OwnCertificate(settings.identity.map(|identity| Arc::clone(&identity.plain)));
        let has_certificate = own.0.is_some();
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = config.with_client_cert_resolver(Arc::new(own));
        config.alpn_protocols = settings.protocols;
        Ok(Self { config: Arc::new(config), has_certificate })
    }
}

/// Gives the certificate of the client, and notes that the server has asked for it.
#[derive(Debug)]
struct OwnCertificate(Option<Arc<CertifiedKey>>);

impl ResolvesClientCert for OwnCertificate {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        note(|noted| noted.is_client_asked = true);
        self.0.as_ref().filter(|own| own.key.choose_scheme(schemes).is_some()).map(Arc::clone)
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Verifies servers by authorities.
#[derive(Debug)]
struct ByAuthorities {
    verifier: Arc<WebPkiServerVerifier>,
    authorities: Authorities,
    clock: Clock,
}

impl ByAuthorities {
    fn new(authorities: Authorities, clock: Clock) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.0.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider()));
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        Ok(Self { verifier, authorities, clock })
    }

    /// A certificate that stands among the authorities and is shown by the server itself needs no issuer. Certificates that
    /// have signed themselves are mostly those of an authority (CA:TRUE), and webpki takes no such certificate of a server.
    fn verify_known(&self, own: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
        let certificate = Certificate::read(own).map_err(|_| CertificateError::BadEncoding)?;
        let seconds = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let (now, not_before, not_after) = ((self.clock)(), certificate.not_before, certificate.not_after);
        if now > not_after {
            let (time, not_after) = (seconds(now), seconds(not_after));
            return Err(CertificateError::ExpiredContext { time, not_after }.into());
        }
        if now < not_before {
            let (time, not_before) = (seconds(now), seconds(not_before));
            return Err(CertificateError::NotValidYetContext { time, not_before }.into());
        }
        if !certificate.is_for_servers() {
            return Err(CertificateError::InvalidPurpose.into());
        }
        verify_server_name(&ParsedCertificate::try_from(own)?, host)
    }
}

impl ServerCertVerifier for ByAuthorities {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result = if self.authorities.0.iter().any(|authority| authority == own) {
            self.verify_known(own, host).map(|()| ServerCertVerified::assertion())
        } else {
            self.verifier.verify_server_cert(own, intermediates, host, ocsp, now)
        };
        result.inspect_err(|_| note_server(own))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        AnyCertificate.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        AnyCertificate.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        AnyCertificate.supported_verify_schemes()
    }
}

/// Accepts any certificate, but only from a peer that has its key.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
