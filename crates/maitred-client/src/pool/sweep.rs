//! A look at all idle connections, without the lock of the pool.

use std::sync::Arc;
use std::time::Instant;

use super::{Idle, Pool, Shared, hand_over};
use crate::key::Key;

impl<C> Pool<C> {
    /// Takes the idle connections out whose time has passed at `now`, or that `keeps` refuses: those that have ended or sent
    /// unasked bytes. The caller drops them. Meanwhile they count as idle, and a check-out does not find them.
    pub fn sweep(&self, now: Instant, mut keeps: impl FnMut(&C) -> bool) -> Vec<C> {
        let mut left = Vec::new();
        for (key, place) in &mut self.0.lock().places {
            left.extend(place.idle.drain(..).map(|idle| (Arc::clone(key), idle)));
        }
        let mut swept = Swept { shared: &self.0, now, left, kept: Vec::new(), gone: Vec::new() };
        let mut old = Vec::new();
        while let Some((_, idle)) = swept.left.last() {
            let is_kept = idle.until > now && keeps(&idle.connection);
            let Some((key, idle)) = swept.left.pop() else { break };
            if is_kept {
                swept.kept.push((key, idle));
            } else {
                old.push(idle.connection);
                swept.gone.push(key);
            }
        }
        old
    }
}

/// Idle connections that were taken out to be looked at without the lock. They go back when this is dropped, also by a panic.
struct Swept<'a, C> {
    shared: &'a Arc<Shared<C>>,
    now: Instant,
    left: Vec<(Arc<Key>, Idle<C>)>,
    /// The youngest of a key is the first.
    kept: Vec<(Arc<Key>, Idle<C>)>,
    gone: Vec<Arc<Key>>,
}

impl<C> Drop for Swept<'_, C> {
    fn drop(&mut self) {
        let (mut given, mut old) = (Vec::new(), Vec::new());
        let mut inner = self.shared.lock();
        for key in &self.gone {
            inner.place(key).open -= 1;
            inner.open -= 1;
            inner.forget_if_empty(key);
        }
        for (key, idle) in self.kept.drain(..).chain(self.left.drain(..).rev()) {
            if inner.waiting == 0 {
                inner.place(&key).idle.push_front(idle);
            } else {
                given.extend(inner.serve(self.shared, Some((&key, idle)), self.now, &mut old));
            }
        }
        while let Some(handed) = inner.serve(self.shared, None, self.now, &mut old) {
            given.push(handed);
        }
        drop(inner);
        given.into_iter().for_each(hand_over);
    }
}
