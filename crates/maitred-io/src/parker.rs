//! Where one thread sleeps until it is called or a limit is over.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard};

/// A place for one sleeper. A call that comes before the sleep ends it at once; calls do not add up.
#[derive(Default)]
pub struct Parker {
    called: Mutex<bool>,
    wake: Condvar,
}

impl Parker {
    /// Calls the thread that sleeps here, or will.
    pub fn unpark(&self) {
        *self.lock() = true;
        self.wake.notify_one();
    }

    /// Sleeps until called, at most for `limit` (`None`: for ever). Whether it was called.
    pub fn park(&self, limit: Option<Duration>) -> bool {
        let mut called = self.lock();
        if !*called {
            called = match limit {
                Some(limit) => self.wait(called, limit),
                None => self.wait_for_call(called),
            };
        }
        std::mem::take(&mut *called)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.called.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait_for_call<'a>(&self, mut called: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
        while !*called {
            called = self.wake.wait(called).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        called
    }

    #[cfg(not(shuttle))]
    fn wait<'a>(&'a self, called: MutexGuard<'a, bool>, limit: Duration) -> MutexGuard<'a, bool> {
        self.wake
            .wait_timeout_while(called, limit, |called| !*called)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .0
    }

    /// Time is not simulated: a limit is over whenever the scheduler comes back to this thread, and one of an hour never.
    #[cfg(shuttle)]
    fn wait<'a>(&'a self, called: MutexGuard<'a, bool>, limit: Duration) -> MutexGuard<'a, bool> {
        if limit >= Duration::from_secs(3600) {
            return self.wait_for_call(called);
        }
        drop(called);
        crate::sync::thread::yield_now();
        self.lock()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_call_before_the_sleep_ends_it_at_once() {
        let parker = Parker::default();
        parker.unpark();
        parker.unpark();
        assert!(parker.park(None));
        assert!(!parker.park(Some(Duration::ZERO)));
    }
}
