//! A language whose application code runs in an event loop of its own (asyncio).
//!
//! The loop polls for the server: it watches two descriptors, and when one of them is readable it calls
//! [`Turns::turn`], which reads, parses, calls the handler on this thread, and writes.
//!
//! ```text
//! event loop: select --> descriptor readable --> turn() --> Handler::handle(exchange) --> a task
//!                ^                                 |  More: once again, after other callbacks
//!                `---------------------------------'
//! ```
//! While the loop stands still in application code, the server's backup poller serves everything that needs no
//! application, and the requests for it wait in order.

use std::os::fd::BorrowedFd;

/// An event loop that a language brings.
pub trait EventLoop: Send + Sync + 'static {
    /// Has the loop poll from now on: it watches the descriptors and takes the turns, on one thread, until a turn says
    /// that the server has ended. Called once; returns at once.
    fn attach(&self, turns: Box<dyn Turns>);

    /// The loop has not come back to the server although something waits. Called by the backup poller, which has
    /// no interpreter and must not wait: once when it takes over, with `true`, and once when the loop is
    /// back, with `false`, unless the server ends before.
    fn stands_still(&self, still: bool);

    /// Begins a turn; returns the work of the last turn's handlers after it. A loop whose handlers do all within their
    /// turn leaves this and the next one out.
    fn begin_turn(&self) -> Later {
        Later::default()
    }

    /// The work that handlers of this turn have left for later, so far.
    fn later(&self) -> Later {
        Later::default()
    }
}

/// The work of handlers of a loop's turn outside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// The number of handlers, of those called in this turn, that begin after it.
    pub handlers: u32,
    /// The time that they took up to their first wait, in nanoseconds.
    pub nanos: u64,
}

/// The server's calls for an event loop.
pub trait Turns: Send {
    /// The descriptors to watch for reading, as a level. They stay open as long as this value. The loop
    /// reads nothing from them.
    fn descriptors(&self) -> [BorrowedFd<'_>; 2];

    /// Serves all ready connections, on the calling thread. Never waits. Handlers are called within it.
    fn turn(&mut self) -> Turned;

    /// Sends responses that handlers left to be sent at the end of a turn, and nothing else. For answers that were
    /// completed outside of a turn.
    fn flush(&mut self);
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// A descriptor will tell when there is more.
    Wait,
    /// More work is there: another turn, after the other callbacks that are due in the loop.
    More,
    /// The server has ended: no further turn; drop the value.
    Ended,
}
