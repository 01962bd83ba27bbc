//! The time limit for the first byte of a handler's response.
//!
//! ```text
//! handler's thread                           connection                        turns
//!   the first byte of the response ---------> not awaited any more
//!                                             504, last response <------------- TIMER, due
//!   everything it sends or reads from then on: as if the peer were gone
//! ```
//! The slot's lock decides which comes first. A complete response that waits to leave with others has begun.
//!
//! Promises: the exchange of a request that was answered here is dead. Nothing of it reaches the connection, which
//! sends its 504 and closes whatever the handler does; the outcome is written down here and nowhere else. A request
//! that waits in a queue can be seen to be dead, and is not run.
//!
//! Leaves out: the handler's thread, which goes on until its application comes back; and a response that has begun,
//! which has no time limit as long as it makes progress.

use super::carrier::Carrier;
use super::wire::Wire;
use super::{Context, Turn};
use maitred_exchange::{Awaited, Stream};

/// Ends the wait for the response, and tells the handler's thread, observer and reader.
fn give_up(context: &Context<'_>, stream: &mut Stream) -> Option<Box<Awaited>> {
    let awaited = stream.awaited.take()?;
    context.group.site.counters.timeouts.add(1);
    if let Some(group) = stream.flags().end().and_then(|number| context.group.groups.find(number)) {
        group.scheduler.lose_thread(awaited.pool, &group);
    }
    if let Some(observer) = stream.observer.take() {
        observer.timed_out();
    }
    stream.keeping.tell();
    Some(awaited)
}

/// Answers the requests whose time limit has passed; none if the turn goes on.
pub(super) fn check_request(
    carrier: &mut impl Carrier,
    wire: &mut Wire,
    context: &mut Context<'_>,
) -> Option<Turn> {
    if context.now < carrier.request_due() {
        return None;
    }
    let now = context.now;
    let mut late = Vec::new();
    for stream in carrier.each_stream().filter(|stream| stream.response_due() <= now) {
        if stream.waits_for_body() {
            // The handler waits for the peer, and body-timeout ends that wait.
            stream.put_off();
        } else {
            late.push(stream.number);
        }
    }
    for number in late {
        let key = context.key(number);
        let Some(mut stream) = carrier.take_stream(key) else { continue };
        let Some(awaited) = give_up(context, &mut stream) else { continue };
        if let Some(turn) = carrier.answer_late(wire, context, stream, *awaited) {
            return Some(turn);
        }
    }
    None
}
