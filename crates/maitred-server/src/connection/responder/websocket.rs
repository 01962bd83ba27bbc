//! A handler's side of a WebSocket: it accepts, sends messages, and closes.
//!
//! Frames are made here, on the handler's thread, and compressed here, outside of any lock.

use std::cell::RefCell;

use maitred_exchange::{Offer, Socket, last_bytes};
use maitred_http::{ResponseHead, Version};
use maitred_log::End;
use maitred_runtime::{Closed, Content, Flow, Last, MessageKind, Messages, Request, SendError};
use maitred_ws::{Compressor, Deflate, Opcode, put_close, put_frame_head};

use super::{On, Responder};
use crate::connection::carrier::{ResponsePart, with_carrier};
use crate::connection::spilling::note_sender;
use maitred_exchange::memory::with_date;
use maitred_exchange::stages::{Asked, Draft, Maker};

/// Shorter messages, in bytes, are not compressed: compression hardly makes them shorter.
const MIN_COMPRESSED: usize = 64;

/// Largest compressed message that is copied behind the head of its frame.
const MAX_COPIED: usize = 16 * 1024;

/// Code of a close after an internal failure, or after an application that ends without a code (RFC 6455 §7.4.1).
const INTERNAL_ERROR: u16 = 1011;

thread_local! {
    /// Buffer for compressed messages.
    static PACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Compressor of messages that are each compressed by itself, with the bits of its window.
    static SHARED: RefCell<Option<(u8, Compressor)>> = const { RefCell::new(None) };
}

/// State of a WebSocket on the handler's side.
pub(super) enum Side {
    /// The request asks for a WebSocket.
    Offered(Box<Offer>),
    Open(Packing),
}

/// Compression of messages.
pub(super) enum Packing {
    Off,
    /// With the context of earlier messages.
    Own(Box<Compressor>),
    /// Without context.
    Shared(Deflate),
}

impl Packing {
    fn of(deflate: Option<Deflate>) -> Self {
        match deflate {
            None => Self::Off,
            Some(deflate) if deflate.server_takeover => Self::Own(Box::new(Compressor::new(&deflate))),
            Some(deflate) => Self::Shared(deflate),
        }
    }

    /// Appends the compressed message.
    fn pack(&mut self, message: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Off => {}
            Self::Own(compressor) => compressor.compress(message, out),
            Self::Shared(deflate) => SHARED.with_borrow_mut(|shared| {
                let bits = deflate.server_bits;
                let compressor = match shared {
                    Some((of, compressor)) if *of == bits => compressor,
                    _ => &mut shared.insert((bits, Compressor::new(deflate))).1,
                };
                compressor.compress(message, out);
            }),
        }
    }
}

impl Responder {
    /// Sets the offer of a WebSocket that the request has made.
    pub(crate) fn set_websocket(&mut self, offer: Box<Offer>) {
        self.websocket = Some(Side::Offered(offer));
    }

    /// Drops the offer, since the response is another one.
    pub(super) fn refuse_websocket(&mut self) {
        if let Some(Side::Offered(_)) = self.websocket.take() {
            self.group.site.websocket_counters.note_refused();
        }
    }

