//! What a proxy has said of its client's connection before the first byte of it (PROXY protocol 2): what applications are told.
//!
//! Leaves out: the addresses, which are those of the connection from then on, and how it was said (maitred-forward).

/// What a trusted proxy has said of a connection between its client and itself. All requests of our connection share it. Texts are as the
/// proxy has sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxied {
    /// The name that the client asked for (SNI).
    pub sni: Option<Box<[u8]>>,
    /// The protocol that was agreed on (ALPN).
    pub alpn: Option<Box<[u8]>>,
    /// The version of TLS: `TLSv1.3`.
    pub version: Option<Box<[u8]>>,
    /// The cipher, by the proxy's name for it.
    pub cipher: Option<Box<[u8]>>,
    /// The common name of the client's certificate, if the proxy has verified that.
    pub certificate_name: Option<Box<[u8]>>,
    /// What names the connection, at most 128 bytes of any kind.
    pub unique_id: Option<Box<[u8]>>,
}
