//! A proxy's account of its client's connection before the first byte of it (PROXY protocol 2), for applications.
//!
//! Leaves out: the addresses, which are those of the connection from then on, and the encoding (maitred-forward).

/// A trusted proxy's account of a connection between its client and itself. All requests of our connection share it.
/// Texts are as the proxy has sent them.
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
    /// The proxy's identifier of the connection, at most 128 bytes of any kind.
    pub unique_id: Option<Box<[u8]>>,
}
