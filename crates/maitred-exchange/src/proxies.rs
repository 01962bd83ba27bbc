//! Trusted proxies, and removal of the claims of other peers.

use std::sync::atomic::{AtomicBool, Ordering};

use maitred_forward::forwarded::{self, Believed, Said, Trusted, is_forwarding_field};
use maitred_http::{FieldSet, Peer, RequestHead};
use maitred_log::Log;

/// The trusted proxies, and the fields that they set.
#[derive(Clone, Debug, Default)]
pub struct Forwarding {
    /// The proxies.
    pub trusted: Trusted,
    /// The fields that they set.
    pub believed: Believed,
}

/// The settings, and a flag for one warning about a proxy that is not trusted.
#[derive(Default)]
pub struct Proxies {
    forwarding: Forwarding,
    told: AtomicBool,
}

impl Proxies {
    /// With these settings.
    pub fn new(forwarding: Forwarding) -> Self {
        Self { forwarding, told: AtomicBool::new(false) }
    }

    /// Whether this peer is a trusted proxy.
    pub fn trusts(&self, peer: Peer) -> bool {
        let trusted = &self.forwarding.trusted;
        match peer.ip() {
            Some(address) => trusted.trusts_ip(address),
            None => trusted.trusts_unix(),
        }
    }

    /// Reads the fields of a trusted proxy about the client of a request. Malformed fields do not count and are
    /// logged, always in the same words, so that the log folds the lines.
    pub fn read(&self, peer: Peer, fields: &FieldSet, log: &Log) -> Said {
        let said = forwarded::read(fields, &self.forwarding.trusted, self.forwarding.believed);
        if let Some(name) = said.malformed {
            log.warn(format_args!(
                "{}, a trusted proxy, sent a {name} that cannot be read: what it says does not count; have the proxy set \
                 it anew, or leave it out of --forwarded-fields",
                peer.without_port()
            ));
        }
        said
    }

    /// Removes the fields about clients from a request of a peer that is not trusted.
    pub fn remove_claims(&self, peer: Peer, head: &mut RequestHead, log: &Log) {
        let mut removed = None;
        head.fields.retain(|name| {
            let is_claim = is_forwarding_field(name);
            if is_claim && removed.is_none() {
                removed = Some(name.escape_ascii().to_string());
            }
            !is_claim
        });
        if let Some(name) = removed
            && !self.told.swap(true, Ordering::Relaxed)
        {
            let peer = peer.without_port();
            let who = if peer == Peer::Unix { "unix".to_owned() } else { peer.to_string() };
            log.warn(format_args!(
                "{peer} sent {name}, which was removed because it is not a trusted proxy; if it is your proxy, start with \
                 --trusted-proxies {who} (told once)"
            ));
        }
    }
}
