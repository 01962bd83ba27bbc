//! Counters and measurements since the start: of the server, of a route, of a pool.

use std::collections::{BTreeMap, HashMap};

use maitred_stats::exposition::whole;
use maitred_stats::{Distribution, Leaf, Span};
use serde_json::{Value, json};

use super::shown::ENGINE;
use super::{Counted, Given, QueryContext, Refusal, Wanted, did_you_mean};
use maitred_server::{ApplicationTiming, Computing, DatabaseUse, OutgoingUse, Statistics};

type Answer = Result<Value, Refusal>;

const MAX_LISTED: usize = 1000;

pub(super) fn stats(asking: &QueryContext<'_>, given: &Given) -> Answer {
    stats_of(&Counted::of(asking.server, asking.up), &asking.server.figures().statistics(), given)
}

/// The answer of `stats` with these arguments, for one process, or for the sums of several.
///
/// # Errors
/// There is no such route or pool, or both are given.
pub fn stats_of(counted: &Counted, statistics: &Statistics, given: &Given) -> Result<Value, Refusal> {
    let names: Vec<&str> = counted.pools.iter().map(|pool| &*pool.name).collect();
    let wanted = Wanted::among(&names, given)?;
    match (given.value("route"), wanted.name) {
        (Some(_), Some(_)) => {
            return Err(Refusal::wrong("a route and a pool at once; leave one of them out"));
        }
        (Some(route), None) => return of_route(statistics, route),
        (None, Some(pool)) => return Ok(of_pool(counted, statistics, pool)),
        (None, None) => {}
    }
    let counts = &counted.counts;
    let rules = counted.rules.iter().map(|(name, count)| (name.clone(), Value::from(*count)));
    Ok(json!({
        "uptime_seconds": counted.up.as_secs_f64(),
        "connections": counts.connections,
        "connections_open": counts.open,
        "requests": counts.requests,
        "refused": counts.refused,
        "errors": counts.errors,
        "cut": counts.cut,
        "timeouts": counts.timeouts,
        "body_bytes": counts.body_bytes,
        "threads": counts.threads,
        "migrations": counted.migrations,
        "rules": Value::Object(rules.collect()),
        "log_lines_dropped": { "error": counted.lost_errors, "access": counted.lost_access },
        "measured": statistics.on,
        "spans": spans(&statistics.server),
        "listeners": leaves(&statistics.listeners),
        "pools": pools(counted, statistics),
        "classes": leaves(&statistics.classes),
        "routes": routes(statistics),
        "application_timings": timings(statistics, |_| true),
        "databases": databases(statistics, |_| true),
        "outgoing": outgoing(statistics, |_| true),
        "application_timings_lost": statistics.application_lost,
    }))
}

fn of_route(statistics: &Statistics, route: &str) -> Answer {
    let routes = &statistics.routes;
    let Some((name, leaf)) = routes.iter().find(|(name, _)| name == route) else {
        let known = routes.iter().map(|(name, _)| name.as_str());
        let remedy = did_you_mean(route, known, "stats shows the routes that have been counted");
        return Err(Refusal::unknown(format!("no request of a route '{route}' has been counted; {remedy}")));
    };
    let mut classes = BTreeMap::<&str, u64>::new();
    for count in statistics.leaves.iter().filter(|count| count.route == route) {
        *classes.entry(&count.class).or_default() += count.requests;
    }
    let classes = classes.into_iter().map(|(name, requests)| json!({ "name": name, "requests": requests }));
    let buckets = leaf.total.buckets().into_iter();
    let measured = statistics.computing();
    let [computing, waiting] = split(measured.get(&**name).copied(), leaf);
    let after = after(statistics.after().get(&**name).map(Distribution::sum), leaf);
    Ok(json!({
        "route": name,
        "requests": leaf.requests,
        "body_bytes": leaf.bytes,
        "computing_seconds": computing,
        "waiting_seconds": waiting,
        "after_seconds": after,
        "classes": classes.collect::<Vec<_>>(),
        "buckets": buckets.map(|(bound, count)| json!([seconds(bound), count])).collect::<Vec<_>>(),
        "spans": spans(leaf),
        "application_timings": timings(statistics, |timing| timing.route == route),
        "databases": databases(statistics, |one| one.route == route),
        "outgoing": outgoing(statistics, |one| one.route == route),
    }))
}

