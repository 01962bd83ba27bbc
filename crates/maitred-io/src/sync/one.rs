//! One mutex in the place of all named locks: what `bench/locks` holds separate ones against. No product has it.
//!
//! A thread takes it with the first named lock that it holds, and gives it back with the last one. Waits are
//! counted there only: a lock of its own has nobody to wait for. It is taken and counted all the same, which keeps the
//! value safe and costs an uncontended acquisition.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use maitred_stats::{LockSnapshot, NamedLock as Separate};

static ALL: Separate<()> = Separate::new("all", ());

/// What the one mutex has counted.
#[must_use]
pub fn one_lock() -> Option<LockSnapshot> {
    Some(ALL.snapshot())
}

/// A named lock that is held by one thread at most while any other one is.
pub struct NamedLock<T>(Separate<T>);

impl<T> NamedLock<T> {
    /// A free lock around `value`.
    pub const fn with_name(name: Cow<'static, str>, value: T) -> Self {
        Self(Separate::with_name(name, value))
    }

    /// Takes the lock, waiting if need be until no other thread holds any.
    pub fn lock(&self) -> NamedGuard<'_, T> {
        let turn = Turn::take();
        NamedGuard { own: self.0.lock(), _turn: turn }
    }

    /// The acquisitions of this lock, none of them contended.
    pub fn snapshot(&self) -> LockSnapshot {
        self.0.snapshot()
    }
}

/// The value of a lock that is held.
pub struct NamedGuard<'a, T> {
    // Given back in this order: who waits for the turn finds the lock free.
    own: MutexGuard<'a, T>,
    _turn: Turn,
}

impl<T> Deref for NamedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl<T> DerefMut for NamedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.own
    }
}

thread_local! {
    /// How many named locks this thread holds, and the one mutex if it holds any. Not in the guards, because the first
    /// one need not be the last to go.
    static HELD: RefCell<(usize, Option<MutexGuard<'static, ()>>)> = const { RefCell::new((0, None)) };
}

/// A share in this thread's hold of the one mutex. The lock's own guard beside it keeps it on its thread.
struct Turn;

impl Turn {
    fn take() -> Self {
        HELD.with_borrow_mut(|(locks, all)| {
            all.get_or_insert_with(|| ALL.lock());
            *locks += 1;
        });
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|(locks, all)| {
            *locks -= 1;
            if *locks == 0 {
                *all = None;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    // The mutex is the process's, and other tests take it too: what is free may be taken, and counts may be higher.

    fn lock(name: &'static str) -> NamedLock<()> {
        NamedLock::with_name(name.into(), ())
    }

    /// How many locks this thread holds, and whether it holds the mutex.
    fn held() -> (usize, bool) {
        HELD.with_borrow(|(locks, all)| (*locks, all.is_some()))
    }

    fn is_refused_elsewhere() -> bool {
        thread::scope(|scope| scope.spawn(|| ALL.try_lock().is_none()).join().expect("no panic"))
    }

    #[test]
    fn a_thread_has_the_mutex_from_its_first_lock_to_its_last() {
        let (queue, idle) = (lock("queue"), lock("idle"));
        let outer = queue.lock();
        assert_eq!(held(), (1, true));
        drop(idle.lock());
        assert_eq!(held(), (1, true));
        let inner = idle.lock();
        assert_eq!(held(), (2, true));
        // The first one goes first.
        drop(outer);
        assert_eq!(held(), (1, true));
        assert!(is_refused_elsewhere());
        drop(inner);
        assert_eq!(held(), (0, false));
        assert_eq!((queue.snapshot().acquisitions, idle.snapshot().acquisitions), (1, 2));
    }

    /// Nothing tells that the waiter has arrived inside `lock`, so the attempt is repeated until it has.
    #[test]
    fn a_wait_for_another_lock_is_counted_at_the_mutex() {
        const HELD: Duration = Duration::from_millis(2);
        let (queue, idle) = (lock("queue"), lock("idle"));
        let counts = || one_lock().expect("this is the variant");
        let before = counts();
        for attempt in 1..=1000 {
            let guard = queue.lock();
            let (arriving, arrived) = mpsc::channel();
            thread::scope(|scope| {
                let idle = &idle;
                scope.spawn(move || {
                    arriving.send(()).expect("the holder listens");
                    drop(idle.lock());
                });
                arrived.recv().expect("the waiter says so");
                let begin = Instant::now();
                while begin.elapsed() < HELD {
                    thread::yield_now();
                }
                drop(guard);
            });
            let now = counts();
            assert!(now.acquisitions - before.acquisitions >= 2 * attempt);
            assert_eq!((queue.snapshot().contended, idle.snapshot().contended), (0, 0));
            if now.contended > before.contended && now.wait_total > before.wait_total {
                return;
            }
        }
        panic!("a mutex that is held for 2 ms is contended in one of 1,000 attempts");
    }
}
