//! Counts, times and traces of a running server.

use std::collections::BTreeMap;
use std::sync::Arc;

use maitred_exchange::Site;
use maitred_spool::{BodyMemoryFigures, Spooler};
use maitred_stats::exposition::Format;
use maitred_stats::{LockSnapshot, each_counter};

use super::{Dispatched, RecentRequests};
use crate::connection::Group;
use maitred_exchange::site::{self, Calls, Statistics, Totals};

/// The counts and times of a server since its start, and its last requests.
#[derive(Clone, Copy)]
pub struct ServerFigures<'s>(pub(crate) &'s [Arc<Group>]);

impl<'s> ServerFigures<'s> {
    fn first(self) -> &'s Group {
        &self.0[0]
    }

    fn site(self) -> &'s Site {
        &self.0[0].site
    }

    /// The present counts.
    pub fn snapshot(self) -> Snapshot {
        let counters = &self.site().counters;
        let polling = self.0.iter().map(|group| group.scheduler.threads(false));
        Snapshot {
            connections: counters.connections.total(),
            open: self.first().groups.open() as u64,
            requests: counters.requests.total(),
            refused: counters.refused.total(),
            errors: counters.errors.total(),
            cut: counters.cut.total(),
            timeouts: counters.timeouts.total(),
            body_bytes: counters.body_bytes.total(),
            threads: (polling.sum::<usize>() + self.first().scheduler.threads(true)) as u64,
        }
    }

    /// The figures of exchanges since the start: by listener, pool, route and class of status.
    pub fn statistics(self) -> Statistics {
        self.site().figures.snapshot()
    }

    /// The calls to other servers.
    pub fn calls(self) -> &'s Arc<Calls> {
        &self.site().figures.calls
    }

    /// The sums of these figures: of all exchanges, and by class of status. Takes a tenth of the time.
    pub fn totals(self) -> Totals {
        self.site().figures.totals()
    }

    /// Calls `visit` with each counter, by series as on a page, except counters outside the [memory of the
    /// figures](crate::Settings::figures): of locks, caches, processor time and lines of a log. A series may come
    /// several times.
    pub fn each_counter(self, visit: impl FnMut(&str, u64)) {
        each_counter((*self.site().counted).as_ref(), visit);
    }

    /// Publishes all counts to processes that read the [memory of the figures](crate::Settings::figures).
    pub fn settle(self) {
        self.site().figures.settle();
    }

    /// All figures as text in this format.
    pub fn page(self, format: Format) -> String {
        self.first().metrics(format)
    }

    /// The figures as text in this format, without the statistics of exchanges and without an end, for merging the
    /// figures of several processes ([`merge_pages`](crate::figures::merge_pages)).
    pub fn own_page(self, format: Format) -> String {
        self.first().own_metrics(format)
    }

    /// Counts of HTTP/2 connections above zero, by name of the figure.
    pub fn http2(self) -> Vec<(String, u64)> {
        self.site().http2_counters.totals()
    }

    /// Number of open connections with HTTP/2.
    pub fn http2_open(self) -> u64 {
        self.site().http2_counters.open()
    }

    /// Counts of WebSockets above zero, by name of the figure.
    pub fn websockets(self) -> Vec<(String, u64)> {
        self.site().websocket_counters.totals()
    }

    /// Number of open WebSockets.
    pub fn websockets_open(self) -> u64 {
        self.site().websocket_counters.open()
    }

    /// Counts of TLS handshakes above zero, by name of the figure.
    pub fn tls_handshakes(self) -> Vec<(String, u64)> {
        self.site().handshakes.totals()
    }

    /// Memory of request bodies beyond the memory for one.
    pub fn body_memory(self) -> BodyMemoryFigures {
        self.site().body_budget.figures()
    }

    /// Bytes of bodies that wait to be written to files or are being written, and bytes written.
    pub fn spool_progress(self) -> (u64, u64) {
        self.site().spooler.as_ref().map(Spooler::progress).unwrap_or_default()
    }

    /// The counts of all locks.
    pub fn locks(self) -> Vec<LockSnapshot> {
        self.first().locks()
    }

    /// Traces of the last requests, the latest first: how each got its thread. Empty unless the dispatch trace is on.
    pub fn dispatched(self) -> Vec<Dispatched> {
        self.site().traced.all()
    }

    /// The slowest requests of the last two minutes, and the last failed ones.
    pub fn recent(self) -> RecentRequests {
        self.site().recent.all()
    }
}

/// Counts of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// Requests answered, refused ones not counted.
    pub requests: u64,
    /// Requests refused before they reached a route.
    pub refused: u64,
    /// Answers with a status of 500 or above.
    pub errors: u64,
    /// Responses that did not reach their end.
    pub cut: u64,
    /// Requests answered with 504 in the place of their handler; among the errors, too.
    pub timeouts: u64,
    /// Body bytes of the responses.
    pub body_bytes: u64,
    /// Application threads that exist or have been requested.
    pub threads: u64,
}

impl Snapshot {
    /// The counts of these series; numbers of open connections and threads are not among them.
    #[must_use]
    pub fn of_counters(counters: &BTreeMap<String, u64>) -> Self {
        let count = |name| counters.get(name).copied().unwrap_or_default();
        Self {
            connections: count(site::ACCEPTED_TOTAL),
            open: 0,
            requests: count(site::REQUESTS_TOTAL),
            refused: count(site::REFUSED_TOTAL),
            errors: count(site::ERRORS_TOTAL),
            cut: count(site::CUT_TOTAL),
            timeouts: count(site::TIMEOUTS_TOTAL),
            body_bytes: count(site::BODY_BYTES_TOTAL),
            threads: 0,
        }
    }

    /// Adds the counts of another process.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.open += other.open;
        self.requests += other.requests;
        self.refused += other.refused;
        self.errors += other.errors;
        self.cut += other.cut;
        self.timeouts += other.timeouts;
        self.body_bytes += other.body_bytes;
        self.threads += other.threads;
    }
}