fn of_pool(counted: &Counted, statistics: &Statistics, pool: &str) -> Value {
    let none = Leaf::default();
    let leaf = statistics.pools.iter().find(|(name, _)| name == pool).map_or(&none, |(_, leaf)| leaf);
    let mut answer = counts(counted, pool, leaf);
    answer["spans"] = spans(leaf).into();
    let mut routes = BTreeMap::<&str, (u64, u64)>::new();
    for count in statistics.leaves.iter().filter(|count| count.pool == pool) {
        let (requests, bytes) = routes.entry(&count.route).or_default();
        *requests += count.requests;
        *bytes += count.bytes;
    }
    let mut routes: Vec<_> = routes.into_iter().collect();
    routes.sort_by_key(|(_, (requests, _))| std::cmp::Reverse(*requests));
    let routes = routes
        .into_iter()
        .take(MAX_LISTED)
        .map(|(name, (requests, bytes))| json!({ "name": name, "requests": requests, "body_bytes": bytes }));
    answer["routes"] = routes.collect();
    answer["application_timings"] = timings(statistics, |timing| timing.pool == pool).into();
    answer["databases"] = databases(statistics, |one| one.pool == pool).into();
    answer["outgoing"] = outgoing(statistics, |one| one.pool == pool).into();
    answer
}

/// One row for every pool, also without requests, and one for the engine.
fn pools(all: &Counted, statistics: &Statistics) -> Vec<Value> {
    let none = Leaf::default();
    let counted = |name: &str| statistics.pools.iter().find(|(known, _)| known == name).map(|(_, leaf)| leaf);
    let mut names: Vec<&str> = all.pools.iter().map(|pool| &*pool.name).collect();
    names.extend(counted(ENGINE).map(|_| ENGINE));
    let row = |name: &str| {
        let leaf = counted(name).unwrap_or(&none);
        let mut row = counts(all, name, leaf);
        for (span, values) in Span::ALL.iter().zip(&leaf.spans) {
            row[format!("{}_seconds", span.name())] = (values.mean() / 1e9).into();
        }
        row["mean_seconds"] = (leaf.total.mean() / 1e9).into();
        row["p50_seconds"] = seconds(leaf.total.percentile(50.0)).into();
        row["p99_seconds"] = seconds(leaf.total.percentile(99.0)).into();
        row["max_seconds"] = seconds(leaf.total.max()).into();
        row
    };
    names.into_iter().map(row).collect()
}

fn counts(counted: &Counted, pool: &str, leaf: &Leaf) -> Value {
    let own = counted.pools.iter().find(|counted| counted.name == pool);
    json!({
        "name": pool,
        "requests": leaf.requests,
        "queued": own.map(|own| own.queued),
        "dropped": own.map(|own| own.dropped),
        "spooled": own.map(|own| own.spooled),
        "body_bytes": leaf.bytes,
    })
}

/// The times that applications have reported (`Server-Timing`), the longest sums first.
fn timings(statistics: &Statistics, wanted: impl Fn(&ApplicationTiming) -> bool) -> Vec<Value> {
    let mut timings: Vec<_> =
        statistics.application.iter().filter(|timing| timing.is_duration() && wanted(timing)).collect();
    timings.sort_by_key(|timing| std::cmp::Reverse(timing.durations.sum()));
    let shown = timings.into_iter().take(MAX_LISTED).map(|timing| {
        let durations = &timing.durations;
        json!({
            "name": timing.name,
            "pool": timing.pool,
            "route": timing.route,
            "count": durations.count(),
            "sum_seconds": seconds(durations.sum()),
            "mean_seconds": durations.mean() / 1e9,
            "p99_seconds": seconds(durations.percentile(99.0)),
            "max_seconds": seconds(durations.max()),
        })
    });
    shown.collect()
}

