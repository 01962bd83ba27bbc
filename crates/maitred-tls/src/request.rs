//! A request for a certificate (PKCS#10, RFC 2986), with a new key.

use rcgen::{CertificateParams, DistinguishedName};

use crate::key::Key;

/// A request for a certificate, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The request in DER.
    pub der: Vec<u8>,
    /// The key, not encrypted: only the server should be able to read a file with it.
    pub key_pem: String,
}

impl std::fmt::Debug for CertificateRequest {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateRequest").finish_non_exhaustive()
    }
}

/// Makes a new key, ECDSA on P-256, and a request for these names and addresses. Its subject is empty, as authorities want it for an address.
///
/// # Errors
/// In a sentence without a full stop: a name is not ASCII, or the system has no random numbers.
pub fn request(names: &[String]) -> Result<CertificateRequest, String> {
    let broken = |error: rcgen::Error| format!("the request for a certificate cannot be made: {error}");
    let key = Key::generate().ok_or("the system has no random numbers")?;
    let mut params = CertificateParams::new(names).map_err(broken)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(broken)?;
    Ok(CertificateRequest { der: request.der().to_vec(), key_pem: key.pem() })
}
