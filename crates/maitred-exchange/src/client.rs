//! The client of a request: the other end of the connection, or the client named by a trusted proxy at that end.
//!
//! ```text
//! peer of the connection --not trusted--> the client; fields in which it claims another identity are removed
//!            `-----------trusted--------> whom the believed fields name
//! ```
//! Promises: logs, limits, filters, pool rules and applications see the same client for a request. Leaves out: the
//! meaning of the fields (maitred-forward).

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_http::{Peer, Proxied, RequestHead, TlsSession};
use maitred_runtime::Process;
use maitred_stats::Times;
use maitred_tls::Rules;

use crate::site::Site;

/// The client of a request, and the way in which the request reached the first proxy.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The client, or the proxy if it is not trusted.
    pub peer: Peer,
    /// The client has used TLS.
    pub secure: bool,
    /// Port that the client has asked for, where a proxy has told it.
    pub port: Option<u16>,
}

impl Client {
    /// The peer of the connection as a client.
    pub fn at_the_end(peer: Peer, ends: Option<&Ends>) -> Self {
        Self { peer, secure: ends.is_some_and(|ends| ends.secure), port: None }
    }
}

/// Facts about the ends of a connection beside the peer's address. Plain TCP connections have none.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// The process at the other end of a Unix socket.
    pub process: Option<Process>,
    /// The header of the PROXY protocol has not come yet.
    pub awaits_header: bool,
    /// The TLS handshake is not over.
    pub awaits_handshake: bool,
    /// The agreed session, for all requests.
    pub session: Option<Arc<TlsSession>>,
    /// Rules by which the server has asked for the client's certificate, where hosts have different ones.
    pub rules: Option<Rules>,
    /// Times of the handshake, until the first request begins and counts them.
    pub shaking: Option<Shaking>,
    /// Further facts of the PROXY header.
    pub proxied: Option<Arc<Proxied>>,
    /// Address at which the client has connected to the proxy, from the PROXY header.
    pub local: Option<SocketAddr>,
    /// The client speaks TLS with this server, or with the proxy according to the PROXY header.
    pub secure: bool,
}

/// Times of a handshake, in monotonic nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Shaking {
    /// End of the accept or of the PROXY header.
    pub began: u64,
    /// End of the handshake, not before `began`.
    pub ended: u64,
}

impl Shaking {
    /// Adds the handshake to the times of the first request, as if the request had arrived right after the handshake.
    /// The client's pause between both counts for no span.
    pub fn count(self, times: &mut Times) {
        times.handshake = self.ended - self.began;
        times.arrived = self.began + times.arrived.saturating_sub(self.ended);
    }
}

/// Finds the client of a request whose head is complete, at the end of a connection with this peer, and edits the head by
/// the trust in that peer.
///
/// - Not trusted (all peers, unless `trusted-proxies` names some): the peer is the client. Fields by which only a proxy
///   speaks are removed: `Forwarded`, all `X-Forwarded-*`, `X-Real-IP`, `X-Request-Start`, `Proxy`, also with `_` for `-`.
/// - Trusted: those fields stay and name the client, its scheme and port; a host among them replaces the authority.
pub fn identify(site: &Site, peer: Peer, ends: Option<&Ends>, head: &mut RequestHead) -> Client {
    let mut client = Client::at_the_end(peer, ends);
    head.tls = ends.and_then(|ends| ends.session.clone());
    head.proxied = ends.and_then(|ends| ends.proxied.clone());
    if site.proxies.trusts(peer) {
        let said = site.proxies.read(peer, &head.fields, &site.log);
        if let Some((address, port)) = said.client {
            client.peer = Peer::Ip(SocketAddr::new(address, port.unwrap_or(0)));
        }
        if let Some(host) = &said.host {
            set_host(head, host);
        }
        client.secure = said.secure.unwrap_or(client.secure);
        let says = said.client.is_some() || said.secure.is_some() || said.host.is_some();
        client.port = said.port.or_else(|| says.then(|| asked_port(head, client.secure)));
        if let (Some(port), Some(host)) = (said.port, head.fields.first("host"))
            && port_of(host).is_none()
            && port != default_port(client.secure)
        {
            // A port without digits is the default port (RFC 3986 §3.2.3).
            let name = host.strip_suffix(b":").unwrap_or(host);
            let host = [name, b":", port.to_string().as_bytes()].concat();
            set_host(head, &host);
        }
    } else {
        site.proxies.remove_claims(peer, head, &site.log);
    }
    client
}

/// Replaces the authority of the request, in all forms in which HTTP carries it.
fn set_host(head: &mut RequestHead, authority: &[u8]) {
    head.fields.set("Host", authority);
    head.authority = head.fields.adopt(authority).unwrap_or_default();
}

/// The port in a Host field.
fn port_of(host: &[u8]) -> Option<u16> {
    let (_, port) = std::str::from_utf8(host).ok()?.rsplit_once(':')?;
    // The last part of an address without a port ends with a bracket.
    port.parse().ok()
}

/// The port that the client has asked for with this Host field.
fn asked_port(head: &RequestHead, secure: bool) -> u16 {
    head.fields.first("host").and_then(port_of).unwrap_or(default_port(secure))
}

/// The default port of the scheme (RFC 9110 §4.2).
fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_host_is_what_stands_behind_it() {
        for (host, port) in [
            ("shop.example", None),
            ("shop.example:8443", Some(8443)),
            ("[::1]", None),
            ("[::1]:81", Some(81)),
            ("a:", None),
        ] {
            assert_eq!(port_of(host.as_bytes()), port, "{host}");
        }
    }

    #[test]
    fn the_first_request_has_the_time_of_the_handshake_and_no_pause() {
        let shaking = Shaking { began: 100, ended: 130 };
        for (received, arrived) in [(130, 100), (500, 470), (120, 100)] {
            let mut times = Times { arrived: received, ..Times::default() };
            shaking.count(&mut times);
            times.complete = received.max(130);
            assert_eq!((times.arrived, times.handshake), (arrived, 30), "{received}");
            assert_eq!(times.spans().0[0], 30, "{received}: the pause is in no span");
        }
    }
}
