//! The fields in which proxies name their clients: `Forwarded` (RFC 7239) and `X-Forwarded-*`.
//!
//! Every proxy appends its entry at the right end of the list. The client may have made up entries at the left. So the walk begins at the
//! right: it skips the addresses of trusted proxies, and the next address is the client.
//!
//! Nothing here checks the peer: [`read`] is for connections whose peer is a trusted proxy. From all others these
//! fields are not to be believed, and not to be passed on ([`is_forwarding_field`]).

use std::net::IpAddr;

use maitred_http::FieldSet;
use maitred_http::authority::is_authority_with_host;
use maitred_match::Network;

use crate::node;
pub use crate::standard::MAX_HOPS;
use crate::standard::{self, Element};

/// The proxies whose fields are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted {
    networks: Vec<Network>,
    unix: bool,
}

impl Trusted {
    /// Trusts peers with addresses in `networks`. If `unix` is true, it trusts every peer on a Unix socket, too.
    pub const fn new(networks: Vec<Network>, unix: bool) -> Self {
        Self { networks, unix }
    }

    /// Whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Whether the address is that of a trusted proxy. An IPv4-mapped IPv6 address is the IPv4 one.
    pub fn trusts_ip(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Whether the peers of Unix sockets are trusted proxies.
    pub fn trusts_unix(&self) -> bool {
        self.unix
    }
}

/// The fields that the trusted proxies set.
///
/// A proxy passes on a field that it does not set, as the client has sent it. nginx, for one, passes on
/// `X-Forwarded-Host`, `X-Forwarded-Port` and `Forwarded` unless it is told otherwise. So a field may be believed only
/// if every trusted proxy sets it or removes it. The default are the fields that all of them are told to set: the
/// client and the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Believed {
    /// `X-Forwarded-For`.
    pub client: bool,
    /// `X-Forwarded-Proto`.
    pub scheme: bool,
    /// `X-Forwarded-Host`.
    pub host: bool,
    /// `X-Forwarded-Port`.
    pub port: bool,
    /// `Forwarded`, in the place of all the others: the order between them is not known (RFC 7239 §7.4).
    pub standard: bool,
}

impl Default for Believed {
    fn default() -> Self {
        Self { client: true, scheme: true, host: false, port: false, standard: false }
    }
}

/// The values of the proxies. `None`: there is none that can be read; the value of the connection counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The client's address, canonical ([`IpAddr::to_canonical`]), and its port.
    pub client: Option<(IpAddr, Option<u16>)>,
    /// Whether the client's connection has TLS.
    pub secure: Option<bool>,
    /// `host[:port]` that the client asked for: a valid authority with a host, without user information (RFC 9110 §7.2).
    pub host: Option<Vec<u8>>,
    /// The port that the client asked, not 0. `Forwarded` has it in its `host` only.
    pub port: Option<u16>,
    /// A malformed field, in an entry that was looked at. `unknown` and hidden names, which give no address, are valid.
    pub malformed: Option<&'static str>,
}

/// Reads the values of trusted proxies in the fields of a request. To be called only if the peer of its connection is
/// trusted itself.
///
/// All fields of one name are one list, in their order (RFC 7239 §7.1). In the list of clients the walk goes from the right to the left:
/// the first address that is not trusted is the client; if all are trusted it is the left-most. Empty entries are none (RFC 9110
/// §5.6.1.2). An entry that is no address (`unknown`, `_hidden`, malformed) ends the walk, and so does the entry beyond [`MAX_HOPS`]: the client is the last address before it. Of `X-Forwarded-Proto`,
/// `-Host` and `-Port` the right-most entry counts. `Forwarded` says scheme and host in the element in which the client was found, or, if the
/// right-most element has no address, in that one.
pub fn read(fields: &FieldSet, trusted: &Trusted, believed: Believed) -> Said {
    if believed.standard {
        return read_standard(fields, trusted);
    }
    let mut malformed = None;
    let client = believed.client.then(|| client(fields, trusted, &mut malformed)).flatten();
    let mut last = |believed: bool, name: &'static str, is_good: &dyn Fn(&[u8]) -> bool| {
        let entry = believed.then(|| last_entry(fields, name)).flatten()?;
        let is_good = is_good(entry);
        if !is_good {
            malformed = Some(name);
        }
        is_good.then_some(entry)
    };
    let scheme = last(believed.scheme, "x-forwarded-proto", &|scheme| node::is_secure(scheme).is_some());
    let host = last(believed.host, "x-forwarded-host", &is_authority_with_host);
    let port =
        last(believed.port, "x-forwarded-port", &|port| node::port(port).is_some_and(|port| port != 0));
    Said {
        client,
        secure: scheme.and_then(node::is_secure),
        host: host.map(<[u8]>::to_vec),
        port: port.and_then(node::port),
        malformed,
    }
}

