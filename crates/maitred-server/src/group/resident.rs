//! What lives in a slot: something with a state of its own that takes turns.

use std::sync::Arc;

use maitred_turns::{Jobs, Signals, TurnContext};

use super::slots::{Key, Token};
use super::{Group, Job};
use crate::listener::Listening;

/// What a turn may use.
pub(crate) struct Context<'a, R: Resident> {
    pub(crate) group: &'a Arc<Group<R>>,
    pub(crate) token: Token,
    /// In monotonic nanoseconds.
    pub(crate) now: u64,
    pub(crate) scratch: &'a mut R::Scratch,
    /// The requests that have to be run.
    pub(crate) jobs: Jobs<Job>,
}

impl<R: Resident> Context<'_, R> {
    /// The name of an exchange of this resident.
    pub(crate) fn key(&self, stream: u32) -> Key {
        Key { token: self.token, stream }
    }
}

/// How a turn ended.
pub(crate) enum Turn {
    /// An event or a deadline will bring the next one.
    Wait,
    /// The budget is used up: go on after the others.
    Later,
    /// It is over.
    Close,
}

/// See the module text. Every function is called under the slot's lock, and never waits.
pub(crate) trait Resident: Sized + Send + 'static {
    /// What a thread keeps from turn to turn.
    type Scratch: TurnContext;

    /// Does what the signals ask for.
    fn turn(&mut self, context: &mut Context<'_, Self>, signals: Signals) -> Turn;

    /// Tells the budget of memory what has changed.
    fn account(&mut self, group: &Group<Self>, token: Token);

    /// It is over, and taken out of its slot.
    fn leave(&mut self, group: &Group<Self>);

    /// The server ends at once: whoever waits for something of it is told.
    fn cut(&mut self);

    /// Sends the complete response that a handler has left.
    fn send_last(&mut self, group: &Group<Self>, token: Token, now: u64);

    /// A turn is over, without the lock: what it has left in the thread's memory is put away.
    fn end_turn(group: &Group<Self>, scratch: &mut Self::Scratch, now: u64);

    /// A turn has panicked: nothing of it may be left.
    fn clear(scratch: &mut Self::Scratch);

    /// Takes what waits at a listener.
    fn accept(group: &Arc<Group<Self>>, listening: &Listening, token: Token);

    /// Takes a connection that other processes would take, too. Whether one waited.
    fn take_deferred(group: &Arc<Group<Self>>) -> bool;

    /// Takes what waits at a listener, and closes it.
    fn close_listener(group: &Arc<Group<Self>>, listening: &Listening, token: Token);
}
