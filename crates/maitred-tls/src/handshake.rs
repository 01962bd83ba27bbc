//! The result of a handshake.

use std::fmt;
use std::sync::Arc;

use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};

use crate::challenges::PROTOCOL;
use crate::hosts::Rules;

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2 (RFC 5246), only with ECDHE and AEAD.
    #[default]
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

impl Version {
    /// The version as it is written on the wire: 0x0303 or 0x0304.
    pub const fn number(self) -> u16 {
        match self {
            Self::V1_2 => 0x0303,
            Self::V1_3 => 0x0304,
        }
    }

    /// The version as OpenSSL, nginx and Apache write it: `TLSv1.3`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_2 => "TLSv1.2",
            Self::V1_3 => "TLSv1.3",
        }
    }
}

impl fmt::Display for Version {
    /// `TLS 1.3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_2 => "TLS 1.2",
            Self::V1_3 => "TLS 1.3",
        })
    }
}

/// A cipher suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suite {
    /// The name of the suite in IANA's registry, such as `TLS_AES_128_GCM_SHA256`.
    pub name: &'static str,
    /// The number of the suite in IANA's registry.
    pub number: u16,
}

impl Suite {
    fn new(suite: CipherSuite) -> Self {
        // rustls has names of its own for the suites of TLS 1.3.
        let name = match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            other => other.as_str().unwrap_or("unknown"),
        };
        Self { name, number: u16::from(suite) }
    }
}

/// The result of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The version.
    pub version: Version,
    /// The cipher suite.
    pub suite: Suite,
    /// The group in which keys were exchanged, such as `X25519MLKEM768`; `None`: none were, as the session was resumed in TLS 1.2.
    pub group: Option<&'static str>,
    /// The session goes on with an earlier one's secret (a ticket).
    pub resumed: bool,
    /// The client was asked to choose another group first, which costs a round trip (RFC 8446 §4.1.4).
    pub retried: bool,
    /// The name of the server that the client asked for, in lower case.
    pub sni: Option<Box<str>>,
    /// The protocol that was agreed on (ALPN).
    pub alpn: Option<Box<[u8]>>,
    /// The chosen certificate: its place in [`Terms::identities`](crate::Terms::identities).
    pub identity: usize,
    /// The server's certificate in PEM, without those of authorities.
    pub certificate: Arc<str>,
    /// The client's certificates in DER, its own first. Empty: it has given none.
    pub client_chain: Vec<Box<[u8]>>,
    /// The rules by which the client was asked for a certificate, where hosts have different ones.
    pub rules: Option<Rules>,
}

impl Handshake {
    /// Whether a certificate authority has asked for the answer to a challenge: the connection is over (RFC 8737 §3).
    pub fn is_challenge(&self) -> bool {
        self.alpn.as_deref() == Some(PROTOCOL)
    }

    /// `None` while it goes on.
    pub(crate) fn new(
        connection: &ServerConnection,
        (identity, certificate): (usize, Arc<str>),
        rules: Option<Rules>,
    ) -> Option<Self> {
        if connection.is_handshaking() {
            return None;
        }
        let version = match connection.protocol_version()? {
            ProtocolVersion::TLSv1_3 => Version::V1_3,
            _ => Version::V1_2,
        };
        let kind = connection.handshake_kind();
        let client = connection.peer_certificates().unwrap_or_default();
        Some(Self {
            version,
            suite: Suite::new(connection.negotiated_cipher_suite()?.suite()),
            group: connection.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
            resumed: kind == Some(HandshakeKind::Resumed),
            retried: kind == Some(HandshakeKind::FullWithHelloRetryRequest),
            sni: connection.server_name().map(Into::into),
            alpn: connection.alpn_protocol().map(Into::into),
            identity,
            certificate,
            client_chain: client.iter().map(|der| der.as_ref().into()).collect(),
            rules,
        })
    }
}
