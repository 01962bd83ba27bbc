//! What a handler learns of a request.

use std::net::SocketAddr;

use maitred_http::RequestHead;

use crate::body::Body;

/// A request: its head and its body.
#[derive(Debug, Default)]
pub struct Request {
    /// The head.
    pub head: RequestHead,
    /// The body, received completely before the handler runs (W1), unless it is [live](Body::live).
    pub body: Body,
    /// Where the request came from and where it arrived.
    pub endpoint: Endpoint,
    /// Tells it from other requests of this process.
    pub number: u64,
}

/// The two ends of a connection as an application sees them.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The peer's address.
    pub peer: SocketAddr,
    /// Our own address on this connection.
    pub local: SocketAddr,
    /// `https` when true, `http` otherwise.
    pub secure: bool,
}

impl Default for Endpoint {
    fn default() -> Self {
        let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { peer: unspecified, local: unspecified, secure: false }
    }
}
