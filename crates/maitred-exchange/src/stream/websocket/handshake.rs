//! The opening handshake of a WebSocket (RFC 6455 §4.2.1; RFC 8441 §4 in HTTP/2).

use maitred_h1::HeadFacts;
use maitred_http::{FieldSet, Method, RequestHead, ResponseHead, Status, Version};
use maitred_ws::{Deflate, DeflateSettings, accept_key, negotiate, subprotocols};

use crate::site::{Contexts, Share, WebSocketSettings};

/// The only supported version (RFC 6455 §4.1).
pub const VERSION: &str = "13";

const ACCEPT: &str = "Sec-WebSocket-Accept";
const EXTENSIONS: &str = "Sec-WebSocket-Extensions";
/// Response fields that belong to the protocol or to the connection.
const OURS: [&str; 4] = [ACCEPT, EXTENSIONS, "Connection", "Upgrade"];

/// A WebSocket that its handler may accept.
pub struct Offer {
    /// Value of `Sec-WebSocket-Accept`; none where the protocol has no key.
    accept: Option<[u8; 28]>,
}

/// Reason for which a request cannot become a WebSocket.
pub enum Objection {
    /// The version is not supported.
    Version,
    /// A part of the request is missing or malformed.
    Bad(&'static str),
}

/// Returns the offer in a request.
pub fn asked(head: &RequestHead, facts: HeadFacts, is_framed: bool) -> Result<Offer, Objection> {
    let version = only(head, "sec-websocket-version", "Sec-WebSocket-Version more than once")?;
    if version != Some(VERSION.as_bytes()) {
        return Err(Objection::Version);
    }
    if subprotocols(head.fields.all("sec-websocket-protocol")).is_err() {
        return Err(Objection::Bad("Sec-WebSocket-Protocol is no list of names"));
    }
    if is_framed {
        return Ok(Offer { accept: None });
    }
    if head.method != Method::Get || head.version != Version::Http11 {
        return Err(Objection::Bad("a WebSocket is asked for with GET, in HTTP/1.1"));
    }
    if !facts.complete {
        return Err(Objection::Bad("a request for a WebSocket has no body"));
    }
    let key = only(head, "sec-websocket-key", "Sec-WebSocket-Key more than once")?;
    match key.and_then(accept_key) {
        Some(accept) => Ok(Offer { accept: Some(accept) }),
        None => Err(Objection::Bad("Sec-WebSocket-Key is not 16 bytes in base64")),
    }
}

/// The value of a field that may occur once.
fn only<'a>(
    head: &'a RequestHead,
    name: &'static str,
    reason: &'static str,
) -> Result<Option<&'a [u8]>, Objection> {
    let mut values = head.fields.all(name);
    let value = values.next();
    if values.next().is_some() { Err(Objection::Bad(reason)) } else { Ok(value) }
}

/// The agreed response and compression.
pub struct Agreed {
    /// Head of the response.
    pub head: ResponseHead,
    /// Compression of messages, if agreed.
    pub deflate: Option<Deflate>,
    /// Share of its context in the budget.
    pub share: Option<Share>,
}

impl Offer {
    /// The response to an accepted request, with the handler's fields, and the compression.
    ///
    /// # Errors
    /// A field that the handler may not set.
    pub fn answer(
        &self,
        asked: &FieldSet,
        given: &ResponseHead,
        settings: &WebSocketSettings,
        contexts: &Contexts,
    ) -> Result<Agreed, String> {
        let status = if self.accept.is_some() { Status::SWITCHING_PROTOCOLS } else { Status::OK };
        let mut head = ResponseHead::new(status);
        if let Some(accept) = &self.accept {
            head.fields.push(ACCEPT, accept);
        }
        let (deflate, share) = agreed(asked, settings, contexts);
        if let Some(deflate) = &deflate {
            head.fields.push(EXTENSIONS, deflate.response());
        }
        for (name, value) in given.fields.iter() {
            if let Some(ours) = OURS.iter().find(|ours| name.eq_ignore_ascii_case(ours.as_bytes())) {
                return Err(format!("{ours} is the server's to set"));
            }
            head.fields.push(name, value);
        }
        Ok(Agreed { head, deflate, share })
    }
}

/// The compression of messages with its memory: with contexts as long as the budget has room.
fn agreed(
    asked: &FieldSet,
    settings: &WebSocketSettings,
    contexts: &Contexts,
) -> (Option<Deflate>, Option<Share>) {
    /// Window of both directions. With short messages 4 KiB give nearly the whole effect of a larger window.
    const WINDOW_BITS: u8 = 12;
    if !settings.deflate {
        return (None, None);
    }
    let with = |takeover| {
        let wanted = DeflateSettings { max_window_bits: WINDOW_BITS, takeover };
        negotiate(asked.all("sec-websocket-extensions"), &wanted)
    };
    let Some(deflate) = with(true) else { return (None, None) };
    match contexts.take(deflate.memory() as u64) {
        Some(share) => (Some(deflate), Some(share)),
        None => (with(false), None),
    }
}
