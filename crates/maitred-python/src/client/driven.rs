//! A call with the body that it sends and the bytes that came before they were asked for.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use maitred_client::call::{Call, Options, Step};
use maitred_client::{CallError, Client, Report, Times};
use maitred_h1::OutgoingRequest;
use maitred_http::{BodyLength, FieldSet, Method, Version};

use super::origin::HttpOrigin;
use super::source::{Fed, Source};

/// The most bytes of a body that are kept with its head: one read of a socket. A longer body stays where it is until it is read.
const EARLY: usize = 16 * 1024;

/// So many bytes of a body move in one go; behind them others have their turn, and time limits are looked at.
pub(super) const MOST_AT_ONCE: usize = 128 * 1024;

/// The parts of a request.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) target: &'a [u8],
    pub(super) fields: FieldSet,
    pub(super) source: Source,
    pub(super) times: Times,
    pub(super) repeatable: Option<bool>,
}

pub(super) struct Driven {
    pub(super) call: Call,
    pub(super) source: Source,
    early: Vec<u8>,
    /// How many of the early bytes were read.
    read: usize,
    /// How many bytes of the body were handed out or are early.
    had: u64,
    /// The end of the whole call's time: a call that waits for a part of its body has no other.
    pub(super) until: Option<Instant>,
}

/// The head of a response.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) reason: Box<[u8]>,
    pub(super) version: (u8, u8),
    pub(super) fields: FieldSet,
}

/// The part of a call that is asked for behind its end.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) report: Report,
    pub(super) trailers: Option<FieldSet>,
}

impl Driven {
    pub(super) fn begin(
        client: &Client,
        origin: &HttpOrigin,
        asked: Asked<'_>,
        now: Instant,
    ) -> Result<Self, CallError> {
        let request = OutgoingRequest {
            method: &asked.method,
            target: asked.target,
            authority: origin.authority.as_bytes(),
            fields: &asked.fields,
            length: asked.source.length(),
            upgrade: false,
        };
        let options = Options {
            times: asked.times,
            repeatable: asked.repeatable,
            body_again: asked.source.length().is_some(),
            ..Options::default()
        };
        let key: &Arc<_> = &origin.key;
        let mut call = Call::begin(client, key, &request, &options, now)?;
        if asked.source.length().is_some_and(|length| length > 0) {
            // Given before the first step: head and body leave in one write.
            call.give_body(asked.source.rest(0))?;
        }
        let until = asked.times.exchange.total.and_then(|total| now.checked_add(total));
        Ok(Self { call, source: asked.source, early: Vec::new(), read: 0, had: 0, until })
    }

    /// The next step. [`Step::Body`] comes when a part of the body is wanted that is not there. A wait that is over already gives
    /// others their turn.
    pub(super) fn step(&mut self, now: Instant, waker: &Waker) -> Result<Step, CallError> {
        let mut given = 0;
        loop {
            match self.call.step(now, waker)? {
                Step::Body => {
                    let rest = self.source.rest(self.call.body_at());
                    if !rest.is_empty() {
                        let taken = self.call.give_body(rest)?;
                        self.source.taken(taken);
                        given += taken;
                        if given >= MOST_AT_ONCE {
                            return Ok(Step::Wait(Some(now)));
                        }
                    } else if matches!(self.source, Source::Whole(_) | Source::Fed(_, Fed::Ended)) {
                        self.call.end_body()?;
                    } else {
                        return Ok(Step::Body);
                    }
                }
                step => return Ok(step),
            }
        }
    }

    /// Behind the head: takes the bytes that came with it. A failure shows at the next step.
    pub(super) fn take_early(&mut self, now: Instant, waker: &Waker) {
        let is_large = |length| matches!(length, BodyLength::Fixed(length) if length > EARLY as u64);
        if self.call.facts().is_some_and(|facts| is_large(facts.body)) {
            return;
        }
        while self.early.len() < EARLY {
            match self.step(now, waker) {
                Ok(Step::Data(length)) => {
                    self.early.extend_from_slice(self.call.data());
                    self.had += length as u64;
                    self.call.consume(length);
                }
                _ => break,
            }
        }
    }

    pub(super) fn kept(&self) -> Kept {
        Kept { report: *self.call.report(), trailers: self.call.trailers().cloned() }
    }

    /// Takes the head out of the call.
    pub(super) fn take_head(&mut self) -> Head {
        let head = self.call.take_head();
        let is_old = self.call.facts().is_some_and(|facts| facts.version == Version::Http10);
        Head {
            status: head.status.code(),
            reason: head.reason.unwrap_or_else(|| head.status.reason().as_bytes().into()),
            version: if is_old { (1, 0) } else { (1, 1) },
            fields: head.fields,
        }
    }

    /// Early bytes, at most `most`.
    pub(super) fn early(&mut self, most: usize) -> &[u8] {
        let start = self.read;
        self.read = (start.saturating_add(most)).min(self.early.len());
        &self.early[start..self.read]
    }

    pub(super) fn has_early(&self) -> bool {
        self.read < self.early.len()
    }

    /// The bytes that are there, at most `most`. [`consume`](Self::consume) comes behind.
    pub(super) fn data(&self, most: usize) -> &[u8] {
        let data = self.call.data();
        &data[..data.len().min(most)]
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.had += bytes as u64;
        self.call.consume(bytes);
    }

    /// How many bytes have not been read, if the head has told the length.
    pub(super) fn left(&self) -> Option<u64> {
        match self.call.facts()?.body {
            BodyLength::Fixed(length) => {
                Some(length.saturating_sub(self.had) + (self.early.len() - self.read) as u64)
            }
            _ => None,
        }
    }
}
