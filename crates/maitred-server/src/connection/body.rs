//! Receiving a body: into memory, beyond `body-memory` into the spool, and nowhere when the response does not need
//! it. `streaming_body.rs` has the bodies that handlers read while they arrive.

use crate::connection::pipeline::Received;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

use maitred_http::BodyLength;
use maitred_http::Status;
use maitred_spool::{Progress, Share, Spool};

use super::Context;
use super::answer::answer;
use super::answer::refuse;
use super::link::Link;
use super::stream::Stream;
use super::streaming_body::{Live, MAX_DROPPED};
use super::wire::Wire;

/// Destination of the bytes of a body.
#[derive(Default)]
pub(crate) enum Keeping {
    /// To the request.
    #[default]
    Memory,
    /// To the request, from the budget that all bodies share.
    Shared(Share),
    /// To a file.
    Spool(Spool),
    /// Nowhere, with a count: the engine answers without the body.
    Nowhere(u64),
    /// To the reader of the running handler.
    Live(Live),
    /// Nowhere: the handler has answered without the rest.
    Dropped(u64),
}

impl Keeping {
    pub(super) fn is_spool(&self) -> bool {
        matches!(self, Self::Spool(_))
    }

    /// Whether the body has to leave memory, because others need the room.
    pub(super) fn leaves(&self) -> bool {
        matches!(self, Self::Shared(share) if share.leaves())
    }

    /// Tells a handler that waits for bytes to read again.
    pub(super) fn tell(&mut self) {
        if let Self::Live(live) = self {
            live.tell();
        }
    }

    /// Whether the response has been given without this body.
    pub(super) fn is_dropped(&self) -> bool {
        matches!(self, Self::Dropped(_))
    }
}

/// Takes bytes of a body. Returns false when the body exceeds its limit, or the limit for dropping.
pub(super) fn keep(context: &Context<'_>, stream: &mut Stream, bytes: &[u8]) -> bool {
    let site = &context.group.site;
    let before = match &stream.keeping {
        Keeping::Memory | Keeping::Shared(_) => stream.request.body.len(),
        Keeping::Spool(spool) => spool.length(),
        Keeping::Nowhere(length) | Keeping::Dropped(length) => *length,
        Keeping::Live(_) => return false,
    };
    let length = before + bytes.len() as u64;
    let most = if stream.keeping.is_dropped() { MAX_DROPPED } else { stream.max_body(site) };
    if length > most {
        return false;
    }
    let is_short = site.guard.budget.is_over();
    let memory = if is_short { 0 } else { site.body_memory };
    if length > memory && matches!(stream.keeping, Keeping::Memory) {
        match share(context, stream) {
            Some(share) if !is_short => stream.keeping = Keeping::Shared(share),
            _ => spill(context, stream),
        }
    }
    if let Keeping::Shared(share) = &mut stream.keeping
        && (is_short || !share.grow(length) || share.leaves())
    {
        spill(context, stream);
    }
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.be_frugal(is_short);
            spool.push(bytes);
        }
        Keeping::Nowhere(counted) | Keeping::Dropped(counted) => *counted = length,
        Keeping::Live(_) => {}
        Keeping::Memory | Keeping::Shared(_) => {
            if let Some(memory) = stream.request.body.memory_mut() {
                memory.extend_from_slice(bytes);
            }
        }
    }
    true
}

/// Whether the body fits memory without a share of the budget.
pub(super) fn fits_memory(context: &Context<'_>, stream: &Stream) -> bool {
    match stream.request.head.body {
        BodyLength::Fixed(length) => length <= context.group.site.body_memory,
        BodyLength::Empty => true,
        BodyLength::Chunked | BodyLength::UntilClose => false,
    }
}

/// A share of the budget for a body that exceeds the memory for one; none if the body goes to a file.
pub(super) fn share(context: &Context<'_>, stream: &Stream) -> Option<Share> {
    let length = match stream.request.head.body {
        BodyLength::Fixed(length) => Some(length),
        _ => None,
    };
    if !stream.destination.is_application() {
        return None;
    }
    let (group, token) = (Arc::clone(context.group), context.token);
    context.group.site.body_budget.begin(length, move || group.resume(token))
}

/// Moves the body from memory to a file.
pub(super) fn spill(context: &Context<'_>, stream: &mut Stream) {
    let bytes = stream.request.body.memory_mut().map(std::mem::take).unwrap_or_default();
    let share = match std::mem::take(&mut stream.keeping) {
        Keeping::Shared(mut share) => {
            share.leave();
            Some(share)
        }
        _ => None,
    };
    stream.keeping = match &context.group.site.spooler {
        Some(spooler) if stream.destination.is_application() => {
            let (group, token) = (Arc::clone(context.group), context.token);
            Keeping::Spool(
                spooler.begin(bytes, share, &context.group.site.body_budget, move || group.resume(token)),
            )
        }
        _ => Keeping::Nowhere(bytes.len() as u64),
    };
}

/// Goes on with a body in the spool.
pub(super) fn advance_spool(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    mut stream: Box<Stream>,
) -> Received {
    let Keeping::Spool(spool) = &mut stream.keeping else { return Received::Goes(stream) };
    match spool.advance() {
        Progress::Open => Received::Goes(stream),
        Progress::Waiting => Received::Waits(stream),
        Progress::Written => {
            stream.request.body = spool.take_body();
            stream.keeping = Keeping::Memory;
            answer(link, wire, context, stream)
        }
        Progress::Failed(error) => refuse_unkept(link, wire, context, stream, &error),
    }
}

/// Refuses a request whose body cannot be kept, because of the server or the disk. Other requests go on.
pub(super) fn refuse_unkept(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    error: &Error,
) -> Received {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let status = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Status::INSUFFICIENT_STORAGE,
        _ => Status::SERVICE_UNAVAILABLE,
    };
    let head = &stream.request.head;
    context.group.site.log.error(format_args!(
        "{}: {} {}: the request body cannot be kept in the spool folder (--spool): {error}; {status} was sent",
        wire.client_of(&stream).peer,
        head.method,
        head.target().escape_ascii()
    ));
    refuse(link, wire, context, stream, status, "the server cannot keep the request body")
}
