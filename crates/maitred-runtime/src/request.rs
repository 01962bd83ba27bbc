//! A request as a handler gets it.

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_http::{Peer, RequestHead, Version};

use crate::body::Body;
use crate::database::Database;
use crate::outgoing::Outgoing;

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
    /// The request asks for a WebSocket, and may have it: [`Exchange::accept`](crate::Exchange::accept). Only a handler
    /// that [takes them](crate::Handler::takes_websockets) gets such a request.
    pub websocket: bool,
    /// Where the handler counts its use of databases; none without a counter.
    pub database: Option<Arc<Database>>,
    /// The calls to other servers of this request; none without a client.
    pub outgoing: Option<Arc<Outgoing>>,
    /// The handler's name of the route, for statistics and logs: [`Exchange::name_route`](crate::Exchange::name_route).
    /// Empty where it has set none.
    pub route: String,
}

/// Bytes of the name of a route; a longer one is cut.
const MAX_ROUTE: usize = 256;

impl Request {
    /// Calls its route so.
    pub(crate) fn name_route(&mut self, name: &str) {
        let end = (0..=MAX_ROUTE.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
        self.route.clear();
        self.route.push_str(&name[..end.unwrap_or_default()]);
    }

    /// Whether the client takes fields behind the body of a response: always where the protocol has frames, in HTTP/1.1 if it
    /// says `TE: trailers` (RFC 9110 §6.5.1, §10.1.4).
    pub fn takes_trailers(&self) -> bool {
        match self.head.version {
            Version::Http10 => false,
            Version::Http11 => {
                let codings = self.head.fields.all("te").flat_map(|value| value.split(|byte| *byte == b','));
                codings.map(<[u8]>::trim_ascii).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
            }
            Version::Http2 | Version::Http3 => true,
        }
    }
}

/// The two ends of an exchange as an application sees them: those of the connection, or those that a trusted proxy has
/// named.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The peer that has sent the request.
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
    /// The number of the process.
    pub pid: i32,
    /// The user of the process.
    pub uid: u32,
    /// The group of the process.
    pub gid: u32,
}

impl Default for Endpoint {
    fn default() -> Self {
        let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { peer: Peer::Ip(unspecified), local: Local::Ip(unspecified), secure: false, process: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_http_11_says_that_it_takes_trailers() {
        let takes = |version, fields: &[&str]| {
            let mut request = Request::default();
            request.head.version = version;
            for value in fields {
                request.head.fields.push("TE", value);
            }
            request.takes_trailers()
        };
        for said in [&["trailers"][..], &["gzip;q=0.5 , Trailers"], &["gzip", "trailers"]] {
            assert!(takes(Version::Http11, said), "{said:?}");
            assert!(!takes(Version::Http10, said), "{said:?}");
        }
        for said in [&[][..], &[""], &["gzip, xtrailers"], &["trailers;q=0.5"]] {
            assert!(!takes(Version::Http11, said), "{said:?}");
            assert!(takes(Version::Http2, said), "{said:?}");
        }
    }
}
