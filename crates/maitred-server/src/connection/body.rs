//! Receiving a body: into memory, beyond `body-memory` into the spool, and nowhere when nobody will read it. One that its
//! handler reads while it comes is the business of `live.rs`.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use maitred_http::Status;
use maitred_spool::{Progress, Spool};

use super::answer::leads_to_application;
use super::stream::{Received, Stream};
use super::streaming_body::{Live, MAX_DROPPED};
use super::{Connection, Context};

/// Where the bytes of a body that is being received go.
#[derive(Default)]
pub(crate) enum Keeping {
    /// To the request.
    #[default]
    Memory,
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

    /// Tells a handler that waits for bytes to look.
    pub(super) fn tell(&self) {
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
        Keeping::Memory => stream.request.body.len(),
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
        spill(context, stream);
    }
    match &mut stream.keeping {
        Keeping::Spool(spool) => {
            spool.be_frugal(is_short);
            spool.push(bytes);
        }
        Keeping::Nowhere(counted) | Keeping::Dropped(counted) => *counted = length,
        Keeping::Live(_) => {}
        Keeping::Memory => {
            if let Some(memory) = stream.request.body.memory_mut() {
                memory.extend_from_slice(bytes);
            }
        }
    }
    true
}

/// Memory keeps no more of this body.
fn spill(context: &Context<'_>, stream: &mut Stream) {
    let bytes = stream.request.body.memory_mut().map(std::mem::take).unwrap_or_default();
    stream.keeping = match &context.group.site.spooler {
        Some(spooler) if leads_to_application(context, stream) => {
            let (group, token) = (Arc::clone(context.group), context.token);
            Keeping::Spool(spooler.begin(bytes, move || group.resume(token)))
        }
        _ => Keeping::Nowhere(bytes.len() as u64),
    };
}

impl Connection {
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
            self.peer,
            head.method,
            head.target().escape_ascii()
        ));
        self.refuse(context, stream, status, "the server cannot keep the request body")
    }
}
