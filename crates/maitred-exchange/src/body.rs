//! Receiving a body: into memory, beyond `body-memory` into the spool, and nowhere when the response does not need
//! it. `stream/body.rs` has the bodies that handlers read while they arrive.

use std::io::{Error, ErrorKind};

use maitred_h1::{HeadFacts, Sender};
use maitred_http::BodyLength;
use maitred_http::Status;
use maitred_spool::{Progress, Share};
use maitred_turns::Turn;

use crate::answer::answer;
use crate::answer::refuse;
use crate::link::{Link, Received};
use crate::site::Site;
use crate::stream::Stream;
use crate::stream::body::{Keeping, Live, MAX_DROPPED};

/// Takes bytes of a body. Returns false when the body exceeds its limit, or the limit for dropping.
pub fn keep<'a>(link: &impl Link<'a>, stream: &mut Stream, bytes: &[u8]) -> bool {
    let site = link.site();
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
        match share(site, stream, link.waker()) {
            Some(share) if !is_short => stream.keeping = Keeping::Shared(share),
            _ => spill(site, stream, link.waker()),
        }
    }
    if let Keeping::Shared(share) = &mut stream.keeping
        && (is_short || !share.grow(length) || share.leaves())
    {
        spill(site, stream, link.waker());
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
pub fn fits_memory<'a>(link: &impl Link<'a>, stream: &Stream) -> bool {
    match stream.request.head.body {
        BodyLength::Fixed(length) => length <= link.site().body_memory,
        BodyLength::Empty => true,
        BodyLength::Chunked | BodyLength::UntilClose => false,
    }
}

/// A share of the budget for a body that exceeds the memory for one; none if the body goes to a file.
pub fn share(site: &Site, stream: &Stream, wake: impl Fn() + Send + Sync + 'static) -> Option<Share> {
    let length = match stream.request.head.body {
        BodyLength::Fixed(length) => Some(length),
        _ => None,
    };
    if !stream.destination.is_application() {
        return None;
    }
    site.body_budget.begin(length, wake)
}

/// Moves the body from memory to a file.
pub fn spill(site: &Site, stream: &mut Stream, wake: impl Fn() + Send + Sync + 'static) {
    let bytes = stream.request.body.memory_mut().map(std::mem::take).unwrap_or_default();
    let share = match std::mem::take(&mut stream.keeping) {
        Keeping::Shared(mut share) => {
            share.leave();
            Some(share)
        }
        _ => None,
    };
    stream.keeping = match &site.spooler {
        Some(spooler) if stream.destination.is_application() => {
            Keeping::Spool(spooler.begin(bytes, share, &site.body_budget, wake))
        }
        _ => Keeping::Nowhere(bytes.len() as u64),
    };
}

/// Goes on with a body in the spool.
pub fn advance_spool<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>) -> Received {
    let Keeping::Spool(spool) = &mut stream.keeping else { return Received::Goes(stream) };
    match spool.advance() {
        Progress::Open => Received::Goes(stream),
        Progress::Waiting => Received::Waits(stream),
        Progress::Written => {
            stream.request.body = spool.take_body();
            stream.keeping = Keeping::Memory;
            answer(link, stream)
        }
        Progress::Failed(error) => refuse_unkept(link, stream, &error),
    }
}

/// Refuses a request whose body cannot be kept, because of the server or the disk. Other requests go on.
pub fn refuse_unkept<'a>(link: &mut impl Link<'a>, stream: Box<Stream>, error: &Error) -> Received {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let status = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Status::INSUFFICIENT_STORAGE,
        _ => Status::SERVICE_UNAVAILABLE,
    };
    let head = &stream.request.head;
    link.site().log.error(format_args!(
        "{}: {} {}: the request body cannot be kept in the spool folder (--spool): {error}; {status} was sent",
        link.client_of(&stream).peer,
        head.method,
        head.target().escape_ascii()
    ));
    refuse(link, stream, status, "the server cannot keep the request body")
}

/// Hands over a request of which only the head has arrived.
pub fn answer_live<'a>(link: &mut impl Link<'a>, mut stream: Box<Stream>, facts: HeadFacts) -> Received {
    let mut interim = Vec::new();
    if facts.expect_continue {
        Sender::new(stream.request.head.version, false, true).send_continue(&mut interim);
    }
    let max = stream.max_body(link.site());
    let interim = Some(interim).filter(|interim| !interim.is_empty());
    stream.keeping = Keeping::Live(Live::new(stream.request.head.body, max, interim));
    match answer(link, stream) {
        // Only the application answers such a request. If the engine has answered, no request can follow.
        Received::Answered => Received::Ended(Turn::Close),
        received => received,
    }
}

/// Whether a handler reads the body of this request while it arrives.
pub fn is_read_live<'a>(link: &impl Link<'a>, stream: &Stream, facts: HeadFacts) -> bool {
    let own = stream.passed.as_ref().and_then(|passed| passed.read_ahead());
    let said = own.or_else(|| link.read_ahead());
    if said == Some(true) {
        return false;
    }
    stream.destination.application().is_some_and(|handler| {
        // A client that sends `Expect: 100-continue` waits for the handler's decision. A body of unknown length
        // may end only after the response.
        let is_early = || facts.expect_continue || !fits_memory(link, stream);
        let waits_cheaply = || handler.runs_on_event_loop() && is_early();
        handler.takes_live_bodies() && said.map_or_else(waits_cheaply, |on| !on)
    })
}
