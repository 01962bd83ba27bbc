//! The request that each wait was for.
//!
//! A request waits from the moment it is complete until a thread has it. The wait was for the request that freed that
//! thread: the last one of its pool that ended before. An end frees one thread, for one request:
//!
//! ```text
//! thread 1  |---- a ----|-- c --|-- e --|        c waited for a, e for c
//! thread 2  |------ b ------|-- d --|            d for b
//! ```
//! So a log shows the threads, though it does not name them. While a request waits, the thread that it gets is never
//! free: each part of its wait belongs to one request on that thread, and the wait was for the last of them. A
//! **cascade** is a request with all waits of others while it had their thread; together the cascades are the waits.
//!
//! A log does not show how many threads a pool had: the report takes the most requests that had one at once. A wait
//! with fewer than that is shown apart. A wait within which no request has ended belongs to no request: a thread was
//! still being made, or the time was spent in the socket's buffer.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::read::{Log, Request};

/// A station may be so much later than the log has it: each span before it is cut to microseconds.
const CUT: u64 = 5;

/// Ends that lie closer together free their threads in this order. It is longer than a thread takes to get its next
/// request. After an earlier end no request got the thread: it was told to end, or is kept for other routes.
const TOGETHER: u64 = 1000;

#[derive(Default)]
pub(super) struct WaitReport {
    pub(super) waits: usize,
    /// Waits that began while as many requests ran as ever did in their pool.
    pub(super) held: usize,
    pub(super) most: Vec<usize>,
    /// The cascades, the one in which others waited longest first.
    pub(super) cascades: Vec<Cascade>,
    pub(super) cause: Vec<Option<usize>>,
}

/// A request, and those that waited while it had the thread that they got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cascade {
    pub(super) request: usize,
    pub(super) waits: usize,
    /// How long they have waited for it, together and at most, in microseconds.
    pub(super) waited: u64,
    pub(super) longest: u64,
}

/// Looks through requests in the order of their start; waits are longer than `least` microseconds.
pub(super) fn find(log: &Log, least: u64) -> WaitReport {
    let mut found = WaitReport { cause: vec![None; log.requests.len()], ..WaitReport::default() };
    for pool in 0..log.pools.len() {
        let of_pool = |request: &Request| request.pool.is_some_and(|own| own as usize == pool);
        let mut runs: Vec<usize> =
            (0..log.requests.len()).filter(|index| of_pool(&log.requests[*index])).collect();
        runs.sort_by_key(|index| (log.requests[*index].begun(), log.requests[*index].complete()));
        count_waits(log, &runs, least, &mut found);
        for thread in threads(log, &runs) {
            add_cascades(log, &thread, least, &mut found);
        }
    }
    found.cascades.sort_by_key(|cascade| (Reverse(cascade.waited), cascade.request));
    found
}

fn count_waits(log: &Log, runs: &[usize], least: u64, found: &mut WaitReport) {
    let begins: Vec<u64> = runs.iter().map(|index| log.requests[*index].begun()).collect();
    let mut ends: Vec<u64> = runs.iter().map(|index| log.requests[*index].done()).collect();
    ends.sort_unstable();
    let before = |times: &[u64], time: u64| times.partition_point(|each| *each <= time);
    let running = |time: u64| before(&begins, time).saturating_sub(before(&ends, time + CUT));
    let most = begins.iter().map(|begin| running(*begin)).max().unwrap_or(0);
    let waits = runs.iter().map(|index| &log.requests[*index]).filter(|request| request.queue() > least);
    for request in waits {
        found.waits += 1;
        found.held += usize::from(running(request.complete()) >= most);
    }
    found.most.push(most);
}

/// The requests of each thread, one behind the other as long as the next one waited. `runs` are in the order in which they began.
fn threads(log: &Log, runs: &[usize]) -> Vec<Vec<usize>> {
    let mut threads: Vec<Vec<usize>> = Vec::new();
    // Ends whose thread has got no request yet, with the thread.
    let mut free: BTreeSet<(u64, usize)> = BTreeSet::new();
    for index in runs {
        let request = &log.requests[*index];
        let freed = freed_for(&free, request);
        let thread = freed.map_or(threads.len(), |(_, thread)| thread);
        match freed {
            Some(end) => {
                free.remove(&end);
                threads[thread].push(*index);
            }
            None => threads.push(vec![*index]),
        }
        free.insert((request.done(), thread));
    }
    threads
}

/// The end that has freed the thread that a request got.
fn freed_for(free: &BTreeSet<(u64, usize)>, request: &Request) -> Option<(u64, usize)> {
    let (from, until) = (request.complete() + 1, request.begun() + CUT);
    if request.queue() == 0 {
        return None;
    }
    let (last, _) = free.range((from, 0)..=(until, usize::MAX)).next_back()?;
    free.range((from.max(last.saturating_sub(TOGETHER)), 0)..).next().copied()
}

/// Divides the waits of one thread's requests among those that had it.
fn add_cascades(log: &Log, thread: &[usize], least: u64, found: &mut WaitReport) {
    let begun = |at: usize| log.requests[thread[at]].begun();
    // The changes of how many waited through a whole run, from place to place.
    let mut through = vec![0i64; thread.len() + 1];
    let mut cascades: Vec<Cascade> = (thread.iter())
        .map(|request| Cascade { request: *request, waits: 0, waited: 0, longest: 0 })
        .collect();
    for at in 1..thread.len() {
        let request = &log.requests[thread[at]];
        if request.queue() <= least {
            continue;
        }
        found.cause[thread[at]] = Some(thread[at - 1]);
        // The request that had the thread when the wait began.
        let from = request.complete();
        let first = thread[..at].partition_point(|index| log.requests[*index].begun() <= from);
        let first = first.saturating_sub(1);
        let part = begun(first + 1) - from.max(begun(first));
        cascades[first].waits += 1;
        cascades[first].waited += part;
        cascades[first].longest = cascades[first].longest.max(part);
        through[first + 1] += 1;
        through[at] -= 1;
    }
    let mut waiting = 0;
    for at in 0..thread.len() {
        waiting += through[at];
        if waiting > 0 {
            let whole = begun(at + 1) - begun(at);
            cascades[at].waits += waiting as usize;
            cascades[at].waited += whole * waiting as u64;
            cascades[at].longest = cascades[at].longest.max(whole);
        }
    }
    found.cascades.extend(cascades.into_iter().filter(|cascade| cascade.waits > 0));
}