    pub(super) fn accept_offer(&mut self, request: &Request, given: &ResponseHead) -> Result<(), SendError> {
        let site = &self.group.site;
        let (Some(Side::Offered(offer)), Some(settings)) = (&self.websocket, &site.websockets) else {
            return Err(SendError::Closed);
        };
        let on = On(self.origin.peer, request);
        let wrong = |text: String| {
            site.log.error(format_args!("{on}: the WebSocket cannot be accepted: {text}"));
            Err(SendError::InvalidField(text))
        };
        let agreed = match offer.answer(&request.head.fields, given, settings, &site.contexts) {
            Ok(agreed) => agreed,
            Err(text) => return wrong(text),
        };
        let asked = Asked {
            head: &request.head,
            number: request.number,
            passed: self.passed.as_deref(),
            maker: Maker::WebSocket,
        };
        let Draft { head, .. } = Draft::pass(site, &asked, &agreed.head, None)?;
        if let Err(error) = with_date(|date| self.encoder.accept(&head, date, &mut self.buffer)) {
            return wrong(error.to_string());
        }
        self.status = head.status;
        let socket = Socket::new(site, agreed.deflate.as_ref(), agreed.share);
        site.websocket_counters.note_accepted();
        self.websocket = Some(Side::Open(Packing::of(agreed.deflate)));
        let sent = self.deliver(Content::Static(b""), b"");
        self.with_connection(|connection| connection.begin_websocket(&self.group, self.key, socket));
        // The first message notes a peer that is gone.
        if let (Err(error), Version::Http11) = (&sent, request.head.version) {
            self.group.site.log.debug(format_args!("{}: accepting a WebSocket: {error}", self.origin.peer));
        }
        Ok(())
    }

    pub(super) fn messages(&mut self, into: &mut Messages) -> Option<Closed> {
        self.with_connection(|connection| connection.take_messages(&self.group, self.key, into))
            .unwrap_or_else(|| Some(Closed::abnormal()))
    }

    pub(super) fn send_frame(&mut self, kind: MessageKind, message: Last<'_>) -> Result<Flow, SendError> {
        let Some(Side::Open(packing)) = &mut self.websocket else { return Err(SendError::Closed) };
        let opcode = match kind {
            MessageKind::Text => Opcode::Text,
            MessageKind::Binary => Opcode::Binary,
        };
        let length = message.len();
        let plain = last_bytes(&message).unwrap_or_default();
        let mut buffer = std::mem::take(&mut self.buffer);
        let content = if matches!(packing, Packing::Off) || plain.len() < MIN_COMPRESSED {
            put_frame_head(opcode, true, false, length, &mut buffer);
            message
        } else {
            PACKED.with_borrow_mut(|packed| {
                packed.clear();
                packing.pack(plain, packed);
                put_frame_head(opcode, true, true, packed.len() as u64, &mut buffer);
                if packed.len() > MAX_COPIED {
                    return Last::Given(Content::Bytes(std::mem::take(packed)));
                }
                buffer.extend_from_slice(packed);
                Last::NOTHING
            })
        };
        let sent = self.group.with_stream(self.key, |connection| {
            let part = ResponsePart {
                encoder: &mut self.encoder,
                before: &mut buffer,
                content,
                behind: b"",
                interim: false,
            };
            let sent = connection.send_frame(&self.group, self.key, part, length);
            with_carrier!(connection, |carrier, wire| {
                note_sender(carrier, wire, self.key, self.label.as_ref());
            });
            sent
        });
        buffer.clear();
        self.buffer = buffer;
        let flow = sent.unwrap_or(Err(SendError::Closed))?;
        self.body_bytes += length;
        self.group.site.websocket_counters.note_sent(length);
        Ok(flow)
    }

    pub(super) fn close_socket(mut self: Box<Self>, request: Box<Request>, code: u16, reason: &str) {
        let code = if maitred_ws::is_close_code(code) { code } else { INTERNAL_ERROR };
        let ended = self.with_connection(|connection| connection.end_of_websocket(self.key));
        let (end, closed, is_open) = ended.unwrap_or((End::PeerGone, None, false));
        let mut frame = Vec::new();
        if is_open {
            put_close(Some(code), reason, &mut frame);
        }
        self.group.site.websocket_counters.note_ended(closed.unwrap_or(if is_open {
            code
        } else {
            Closed::ABNORMAL
        }));
        let reusable = self.encoder.is_framed();
        self.websocket = None;
        let last = if frame.is_empty() { Last::NOTHING } else { Last::Given(Content::Bytes(frame)) };
        // The end of the exchange notes a peer that is gone.
        let _ = (*self).end(request, reusable, end, last, b"");
    }
}
