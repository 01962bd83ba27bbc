//! The challenges by which a CA verifies that a name leads here (RFC 8555 §8, RFC 8737).

use aws_lc_rs::digest::{SHA256, digest};

use crate::account::base64url;
use crate::identifier::Identifier;

/// A kind of challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    /// A file on port 80 (RFC 8555 §8.3).
    Http01,
    /// A certificate on port 443 (RFC 8737).
    TlsAlpn01,
    /// A TXT record (RFC 8555 §8.4).
    Dns01,
}

impl ChallengeKind {
    /// Its name in ACME.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }
}

/// A challenge that is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The kind.
    pub kind: ChallengeKind,
    /// The name or address that is verified; without `*.`.
    pub identifier: Identifier,
    /// The token: letters, digits, `-` and `_`.
    pub token: String,
    /// The answer of HTTP-01; its hash is that of the others.
    pub key_authorization: String,
}

impl Challenge {
    /// The content of the TXT record of DNS-01.
    pub fn dns_value(&self) -> String {
        base64url(digest(&SHA256, self.key_authorization.as_bytes()).as_ref())
    }

    /// The name of the TXT record of DNS-01.
    pub fn dns_name(&self) -> String {
        format!("_acme-challenge.{}", self.identifier)
    }
}
