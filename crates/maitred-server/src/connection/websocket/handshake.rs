//! What a request has to say to become a WebSocket (RFC 6455 §4.2.1; RFC 8441 §4 in HTTP/2), and what it is answered.

use maitred_h1::HeadFacts;
use maitred_http::{BodyLength, FieldSet, Method, RequestHead, ResponseHead, Status, Version};
use maitred_ws::{Deflate, DeflateSettings, accept_key, negotiate, subprotocols};

use crate::connection::own_response::OwnResponse;
use crate::connection::stream::{Received, Stream};
use crate::connection::{Connection, Context};
use crate::site::{Contexts, Share, WebSocketSettings};

/// The version that there is (RFC 6455 §4.1).
const VERSION: &str = "13";

const ACCEPT: &str = "Sec-WebSocket-Accept";
const EXTENSIONS: &str = "Sec-WebSocket-Extensions";
/// Fields of the answer that are the protocol's, or a connection's.
const OURS: [&str; 4] = [ACCEPT, EXTENSIONS, "Connection", "Upgrade"];

/// A WebSocket that its handler may accept.
pub(crate) struct Offer {
    /// What the key leads to; none where the protocol has no key.
    accept: Option<[u8; 28]>,
}

/// Why a request cannot become one.
enum Objection {
    /// This version is not spoken.
    Version,
    /// What is missing or wrong.
    Bad(&'static str),
}

impl Connection {
    /// Looks whether a request of HTTP/1.1 or an extended CONNECT asks for a WebSocket that its handler may accept. It is answered
    /// if it does so wrongly.
    pub(in crate::connection) fn offer_websocket(
        &mut self,
        context: &mut Context<'_>,
        mut stream: Box<Stream>,
    ) -> Result<Box<Stream>, Received> {
        let is_framed = stream.websocket;
        let facts = stream.facts.unwrap_or_default();
        let asks = is_framed || facts.upgrade && names(&stream.request.head, "upgrade", b"websocket");
        if !asks {
            return Ok(stream);
        }
        let takes = stream.destination.application().is_some_and(|handler| handler.takes_websockets());
        if !takes || context.group.site.websockets.is_none() {
            if !is_framed {
                // A server may ignore the field (RFC 9110 §7.8).
                return Ok(stream);
            }
            let reason = "there is no WebSocket here";
            return Err(self.refuse(context, stream, Status::NOT_IMPLEMENTED, reason));
        }
        match asked(&stream.request.head, facts, is_framed) {
            Ok(offer) => {
                let head = &mut stream.request.head;
                // It is the same request by every protocol, for filters, rules and the log.
                (head.method, head.body) = (Method::Get, BodyLength::Empty);
                stream.websocket = true;
                stream.request.websocket = true;
                stream.offer = Some(Box::new(offer));
                // Whether it is accepted or not: behind it nothing else is read.
                stream.facts = Some(HeadFacts { keep_alive: false, ..facts });
                Ok(stream)
            }
            Err(Objection::Version) => {
                context.group.site.websocket_counters.note_refused();
                Err(self.answer_version(context, stream))
            }
            Err(Objection::Bad(reason)) => {
                context.group.site.websocket_counters.note_refused();
                Err(self.refuse(context, stream, Status::BAD_REQUEST, reason))
            }
        }
    }

    /// Says which version there is (RFC 6455 §4.4).
    fn answer_version(&mut self, context: &mut Context<'_>, stream: Box<Stream>) -> Received {
        const TEXT: &str = "426 Upgrade Required: this server speaks version 13 of WebSocket\n";
        let response = OwnResponse::text(Status::UPGRADE_REQUIRED, TEXT)
            .with("Sec-WebSocket-Version", VERSION)
            .keep_alive(false);
        self.respond(context, stream, response)
    }
}

/// What a request asks for.
fn asked(head: &RequestHead, facts: HeadFacts, is_framed: bool) -> Result<Offer, Objection> {
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

/// The value of a field that may be there once.
fn only<'a>(
    head: &'a RequestHead,
    name: &'static str,
    reason: &'static str,
) -> Result<Option<&'a [u8]>, Objection> {
    let mut values = head.fields.all(name);
    let value = values.next();
    if values.next().is_some() { Err(Objection::Bad(reason)) } else { Ok(value) }
}

/// Whether a field that is a list names this, in whatever case.
fn names(head: &RequestHead, field: &str, name: &[u8]) -> bool {
    let mut values = head.fields.all(field).flat_map(|value| value.split(|byte| *byte == b','));
    values.any(|value| value.trim_ascii().eq_ignore_ascii_case(name))
}

/// What is agreed on.
pub(crate) struct Agreed {
    pub(crate) head: ResponseHead,
    pub(crate) deflate: Option<Deflate>,
    pub(crate) share: Option<Share>,
}

impl Offer {
    /// The answer to a request that is accepted, with the fields of the handler's; and what is compressed how.
    ///
    /// # Errors
    /// A field that is not the handler's to set.
    pub(crate) fn answer(
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

/// How messages are compressed, and the room for it: with contexts as long as there is some.
fn agreed(
    asked: &FieldSet,
    settings: &WebSocketSettings,
    contexts: &Contexts,
) -> (Option<Deflate>, Option<Share>) {
    /// Both directions. A window of 4 KiB has nearly all of what a larger one has, for messages that are not large.
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
