//! Requests that end together: others have waited for a resource that one of them held.
//!
//! A request that keeps a lock, or the last connection of a database, holds up the requests that need it next. They have a thread, so
//! their waiting is a part of `run`. They end as soon as it is given back:
//!
//! ```text
//! GET /export   |------------------- run --------------------|
//! GET /                  |-- run, in truth it waits ----------|-|
//! GET /cart                        |-- the same --------------|--|
//! ```
//! A **moment** is an end of a request behind which at least two others end within [`TOGETHER`], all of which began
//! while it ran and have run many times longer than their routes do without a hold-up. They may be of its own route:
//! one of them fills a cache, and the others wait for that. One moment may be chance: a route is named from [`LEAST`]
//! on.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::read::Log;

/// How long after the one that held them the others end at most, in microseconds: each still has its own work to do.
const TOGETHER: u64 = 10_000;

/// How much earlier they may end: the resource may be given back a little before the end.
const BEFORE: u64 = 2_000;

/// Shorter runs are not looked at, in microseconds: among many short ones some always end together.
const LONG: u64 = 30_000;

/// A request that takes so many times longer than usual was held up.
const TIMES: u64 = 4;

/// The number of others that a moment needs.
const OTHERS: usize = 2;

/// Moments from which on a route is named.
pub(super) const LEAST: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) route: u32,
    pub(super) moments: usize,
    pub(super) waited: usize,
    /// How long they have run together while it ran, in microseconds.
    pub(super) together: u64,
    /// Their routes, those that waited most often first.
    pub(super) others: Vec<u32>,
}

/// The holders, the one that held up others longest first.
pub(super) fn find(log: &Log) -> Vec<Holder> {
    let usual = usual_runs(log);
    // By their ends.
    let mut long: Vec<usize> =
        (0..log.requests.len()).filter(|index| log.requests[*index].run() >= LONG).collect();
    long.sort_by_key(|index| log.requests[*index].done());
    let ends: Vec<u64> = long.iter().map(|index| log.requests[*index].done()).collect();
    let mut holders: BTreeMap<u32, (usize, usize, u64, BTreeMap<u32, usize>)> = BTreeMap::new();
    let mut counted = vec![false; long.len()];
    // The request that began first holds up the others, so it comes first where several would do.
    let mut by_begin: Vec<usize> = (0..long.len()).collect();
    by_begin.sort_by_key(|place| log.requests[long[*place]].begun_running());
    for place in by_begin {
        let holder = &log.requests[long[place]];
        if counted[place] {
            continue;
        }
        let from = ends.partition_point(|end| *end < holder.done().saturating_sub(BEFORE));
        let until = ends.partition_point(|end| *end <= holder.done() + TOGETHER);
        let waited = |other: &usize| {
            let request = &log.requests[long[*other]];
            let is_held_up = request.run() >= TIMES * usual[request.route as usize].max(1);
            let is_within = request.begun_running() >= holder.begun_running()
                && request.begun_running() + LONG <= holder.done();
            !counted[*other] && *other != place && is_held_up && is_within
        };
        let others: Vec<usize> = (from..until).filter(waited).collect();
        if others.len() < OTHERS {
            continue;
        }
        let (moments, count, together, routes) = holders.entry(holder.route).or_default();
        *moments += 1;
        *count += others.len();
        for other in others {
            let request = &log.requests[long[other]];
            *together += request.run().min(holder.done().saturating_sub(request.begun_running()));
            *routes.entry(request.route).or_default() += 1;
            counted[other] = true;
        }
        counted[place] = true;
    }
    let mut found: Vec<Holder> = (holders.into_iter())
        .filter(|(_, (moments, ..))| *moments >= LEAST)
        .map(|(route, (moments, waited, together, routes))| {
            let mut others: Vec<(u32, usize)> = routes.into_iter().collect();
            others.sort_by_key(|(other, count)| (Reverse(*count), *other));
            let others = others.into_iter().map(|(other, _)| other).collect();
            Holder { route, moments, waited, together, others }
        })
        .collect();
    found.sort_by_key(|holder| (Reverse(holder.together), holder.route));
    found
}