/// The applications' use of databases, the longest sums first.
fn databases(statistics: &Statistics, wanted: impl Fn(&DatabaseUse) -> bool) -> Vec<Value> {
    let mut all: Vec<_> = statistics.databases().into_iter().filter(|one| wanted(one)).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.time.sum()));
    let shown = all.into_iter().take(MAX_LISTED).map(|one| {
        let DatabaseUse { pool, route, time, wait, statements, failed, connections } = one;
        json!({
            "pool": pool,
            "route": route,
            "requests": statements.count(),
            "statements": whole(statements.sum()),
            "statements_mean": statements.mean() / 1e3,
            "statements_p99": whole(statements.percentile(99.0)),
            "failed": whole(failed.sum()),
            "mean_seconds": time.mean() / 1e9,
            "p99_seconds": seconds(time.percentile(99.0)),
            "wait_seconds": seconds(wait.sum()),
            "connections": whole(connections.max()),
        })
    });
    shown.collect()
}

/// The calls of applications to other servers by route, the longest sums first; `upstreams` has them by server.
fn outgoing(statistics: &Statistics, wanted: impl Fn(&OutgoingUse) -> bool) -> Vec<Value> {
    let mut all: Vec<_> = statistics.outgoing().into_iter().filter(|one| wanted(one)).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.time.sum()));
    let shown = all.into_iter().take(MAX_LISTED).map(|one| {
        let OutgoingUse { pool, route, time, calls, failed } = one;
        json!({
            "pool": pool,
            "route": route,
            "requests": calls.count(),
            "calls": whole(calls.sum()),
            "calls_mean": calls.mean() / 1e3,
            "failed": whole(failed.sum()),
            "mean_seconds": time.mean() / 1e9,
            "p99_seconds": seconds(time.percentile(99.0)),
        })
    });
    shown.collect()
}

fn spans(leaf: &Leaf) -> Vec<Value> {
    let all = Span::ALL.iter().map(|span| span.name()).zip(&leaf.spans).chain([("total", &leaf.total)]);
    all.map(|(name, values)| {
        json!({
            "span": name,
            "count": values.count(),
            "mean_seconds": values.mean() / 1e9,
            "deviation_seconds": values.deviation() / 1e9,
            "min_seconds": seconds(values.min()),
            "p50_seconds": seconds(values.percentile(50.0)),
            "p99_seconds": seconds(values.percentile(99.0)),
            "max_seconds": seconds(values.max()),
        })
    })
    .collect()
}

/// One row for each route, with the shares of the time in the application.
fn routes(statistics: &Statistics) -> Vec<Value> {
    let (mut rows, measured) = (leaves(&statistics.routes), statistics.computing());
    let afterwards = statistics.after();
    let known: HashMap<_, _> = statistics.routes.iter().map(|(name, leaf)| (&**name, leaf)).collect();
    for row in &mut rows {
        let name = row["name"].as_str().unwrap_or_default();
        let Some(leaf) = known.get(name) else { continue };
        let [computing, waiting] = split(measured.get(name).copied(), leaf);
        let after = after(afterwards.get(name).map(Distribution::sum), leaf);
        row["computing_seconds"] = computing.into();
        row["waiting_seconds"] = waiting.into();
        row["after_seconds"] = after.into();
    }
    rows
}

/// The mean of `run`, which its thread has computed or waited, for the interpreter or a processor too; none where none was measured.
fn split(measured: Option<Computing>, leaf: &Leaf) -> [Option<f64>; 2] {
    let Some(of) = measured.filter(|of| of.measured > 0) else { return [None; 2] };
    let (run, part) = (leaf.spans[Span::Run as usize].mean() / 1e9, of.computed as f64 / of.measured as f64);
    [Some(run * part), Some(run * (1.0 - part))]
}

/// How long the application went on behind the end of its responses, as a mean of all requests.
fn after(sum: Option<u64>, leaf: &Leaf) -> f64 {
    sum.map_or(0.0, |sum| seconds(sum) / leaf.requests.max(1) as f64)
}

fn leaves(named: &[(String, Leaf)]) -> Vec<Value> {
    let mut named: Vec<_> = named.iter().collect();
    named.sort_by_key(|(_, leaf)| std::cmp::Reverse(leaf.requests));
    let shown = named.into_iter().take(MAX_LISTED).map(|(name, leaf)| {
        let total = &leaf.total;
        json!({
            "name": name,
            "requests": leaf.requests,
            "body_bytes": leaf.bytes,
            "mean_seconds": total.mean() / 1e9,
            "p50_seconds": seconds(total.percentile(50.0)),
            "p99_seconds": seconds(total.percentile(99.0)),
            "max_seconds": seconds(total.max()),
        })
    });
    shown.collect()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
