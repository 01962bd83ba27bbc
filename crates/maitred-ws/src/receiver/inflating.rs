//! The payload of compressed messages: inflated as it comes, within the limits, checked as text.

use super::{Limits, NOT_UTF8, TOO_LONG};
use crate::deflate::{Deflate, Inflater};
use crate::failure::Failure;
use crate::mask::Mask;
use crate::utf8::Utf8;

/// How often the ratio is looked at, in bytes of the message.
const RATIO_STEP: u64 = 64 * 1024;
/// How much is unmasked at once, in bytes.
const PIECE: usize = 4096;
/// How much is inflated at once, in bytes.
const LEAST_ROOM: usize = 256;
const MOST_ROOM: usize = 16 * 1024;

/// The state of inflating the messages of one connection.
pub(super) struct Inflating {
    /// Made for the first compressed message; without take-over, for each one.
    inflater: Option<Inflater>,
    takeover: bool,
    /// Bytes of this message that are used up, and that were made of them.
    read: u64,
    length: u64,
}

impl Inflating {
    pub(super) fn new(deflate: &Deflate) -> Self {
        Self { inflater: None, takeover: deflate.client_takeover, read: 0, length: 0 }
    }

    pub(super) fn held(&self) -> usize {
        if self.inflater.is_some() { Inflater::MEMORY } else { 0 }
    }

    /// Bytes that this message has so far.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Inflates a part of a message. With `utf8` it is checked as text.
    pub(super) fn add(
        &mut self,
        payload: &[u8],
        mask: &mut Mask,
        limits: &Limits,
        mut utf8: Option<&mut Utf8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let mut place = [0; PIECE];
        for piece in payload.chunks(PIECE) {
            let Some(unmasked) = place.get_mut(..piece.len()) else { continue };
            unmasked.copy_from_slice(piece);
            mask.apply(unmasked);
            self.inflate(unmasked, limits, utf8.as_deref_mut(), out)?;
        }
        Ok(())
    }

    /// The message is complete.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let complete = self.inflater.as_mut().is_none_or(Inflater::finish);
        if !self.takeover {
            self.inflater = None;
        }
        (self.read, self.length) = (0, 0);
        if complete { Ok(()) } else { Err(BROKEN) }
    }

    /// A fault is found at the same byte of the message however its bytes come: first text, then the length, then the
    /// ratio, then deflate itself.
    fn inflate(
        &mut self,
        mut input: &[u8],
        limits: &Limits,
        mut utf8: Option<&mut Utf8>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let inflater = self.inflater.get_or_insert_with(Inflater::new);
        // At a step the bytes are given one by one, as those that are used up have to be the ones that the next byte of the
        // message is made of. At first none: it may be complete already.
        let mut given_at_step = 0;
        loop {
            let at_step =
                self.length >= limits.ratio_from.max(RATIO_STEP) && self.length.is_multiple_of(RATIO_STEP);
            let room = if at_step { 1 } else { room(self.length, input.len(), limits) };
            let given = if at_step { input.get(..given_at_step).unwrap_or(input) } else { input };
            let start = out.len();
            let step = inflater.step(given, room, out);
            input = input.get(step.used..).unwrap_or_default();
            self.read += step.used as u64;
            self.length += step.made as u64;
            if let Some(utf8) = utf8.as_deref_mut() {
                utf8.check(out.get(start..).unwrap_or_default()).map_err(|_| NOT_UTF8)?;
            }
            if self.length > limits.message {
                return Err(TOO_LONG);
            }
            if at_step && step.made > 0 && self.length > self.read.saturating_mul(limits.ratio.into()) {
                return Err(Failure::too_big("a compressed message becomes longer than is allowed"));
            }
            if step.broken {
                return Err(BROKEN);
            }
            if input.is_empty() && step.made < room {
                return Ok(());
            }
            given_at_step = usize::from(step.made == 0);
        }
    }
}

/// How much may be made at once of a message that has `length` bytes: not beyond the next step of the ratio, and one byte beyond the
/// longest message.
fn room(length: u64, input: usize, limits: &Limits) -> usize {
    let to_step = RATIO_STEP - length % RATIO_STEP;
    let to_limit = limits.message.saturating_sub(length).saturating_add(1);
    let here = input.saturating_mul(4).clamp(LEAST_ROOM, MOST_ROOM);
    usize::try_from(to_step.min(to_limit)).unwrap_or(here).min(here)
}

const BROKEN: Failure = Failure::data("a compressed message cannot be inflated");
