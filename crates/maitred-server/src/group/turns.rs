//! Turns of the residents of slots, and calls to them from outside of a turn.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use maitred_dispatch::panic_text;
use maitred_turns::{Jobs, Signals, Turn, TurnContext};

use super::resident::{Context, Occupant, Resident, Visitor};
use super::slots::{Slot, Token};
use super::{Group, Job};

/// The kind of an occupant that has ended.
#[derive(PartialEq, Eq)]
enum Kind {
    Connection,
    Call,
}

impl<R: Resident> Group<R> {
    /// Takes turns on a connection until no event has come meanwhile.
    pub(super) fn turn(
        self: &Arc<Self>,
        token: Token,
        signals: Signals,
        scratch: &mut R::Scratch,
    ) -> Jobs<Job> {
        let mut jobs = Jobs::none();
        let Some(slot) = self.slots.find(token.slot) else { return jobs };
        if !slot.claim.signal(token.generation, signals) {
            return jobs;
        }
        let mut ended = None;
        let now = scratch.clock_mut().now();
        loop {
            let signals = slot.claim.take();
            let mut place = slot.lock();
            match place.as_mut() {
                Some(Occupant::Resident(resident)) => {
                    let mut context =
                        Context { group: self, token, now, scratch: &mut *scratch, jobs: Jobs::none() };
                    let turn = catch_unwind(AssertUnwindSafe(|| resident.turn(&mut context, signals)));
                    resident.account(self, token);
                    // Taken out in every case: an exchange must not be dropped under the lock.
                    jobs.append(context.jobs);
                    match turn.unwrap_or_else(|panic| self.note_panic(&*panic, scratch)) {
                        Turn::Wait => {}
                        Turn::Later => self.scheduler.ready_next(token.to_u64(), Signals::RESUME),
                        Turn::Close => {
                            ended = Some(Kind::Connection);
                            self.empty(slot, token);
                            if let Some(Occupant::Resident(mut resident)) = place.take() {
                                resident.leave(self);
                            }
                        }
                    }
                    drop(place);
                    R::end_turn(self, scratch, now);
                }
                Some(Occupant::Visitor(visitor)) => {
                    let visitor = Arc::clone(visitor);
                    drop(place);
                    ended = self.turn_of_visitor(slot, token, &*visitor, scratch).then_some(Kind::Call);
                }
                None => {}
            }
            if slot.claim.release() {
                break;
            }
        }
        if let Some(kind) = ended {
            self.slots.give_back(token.slot);
            if kind == Kind::Connection {
                self.count_closed();
            }
        }
        jobs
    }

    /// A turn without the lock of the slot; whether the visitor has ended.
    fn turn_of_visitor(
        self: &Arc<Self>,
        slot: &Slot<Occupant<R>>,
        token: Token,
        visitor: &dyn Visitor<R>,
        scratch: &mut R::Scratch,
    ) -> bool {
        let turn = catch_unwind(AssertUnwindSafe(|| visitor.turn(self, token)));
        match turn.unwrap_or_else(|panic| self.note_panic(&*panic, scratch)) {
            Turn::Wait => false,
            Turn::Later => {
                self.scheduler.ready_next(token.to_u64(), Signals::RESUME);
                false
            }
            Turn::Close => {
                let mut place = slot.lock();
                self.empty(slot, token);
                let taken = place.take();
                drop(place);
                // Its last part may be dropped here, which may run anything.
                drop(taken);
                true
            }
        }
    }

    /// Refuses all further events of the occupant of a slot.
    fn empty(&self, slot: &Slot<Occupant<R>>, token: Token) {
        self.slots.retire(slot);
        self.timers.cancel(token.slot);
    }

    /// Logs a turn that panicked. Only its connection ends.
    fn note_panic(&self, panic: &(dyn Any + Send), scratch: &mut R::Scratch) -> Turn {
        let text = panic_text(panic);
        let log = &self.site.log;
        log.error(format_args!("internal error, please report it: {text}; a connection was closed"));
        R::clear(scratch);
        Turn::Close
    }

    /// Makes a connection ready whose exchange has ended, from any thread.
    pub(crate) fn resume(&self, token: Token) {
        self.scheduler.make_ready(token.to_u64(), Signals::RESUME);
    }

    /// Calls `act` with a connection, if it still exists. Slot and generation are checked under the lock, under which
    /// the connection is also taken out.
    pub(crate) fn with_connection<T>(&self, token: Token, act: impl FnOnce(&mut R) -> T) -> Option<T> {
        let slot = self.slots.find(token.slot)?;
        let mut place = slot.lock();
        match place.as_mut() {
            Some(Occupant::Resident(connection)) if slot.generation() == token.generation => {
                let result = act(connection);
                connection.account(self, token);
                Some(result)
            }
            _ => None,
        }
    }

    /// A slot for a visitor, which [`seat`](Self::seat) gives to it, or `slots.give_back` back.
    pub(crate) fn reserve(&self) -> Option<Token> {
        let (index, slot) = self.slots.take()?;
        Some(Token { slot: index, generation: slot.generation() })
    }

    /// Has a visitor stay in its slot from now on. Its first turn comes by [`resume`](Self::resume).
    pub(crate) fn seat(&self, token: Token, visitor: Arc<dyn Visitor<R>>) {
        if let Some(slot) = self.slots.find(token.slot) {
            *slot.lock() = Some(Occupant::Visitor(visitor));
        }
    }

    /// Ends at once: requests that wait for a thread are refused, connections and calls are cut. Called when
    /// nothing is served any more, but application code may still run.
    pub(crate) fn cut(&self) {
        // Each waiting request holds this group through its responder.
        self.scheduler.discard_queue();
        for slot in self.slots.numbers().skip(self.listeners().len()).filter_map(|slot| self.slots.find(slot))
        {
            self.cut_one(slot);
        }
    }

    fn cut_one(&self, slot: &Slot<Occupant<R>>) {
        let mut place = slot.lock();
        let Some(occupant) = place.take() else { return };
        self.slots.retire(slot);
        match occupant {
            Occupant::Resident(mut resident) => {
                resident.leave(self);
                resident.cut();
                self.count_closed();
            }
            Occupant::Visitor(visitor) => {
                drop(place);
                visitor.cut();
            }
        }
    }

    /// Cuts a visitor that has come when nothing was served any more.
    pub(crate) fn cut_visitor(&self, token: Token) {
        if let Some(slot) = self.slots.find(token.slot).filter(|slot| slot.generation() == token.generation) {
            self.cut_one(slot);
        }
    }
}
