//! Receiving a body: into memory, beyond `body-memory` into the spool, and nowhere when the response does not need
//! it. `streaming_body.rs` has the bodies that handlers read while they arrive.

use std::io::{Error, ErrorKind};
use std::ops::RangeInclusive;
use std::sync::Arc;

use maitred_http::BodyLength;
use maitred_http::Status;
use maitred_io::transport::Moved;
use maitred_spool::{Progress, Share, Spool};

use super::protocol::Protocol;
use super::stream::{Received, Stream};
use super::streaming_body::{Live, MAX_DROPPED};
use super::{Connection, Context};

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
    /// To the running handler, which asks for bytes.
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
fn share(context: &Context<'_>, stream: &Stream) -> Option<Share> {
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

/// A body is received in place while at least this many bytes are missing: the last bytes come the usual way, which
/// asks for the time of their receipt.
const LAST: u64 = 16 * 1024;

/// Least and most bytes asked for by one call. For a body that is longer already the call asks for a quarter of the
/// received bytes, so that the budget holds little for bytes that the peer may never send.
const PIECES: RangeInclusive<u64> = 64 * 1024..=512 * 1024;

impl Connection {
    /// Receives a part of a long body of known length in place: without a copy, and in larger pieces. None if the
    /// usual way is needed.
    pub(super) fn receive_into_body(&mut self, context: &Context<'_>) -> Option<Moved> {
        let Protocol::H1(receiver) = &mut self.protocol else { return None };
        let left = receiver.fixed_left().filter(|left| *left >= 2 * LAST && self.wire.input.is_empty())?;
        let stream = self.stream.as_mut()?;
        let site = &context.group.site;
        if site.guard.budget.is_over() {
            return None;
        }
        let before = stream.request.body.len();
        if matches!(stream.keeping, Keeping::Memory)
            && before + left > site.body_memory
            && let Some(share) = share(context, stream)
        {
            stream.keeping = Keeping::Shared(share);
        }
        let most = (left - LAST).min((before / 4).clamp(*PIECES.start(), *PIECES.end()));
        let fits = match &mut stream.keeping {
            Keeping::Memory => before + left <= site.body_memory,
            Keeping::Shared(share) => {
                let fits = share.grow(before + most) && !share.leaves();
                if !fits {
                    spill(context, stream);
                }
                fits
            }
            Keeping::Spool(_) => true,
            _ => false,
        };
        if !fits {
            return None;
        }
        let transport = &mut self.wire.transport;
        let (moved, most) = if let Keeping::Spool(spool) = &mut stream.keeping {
            spool.receive(|gathered, room| {
                let most = (left - LAST).min(room as u64);
                (transport.receive_more(gathered, most as usize), most)
            })?
        } else {
            // Room for the whole announced body, at most a quarter of the budget: the system gives memory only when
            // it is written to.
            if !stream.request.body.try_reserve(left as usize) {
                spill(context, stream);
                return None;
            }
            let memory = stream.request.body.memory_mut()?;
            (transport.receive_more(memory, most as usize), most)
        };
        if let Moved::Bytes(count) = moved {
            receiver.skip_fixed(count as u64);
            stream.received += count as u64;
            self.wire.note_read(count, most as usize);
            (self.wire.received, self.wire.emptied) = (context.now, u16::MAX);
        } else if matches!(moved, Moved::Blocked) {
            self.wire.unread = false;
        }
        Some(moved)
    }

    /// Goes on with a body in the spool.
    pub(super) fn advance_spool(&mut self, context: &mut Context<'_>, mut stream: Box<Stream>) -> Received {
        let Keeping::Spool(spool) = &mut stream.keeping else { return Received::Goes(stream) };
        match spool.advance() {
            Progress::Open => Received::Goes(stream),
            Progress::Waiting => Received::Waits(stream),
            Progress::Written => {
                stream.request.body = spool.take_body();
                stream.keeping = Keeping::Memory;
                self.answer(context, stream)
            }
            Progress::Failed(error) => self.refuse_unkept(context, stream, &error),
        }
    }

    /// State of the spool at the deadline of the body, if the body is in the spool.
    pub(super) fn spool_progress(&mut self) -> Option<Progress> {
        match &mut self.stream.as_mut()?.keeping {
            Keeping::Spool(spool) => Some(spool.advance()),
            _ => None,
        }
    }

    /// Refuses a request whose body cannot be kept, because of the server or the disk. Other requests go on.
    pub(super) fn refuse_unkept(
        &mut self,
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
            self.wire.client_of(&stream).peer,
            head.method,
            head.target().escape_ascii()
        ));
        self.refuse(context, stream, status, "the server cannot keep the request body")
    }
}
