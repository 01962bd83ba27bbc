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

use maitred_http::ResponseHead;
use maitred_log::End;
use maitred_turns::Signals;

use super::link::Link;
use super::websocket::close_websockets;
use super::wire::Wire;
use super::{Context, Group, Key, Turn};

/// A response without a length that goes on until its handler or its client ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endless {
    /// Server-sent events (HTML Standard): their client comes again.
    Events,
    /// A sequence of records or pictures; some have an end.
    Records,
}

impl Endless {
    /// Prefixes of the media types.
    const TYPES: [(&[u8], Self); 7] = [
        (b"text/event-stream", Self::Events),
        (b"application/x-ndjson", Self::Records),
        (b"application/ndjson", Self::Records),
        (b"application/jsonl", Self::Records),
        (b"application/json-seq", Self::Records),
        (b"application/stream+json", Self::Records),
        (b"multipart/x-mixed-replace", Self::Records),
    ];

    pub(crate) fn of(head: &ResponseHead) -> Option<Self> {
        let kind = head.fields.first("content-type")?;
        let begins =
            |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        Self::TYPES.into_iter().find(|(name, _)| begins(name)).map(|(_, endless)| endless)
    }
}

/// Marks a response that need not have an end of its own.
pub(super) fn begin_endless(link: &mut impl Link, group: &Group, key: Key, endless: Endless) {
    let Some(stream) = link.stream_of(key) else { return };
    stream.endless = Some(endless);
    if group.is_draining() {
        stream.ask_to_end();
    }
}

/// Asks the handlers of endless responses to end, or ends their responses when the grace is over.
pub(super) fn end_events(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    signals: Signals,
) -> Option<Turn> {
    if !signals.any(Signals::DRAIN) {
        return None;
    }
    close_websockets(link, wire, context);
    let mut events = Vec::new();
    for stream in link.each_stream().filter(|stream| stream.running) {
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
    link.end_responses(wire, context, &events, End::Drain)
}
