//! Header blocks: gathered from HEADERS and CONTINUATION, decoded in the order of their arrival, also those of streams
//! that are refused (RFC 9113 §4.3).

use maitred_http::RequestHead;

use super::{Connection, Leaving};
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Event;
use crate::frame::{Header, Headers};
use crate::head::{Reader, Trailers};
use crate::hpack::HpackError;
use crate::streams::{Known, Over};

/// Bytes of a block beyond those of the largest head: of one that is a little too large, so that it is answered.
const SLACK: usize = 16 * 1024;

/// How many times as large as the largest head a list of fields may be, so that it is answered.
///
/// Reason: a byte of a block can be a field of 4 KiB (CVE-2016-6581). Source: h2 takes four times the limit.
const MOST_LISTS: usize = 4;

/// Memory for a block, and for a cookie, that is kept for the next one, in bytes.
///
/// Reason: each connection keeps it, also an idle one.
const KEPT: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct Gathering {
    pub(super) stream: u32,
    is_new: bool,
    ends: bool,
    /// The stream depends on itself (RFC 7540 §5.3.1).
    on_itself: bool,
    continuations: u32,
}

impl Connection {
    pub(super) fn headers<'a>(
        &mut self,
        header: Header,
        payload: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let frame = Headers::read(header, payload)?;
        let stream = header.stream;
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("HEADERS on a stream that no client opens"));
        }
        let is_new = self.streams.use_up(stream);
        if !is_new {
            let ignored = self.is_ignored(stream);
            match self.streams.known(stream) {
                Known::Over(Over::Ended) => {
                    return Err(ConnectionError::new(
                        ErrorCode::StreamClosed,
                        "HEADERS on a stream that has ended",
                    ));
                }
                Known::Over(Over::Unknown) if !ignored => {
                    return Err(ConnectionError::protocol("HEADERS on a stream below the last one"));
                }
                _ => {}
            }
        }
        let on_itself = frame.dependency.is_some_and(|dependency| dependency.stream == stream);
        let gathering = Gathering { stream, is_new, ends: frame.ends, on_itself, continuations: 0 };
        if frame.whole {
            return self.block(gathering, frame.fragment, head, control);
        }
        self.block.clear();
        self.gather(gathering, frame.fragment)?;
        Ok(None)
    }

    pub(super) fn continuation<'a>(
        &mut self,
        mut gathering: Gathering,
        whole: bool,
        fragment: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        gathering.continuations += 1;
        if gathering.continuations > self.settings.budgets.continuations {
            return Err(ConnectionError::calm("too many frames of one header block (budget continuations)"));
        }
        if !whole {
            self.gather(gathering, fragment)?;
            return Ok(None);
        }
        self.gathering = None;
        self.extend_block(fragment)?;
        let mut block = std::mem::take(&mut self.block);
        let event = self.block(gathering, &block, head, control);
        if block.capacity() <= KEPT {
            block.clear();
            self.block = block;
        }
        event
    }

    fn gather(&mut self, gathering: Gathering, fragment: &[u8]) -> Result<(), ConnectionError> {
        if fragment.is_empty() {
            self.buckets.empty.take(1, self.now)?;
        }
        self.gathering = Some(gathering);
        self.extend_block(fragment)
    }

    fn extend_block(&mut self, fragment: &[u8]) -> Result<(), ConnectionError> {
        let most = self.settings.max_head.saturating_add(SLACK);
        if self.block.len() + fragment.len() > most {
            return Err(ConnectionError::calm("header block far too large"));
        }
        self.block.extend_from_slice(fragment);
        Ok(())
    }

    fn block<'a>(
        &mut self,
        gathering: Gathering,
        block: &[u8],
        head: &mut RequestHead,
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        self.counted.heads_received.0 += block.len() as u64;
        if !gathering.is_new {
            return self.trailers(gathering, block, control);
        }
        let stream = gathering.stream;
        if self.is_ignored(stream) {
            self.pass_over(block)?;
            self.buckets.refused.take(1, self.now)?;
            return Ok(None);
        }
        if self.streams.open_count() >= self.settings.max_streams as usize {
            self.pass_over(block)?;
            self.reset(stream, ErrorCode::RefusedStream, control);
            self.counted.refused += 1;
            self.buckets.refused.take(1, self.now)?;
            return Ok(None);
        }
        let mut reader = Reader::new(head, &mut self.cookie, &self.settings);
        let decoded = self.decoder.decode(block, |name, value, _| reader.field(name, value));
        let (size, plain) = (reader.size(), reader.plain());
        let finished = reader.finish(gathering.ends);
        if self.cookie.capacity() > KEPT {
            self.cookie = Vec::new();
        }
        self.decoded(decoded, size, plain)?;
        match finished {
            Ok((mut facts, left)) if !gathering.on_itself => {
                facts.priority = self.announced_priority(stream).or(facts.priority);
                self.open(stream, gathering.ends, left);
                Ok(Some(Event::Head { stream, facts }))
            }
            _ => self.refuse(stream, ErrorCode::ProtocolError, control),
        }
    }

    fn trailers<'a>(
        &mut self,
        gathering: Gathering,
        block: &[u8],
        control: &mut Vec<u8>,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let well_formed = self.pass_over(block)?;
        let stream = gathering.stream;
        match self.streams.known(stream) {
            Known::Open(open) if open.received => self.refuse(stream, ErrorCode::StreamClosed, control),
            Known::Open(open) => {
                let is_all = open.left.is_none_or(|left| left == 0);
                if !gathering.ends || !is_all || !well_formed || gathering.on_itself {
                    return self.refuse(stream, ErrorCode::ProtocolError, control);
                }
                self.streams.received(stream);
                Ok(Some(Event::End { stream }))
            }
            Known::Over(Over::ByPeer) => self.refuse(stream, ErrorCode::StreamClosed, control),
            _ => {
                self.buckets.late.take(1, self.now)?;
                Ok(None)
            }
        }
    }

    /// Decodes a block of which nothing is kept; whether it could be trailers.
    fn pass_over(&mut self, block: &[u8]) -> Result<bool, ConnectionError> {
        let mut trailers = Trailers::default();
        let decoded = self.decoder.decode(block, |name, value, _| trailers.field(name, value));
        self.decoded(decoded, trailers.size(), trailers.plain())?;
        Ok(!trailers.are_malformed())
    }

    /// Checks a decoded list of `size`, with `plain` bytes of names and values.
    fn decoded(
        &mut self,
        decoded: Result<(), HpackError>,
        size: usize,
        plain: usize,
    ) -> Result<(), ConnectionError> {
        self.counted.heads_received.1 += plain as u64;
        decoded.map_err(|error| match error {
            HpackError::Repeated => ConnectionError::calm(error.reason()),
            _ => ConnectionError::new(ErrorCode::CompressionError, error.reason()),
        })?;
        if size > self.settings.max_head.saturating_mul(MOST_LISTS) {
            return Err(ConnectionError::calm("a list of fields far too large"));
        }
        Ok(())
    }

    pub(super) fn is_ignored(&self, stream: u32) -> bool {
        matches!(self.leaving, Leaving::Last(last) if stream > last)
    }
}
