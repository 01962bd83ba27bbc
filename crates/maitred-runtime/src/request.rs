//! What a handler learns of a request.

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_http::{Peer, RequestHead};

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

/// The two ends of an exchange as an application sees them: those of the connection, or what a trusted proxy says of them.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Who has sent the request.
    pub peer: Peer,
    /// Where it arrived.
    pub local: Local,
    /// `https` when true, `http` otherwise.
    pub secure: bool,
    /// The process at the other end of a Unix socket, as the kernel knew it when it connected.
    pub process: Option<Process>,
}

/// Our own end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// An address; the port is the one that the client has asked for, where a proxy has told it.
    Ip(SocketAddr),
    /// The path of a Unix socket; `@name` of an abstract one.
    Unix(Arc<str>),
}

/// A process on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Default for Endpoint {
    fn default() -> Self {
        let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { peer: Peer::Ip(unspecified), local: Local::Ip(unspecified), secure: false, process: None }
    }
}
