//! Keys for certificates of our making: rcgen writes a certificate, and rustls' provider signs it.
//!
//! rcgen can sign by itself, but its feature for that has a reader of certificates and two crates for PEM below it.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::{
    PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData, SerialNumber, SignatureAlgorithm,
};
use rustls::SignatureScheme;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;

use crate::der::Reader;
use crate::x509::PublicKey;

/// A key that signs.
pub(crate) struct Key {
    pub(crate) der: PrivateKeyDer<'static>,
    signing: Arc<dyn SigningKey>,
    /// The bits of the public key.
    public: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
    scheme: SignatureScheme,
}

impl Key {
    /// A new key on the curve P-256. `None`: the system has no random numbers.
    pub(crate) fn generate() -> Option<Self> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).ok()?;
        Self::new(key.as_ref())
    }

    /// A key in PKCS#8: ECDSA on P-256, RSA, or Ed25519.
    pub(crate) fn new(pkcs8: &[u8]) -> Option<Self> {
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8.to_vec()));
        let signing = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der).ok()?;
        let (algorithm, scheme) = match signing.algorithm() {
            rustls::SignatureAlgorithm::RSA => (&PKCS_RSA_SHA256, SignatureScheme::RSA_PKCS1_SHA256),
            rustls::SignatureAlgorithm::ED25519 => (&PKCS_ED25519, SignatureScheme::ED25519),
            _ => (&PKCS_ECDSA_P256_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256),
        };
        let public = PublicKey::read(&mut Reader::new(&signing.public_key()?))?.bits.to_vec();
        Some(Self { der, signing, public, algorithm, scheme })
    }

    /// The key as text, not encrypted.
    pub(crate) fn pem(&self) -> String {
        crate::pem::encode("PRIVATE KEY", self.der.secret_der())
    }

    pub(crate) fn signing(&self) -> Arc<dyn SigningKey> {
        Arc::clone(&self.signing)
    }

    /// A number for a certificate of this key: at most 20 bytes, and positive (RFC 5280 §4.1.2.2).
    pub(crate) fn serial(&self) -> SerialNumber {
        let mut serial = self.short_digest();
        if let Some(first) = serial.first_mut() {
            *first &= 0x7f;
        }
        SerialNumber::from(serial)
    }

    /// The first bytes of SHA-256 of the public key.
    pub(crate) fn short_digest(&self) -> Vec<u8> {
        digest(&SHA256, &self.public).as_ref().iter().copied().take(20).collect()
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signer = self.signing.choose_scheme(&[self.scheme]).ok_or(rcgen::Error::RemoteKeyError)?;
        signer.sign(message).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}
