//! The ready list: what somebody has to look at without the kernel saying so.
//!
//! Pipelined requests after the fairness budget, connections whose exchange has ended elsewhere,
//! due deadlines, and events of a wait that fetched several. Every thread that polls looks here
//! before it waits.

use std::collections::VecDeque;
use std::sync::PoisonError;

use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicUsize, Ordering};

use crate::group::claim::Signals;

/// First in, first out.
#[derive(Default)]
pub(crate) struct Ready {
    list: Mutex<VecDeque<(u64, Signals)>>,
    length: AtomicUsize,
}

impl Ready {
    pub(crate) fn push(&self, token: u64, signals: Signals) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push_back((token, signals));
        self.length.store(list.len(), Ordering::SeqCst);
    }

    pub(crate) fn extend(&self, items: impl ExactSizeIterator<Item = (u64, Signals)>) {
        if items.len() == 0 {
            return;
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.extend(items);
        self.length.store(list.len(), Ordering::SeqCst);
    }

    pub(crate) fn pop(&self) -> Option<(u64, Signals)> {
        if self.is_empty() {
            return None;
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
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
