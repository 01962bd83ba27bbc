//! The header of the PROXY protocol: facts about the client, sent by a proxy before the client's first byte.
//!
//! Promises: no byte of the client is looked at before the header is complete; only a trusted proxy may send a
//! header; other bytes, or a header later than [`TIME`], end the connection without a response. Leaves out: the
//! meaning of the header (maitred-forward).

use std::sync::Arc;

use maitred_exchange::Site;
use maitred_forward::proxy::{self, Header, Source, Step};
use maitred_http::{Peer, Proxied};
use maitred_io::listener::Address;
use maitred_io::transport::Moved;

use super::wire::Wire;
use super::{Context, Turn, nanos};

/// Time limit of the header, in nanoseconds: the specification wants at least 3 s, for a packet that is sent again.
pub(super) const TIME: u64 = 5_000_000_000;

/// The longest header, in bytes; a header with a client's certificate has about two thousand.
const LIMIT: usize = 4096;

/// Logs a peer that may not send a header.
pub(super) fn refuse(site: &Site, peer: Peer, listener: &Address) {
    let peer = peer.without_port();
    site.log.warn(format_args!(
        "{peer}: closed; {listener} takes connections of trusted proxies only, which send a header of the PROXY protocol \
         (--trusted-proxies)"
    ));
}

impl Wire {
    /// Whether a PROXY header has to come before the bytes of the client.
    pub(super) fn awaits_proxy_header(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.awaits_header)
    }

    /// Receives the header. Returns none when the header is complete; the bytes behind it are kept.
    pub(super) fn receive_proxy_header(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        loop {
            match proxy::parse(&self.input, LIMIT) {
                Ok(Step::Header(header)) => {
                    let (source, length) = (header.source, header.length);
                    let secure = header.tls().is_some_and(|tls| tls.is_secure());
                    let said = proxied(&header);
                    if let Some(ends) = &mut self.ends {
                        ends.proxied = (said != Proxied::default()).then(|| Arc::new(said));
                    }
                    self.input.drain(..length);
                    return self.use_proxy_header(context, source, secure);
                }
                Ok(Step::NeedMore { .. }) => {}
                Err(error) => {
                    let log = &context.group.site.log;
                    log.warn(format_args!("{}: closed; no header of the PROXY protocol: {error}", self.peer));
                    return Some(Turn::Close);
                }
            }
            if !self.unread {
                return Some(Turn::Wait);
            }
            let mut buffer = context.scratch.take_receive();
            let moved = self.receive_some(context, &mut buffer);
            if let Moved::Bytes(count) = moved {
                self.note_read(count, buffer.len());
                self.input.extend_from_slice(&buffer[..count]);
            }
            context.scratch.return_receive(buffer);
            match moved {
                Moved::Bytes(_) => {}
                Moved::Blocked => {
                    self.unread = false;
                    return Some(Turn::Wait);
                }
                // A health check of a balancer connects and leaves.
                Moved::End | Moved::Failed(_) => return Some(Turn::Close),
            }
        }
    }

    /// Makes the client the peer of the connection; the limit on connections counts the client from now on.
    fn use_proxy_header(&mut self, context: &mut Context<'_>, source: Source, secure: bool) -> Option<Turn> {
        let site = &context.group.site;
        if let Some(ends) = &mut self.ends {
            ends.awaits_header = false;
            ends.secure = secure;
            if let Source::Inet { source, destination } = source {
                (self.peer, ends.local) = (Peer::Ip(source), Some(destination));
            }
        }
        if matches!(source, Source::Inet { .. }) {
            self.counted = match site.guard.open(self.peer, &site.log) {
                Some(counted) => counted,
                None => return Some(Turn::Close),
            };
        }
        let timeouts = &context.group.site.timeouts;
        let time = if self.awaits_handshake() { timeouts.handshake } else { timeouts.head };
        self.set_deadline(context, context.now + nanos(time));
        None
    }
}

/// Returns the facts of a header for applications. The name in a certificate counts only if the proxy has verified
/// the certificate.
fn proxied(header: &Header<'_>) -> Proxied {
    let kept = |value: Option<&[u8]>| value.map(Box::from);
    let tls = header.tls();
    Proxied {
        sni: kept(header.authority()),
        alpn: kept(header.alpn()),
        version: kept(tls.and_then(|tls| tls.version())),
        cipher: kept(tls.and_then(|tls| tls.cipher())),
        certificate_name: kept(tls.filter(|tls| tls.is_verified()).and_then(|tls| tls.common_name())),
        unique_id: kept(header.unique_id()),
    }
}
