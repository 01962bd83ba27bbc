//! Joins HTTP/1 to its connection: bytes to events, and one exchange at a time.

use maitred_h1::{Event, Step};

use super::protocol::Protocol;
use super::request::Received;
use super::stream::Stream;
use super::{Connection, Context, Phase, Turn};

/// Pipelined requests answered in one turn before other connections get theirs.
const MAX_REQUESTS_A_TURN: u32 = 64;

/// Response bytes gathered before they are sent while pipelined requests are being answered.
const MAX_GATHERED: usize = 64 * 1024;

/// What a look at received bytes led to.
pub(super) struct Consumed {
    pub(super) bytes: usize,
    /// Why the look ended before the bytes did; `None` when more bytes are needed.
    pub(super) turn: Option<Turn>,
}

impl Connection {
    /// Takes events from `data` until it is used up or something has to be done first.
    pub(super) fn consume(&mut self, context: &mut Context<'_>, data: &[u8], requests: &mut u32) -> Consumed {
        let mut at = 0;
        loop {
            if self.stream.is_none() && at == data.len() {
                return Consumed { bytes: at, turn: None };
            }
            if *requests >= MAX_REQUESTS_A_TURN {
                return Consumed { bytes: at, turn: Some(Turn::Later) };
            }
            let mut stream = self.stream.take().unwrap_or_else(|| self.begin_stream(context.now));
            let received = if stream.is_filtering() {
                // Its head has been read already, and has waited in the filters.
                self.pass_filters(context, stream)
            } else {
                let head = &mut stream.request.head;
                let Protocol::H1(receiver) = &mut self.protocol else {
                    return Consumed { bytes: at, turn: Some(Turn::Close) };
                };
                match receiver.poll_event(&data[at..], head, &context.group.site.limits) {
                    Ok(Step { consumed, event }) => {
                        at += consumed;
                        match event {
                            Event::NeedMore if at == data.len() && self.protocol.is_between_requests() => {
                                // Empty lines only (RFC 9112 §2.2): no request has begun.
                                Stream::give_back(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::NeedMore => {
                                self.stream = Some(stream);
                                return Consumed { bytes: at, turn: None };
                            }
                            Event::Head(facts) => self.head_received(context, stream, facts),
                            Event::Data(bytes) => self.data_received(context, stream, bytes),
                            Event::Trailers(_) => Received::Goes(stream),
                            Event::End => self.request_received(context, stream),
                        }
                    }
                    Err(_) if stream.keeping.is_dropped() => self.end_dropped(stream),
                    Err(error) => self.refuse(context, stream, error.status, error.reason),
                }
            };
            if let Some(turn) = self.after(context, received, requests) {
                return Consumed { bytes: at, turn: Some(turn) };
            }
        }
    }

    /// Goes on after something was received of the exchange; none when more of this connection's bytes can be looked at.
    pub(super) fn after(
        &mut self,
        context: &mut Context<'_>,
        received: Received,
        requests: &mut u32,
    ) -> Option<Turn> {
        match received {
            Received::Goes(stream) => {
                self.stream = Some(stream);
                None
            }
            Received::Waits(stream) => {
                self.stream = Some(stream);
                Some(Turn::Wait)
            }
            Received::Dropped => None,
            Received::Answered => {
                *requests += 1;
                self.make_room(context)
            }
            Received::HandedOver => Some(Turn::Wait),
            Received::Ended(turn) => Some(turn),
        }
    }

    /// The first byte of a request is there.
    pub(super) fn begin_stream(&mut self, now: u64) -> Box<Stream> {
        self.streams = self.streams.wrapping_add(1);
        Stream::take(self.streams, now, self.received)
    }

    /// Sends the answers so far if they are many. What ends the turn: the reader is slow, and the next request waits until
    /// they have left.
    fn make_room(&mut self, context: &mut Context<'_>) -> Option<Turn> {
        if context.scratch.out.len() <= MAX_GATHERED && self.writer.is_none() {
            return None;
        }
        let flushed = self.flush(context);
        if self.writer.is_none() && matches!(flushed, Turn::Wait) {
            return None;
        }
        if self.phase == Phase::Receiving {
            self.phase = Phase::Sending;
        }
        Some(flushed)
    }
}
