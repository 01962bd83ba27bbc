//! A mutex with a name that counts how often threads waited for it, and how long.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// A mutex that knows its name, how often it was taken, how often a thread had to wait for it, and for how long.
///
/// An uncontended acquisition reads no clock and adds no atomic read-modify-write: the thread that holds the lock
/// writes the counts. If a thread panics while it holds the lock, the next one gets the value as it was left; a value
/// that can be left half changed needs care of its own.
///
/// A `Condvar` works with the guard; the time in `wait` and the acquisition at its end are not counted.
pub struct NamedLock<T> {
    name: Cow<'static, str>,
    acquisitions: AtomicU64,
    contended: AtomicU64,
    wait_total: AtomicU64,
    wait_max: AtomicU64,
    mutex: Mutex<T>,
}

/// The counts of a [`NamedLock`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSnapshot {
    /// The lock's name.
    pub name: Cow<'static, str>,
    /// How often it was taken.
    pub acquisitions: u64,
    /// How often it was held by another thread when it was asked for, and then taken.
    pub contended: u64,
    /// Time spent waiting in all contended acquisitions.
    pub wait_total: Duration,
    /// The longest of these waits.
    pub wait_max: Duration,
}

impl LockSnapshot {
    /// Adds the counts of another lock, as if both were one.
    pub fn add(&mut self, other: &Self) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.wait_total += other.wait_total;
        self.wait_max = self.wait_max.max(other.wait_max);
    }
}

impl<T> NamedLock<T> {
    /// A free lock around `value`.
    pub const fn new(name: &'static str, value: T) -> Self {
        Self::with_name(Cow::Borrowed(name), value)
    }

    /// A lock with a name that is made at run time.
    pub const fn with_name(name: Cow<'static, str>, value: T) -> Self {
        Self {
            name,
            acquisitions: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            wait_total: AtomicU64::new(0),
            wait_max: AtomicU64::new(0),
            mutex: Mutex::new(value),
        }
    }

    /// Takes the lock, waiting if need be.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.lock_contended())
    }

    /// Takes the lock if it is free. A refusal is not counted.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = match self.mutex.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        add(&self.acquisitions, 1);
        Some(guard)
    }

    /// The counts now.
    pub fn snapshot(&self) -> LockSnapshot {
        LockSnapshot {
            name: self.name.clone(),
            acquisitions: self.acquisitions.load(Relaxed),
            contended: self.contended.load(Relaxed),
            wait_total: Duration::from_nanos(self.wait_total.load(Relaxed)),
            wait_max: Duration::from_nanos(self.wait_max.load(Relaxed)),
        }
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let begin = Instant::now();
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        add(&self.acquisitions, 1);
        add(&self.contended, 1);
        add(&self.wait_total, wait);
        if self.wait_max.load(Relaxed) < wait {
            self.wait_max.store(wait, Relaxed);
        }
        guard
    }
}

/// Adds without a read-modify-write: the caller holds the lock, so no other thread writes.
fn add(count: &AtomicU64, amount: u64) {
    count.store(count.load(Relaxed).wrapping_add(amount), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn uncontended_acquisitions_have_no_wait() {
        let lock = NamedLock::new("queue", 0);
        for _ in 0..10 {
            *lock.lock() += 1;
        }
        let snapshot = lock.snapshot();
        assert_eq!((&*snapshot.name, snapshot.acquisitions, snapshot.contended), ("queue", 10, 0));
        assert_eq!((snapshot.wait_total, snapshot.wait_max), (Duration::ZERO, Duration::ZERO));
    }

    /// One acquisition of `lock` by another thread while it is held; returns how long that thread saw it take.
    fn contend(lock: &NamedLock<()>) -> Duration {
        const HELD: Duration = Duration::from_millis(2);
        let guard = lock.lock();
        let (refused, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let waiter = scope.spawn(move || {
                assert!(lock.try_lock().is_none());
                let begin = Instant::now();
                refused.send(()).expect("the holder listens");
                drop(lock.lock());
                begin.elapsed()
            });
            waiting.recv().expect("the waiter was refused");
            let begin = Instant::now();
            while begin.elapsed() < HELD {
                thread::yield_now();
            }
            drop(guard);
            waiter.join().expect("waiter")
        })
    }

    /// The test cannot see when the waiter has arrived inside `lock`, so the attempt is repeated until it has.
    #[test]
    fn a_wait_is_counted_and_measured() {
        for _ in 0..1000 {
            let lock = NamedLock::new("queue", ());
            let waited = contend(&lock);
            let snapshot = lock.snapshot();
            assert_eq!(snapshot.acquisitions, 2);
            assert!(snapshot.wait_max <= waited);
            assert_eq!(snapshot.wait_total, snapshot.wait_max);
            if snapshot.contended == 1 {
                assert!(snapshot.wait_max > Duration::ZERO);
                return;
            }
            assert_eq!((snapshot.contended, snapshot.wait_max), (0, Duration::ZERO));
        }
        panic!("a lock that is held for 2 ms is contended in one of 1,000 attempts");
    }

    #[test]
    fn acquisitions_of_several_threads_are_all_counted() {
        let lock = NamedLock::new("sum", 0_u64);
        // Held until all threads have been refused, so that contention is certain.
        let guard = lock.lock();
        let start = std::sync::Barrier::new(5);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(lock.try_lock().is_none());
                    start.wait();
                    for _ in 0..2000 {
                        *lock.lock() += 1;
                    }
                });
            }
            start.wait();
            drop(guard);
        });
        assert_eq!(*lock.lock(), 8000);
        let snapshot = lock.snapshot();
        assert_eq!(snapshot.acquisitions, 8002);
        assert!(snapshot.contended <= 8000);
        assert!(snapshot.wait_max <= snapshot.wait_total);
    }

    #[test]
    fn a_panic_of_the_holder_does_not_spread() {
        let lock = NamedLock::new("state", 7);
        let holder = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _guard = lock.lock();
                    std::panic::resume_unwind(Box::new("the holder ends"));
                })
                .join()
        });
        assert!(holder.is_err());
        assert_eq!(*lock.lock(), 7);
        assert_eq!(lock.snapshot().contended, 0);
    }
}
