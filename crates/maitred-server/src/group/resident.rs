//! Occupants of slots: state machines that take turns, connections and calls to other servers.

use std::sync::Arc;

use maitred_turns::{Jobs, Signals, Turn, TurnContext};

use super::slots::{Key, Token};
use super::{Group, Job};
use crate::listener::Listening;

/// Resources of a turn.
pub(crate) struct Context<'a, R: Resident> {
    pub(crate) group: &'a Arc<Group<R>>,
    pub(crate) token: Token,
    /// Time of the turn, in monotonic nanoseconds.
    pub(crate) now: u64,
    pub(crate) scratch: &'a mut R::Scratch,
    /// Requests to run after the turn.
    pub(crate) jobs: Jobs<Job>,
}

impl<R: Resident> Context<'_, R> {
    /// The key of an exchange of this resident.
    pub(crate) fn key(&self, stream: u32) -> Key {
        Key { token: self.token, stream }
    }

    /// Brings the resident another turn, from any thread.
    pub(crate) fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let (group, token) = (Arc::clone(self.group), self.token);
        move || group.resume(token)
    }
}

/// The occupant of a slot.
pub(crate) enum Occupant<R> {
    /// A connection.
    Resident(R),
    /// A call to another server.
    Visitor(Arc<dyn Visitor<R>>),
}

/// An occupant whose turns are outside the lock of its slot: it calls code that may want any slot. The claim alone ensures that it has one
/// turn at a time.
pub(crate) trait Visitor<R: Resident>: Send + Sync {
    /// Goes on. A turn too many does no harm.
    fn turn(&self, group: &Arc<Group<R>>, token: Token) -> Turn;

    /// The server ends at once. No turn runs, and none follows.
    fn cut(&self);
}

/// A resident of a slot; see the module text. Every function is called under the lock of the slot, and never waits.
pub(crate) trait Resident: Sized + Send + 'static {
    /// Memory that a thread keeps from turn to turn.
    type Scratch: TurnContext;

    /// Handles the signals. The thread that polled calls it, one turn of a resident at a time; the jobs of a turn run behind it.
    fn turn(&mut self, context: &mut Context<'_, Self>, signals: Signals) -> Turn;

    /// Reports changes of the held memory to the budget.
    fn account(&mut self, group: &Group<Self>, token: Token);

    /// Gives back everything shared, after the resident was taken out of its slot.
    fn leave(&mut self, group: &Group<Self>);

    /// Tells waiting threads that the server ends at once.
    fn cut(&mut self);

    /// Sends the complete response that a handler of an event loop has left to be sent at the end of the round.
    fn send_what_waits(&mut self, group: &Group<Self>, token: Token, now: u64);

    /// Ends a turn, without the lock: writes down the records that the turn has left in the thread's memory. They are of
    /// answers that did not leave, so their end is `End::Cut`.
    fn end_turn(group: &Group<Self>, scratch: &mut Self::Scratch, now: u64);

    /// Drops all data of a turn that has panicked.
    fn clear(scratch: &mut Self::Scratch);

    /// Takes the connections that wait at a listener.
    fn accept(group: &Arc<Group<Self>>, listening: &Listening, token: Token);

    /// Takes one connection from the shared listeners. Returns whether one waited.
    fn take_deferred(group: &Arc<Group<Self>>) -> bool;

    /// Takes the connections that wait at a listener, and closes the listener.
    fn close_listener(group: &Arc<Group<Self>>, listening: &Listening, token: Token);
}
