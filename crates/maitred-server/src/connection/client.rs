//! Who has sent a request: the other end of the connection, or whom a trusted proxy there names.
//!
//! ```text
//! peer of the connection --not trusted--> the client; fields in which it claims to be somebody else are removed
//!            `-----------trusted--------> whom the believed fields name
//! ```
//! Promises: everything that asks for the client of a request (logs, limits, filters, pool rules, applications) gets the same
//! answer. Leaves out: what the fields mean (maitred-forward).

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_http::{Peer, Proxied, RequestHead, TlsSession};
use maitred_runtime::{Endpoint, Local, Process};
use maitred_tls::Rules;

use super::secured::Shaking;
use super::stream::Stream;
use super::{Connection, Context};

/// Who has sent a request, and how it was sent to the first proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) peer: Peer,
    pub(crate) secure: bool,
    /// What the client has asked for, where a proxy has told it.
    port: Option<u16>,
}

/// What is known of the ends of a connection beside the peer's address. Plain TCP connections have none of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) process: Option<Process>,
    /// The header of the PROXY protocol has not come yet.
    pub(crate) awaits_header: bool,
    /// The TLS handshake is not over.
    pub(crate) awaits_handshake: bool,
    /// What it has agreed, for all requests.
    pub(crate) session: Option<Arc<TlsSession>>,
    /// By which rules it has asked for the client's certificate, where hosts have different ones.
    pub(crate) rules: Option<Rules>,
    /// When it was, until the first request begins, to whose time it belongs.
    pub(crate) shaking: Option<Shaking>,
    /// What else that header has said.
    pub(crate) proxied: Option<Arc<Proxied>>,
    /// Where the client has connected to the proxy, by that header.
    pub(crate) local: Option<SocketAddr>,
    /// The client speaks TLS: with us, or, by that header, with the proxy.
    pub(crate) secure: bool,
}

impl Connection {
    /// Finds out who has sent the request whose head is there.
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
                // A port of no digits is the usual one (RFC 3986 §3.2.3).
                let name = host.strip_suffix(b":").unwrap_or(host);
                let host = [name, b":", port.to_string().as_bytes()].concat();
                set_host(head, &host);
            }
        } else {
            site.proxies.remove_claims(self.peer, head, &site.log);
        }
        stream.client = Some(client);
    }

    /// Who has sent a request, as far as that is known.
    pub(super) fn client_of(&self, stream: &Stream) -> Client {
        stream.client.unwrap_or_else(|| self.own_client())
    }

    /// The TLS session that requests came by.
    pub(super) fn session(&self) -> Option<Arc<TlsSession>> {
        self.ends.as_ref().and_then(|ends| ends.session.clone())
    }

    /// The other end of the connection.
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

    /// Our own address: what a proxy has told, else the listener's, unless it listens on all.
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

/// Makes the request one for this authority, whatever it was sent with.
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

/// The port that was asked for with this Host field.
fn asked_port(head: &RequestHead, secure: bool) -> u16 {
    head.fields.first("host").and_then(port_of).unwrap_or(default_port(secure))
}

/// RFC 9110 §4.2.
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
