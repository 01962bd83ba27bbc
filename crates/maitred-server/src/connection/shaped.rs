//! Rate limits of responses, and the timer that goes on with a response that is held back.

use maitred_http::{RequestHead, target};
use maitred_io::clock;
use maitred_limits::Shaper;

use super::framed::Queue;
use super::own_limits::OwnLimits;
use super::wire::Wire;
use super::writer::{MAX_BYTES_A_TURN, Sent};
use super::{Context, Group, NEVER};

impl Wire {
    /// Sets the rate limit of a response that begins; the pool is none for the engine's own. Costs one load where no
    /// limit is set.
    pub(super) fn shape(
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

    /// Sends queued bytes as far as limits and the socket allow.
    pub(super) fn send_writer(&mut self, group: &Group) -> Sent {
        let Some(writer) = &mut self.writer else { return Sent::All };
        match &mut self.shaper {
            None => writer.send(&mut self.transport),
            Some(shaper) => {
                let (bandwidth, now) = (&group.site.guard.bandwidth, clock::monotonic());
                let before = writer.sent();
                loop {
                    let granted = shaper.grant_all(bandwidth, |most| writer.waiting(most), now);
                    if granted == 0 {
                        return Sent::Held;
                    }
                    let at = writer.sent();
                    let sent = writer.send_up_to(&mut self.transport, granted);
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

impl OwnLimits {
    /// Sets these limits for a response.
    pub(super) fn set(self, shaper: &mut Option<Box<Shaper>>, send_timeout: &mut u32) {
        *send_timeout = self.send_timeout.unwrap_or(0);
        match self.bandwidth {
            Some(bytes @ 1..) => {
                shaper.get_or_insert_with(|| Box::new(Shaper::default())).limit_response(bytes);
            }
            _ => shaper.iter_mut().for_each(|shaper| shaper.limit_response(0)),
        }
    }
}
