//! The ready list: connections with work to do that the poller will not report. Every thread that polls looks here before it waits.
//!
//! Pipelined requests after the fairness budget, connections whose exchange has ended elsewhere, due deadlines, and events of a wait that
//! fetched several.

use std::collections::VecDeque;

use maitred_io::sync::NamedLock;
use maitred_io::sync::atomic::{AtomicUsize, Ordering};
use maitred_turns::Signals;

pub(crate) struct Ready {
    list: NamedLock<VecDeque<(u64, Signals)>>,
    length: AtomicUsize,
}

impl Ready {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { list: NamedLock::with_name(name.into(), VecDeque::new()), length: AtomicUsize::new(0) }
    }

    pub(crate) fn lock_snapshot(&self) -> maitred_stats::LockSnapshot {
        self.list.snapshot()
    }

    pub(crate) fn push(&self, token: u64, signals: Signals) {
        self.extend(std::iter::once((token, signals)));
    }

    pub(crate) fn extend(&self, items: impl ExactSizeIterator<Item = (u64, Signals)>) {
        if items.len() == 0 {
            return;
        }
        let mut list = self.list.lock();
        list.extend(items);
        self.length.store(list.len(), Ordering::SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<(u64, Signals)> {
        if self.is_empty() {
            return None;
        }
        let mut list = self.list.lock();
        let first = list.pop_front();
        self.length.store(list.len(), Ordering::SeqCst);
        first
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
