//! Receiving a body: into memory, beyond `body-memory` into the spool, and nowhere when nobody will read it. One that its
//! handler reads while it comes is the business of `live.rs`.

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

/// Where the bytes of a body that is being received go.
#[derive(Default)]
pub(crate) enum Keeping {
    /// To the request.
    #[default]
    Memory,
    /// To the request, from the budget that all bodies share.
    Shared(Share),
    /// To a file.
    Spool(Spool),
    /// Nowhere, but they are counted: the engine answers, and does not look at them.
    Nowhere(u64),
    /// To the handler, which runs already and asks for them.
    Live(Live),
    /// Nowhere: the handler has answered without them.
    Dropped(u64),
}

impl Keeping {
    pub(super) fn is_spool(&self) -> bool {
        matches!(self, Self::Spool(_))
    }

    /// Whether it has to leave memory, because others need the room.
    pub(super) fn leaves(&self) -> bool {
        matches!(self, Self::Shared(share) if share.leaves())
    }

    /// Tells a handler that waits for bytes to look.
    pub(super) fn tell(&mut self) {
        if let Self::Live(live) = self {
            live.tell();
        }
    }

    /// Whether the answer has been given without this body.
    pub(super) fn is_dropped(&self) -> bool {
        matches!(self, Self::Dropped(_))
    }
}

/// Takes bytes of a body. False when it is longer than its limit, or than what is dropped.
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

/// Whether memory keeps all of this body in any case.
pub(super) fn fits_memory(context: &Context<'_>, stream: &Stream) -> bool {
    match stream.request.head.body {
        BodyLength::Fixed(length) => length <= context.group.site.body_memory,
        BodyLength::Empty => true,
        BodyLength::Chunked | BodyLength::UntilClose => false,
    }
}

/// A share of the budget for a body that becomes longer than it may be without one; none if it goes to a file.
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

/// Memory keeps no more of this body.
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

/// A body is received where it stays while at least this much of it is missing: the last bytes come the usual way, which
/// asks for the time of their receipt.
const LAST: u64 = 16 * 1024;

/// Bytes asked for by one call at least and at most. Of a body that is longer already a quarter of what has come is asked for: no
/// more of the budget is taken for what its peer may never send.
const PIECES: RangeInclusive<u64> = 64 * 1024..=512 * 1024;

impl Connection {
    /// Receives a part of a long body of known length where it stays: without a copy, and in larger pieces. None if the usual way
    /// has to be gone.
    pub(super) fn receive_into_body(&mut self, context: &Context<'_>) -> Option<Moved> {
        let Protocol::H1(receiver) = &mut self.protocol else { return None };
        let left = receiver.fixed_left().filter(|left| *left >= 2 * LAST && self.input.is_empty())?;
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
        let transport = &mut self.transport;
        let (moved, most) = if let Keeping::Spool(spool) = &mut stream.keeping {
            spool.receive(|gathered, room| {
                let most = (left - LAST).min(room as u64);
                (transport.receive_more(gathered, most as usize), most)
            })?
        } else {
            // Room for all that is announced, a quarter of the budget at most: the system gives memory when it is written to.
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
            let empty = (count as u64) < most && self.transport.empties_by_a_short_read();
            self.unread = !empty || self.read_closed;
            (self.received, self.emptied) = (context.now, u16::MAX);
        } else if matches!(moved, Moved::Blocked) {
            self.unread = false;
        }
        Some(moved)
    }

    /// Goes on with a body that goes to a file.
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

    /// The deadline of a body is over: how far the spool is, if the body goes there.
    pub(super) fn spool_progress(&mut self) -> Option<Progress> {
        match &mut self.stream.as_mut()?.keeping {
            Keeping::Spool(spool) => Some(spool.advance()),
            _ => None,
        }
    }

    /// The body cannot be kept: that is our fault, or the disk's, and this request's end only.
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
            self.client_of(&stream).peer,
            head.method,
            head.target().escape_ascii()
        ));
        self.refuse(context, stream, status, "the server cannot keep the request body")
    }
}
