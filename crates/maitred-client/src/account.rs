//! The account of a call while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Phase;
use crate::key::Key;
use crate::report::{End, Observer, Report};

/// The report of a call so far. The observer gets it once: at the end, or when this is dropped.
pub(crate) struct Account {
    pub(crate) report: Report,
    begun: Instant,
    /// The time of the last step: a drop knows no time of its own.
    last: Instant,
    /// The first byte of the request was sent, and none of the response has come.
    asked: Option<Instant>,
    observer: Option<(Arc<dyn Observer>, u64)>,
    /// The phase that the observer knows.
    phase: Option<Phase>,
    key: Arc<Key>,
}

impl Account {
    pub(crate) fn begin(observer: Option<&Arc<dyn Observer>>, key: &Arc<Key>, now: Instant) -> Self {
        let observer = observer.map(|observer| (Arc::clone(observer), observer.begun(key)));
        let key = Arc::clone(key);
        Self { report: Report::default(), begun: now, last: now, asked: None, observer, phase: None, key }
    }

    pub(crate) fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The end of a time limit that begins with the call.
    pub(crate) fn deadline(&self, limit: Option<Duration>) -> Option<Instant> {
        self.begun.checked_add(limit?)
    }

    pub(crate) fn last(&self) -> Instant {
        self.last
    }

    pub(crate) fn note(&mut self, now: Instant) {
        self.last = self.last.max(now);
    }

    pub(crate) fn since_begun(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.begun)
    }

    /// The number by which the observer knows the call.
    pub(crate) fn number(&self) -> Option<u64> {
        self.observer.as_ref().map(|(_, number)| *number)
    }

    /// The call is in this phase now.
    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.phase != Some(phase)
            && let Some((observer, number)) = &self.observer
        {
            self.phase = Some(phase);
            observer.phase(*number, phase);
        }
    }

    pub(crate) fn sent(&mut self, bytes: usize, now: Instant) {
        self.report.sent += bytes as u64;
        if self.report.first_byte.is_none() {
            self.asked.get_or_insert(now);
        }
    }

    pub(crate) fn received(&mut self, bytes: usize, now: Instant) {
        self.report.received += bytes as u64;
        self.enter(Phase::Read);
        if let Some(asked) = self.asked.take() {
            self.report.first_byte = Some(now.saturating_duration_since(asked));
        }
    }

    /// The request is sent a second time.
    pub(crate) fn retry(&mut self) {
        (self.report.retried, self.report.reused, self.asked) = (true, false, None);
        // A server that gave up the idle connection may have said so.
        self.report.first_byte = None;
    }

    pub(crate) fn end(&mut self, end: End) {
        self.report.total = self.since_begun(self.last);
        self.report.end = end;
        if let Some((observer, number)) = self.observer.take() {
            observer.ended(number, &self.key, &self.report);
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("key", &self.key).field("report", &self.report).finish()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.observer.is_some() {
            self.end(End::Dropped);
        }
    }
}
