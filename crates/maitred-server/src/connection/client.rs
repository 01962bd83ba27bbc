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
use maitred_runtime::{Endpoint, Local, Process};
use maitred_tls::Rules;

use super::Context;
use super::secured::Shaking;
use super::stream::Stream;
use super::wire::Wire;

/// The client of a request, and the way in which the request reached the first proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) secure: bool,
    /// Port that the client has asked for, where a proxy has told it.
    port: Option<u16>,
}

/// Facts about the ends of a connection beside the peer's address. Plain TCP connections have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) process: Option<Process>,
    /// The header of the PROXY protocol has not come yet.
    pub(crate) awaits_header: bool,
    /// The TLS handshake is not over.
    pub(crate) awaits_handshake: bool,
    /// The agreed session, for all requests.
    pub(crate) session: Option<Arc<TlsSession>>,
    /// Rules by which the server has asked for the client's certificate, where hosts have different ones.
    pub(crate) rules: Option<Rules>,
    /// Times of the handshake, until the first request begins and counts them.
    pub(crate) shaking: Option<Shaking>,
    /// Further facts of the PROXY header.
    pub(crate) proxied: Option<Arc<Proxied>>,
    /// Address at which the client has connected to the proxy, from the PROXY header.
    pub(crate) local: Option<SocketAddr>,
    /// The client speaks TLS with this server, or with the proxy according to the PROXY header.
    pub(crate) secure: bool,
}

impl Wire {
    /// Finds the client of a request whose head is complete.
    pub(super) fn identify(&self, context: &Context<'_>, stream: &mut Stream) {
        let site = &context.group.site;
        let mut client = self.own_client();
        let head = &mut stream.request.head;
        head.tls = self.session();
        head.proxied = self.ends.as_ref().and_then(|ends| ends.proxied.clone());
        if site.proxies.trusts(self.peer) {
            let said = site.proxies.read(self.peer, &head.fields, &site.log);
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
            site.proxies.remove_claims(self.peer, head, &site.log);
        }
        stream.client = Some(client);
    }

    /// Returns the client of a request, or the peer of the connection before the head is complete.
    pub(super) fn client_of(&self, stream: &Stream) -> Client {
        stream.client.unwrap_or_else(|| self.own_client())
    }

    /// The TLS session of the connection.
    pub(super) fn session(&self) -> Option<Arc<TlsSession>> {
        self.ends.as_ref().and_then(|ends| ends.session.clone())
    }

    /// The peer of the connection as a client.
    fn own_client(&self) -> Client {
        let secure = self.ends.as_ref().is_some_and(|ends| ends.secure);
        Client { peer: self.peer, secure, port: None }
    }

    /// Both ends of an exchange as its handler sees them.
    pub(super) fn endpoint(&self, context: &Context<'_>, client: Client) -> Endpoint {
        let mut local = self.local(context.group);
        if let (Local::Ip(address), Some(port)) = (&mut local, client.port) {
            address.set_port(port);
        }
        let process = self.ends.as_ref().and_then(|ends| ends.process);
        Endpoint { peer: client.peer, local, secure: client.secure, process }
    }

    /// The server's address: told by a proxy, otherwise the listener's, unless the listener is bound to all
    /// addresses.
    fn local(&self, group: &super::Group) -> Local {
        if let Some(address) = self.ends.as_ref().and_then(|ends| ends.local) {
            return Local::Ip(address);
        }
        match group.groups.listeners.get(self.listener as usize).map(|listening| listening.local()) {
            Some(Local::Ip(address)) if address.ip().is_unspecified() => {
                Local::Ip(self.transport.local_address().unwrap_or(address))
            }
            Some(local) => local,
            None => Endpoint::default().local,
        }
    }
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
}
