//! Answers to the challenges of a certificate authority (ACME): by HTTP (RFC 8555 §8.3), and in a handshake (RFC 8737).
//!
//! ```text
//! ClientHello whose only protocol is acme-tls/1 --name--> key authorisation --> a session with its certificate, closed at once
//!                                                `-----> none: the alert unrecognized_name
//! ```
//! The certificate of a challenge is made for each handshake, which costs as much as the handshake itself.
//!
//! Leaves out: where the answers are kept. An order puts them there, and every process that listens finds them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::CustomExtension;
use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::clock::{Clock, Time};
use crate::development::self_signed;
use crate::provider::provider;

/// The key authorisations of the challenges that are open now.
///
/// Both functions run in the turn of a connection, so an implementation reads at most one small file.
pub trait Challenges: Send + Sync {
    /// The key authorisation of HTTP-01 for this token. The token [is well-formed](is_token).
    fn http(&self, token: &str) -> Option<String>;

    /// The key authorisation of TLS-ALPN-01 for this name: a host in lower case without a dot at its end, or an IP address as RFC 5952 writes it.
    fn tls_alpn(&self, name: &str) -> Option<String>;
}

/// The longest token that is looked for, in bytes. Authorities send 43: 256 random bits (RFC 8555 §8.1 asks for 128 at least).
pub const MAX_TOKEN: usize = 128;

/// Whether this is the token of a challenge: base64url without padding (RFC 8555 §8.3). Such a token is a safe name of a file.
pub fn is_token(token: &[u8]) -> bool {
    let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_TOKEN).contains(&token.len()) && token.iter().all(is_base64url)
}

/// The protocol of the handshake of a challenge (RFC 8737 §6.2).
pub(crate) const PROTOCOL: &[u8] = b"acme-tls/1";

/// The settings of rustls for the handshake of a challenge: its certificate, no certificate of the client, no ticket.
pub(crate) fn config(name: &str, key_authorization: &str, clock: Clock) -> Result<Arc<ServerConfig>, String> {
    let proof = digest(&SHA256, key_authorization.as_bytes());
    let proof = CustomExtension::new_acme_identifier(proof.as_ref());
    let (certificate, key) =
        self_signed(&[name.to_owned()], clock(), vec![proof]).map_err(|error| error.to_string())?;
    let certified = CertifiedKey::new(vec![certificate], key.signing());
    let mut config = ServerConfig::builder_with_details(Arc::clone(provider()), Arc::new(Time(clock)))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The name for which a challenge is asked: addresses stand in the hello by their reverse names (RFC 8738 §6).
pub(crate) fn challenged(server_name: &str) -> String {
    let name = crate::certificate::normal_name(server_name);
    reversed(&name).map_or(name, |address| address.to_string())
}

fn reversed(name: &str) -> Option<IpAddr> {
    if let Some(labels) = name.strip_suffix(".in-addr.arpa") {
        let forward: Vec<&str> = labels.rsplit('.').collect();
        return forward.join(".").parse::<Ipv4Addr>().ok().map(IpAddr::from);
    }
    let labels = name.strip_suffix(".ip6.arpa")?;
    let mut address = 0_u128;
    let mut count = 0;
    for label in labels.rsplit('.') {
        let digit = u128::from(u8::from_str_radix(label, 16).ok().filter(|_| label.len() == 1)?);
        address = address << 4 | digit;
        count += 1;
    }
    (count == 32).then(|| Ipv6Addr::from(address).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_base64url_of_at_most_128_bytes() {
        for token in ["LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0", "a", "-_", &"a".repeat(128)] {
            assert!(is_token(token.as_bytes()), "{token}");
        }
        for token in ["", ".", "..", "a/b", "a=", "a%41", "a.b", "a\0", "ä", &"a".repeat(129)] {
            assert!(!is_token(token.as_bytes()), "{token}");
        }
    }

    #[test]
    fn reverse_names_are_addresses() {
        let loopback = format!("1.{}ip6.arpa", "0.".repeat(31));
        let documentation = format!("1.{}8.b.d.0.1.0.0.2.IP6.arpa.", "0.".repeat(23));
        for (server_name, name) in [
            ("Shop.Example.", "shop.example"),
            ("1.2.0.192.in-addr.arpa", "192.0.2.1"),
            ("1.2.0.192.IN-ADDR.ARPA.", "192.0.2.1"),
            (loopback.as_str(), "::1"),
            (documentation.as_str(), "2001:db8::1"),
            ("2.0.192.in-addr.arpa", "2.0.192.in-addr.arpa"),
            ("256.2.0.192.in-addr.arpa", "256.2.0.192.in-addr.arpa"),
            ("1.0.ip6.arpa", "1.0.ip6.arpa"),
        ] {
            assert_eq!(challenged(server_name), name);
        }
    }
}
