//! The TLS handshake, before the first request of a connection.
//!
//! ```text
//! first bytes --HTTP in clear--> 400, closed
//!      `--too many of this client--> closed
//!      `--else--> session --agreed--> requests
//!                    `--refused, or late--> an alert, closed
//!                    `--a challenge of an authority--> closed
//! ```
//! Promises: no memory for a session before the peer has sent a byte; no data of the peer is used before the end of
//! the handshake.
//! Leaves out: the session (maitred-tls), and its bytes (the transport).

use std::sync::Arc;

use maitred_exchange::Site;
use maitred_io::clock;
use maitred_io::transport::{Moved, Shaken};
use maitred_limits::Rule;
use maitred_runtime::Local;
use maitred_tls::{Handshake, Session, SessionError, Terms};

use super::secured;
use super::wire::{Phase, Wire};
use super::{Context, Turn, nanos};
use maitred_exchange::client::Shaking;

/// Response to a client that sends HTTP without TLS. No request has been read, so the response belongs to none.
const PLAIN_HTTP: &str = "HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 92\r\n\
    Connection: close\r\n\
    \r\n\
    This port speaks HTTPS. The address has to begin with https:// where it begins with http://\n";

impl Wire {
    /// Whether the handshake is not over.
    pub(super) fn awaits_handshake(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.awaits_handshake)
    }

    /// Goes on with the handshake. Returns none when requests may come.
    pub(super) fn shake_hands(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        let mut received = Vec::new();
        if !self.transport.has_session() {
            if self.input.is_empty()
                && let Some(turn) = self.receive_first(context)
            {
                return Some(turn);
            }
            if maitred_tls::is_plain_http(&self.input) {
                return Some(self.refuse_plain_http(context));
            }
            let site = &context.group.site;
            if !site.guard.handshake(self.peer, context.now, &site.log) {
                return Some(Turn::Close);
            }
            let Some(terms) = site.tls.load_full() else { return Some(Turn::Close) };
            match self.begin_session(context, &terms) {
                Ok(session) => self.transport.begin_handshake(session),
                Err(error) => return Some(self.refuse_handshake(context, &error)),
            }
            if context.group.is_draining() {
                // Until now the connection had the time of an idle connection.
                self.set_deadline(context, context.now + nanos(context.group.site.timeouts.handshake));
            }
            received = std::mem::take(&mut self.input);
        }
        match self.transport.shake_hands(&received) {
            Shaken::Waits => {
                self.unread = false;
                Some(Turn::Wait)
            }
            Shaken::Left => {
                context.group.site.handshakes.note_left();
                Some(Turn::Close)
            }
            Shaken::Failed(error) => Some(self.refuse_handshake(context, &error)),
            Shaken::Done(handshake) if handshake.is_challenge() => {
                Some(self.end_challenge(context, &handshake))
            }
            Shaken::Done(handshake) => {
                self.use_session(context, *handshake);
                None
            }
        }
    }

    fn begin_session(&self, context: &Context<'_>, terms: &Arc<Terms>) -> Result<Session, SessionError> {
        let mut session = Session::new(terms)?;
        if let Some(challenges) = &context.group.site.challenges {
            session = session.with_challenges(Arc::clone(challenges));
        }
        if terms.has_addresses()
            && let Local::Ip(address) = self.local(context.group)
        {
            session = session.at(address.ip());
        }
        Ok(session)
    }

    /// An authority has seen the certificate of its challenge, and says nothing more (RFC 8737 §3).
    fn end_challenge(&mut self, context: &mut Context<'_>, handshake: &Handshake) -> Turn {
        let site = &context.group.site;
        site.handshakes.note(handshake);
        let name = handshake.sni.as_deref().unwrap_or_default();
        site.log.info(format_args!(
            "{}: TLS handshake: the challenge for {name} is answered",
            self.peer.without_port()
        ));
        self.end_after_this()
    }

    /// Receives the first bytes of the peer. Returns none when some have arrived.
    fn receive_first(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if !self.unread {
            return Some(Turn::Wait);
        }
        let mut buffer = context.scratch.take_receive();
        let moved = self.receive_some(context, &mut buffer);
        if let Moved::Bytes(count) = moved {
            self.input.extend_from_slice(&buffer[..count]);
        }
        context.scratch.return_receive(buffer);
        match moved {
            Moved::Bytes(_) => None,
            Moved::Blocked => {
                self.unread = false;
                Some(Turn::Wait)
            }
            // A health check of a balancer connects and leaves.
            Moved::End | Moved::Failed(_) => Some(Turn::Close),
        }
    }

    fn refuse_plain_http(&mut self, context: &mut Context<'_>) -> Turn {
        let site = &context.group.site;
        site.handshakes.note_plain_http();
        site.log.info(format_args!(
            "{}: HTTP without TLS on a port for HTTPS; 400 and closed",
            self.peer.without_port()
        ));
        context.scratch.out.extend_from_slice(PLAIN_HTTP.as_bytes());
        self.end_after_this()
    }

    fn refuse_handshake(&mut self, context: &mut Context<'_>, error: &SessionError) -> Turn {
        let site = &context.group.site;
        site.handshakes.note_failed(error);
        // The line is the same for all connections of an address, so that the log folds them.
        site.log.info(format_args!("{}: TLS handshake: {error}; closed", self.peer.without_port()));
        self.end_after_this()
    }

    /// Lets the alert leave, then reads and drops the peer's bytes, so that a reset does not take the alert away.
    fn end_after_this(&mut self) -> Turn {
        self.last = true;
        self.phase = Phase::Sending;
        Turn::Wait
    }

    fn use_session(&mut self, context: &mut Context<'_>, mut handshake: Handshake) {
        let site = &context.group.site;
        site.handshakes.note(&handshake);
        let began = self.deadline.saturating_sub(nanos(site.timeouts.handshake));
        // The work of the handshake is a part of the handshake's time.
        context.now = clock::monotonic().max(context.now);
        if let Some(ends) = &mut self.ends {
            (ends.awaits_handshake, ends.secure) = (false, true);
            ends.rules = handshake.rules.take();
            ends.session = Some(Arc::new(secured::session(handshake)));
            ends.shaking = Some(Shaking { began, ended: context.now.max(began) });
        }
        self.unread = true;
        self.set_deadline(context, context.now + nanos(site.timeouts.head));
    }

    /// Whether the handshake has agreed on HTTP/2 (RFC 9113 section 3.2).
    pub(super) fn has_agreed_http2(&self, site: &Site) -> bool {
        let agreed = self.ends.as_ref().and_then(|ends| ends.session.as_ref()?.alpn.as_deref());
        site.http2.is_some() && agreed == Some(b"h2")
    }

    /// Ends a handshake that is late.
    pub(super) fn time_out_handshake(&mut self, context: &mut Context<'_>) -> Turn {
        let site = &context.group.site;
        // A peer that has sent no byte is a connection opened ahead, not a late client. While the server drains no
        // client is late.
        let began = self.transport.has_session() || !self.input.is_empty();
        if began && !context.group.is_draining() {
            site.guard.applied.note(Rule::HandshakeTimeout, self.peer, &site.log);
        }
        Turn::Close
    }
}

#[cfg(test)]
mod tests {
    use super::PLAIN_HTTP;

    #[test]
    fn the_answer_to_plain_http_has_the_length_that_it_says() {
        let (head, text) = PLAIN_HTTP.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", text.len())), "{}", text.len());
    }
}
