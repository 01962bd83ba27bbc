//! Sending of queued bytes, rate limits of responses, and the timer that goes on with a response that is held back.

use std::io;
use std::io::IoSlice;

use maitred_exchange::writer::shortened;
use maitred_exchange::{Queue, Writer};
use maitred_http::{RequestHead, target};
use maitred_io::clock;
use maitred_io::transport::{Moved, Transport};
use maitred_limits::Shaper;
use maitred_runtime::Content;

use super::wire::Wire;
use super::{Context, Group, NEVER};

/// Segments offered to the kernel in one call. Pipelined heads and bodies alternate, so this is
/// eight responses; the kernel's own limit is 1,024 (IOV_MAX).
const MAX_SEGMENTS_A_CALL: usize = 16;

/// Bytes sent in one turn before other connections get theirs, reached or passed by one call: half of Linux's largest
/// send buffer (net.ipv4.tcp_wmem, 4 MiB), about 0.2 ms of copying.
pub(super) const MAX_BYTES_A_TURN: u64 = 2 * 1024 * 1024;

/// How a turn of sending ended.
#[derive(Debug)]
pub(super) enum Sent {
    /// Everything has left.
    All,
    /// The socket takes no more now; an edge reports room.
    Blocked,
    /// The turn's budget is used up; the turn goes on after the other connections.
    Budget,
    /// A rate limit holds back the rest; a timer reports the end of the hold.
    Held,
    /// Sending is impossible.
    Broken(io::Error),
}

impl Wire {
    /// Sets the rate limit of a response that begins; the pool is none for the engine's own. Costs one load where no
    /// limit is set.
    pub(super) fn limit_rate(
        &mut self,
        context: &Context<'_>,
        pool: Option<usize>,
        head: &RequestHead,
        queue: Option<&mut Queue>,
    ) {
        let bandwidth = &context.group.site.guard.bandwidth;
        if !bandwidth.is_on() {
            // Queued bytes of an earlier response go on as they began, without a limit.
            if self.writer.is_none() {
                self.shaper = None;
            }
            return;
        }
        let mut path = Vec::new();
        if bandwidth.has_routes() {
            target::normalise_decoded(head.path(), &mut path);
        }
        let mut shared = bandwidth.shared(pool, &path);
        if let Some(queue) = queue {
            // A limit shared by several connections holds back the stream; the connection's own limit holds back all
            // streams together.
            let own = std::mem::take(&mut shared);
            queue.shaper.get_or_insert_with(|| Box::new(Shaper::default())).set(own);
        }
        self.shaper.get_or_insert_with(|| Box::new(Shaper::default())).set(shared);
    }

    /// Ends the limits that the application has asked for the last response, when a request begins.
    pub(super) fn end_own_limits(&mut self) {
        self.send_timeout = 0;
        self.shaper.iter_mut().for_each(|shaper| shaper.limit_response(0));
    }

    /// Hands the queued bytes to the socket in their order, memory with up to 16 parts in one call, parts of files by
    /// `sendfile`: 2 MiB a turn, and no more than a rate limit grants. The rest stays queued. Records and exchanges are
    /// the caller's: [`Sent`] says which of five ends it was.
    pub(super) fn send_writer(&mut self, group: &Group) -> Sent {
        let Some(writer) = &mut self.writer else { return Sent::All };
        match &mut self.shaper {
            None => send_within(writer, &mut self.transport, MAX_BYTES_A_TURN, false),
            Some(shaper) => {
                let (bandwidth, now) = (&group.site.guard.bandwidth, clock::monotonic());
                let before = writer.sent();
                loop {
                    let granted = shaper.grant_all(bandwidth, |most| writer.waiting(most), now);
                    if granted == 0 {
                        return Sent::Held;
                    }
                    let at = writer.sent();
                    let sent = send_within(writer, &mut self.transport, granted, true);
                    shaper.use_up(writer.sent() - at);
                    match sent {
                        Sent::Budget if writer.sent() - before < MAX_BYTES_A_TURN => {}
                        sent => return sent,
                    }
                }
            }
        }
    }

    /// Time at which the connection's limit lets more bytes leave, in monotonic nanoseconds.
    pub(super) fn resumes_at(&self) -> u64 {
        self.shaper.as_ref().map_or(NEVER, |shaper| shaper.resume())
    }

    /// Rate limit of the present response, in bytes a second.
    pub(super) fn bandwidth(&self, group: &Group) -> Option<u64> {
        self.shaper.as_ref()?.limit(&group.site.guard.bandwidth)
    }
}

/// Sends until `budget` bytes have left: exactly, or with one call that may exceed the budget.
fn send_within(writer: &mut Writer, transport: &mut Transport, mut budget: u64, exact: bool) -> Sent {
    loop {
        let Some((content, done)) = writer.contents().next() else { return Sent::All };
        if budget == 0 {
            return Sent::Budget;
        }
        let moved = match content {
            Content::File(range) => {
                let most = usize::try_from((range.length - done).min(budget)).unwrap_or(usize::MAX);
                transport.send_file(&range.file, range.offset + done, most)
            }
            _ => send_memory(writer, transport, if exact { budget } else { u64::MAX }),
        };
        match moved {
            Moved::Bytes(count) => {
                budget = budget.saturating_sub(count as u64);
                writer.advance(count as u64);
            }
            Moved::Blocked => {
                writer.note_blocked();
                return Sent::Blocked;
            }
            Moved::Failed(error) => return Sent::Broken(error),
            Moved::End => return Sent::Broken(shortened(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// Sends content in memory as far as the first file.
fn send_memory(writer: &Writer, transport: &mut Transport, most: u64) -> Moved {
    let mut most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts: [IoSlice<'_>; MAX_SEGMENTS_A_CALL] = std::array::from_fn(|_| IoSlice::new(&[]));
    let mut count = 0;
    let mut file_follows = false;
    for (content, done) in writer.contents() {
        let Some(bytes) = content.bytes() else {
            // No file part follows when the limit is used up.
            file_follows = most > 0;
            break;
        };
        let Some(part) = parts.get_mut(count).filter(|_| most > 0) else { break };
        let bytes = &bytes[done as usize..];
        let bytes = &bytes[..bytes.len().min(most)];
        most -= bytes.len();
        *part = IoSlice::new(bytes);
        count += 1;
    }
    match &parts[..count] {
        [only] => transport.send(only, file_follows),
        parts => transport.send_all(parts, file_follows),
    }
}
