//! The TLS session of a request, for logs, rules and applications.
//!
//! Leaves out: the handshake (maitred-tls), and TLS that a proxy has ended before us, of which only its existence is
//! known here.

use std::sync::Arc;

/// A TLS session that ends at this server (RFC 8446, RFC 5246). It is made once for each connection, and all of its requests share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSession {
    /// The version as OpenSSL, nginx and Apache write it: `TLSv1.3`.
    pub version: &'static str,
    /// The version as on the wire: 0x0303 or 0x0304.
    pub version_number: u16,
    /// The cipher suite by its name in IANA's registry: `TLS_AES_128_GCM_SHA256`.
    pub suite: &'static str,
    /// The number of the cipher suite in IANA's registry.
    pub suite_number: u16,
    /// The group in which keys were exchanged, such as `X25519MLKEM768`; none were where a session of TLS 1.2 was resumed.
    pub group: Option<&'static str>,
    /// The session goes on with an earlier session's secret.
    pub resumed: bool,
    /// The name of the server that the client asked for (SNI, RFC 6066 §3), in lower case.
    pub sni: Option<Box<str>>,
    /// The protocol that was agreed on (ALPN, RFC 7301).
    pub alpn: Option<Box<[u8]>>,
    /// The certificate that the client was shown, in PEM.
    pub server_certificate: Option<Arc<str>>,
    /// The client's identity; none without a certificate. One that is not valid ends the handshake, so there is no such
    /// session.
    pub client: Option<TlsClient>,
}

/// The client's identity by its certificate, which has been verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsClient {
    /// The subject by RFC 4514: `CN=till,O=Shop`.
    pub subject: Box<str>,
    /// The last common name of that, not escaped.
    pub common_name: Option<Box<str>>,
    /// The issuer by RFC 4514.
    pub issuer: Box<str>,
    /// The serial number in hexadecimal digits.
    pub serial: Box<str>,
    /// The end of its validity, as OpenSSL writes it: `Nov 24 12:00:00 2026 GMT`.
    pub valid_until: Box<str>,
    /// The names of hosts among the subject's alternative names (RFC 5280 §4.2.1.6), in lower case.
    pub hosts: Vec<Box<str>>,
    /// Mailboxes and URIs among them, as they are written.
    pub names: Vec<Box<str>>,
    /// The certificates in PEM as the client has sent them, its own first.
    pub chain: Vec<Box<str>>,
}
