//! Responses that may leave only so fast: what holds them back, and the timer that goes on with them.

use maitred_http::{RequestHead, target};
use maitred_io::clock;

use super::{Connection, Context, NEVER};
use crate::group::Group;
use crate::group::slots::Token;
use crate::limits::Shaper;
use crate::writer::Sent;

impl Connection {
    /// A response begins, run by this pool or by none: whether and how it is limited. One load where nothing is.
    pub(super) fn shape(&mut self, context: &Context<'_>, pool: Option<usize>, head: &RequestHead) {
        let bandwidth = &context.group.site.guard.bandwidth;
        if !bandwidth.is_on() {
            // What waits of an earlier one goes on as it began, without a limit.
            if self.writer.is_none() {
                self.shaper = None;
            }
            return;
        }
        let mut path = Vec::new();
        if bandwidth.has_routes() && target::normalise(head.path(), &mut path).is_err() {
            // As for pools: an escape more does not lead past a limit.
            target::percent_decode(head.path(), &mut path);
        }
        self.shaper.get_or_insert_with(|| Box::new(Shaper::new())).set(bandwidth.shared(pool, &path));
    }

    /// Sends what the writer has, as far as limits and the socket allow.
    pub(super) fn send_writer(&mut self, group: &Group) -> Sent {
        let Some(writer) = &mut self.writer else { return Sent::All };
        match &mut self.shaper {
            None => writer.send(&mut self.transport),
            Some(shaper) => {
                let bandwidth = &group.site.guard.bandwidth;
                shaper.send(bandwidth, writer, &mut self.transport, clock::monotonic())
            }
        }
    }

    /// A limit holds back the rest: the timer goes on with it, and the peer is not waited for meanwhile.
    pub(super) fn hold(&mut self, group: &Group, token: Token) {
        if let Some(writer) = &mut self.writer {
            writer.patience = None;
        }
        self.note_waiting(group, token);
        self.deadline = NEVER;
        self.arm(group, token);
    }

    /// When the timer has to go on with a response that is held back.
    pub(super) fn resumes_at(&self) -> u64 {
        self.shaper.as_ref().map_or(NEVER, |shaper| shaper.resume())
    }

    /// Bytes per second that the present response may leave with at most.
    pub(super) fn bandwidth(&self, group: &Group) -> Option<u64> {
        self.shaper.as_ref()?.limit(&group.site.guard.bandwidth)
    }
}