/// How long a request of each route runs that nothing holds up: one of the quickest tenth, in microseconds.
fn usual_runs(log: &Log) -> Vec<u64> {
    let mut runs: Vec<Vec<u64>> = vec![Vec::new(); log.routes.len()];
    for request in &log.requests {
        runs[request.route as usize].push(request.run());
    }
    let usual = |mut runs: Vec<u64>| {
        runs.sort_unstable();
        runs.get(runs.len() / 10).copied().unwrap_or(0)
    };
    runs.into_iter().map(usual).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `start route run`, in milliseconds.
    fn log(lines: &[(u64, &str, u64)]) -> Log {
        let mut log = Log::default();
        for (number, (start, route, run)) in lines.iter().enumerate() {
            let line = format!(
                "start={}.{:03} pool=p route=\"{route}\" run={}.{:03}",
                start / 1000,
                start % 1000,
                run / 1000,
                run % 1000
            );
            log.add("a.log", number as u64 + 1, &line);
        }
        log
    }

    fn named(lines: &[(u64, &str, u64)]) -> Vec<(String, usize, usize)> {
        let log = log(lines);
        find(&log)
            .iter()
            .map(|found| (log.routes.name(found.route).to_owned(), found.moments, found.waited))
            .collect()
    }

    /// `GET /`, `/a` and `/b` take 2 ms; four times an export holds up the requests that come meanwhile.
    fn troubled(hold: u64) -> Vec<(u64, &'static str, u64)> {
        let mut lines = Vec::new();
        for second in 0..20 {
            lines.extend(["/", "/a", "/b"].map(|route| (second * 1000, route, 2)));
        }
        for moment in 0..4 {
            let begin = 500 + moment * 5000;
            lines.push((begin, "/export", hold));
            lines.extend(
                [("/", 30), ("/a", 90), ("/b", 40)]
                    .map(|(route, after)| (begin + after, route, (hold - after).max(2) + 3)),
            );
        }
        lines
    }

    #[test]
    fn a_route_that_others_wait_for_is_named() {
        assert_eq!(named(&troubled(400)), [("/export".to_owned(), 4, 12)]);
    }

    #[test]
    fn so_is_a_route_one_of_whose_requests_fills_a_cache_for_the_others() {
        let own = troubled(400).into_iter().map(|(start, route, run)| match route {
            "/export" => (start, "/b", run),
            _ => (start, route, run),
        });
        assert_eq!(named(&own.collect::<Vec<_>>()), [("/b".to_owned(), 4, 12)]);
    }

    #[test]
    fn a_route_that_is_only_slow_is_not_named() {
        // The others are not held up.
        let quick: Vec<_> = troubled(400)
            .into_iter()
            .map(|(start, route, run)| (start, route, if route == "/export" { run } else { run.min(4) }))
            .collect();
        assert!(named(&quick).is_empty());
        // They are always as slow: it is their own time.
        let slow: Vec<_> = troubled(400)
            .into_iter()
            .map(|(start, route, run)| (start, route, if run < 10 { 300 } else { run }))
            .collect();
        assert!(named(&slow).is_empty());
        // Each ends when it wants.
        let spread = troubled(400).into_iter().map(|(start, route, run)| match route {
            "/a" if run > 10 => (start, route, run + 60),
            "/b" if run > 10 => (start, route, run + 130),
            _ => (start, route, run),
        });
        assert!(named(&spread.collect::<Vec<_>>()).is_empty());
    }

    #[test]
    fn two_moments_may_be_chance() {
        let few: Vec<_> = troubled(400).into_iter().filter(|(start, ..)| *start < 10_000).collect();
        assert!(named(&few).is_empty());
    }
}
