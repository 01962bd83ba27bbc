//! The end of the server, for one connection: what is asked of streams of events, and for whom nobody waits.
//!
//! ```text
//! running, a stream of events --drain begins--> asked to end --the grace is over--> ended: its handler cannot send any more
//! running, its peer is gone   --drain begins--> abandoned: the drain does not wait for its handler
//! ```
//! A stream of events (`text/event-stream`) has no end of its own, and its client comes again when it ends. Every other
//! response has the whole time of the drain.

use maitred_dispatch::Signals;
use maitred_log::End;

use super::stream::Stream;
use super::{Connection, Context, Group, Key, Turn};

impl Connection {
    /// The response to this request is a stream of events.
    pub(crate) fn begin_events(&mut self, group: &Group, key: Key) {
        let Some(stream) = self.stream_of(key) else { return };
        stream.events = true;
        if group.is_draining() {
            stream.ask_to_end();
        }
    }

    /// Asks the handlers of streams of events to end, or ends them where their time is over.
    pub(super) fn end_events(&mut self, context: &mut Context<'_>, signals: Signals) -> Option<Turn> {
        if !signals.any(Signals::DRAIN) {
            return None;
        }
        self.close_websockets(context);
        let mut events = Vec::new();
        for stream in self.each_stream().filter(|stream| stream.running && stream.events) {
            stream.ask_to_end();
            events.push(stream.number);
        }
        if events.is_empty() || !context.group.groups.ends_events() {
            return None;
        }
        if self.protocol.is_framed() {
            for number in events {
                self.reset_stream(context.group, context.key(number), End::Drain);
            }
            return None;
        }
        self.ended_as = End::Drain;
        Some(self.peer_gone(context))
    }

    /// The drain waits for this connection no longer: it only waits for its handler.
    pub(super) fn abandon(&mut self, group: &Group) {
        if !std::mem::replace(&mut self.abandoned, true) {
            group.groups.abandon();
        }
    }
}

impl Stream {
    /// Tells the handler that the server stops.
    fn ask_to_end(&mut self) {
        if !self.flags().is_asked_to_end() {
            self.flags().ask_to_end();
            self.tell();
        }
    }
}
