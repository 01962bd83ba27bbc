//! In a sentence what keeps the server from being faster now, if it can be told from the last seconds.
//!
//! Promises: each rule says what it has seen, with numbers. The first that holds is told; none of them is a proof.

use super::data::{PRESENT, Pool, View};
use super::shown::{self, count, time};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// All is well.
    Calm,
    /// Requests take longer than they need.
    Slow,
    /// Requests fail, or nothing goes on.
    Bad,
}

const ACCEPT: usize = 0;
const GATE: usize = 2;
const RUN: usize = 4;
const WRITE: usize = 5;

/// A span that takes so much of the time is what there is to tell of.
const MOST: f64 = 0.5;

/// Waits for the interpreter are told of from here on: they come on top of what the application does.
const MUCH: f64 = 0.3;

/// A client is slow if its part takes so many seconds.
const SLOW_CLIENT: f64 = 0.05;

/// A route is told of if its requests have taken so many seconds of each second together.
const BUSY_ROUTE: f64 = 0.3;

/// See the module text.
pub(super) fn verdict(view: &View) -> (Weight, String) {
    bad(view)
        .map(|text| (Weight::Bad, text))
        .or_else(|| slow(view).map(|text| (Weight::Slow, text)))
        .unwrap_or_else(|| (Weight::Calm, calm(view)))
}

fn bad(view: &View) -> Option<String> {
    if view.is_draining {
        return Some(format!("The server drains: {} connections are open.", view.connections));
    }
    if let Some(scarce) = &view.low_on {
        return Some(format!("There is little left of: {scarce}. Idle connections are closed."));
    }
    if let Some(pool) = view.pools.iter().find(|pool| pool.stuck > 0) {
        let Pool { name, stuck, .. } = pool;
        return Some(format!("Stuck in requests that have timed out: {} of pool {name}.", threads(*stuck)));
    }
    let errors = view.classes[4] / view.rate.max(f64::MIN_POSITIVE);
    (errors >= 0.05 && view.rate > 0.0)
        .then(|| format!("{} of the answers are errors (5xx).", shown::percent(errors)))
}

fn slow(view: &View) -> Option<String> {
    let all: f64 = view.spans.iter().sum();
    let share = |span: usize| if all > 0.0 { view.spans[span] / all } else { 0.0 };
    let full = view.pools.iter().find(|pool| is_full(pool));
    if share(GATE) >= MUCH && view.spans[GATE] >= 0.001 {
        return Some(format!(
            "The interpreter: requests wait {} of {} for it. More workers help, more threads do not.",
            time(view.spans[GATE]),
            time(all)
        ));
    }
    if let Some(pool) = full {
        let longest = view.running.iter().find(|running| running.pool == pool.name);
        let longest = longest.map(|longest| format!(" The longest has run for {}.", time(longest.seconds)));
        return Some(format!(
            "All busy: {} of pool {}, and {} requests wait for one.{}",
            threads(pool.threads),
            pool.name,
            pool.queued,
            longest.unwrap_or_default()
        ));
    }
    if let Some(text) = slow_route(view) {
        return Some(text);
    }
    if share(WRITE) >= MOST && view.spans[WRITE] >= SLOW_CLIENT {
        let (part, write) = (shown::percent(share(WRITE)), time(view.spans[WRITE]));
        return Some(format!("Slow readers: {part} of the time, {write} of a request, is sending to clients."));
    }
    if share(ACCEPT) >= MOST && view.spans[ACCEPT] >= SLOW_CLIENT {
        let (part, accept) = (shown::percent(share(ACCEPT)), time(view.spans[ACCEPT]));
        return Some(format!("Slow senders: {part} of the time, {accept} of a request, is receiving it."));
    }
    let queued: u64 = view.pools.iter().map(|pool| pool.queued).sum();
    let waited = view.queue_line.iter().rev().take(PRESENT).all(|queue| queue.is_some_and(|queue| queue > 0.0));
    (queued > 0 && waited && !view.queue_line.is_empty())
        .then(|| format!("{queued} requests wait for a thread, and some have in each of the last {PRESENT} seconds."))
}

/// One route that takes most of the time of all, with requests that are longer than others'.
fn slow_route(view: &View) -> Option<String> {
    let window = view.routes_of.filter(|window| *window > 0.0)?;
    let all: f64 = view.routes.iter().map(|route| route.time).sum();
    let requests: f64 = view.routes.iter().map(|route| route.requests).sum();
    let slowest = view.routes.iter().max_by(|one, other| one.time.total_cmp(&other.time))?;
    let others = (all - slowest.time) / (requests - slowest.requests).max(1.0);
    let is_it = slowest.time >= 0.6 * all
        && slowest.time / window >= BUSY_ROUTE
        && slowest.mean() >= 2.0 * others
        && (view.spans[RUN] > 0.0 || view.rate == 0.0);
    is_it.then(|| {
        format!(
            "{} takes {} of the time of all requests: {} each, {} a second.",
            slowest.name,
            shown::percent(slowest.time / all),
            time(slowest.mean()),
            count(slowest.requests / window)
        )
    })
}

fn is_full(pool: &Pool) -> bool {
    pool.queued > 0 && pool.threads > 0 && pool.threads >= pool.most && pool.running + pool.stuck >= pool.threads
}

fn calm(view: &View) -> String {
    let threads: u64 = view.pools.iter().map(|pool| pool.threads).sum();
    let running: u64 = view.pools.iter().map(|pool| pool.running).sum();
    let queued: u64 = view.pools.iter().map(|pool| pool.queued).sum();
    let waits = if queued == 0 { "nothing waits".to_owned() } else { format!("{queued} requests wait") };
    if threads == 0 {
        return format!("No bottleneck: {waits}.");
    }
    format!("No bottleneck: {running} of {threads} threads are busy, {waits}.")
}

fn threads(number: u64) -> String {
    if number == 1 { "1 thread".to_owned() } else { format!("{number} threads") }
}
