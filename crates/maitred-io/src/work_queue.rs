//! Work for threads of its own: it may wait for a disk or a processor while no request waits for it on a thread.
//!
//! Promises: at most `most` items wait; refused items, and those that wait at the end, are dropped, without the lock.
//! Leaves out: the threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded queue of work.
pub struct WorkQueue<T> {
    state: Mutex<State<T>>,
    work: Condvar,
    most: usize,
}

struct State<T> {
    waiting: VecDeque<T>,
    running: usize,
    done: u64,
    ended: bool,
}

impl<T> WorkQueue<T> {
    /// A queue in which at most `most` items may wait.
    pub fn new(most: usize) -> Self {
        let state = Mutex::new(State { waiting: VecDeque::new(), running: 0, done: 0, ended: false });
        Self { state, work: Condvar::new(), most }
    }

    /// False when it cannot be done: too much waits, or the end has come.
    pub fn push(&self, work: T) -> bool {
        self.add(work, VecDeque::push_back)
    }

    /// The same, before all waiting items.
    pub fn push_first(&self, work: T) -> bool {
        self.add(work, VecDeque::push_front)
    }

    fn add(&self, work: T, add: impl FnOnce(&mut VecDeque<T>, T)) -> bool {
        let mut state = self.lock();
        if state.ended || state.waiting.len() >= self.most {
            return false;
        }
        add(&mut state.waiting, work);
        drop(state);
        self.work.notify_one();
        true
    }

    /// How much waits.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// The number of items that wait or are being done, and of those done: two looks show whether the queue moves.
    pub fn progress(&self) -> (u64, u64) {
        let state = self.lock();
        ((state.waiting.len() + state.running) as u64, state.done)
    }

    /// Does all that comes, on the calling thread, until the end.
    pub fn work(&self, mut each: impl FnMut(T)) {
        let mut has_done = false;
        while let Some(work) = self.next(has_done) {
            each(work);
            has_done = true;
        }
    }

    fn next(&self, has_done: bool) -> Option<T> {
        let mut state = self.lock();
        if has_done {
            state.running -= 1;
            state.done += 1;
        }
        while !state.ended {
            if let Some(work) = state.waiting.pop_front() {
                state.running += 1;
                return Some(work);
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Has all threads end after their present item.
    pub fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.work.notify_all();
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn no_more_waits_than_may() {
        let queue = WorkQueue::new(2);
        assert!(queue.push(1) && queue.push_first(0) && !queue.push(2));
        assert_eq!((queue.waiting(), queue.next(false), queue.next(false)), (2, Some(0), Some(1)));
        assert_eq!(queue.progress(), (2, 0), "both are being done");
        assert!(queue.push(2) && queue.next(true) == Some(2));
        assert_eq!(queue.progress(), (2, 1));
    }

    #[test]
    fn items_are_done_until_the_end() {
        let queue = Arc::new(WorkQueue::new(1));
        let (done, hear) = std::sync::mpsc::channel();
        let own = Arc::clone(&queue);
        let thread = std::thread::spawn(move || own.work(|work| done.send(work).expect("somebody hears")));
        for work in 0..3 {
            assert!(queue.push(work));
            assert_eq!(hear.recv(), Ok(work));
        }
        queue.end();
        assert!(thread.join().is_ok() && !queue.push(3));
    }

    #[test]
    fn items_that_wait_at_the_end_are_dropped() {
        let queue = WorkQueue::new(1);
        let work = Arc::new(());
        assert!(queue.push(Arc::clone(&work)));
        queue.end();
        assert_eq!((Arc::strong_count(&work), queue.next(false)), (1, None));
    }
}
