//! The order of the locks that a thread may hold, checked in debug builds.
//!
//! 1. the interpreter (a language's own lock),
//! 2. the lock of one slot, which is that of one connection,
//! 3. locks of the engine, which are held for moments.
//!
//! A thread that holds one takes only those behind it. So with a slot's lock a thread takes no second slot's lock (two
//! connections tell each other by token), takes no interpreter, and runs no application code. Release builds check
//! nothing.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static HAS_SLOT: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread holds the lock of a slot, until this is dropped.
#[must_use]
pub struct SlotHeld {
    // It must end on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl SlotHeld {
    /// The calling thread is about to take the lock of a slot.
    ///
    /// # Panics
    /// In debug builds, if it has that of a slot already.
    pub fn begin() -> Self {
        assert_outside("the lock of a second slot is taken");
        if cfg!(debug_assertions) {
            HAS_SLOT.set(true);
        }
        Self { not_send: PhantomData }
    }
}

impl Drop for SlotHeld {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HAS_SLOT.set(false);
        }
    }
}

/// Asserts that the calling thread has no slot's lock, before work that is forbidden with one; `what` names the work in
/// the error.
///
/// # Panics
/// In debug builds, if it has the lock of a slot.
pub fn assert_outside(what: &str) {
    debug_assert!(!HAS_SLOT.get(), "{what} under the lock of a slot (maitred_runtime::lock_order)");
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn one_slot_after_another_is_in_order() {
        drop(SlotHeld::begin());
        drop(SlotHeld::begin());
        assert_outside("the interpreter is taken");
    }

    #[test]
    #[should_panic(expected = "the lock of a second slot is taken under the lock of a slot")]
    fn two_slots_at_once_are_not() {
        let _one = SlotHeld::begin();
        let _other = SlotHeld::begin();
    }

    #[test]
    #[should_panic(expected = "the interpreter is taken under the lock of a slot")]
    fn the_interpreter_comes_before_the_slot() {
        let _slot = SlotHeld::begin();
        assert_outside("the interpreter is taken");
    }
}
