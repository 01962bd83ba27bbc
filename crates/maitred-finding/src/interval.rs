//! The differences between two pictures.
//!
//! The time of requests is counted when they end. A request that lasts would be seen too late and then all at once. So
//! the time so far of requests that are still there is added at the end and subtracted at the begin: the difference is
//! the time spent in between.

use std::collections::BTreeMap;

use super::picture::{Certificate, Collector, Log, Memory, Picture, Pool, Queue, Route, Server};

/// The differences. Rates and times are in seconds and per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// The length of the interval.
    pub seconds: f64,
    /// Requests of the application that have ended.
    pub requests: u64,
    /// Requests with a status of 500 or above.
    pub errors: u64,
    /// Failed requests that were only too slow (504).
    pub timeouts: u64,
    /// Requests that have waited at each moment, on average.
    pub waiting: f64,
    /// Threads of the application that have run, or would have if they had a processor, on average.
    pub computing: f64,
    /// Requests that have run.
    pub ran: f64,
    /// The number in the later picture.
    pub parallel: u64,
    pub(crate) processors: u64,
    pub(crate) routes: Vec<OfRoute>,
    pub(crate) servers: Vec<OfServer>,
    pub(crate) pools: Vec<OfPool>,
    pub(crate) logs: Vec<OfLog>,
    /// Those that fail or lose something.
    pub(crate) collectors: Vec<OfCollector>,
    pub(crate) spool: OfQueue,
    pub(crate) standing: Standing,
    pub(crate) memory: Memory,
    pub(crate) certificates: BTreeMap<String, Certificate>,
    /// The growth of the memory that the engine does not hold, in bytes.
    pub(crate) grown: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfRoute {
    pub(crate) name: String,
    pub(crate) pool: String,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) inside: u64,
    /// Requests in the application, on average.
    pub(crate) held: f64,
    /// How long one is there.
    pub(crate) mean: f64,
    /// How many have waited at each moment, on average.
    pub(crate) waiting: f64,
    /// How much of that time was the database's.
    pub(crate) database: f64,
    /// How many statements one sends to it; none where they are not counted.
    pub(crate) statements: Option<f64>,
    /// How much of it its threads have computed; none where that was not measured.
    pub(crate) computing: Option<f64>,
    /// How much of it they have waited for a processor.
    pub(crate) starved: f64,
    /// How much of it was spent in calls to other servers.
    pub(crate) outgoing: f64,
    /// Calls that run, by server and part.
    pub(crate) calling: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The calls to one server that have ended in between, and those that run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfServer {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) timeouts: BTreeMap<String, u64>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) parts: BTreeMap<String, u64>,
    pub(crate) running: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfPool {
    pub(crate) name: String,
    pub(crate) before: Pool,
    pub(crate) after: Pool,
    /// Requests in the application, on average.
    pub(crate) held: f64,
    /// Requests that have waited, on average.
    pub(crate) waiting: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfLog {
    pub(crate) name: String,
    pub(crate) waiting: u64,
    pub(crate) dropped: u64,
    /// Lines waited in both pictures, and none was written in between.
    pub(crate) stands: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OfCollector {
    pub(crate) signal: String,
    pub(crate) waiting: u64,
    pub(crate) lost: u64,
    /// The reason, if posts failed in both pictures.
    pub(crate) failing: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OfQueue {
    pub(crate) waiting: u64,
    pub(crate) least: u64,
    pub(crate) stands: bool,
}

/// Responses of which no noticeable part was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) all: u64,
    /// The route of most of them.
    pub(crate) route: String,
}

/// A response of which less leaves in a second stands: a page takes minutes then.
const MIN_RATE: f64 = 1024.0;

impl Interval {
    /// The interval from the earlier picture to the later one.
    pub fn between(before: &Picture, after: &Picture) -> Self {
        let seconds = after.at.saturating_sub(before.at) as f64 / 1e9;
        let routes: Vec<OfRoute> = after
            .routes
            .iter()
            .map(|(name, now)| {
                let none = Route::default();
                OfRoute::between(name, before.routes.get(name).unwrap_or(&none), now, seconds)
            })
            .collect();
        let pools: Vec<OfPool> = after
            .pools
            .iter()
            .map(|(name, now)| {
                let then = before.pools.get(name).cloned().unwrap_or_default();
                let own = || routes.iter().filter(|route| route.pool == *name);
                let queued = now.queued_for as f64 - then.queued_for as f64;
                OfPool {
                    name: name.clone(),
                    held: own().map(|route| route.held).sum(),
                    waiting: average(
                        own().map(|route| route.waiting).sum::<f64>() * seconds + queued / 1e9,
                        seconds,
                    ),
                    before: then,
                    after: now.clone(),
                }
            })
            .collect();
        let since = |then: u64, now: u64| average(now.saturating_sub(then) as f64 / 1e9, seconds);
        Self {
            seconds,
            requests: routes.iter().map(|route| route.requests).sum(),
            errors: routes.iter().map(|route| route.errors).sum(),
            timeouts: after.timeouts.saturating_sub(before.timeouts),
            waiting: pools.iter().map(OfPool::waiting).sum(),
            computing: since(before.wanted, after.wanted),
            ran: since(before.ran, after.ran),
            parallel: after.parallel,
            processors: after.processors,
            logs: logs(before, after),
            collectors: collectors(before, after),
            spool: OfQueue::between(before.spool, after.spool),
            standing: Standing::between(before, after, seconds),
            memory: after.memory,
            certificates: after.certificates.clone(),
            grown: grown(before.memory, after.memory),
            servers: servers(before, after),
            routes,
            pools,
        }
    }
}

impl OfRoute {
    /// The part of the time for which its threads have run, or would have with a processor; none where that was not measured.
    pub(crate) fn runnable(&self) -> Option<f64> {
        self.computing.map(|part| part + self.starved)
    }
}

impl OfPool {
    /// Requests that have waited. The time of requests that have left the queue is known when they end, so requests
    /// that wait at both ends count, too.
    pub(crate) fn waiting(&self) -> f64 {
        self.waiting.max(self.before.queued.min(self.after.queued) as f64)
    }
}

/// The growth without the engine's memory for connections, which is no growth of the application.
fn grown(before: Memory, after: Memory) -> u64 {
    let held = after.held.saturating_sub(before.held);
    after.resident.saturating_sub(before.resident).saturating_sub(held)
}

/// The average, not below zero: a process that has ended takes its counts with it.
fn average(sum: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { (sum / seconds).max(0.0) } else { 0.0 }
}

impl OfRoute {
    fn between(name: &str, then: &Route, now: &Route, seconds: f64) -> Self {
        let more = |then: u64, now: u64| now.saturating_sub(then);
        let requests = more(then.requests, now.requests);
        let run = more(then.run, now.run) as f64 / 1e9;
        let spent = run + (now.inside_for as f64 - then.inside_for as f64) / 1e9;
        let ended = if requests > 0 { run / requests as f64 } else { 0.0 };
        let measured = Some(more(then.measured, now.measured)).filter(|measured| *measured > 0);
        let part = |then: u64, now: u64| measured.map(|measured| more(then, now) as f64 / measured as f64);
        let lasts = if now.inside > 0 { now.inside_for as f64 / 1e9 / now.inside as f64 } else { 0.0 };
        Self {
            name: name.to_owned(),
            pool: now.pool.clone(),
            requests,
            errors: more(then.errors, now.errors),
            inside: now.inside,
            held: average(spent, seconds),
            mean: ended.max(lasts),
            waiting: average(more(then.waited, now.waited) as f64 / 1e9, seconds),
            // Known only of requests that have ended.
            database: if run > 0.0 { more(then.database, now.database) as f64 / 1e9 / run } else { 0.0 },
            statements: Some(more(then.asking, now.asking))
                .filter(|asking| *asking > 0)
                .map(|asking| more(then.statements, now.statements) as f64 / asking as f64),
            computing: part(then.computed, now.computed),
            starved: part(then.starved, now.starved).unwrap_or_default(),
            outgoing: outgoing(then, now, spent),
            calling: now.calling.clone(),
        }
    }
}

impl OfQueue {
    fn between(then: Queue, now: Queue) -> Self {
        let least = then.waiting.min(now.waiting);
        Self { waiting: now.waiting, least, stands: least > 0 && then.done == now.done }
    }
}

/// The part of this time that was spent in calls. Calls side by side count one by one, but no time is more than all of it.
fn outgoing(then: &Route, now: &Route, spent: f64) -> f64 {
    let ended = now.outgoing.saturating_sub(then.outgoing) as f64;
    let calls = (ended + now.calling_for as f64 - then.calling_for as f64) / 1e9;
    if spent > 0.0 { (calls / spent).clamp(0.0, 1.0) } else { 0.0 }
}

fn servers(before: &Picture, after: &Picture) -> Vec<OfServer> {
    let none = Server::default();
    let of = |(name, now): (&String, &Server)| {
        let then = before.servers.get(name).unwrap_or(&none);
        let (timeouts, failures) = (more(&then.timeouts, &now.timeouts), more(&then.failures, &now.failures));
        let answered = now.answered.saturating_sub(then.answered);
        OfServer {
            name: name.clone(),
            calls: answered + timeouts.values().chain(failures.values()).sum::<u64>(),
            parts: more(&then.parts, &now.parts),
            running: now.running.clone(),
            timeouts,
            failures,
        }
    };
    after.servers.iter().map(of).collect()
}

/// The counts that have come since, of those that have grown.
fn more(then: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let before = |name: &String| then.get(name).copied().unwrap_or_default();
    let risen = now.iter().map(|(name, count)| (name.clone(), count.saturating_sub(before(name))));
    risen.filter(|(_, rise)| *rise > 0).collect()
}

fn logs(before: &Picture, after: &Picture) -> Vec<OfLog> {
    let of = |(name, now): (&String, &Log)| {
        let then = before.logs.get(name).copied().unwrap_or_default();
        OfLog {
            name: name.clone(),
            waiting: now.waiting,
            dropped: now.dropped.saturating_sub(then.dropped),
            stands: then.waiting > 0 && now.waiting > 0 && then.settled == now.settled,
        }
    };
    after.logs.iter().map(of).collect()
}

fn collectors(before: &Picture, after: &Picture) -> Vec<OfCollector> {
    let of = |(signal, now): (&String, &Collector)| {
        let then = before.collectors.get(signal);
        let fails = !now.failing.is_empty() && then.is_some_and(|then| !then.failing.is_empty());
        let (signal, waiting) = (signal.clone(), now.waiting);
        let lost = now.lost.saturating_sub(then.map_or(0, |then| then.lost));
        OfCollector { signal, waiting, lost, failing: fails.then(|| now.failing.clone()) }
    };
    let all = after.collectors.iter().map(of);
    all.filter(|collector| collector.lost > 0 || collector.failing.is_some()).collect()
}

impl Standing {
    fn between(before: &Picture, after: &Picture, seconds: f64) -> Self {
        let mut found = Self { all: after.deliveries.len() as u64, ..Self::default() };
        let mut routes = std::collections::BTreeMap::<&str, u64>::new();
        for (id, now) in &after.deliveries {
            let Some(then) = before.deliveries.get(id) else { continue };
            if (now.sent.saturating_sub(then.sent) as f64) < MIN_RATE * seconds {
                found.count += 1;
                found.bytes += now.waiting;
                *routes.entry(&now.route).or_default() += 1;
            }
        }
        let most = routes.into_iter().max_by_key(|(_, count)| *count);
        found.route = most.map(|(route, _)| route.to_owned()).unwrap_or_default();
        found
    }
}
