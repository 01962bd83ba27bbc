//! The other side of a connection: a client that asks a server whether it is ready.
//!
//! Promises: the server has proven that it has the key of the certificate that it shows. With authorities also that one of them vouches for it,
//! and that it is for this host and still valid.
//! Leaves out: without authorities the client does not check whose server it is. Use it so for addresses of this machine only.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, StreamOwned,
};

use crate::clients::Trust;
use crate::provider::provider;

/// Speaks TLS with a server, and HTTP/1.1 in it.
#[derive(Clone, Debug)]
pub struct LocalClient(Arc<ClientConfig>);

impl LocalClient {
    /// A client that takes any certificate.
    pub fn of_any() -> io::Result<Self> {
        let config = ClientConfig::builder_with_provider(Arc::clone(provider()));
        let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let config = config.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate));
        Ok(Self::new(config.with_no_client_auth()))
    }

    /// A client that takes certificates by these authorities.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn of_authorities(trust: &Trust) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for root in trust.roots() {
            roots.add(root.clone()).map_err(io::Error::other)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::clone(provider()));
        let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        Ok(Self::new(config.with_root_certificates(roots).with_no_client_auth()))
    }

    fn new(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }

    /// TLS over a stream to this host, a name or an address without brackets. The handshake is made with the first byte.
    ///
    /// # Errors
    /// It is neither a name nor an address.
    pub fn over<S: Read + Write>(&self, host: &str, stream: S) -> io::Result<impl Read + Write + use<S>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
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
