//! Bodies that handlers read while they arrive, over HTTP/1: from the kept input, then from the socket.

use std::io;
use std::sync::Arc;

use maitred_exchange::stream::body::{End, Live, OVER, PEER_ENDED, PEER_GONE};
use maitred_exchange::{Keeping, Site, Stream};
use maitred_h1::Receiver;
use maitred_http::RequestHead;
use maitred_io::clock;
use maitred_io::transport::Moved;
use maitred_runtime::{Last, Observe};

use super::H1;
use crate::connection::carrier::Carrier;
use crate::connection::sending::{arm, set_deadline};
use crate::connection::streaming_body::LiveReader;
use crate::connection::wire::Wire;
use crate::connection::{Context, Group, NEVER};
use crate::group::slots::Token;

impl H1 {
    /// Tells the handler that bytes or the end have arrived. Returns false when the handler does not wait.
    pub(super) fn tell_reader(&mut self) -> bool {
        let Some(live) = self.stream.as_deref_mut().and_then(Stream::live) else { return false };
        let Some(waiting) = live.waiting.take() else { return false };
        live.count_wait(clock::monotonic());
        waiting.changed();
        true
    }

    /// Sets the deadline for the next bytes of the body. A handler that waits in a loop has no deadline of its own.
    fn await_body(&mut self, wire: &mut Wire, group: &Group, token: Token, due: u64) {
        wire.deadline = due;
        arm(self, wire, group, token);
    }

    /// Restarts the peer's time for the body when the queued response bytes have left and the handler waits for the
    /// body.
    pub(super) fn go_on_with_live_body(&mut self, wire: &mut Wire, group: &Group, token: Token) {
        let Some(stream) = self.stream.as_deref_mut().filter(|_| wire.writer.is_none()) else { return };
        if stream.has_time_for_body()
            && let Some(live) = stream.live()
        {
            if let Some(patience) = &mut live.patience {
                patience.touch(clock::monotonic());
            }
            let due = live.due(&group.site);
            self.await_body(wire, group, token, due);
        }
    }

    /// Handles the deadline of a running request: if the handler waits for the body and the peer is late, ends the
    /// body; otherwise sets the time of the next check.
    pub(in crate::connection) fn end_late_body(&mut self, wire: &mut Wire, context: &Context<'_>) {
        let (site, mut due) = (&context.group.site, NEVER);
        if let Some(stream) = self.stream.as_deref_mut()
            && stream.has_time_for_body()
        {
            match stream.end_late_live(site, context.now) {
                Some(rule) => site.guard.applied.note(rule, wire.peer, &site.log),
                None => due = stream.live_due(site),
            }
        }
        set_deadline(self, wire, context, due);
    }

    /// Reads bytes for the handler. Returns `Ok(None)` when none have arrived; `observer` is told when some may have.
    pub(in crate::connection) fn read_live(
        &mut self,
        wire: &mut Wire,
        reader: &LiveReader,
        (space, buffer): (&mut [u8], &mut [u8]),
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let Some(mut stream) = self.take_stream(reader.key) else { return OVER.result().map(Some) };
        let Stream { keeping, request, .. } = &mut *stream;
        let read = match keeping {
            Keeping::Live(live) => {
                self.receive_live(wire, (live, &mut request.head), reader, (space, buffer), observer)
            }
            _ => OVER.result().map(Some),
        };
        if wire.is_dead() {
            stream.flags().set_gone();
        }
        self.stream = Some(stream);
        if matches!(read, Ok(Some(_))) {
            self.note_body_read(reader.key);
        }
        read
    }

    fn receive_live(
        &mut self,
        wire: &mut Wire,
        (live, head): (&mut Live, &mut RequestHead),
        reader: &LiveReader,
        (space, buffer): (&mut [u8], &mut [u8]),
        observer: &Arc<dyn Observe>,
    ) -> io::Result<Option<usize>> {
        let group = &reader.group;
        live.waiting = None;
        if wire.is_dead() && live.end.is_none() {
            live.end = Some(PEER_GONE);
        }
        live.count_wait(clock::monotonic());
        if live.end.is_none()
            && let Some(mut interim) = live.interim.take()
        {
            // The check below finds out whether the peer is gone.
            let _ = self.deliver(wire, group, reader.key, (&mut interim, Last::NOTHING, b""));
        }
        loop {
            if let Some(end) = live.end {
                return end.result().map(Some);
            }
            // The end of a body is an event without bytes, so the decoder runs also without kept input.
            let mut input = std::mem::take(&mut wire.input);
            let (used, filled) = live.decode(&mut self.receiver, head, &group.site, &input, buffer);
            if used < input.len() {
                input.drain(..used);
                wire.input = input;
            }
            if filled > 0 {
                live.rest();
                return Ok(Some(filled));
            }
            if live.end.is_some() {
                continue;
            }
            let moved = match receive_in_place(wire, (live, &mut self.receiver), head, &group.site, buffer) {
                Some(Moved::Bytes(count)) => {
                    live.rest();
                    return Ok(Some(count));
                }
                Some(moved) => moved,
                None => wire.transport.receive(space),
            };
            match moved {
                Moved::Bytes(count) => {
                    wire.note_read(count, space.len());
                    wire.input.extend_from_slice(&space[..count]);
                }
                Moved::Blocked => {
                    wire.unread = false;
                    wire.useless_wakes = 0;
                    live.waiting = Some(Arc::clone(observer));
                    live.wait(&group.site, clock::monotonic());
                    wire.listen_again(group, reader.key.token);
                    if wire.writer.is_none() && !live.answering {
                        self.await_body(wire, group, reader.key.token, live.due(&group.site));
                    }
                    return Ok(None);
                }
                Moved::End => live.end = Some(PEER_ENDED),
                Moved::Failed(_) => live.end = Some(PEER_GONE),
            }
        }
    }

    /// Ends the exchange: the unread rest of the body is dropped, or the connection ends.
    pub(super) fn end_stream(&mut self, wire: &mut Wire) {
        let Some(mut stream) = self.stream.take() else { return };
        // A socket closed with unread bytes is reset, and the peer loses the last frame.
        wire.unread |= stream.awaits_last_frames();
        if let Keeping::Live(live) = &stream.keeping {
            let (complete, last) = (matches!(live.end, Some(End::Complete)), live.is_last());
            wire.last |= last;
            if !complete && !last {
                stream.stop();
                stream.keeping = Keeping::Dropped(0);
                self.stream = Some(stream);
                return;
            }
        }
        Stream::give_back(stream);
    }
}

/// Receives bytes of a body of known length where the handler wants them. None for other bodies.
fn receive_in_place(
    wire: &mut Wire,
    (live, receiver): (&mut Live, &mut Receiver),
    head: &mut RequestHead,
    site: &Site,
    buffer: &mut [u8],
) -> Option<Moved> {
    let left =
        receiver.fixed_left().filter(|left| *left > 0 && wire.input.is_empty() && !buffer.is_empty())?;
    if live.received + left > live.max {
        return None;
    }
    let most = left.min(buffer.len() as u64) as usize;
    let moved = wire.transport.receive(&mut buffer[..most]);
    if let Moved::Bytes(count) = moved {
        receiver.skip_fixed(count as u64);
        live.received += count as u64;
        // The end of a body is an event without bytes.
        live.decode(receiver, head, site, b"", &mut []);
        wire.note_read(count, most);
    }
    Some(moved)
}