fn client(fields: &FieldSet, trusted: &Trusted, malformed: &mut Option<&'static str>) -> Option<node::Node> {
    const NAME: &str = "x-forwarded-for";
    let mut client = None;
    for entry in entries_from_the_right(fields, NAME).take(MAX_HOPS) {
        let Some(found) = node::entry(entry) else {
            if !node::is_nobody(entry.trim_ascii()) {
                *malformed = Some(NAME);
            }
            break;
        };
        client = Some(found);
        if !trusted.trusts_ip(found.0) {
            break;
        }
    }
    client
}

fn read_standard(fields: &FieldSet, trusted: &Trusted) -> Said {
    const NAME: &str = "forwarded";
    let mut malformed = None;
    let mut client = None;
    let mut speaks = Element::default();
    let elements = from_the_right(fields, NAME).flat_map(standard::from_the_right);
    for text in elements.take(MAX_HOPS) {
        let Some((element, _)) = Element::read(text) else {
            malformed = Some(NAME);
            break;
        };
        if !element.is_understood() {
            malformed = Some(NAME);
        }
        let found = element.client();
        if found.is_some() || client.is_none() {
            speaks = element;
        }
        let Some(found) = found else { break };
        client = Some(found);
        if !trusted.trusts_ip(found.0) {
            break;
        }
    }
    Said { client, secure: speaks.secure(), host: speaks.host(), port: None, malformed }
}

/// The values of a field, the last one first. Each is looked for anew, so that none has to be kept.
fn from_the_right<'a>(fields: &'a FieldSet, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let count = fields.all(name).count();
    (0..count).rev().filter_map(move |number| fields.all(name).nth(number))
}

fn entries_from_the_right<'a>(fields: &'a FieldSet, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    let entries = from_the_right(fields, name).flat_map(|value| value.rsplit(|byte| *byte == b','));
    entries.filter(|entry| !entry.trim_ascii().is_empty())
}

fn last_entry<'a>(fields: &'a FieldSet, name: &'static str) -> Option<&'a [u8]> {
    entries_from_the_right(fields, name).next().map(<[u8]>::trim_ascii)
}

/// Whether a field is one in which proxies speak of their clients, or one that programs take for a setting of their own: `Proxy`
/// becomes `HTTP_PROXY` in the environment of CGI and WSGI (CVE-2016-5385). From peers that are not trusted they go no further. An underscore counts as a
/// hyphen: in such an environment both are one.
pub fn is_forwarding_field(name: &[u8]) -> bool {
    let is = |expected: &[u8]| name.len() == expected.len() && begins(name, expected);
    match name.first() {
        Some(b'x' | b'X') => begins(name, b"x-forwarded-") || is(b"x-real-ip") || is(b"x-request-start"),
        Some(b'f' | b'F') => is(b"forwarded"),
        Some(b'p' | b'P') => is(b"proxy"),
        _ => false,
    }
}

fn begins(name: &[u8], expected: &[u8]) -> bool {
    let same = |(byte, expected): (&u8, &u8)| {
        byte.to_ascii_lowercase() == *expected || (*byte == b'_' && *expected == b'-')
    };
    name.len() >= expected.len() && name.iter().zip(expected).all(same)
}

#[cfg(test)]
mod tests;
