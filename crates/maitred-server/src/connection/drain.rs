//! The drain of one connection: the engine asks handlers to end, and abandons those whose peers are gone.
//!
//! ```text
//! running, a stream of events  --drain begins--> asked to end --the grace is over--> ended: its handler cannot send any more
//! running, a stream of records --drain begins--> asked to end
//! running, its peer is gone    --drain begins--> abandoned: the drain does not wait for its handler
//! running                      --drain begins--> its observer is told: a handler that only waits for its peer can ask, and end
//! ```
//! A stream of events (`text/event-stream`) has no end of its own, and its client comes again when it ends. Every other
//! response has the whole time of the drain.

use maitred_exchange::Endless;
use maitred_log::End;
use maitred_turns::Signals;

use super::carrier::Carrier;
use super::websocket::close_websockets;
use super::wire::Wire;
use super::{Context, Group, Key, Turn};

/// Marks a response that need not have an end of its own.
pub(super) fn begin_endless(carrier: &mut impl Carrier, group: &Group, key: Key, endless: Endless) {
    let Some(stream) = carrier.stream_of(key) else { return };
    stream.endless = Some(endless);
    if group.is_draining() {
        stream.ask_to_end();
    }
}

/// Asks the handlers of endless responses to end, or ends their responses when the grace is over.
pub(super) fn end_events(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    context: &mut Context<'_>,
    signals: Signals,
) -> Option<Turn> {
    if !signals.any(Signals::DRAIN) {
        return None;
    }
    close_websockets(carrier, wire, context);
    let mut events = Vec::new();
    for stream in carrier.each_stream().filter(|stream| stream.running) {
        match stream.endless {
            None => stream.tell(),
            Some(endless) => {
                stream.ask_to_end();
                events.extend((endless == Endless::Events).then_some(stream.number));
            }
        }
    }
    if events.is_empty() || !context.group.groups.ends_events() {
        return None;
    }
    carrier.end_responses(wire, context, &events, End::Drain)
}
