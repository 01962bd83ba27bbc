//! The server as a whole: what it is, what it has counted, where requests are led.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use maitred_stats::{Leaf, LockSnapshot, Span};
use serde_json::{Value, json};

use super::owner::{Refusal, Setting};
use super::table::Given;
use super::{Asking, nearest, threads};
use crate::pool_map::PoolMap;
use crate::settings::{Overflow, PoolLimits, PoolRule};

type Answer = Result<Value, Refusal>;

/// At most so many routes are listed.
const MAX_LISTED: usize = 1000;

pub(super) fn status(asking: &Asking<'_>, _: &Given) -> Answer {
    let server = asking.server;
    let shared = server.shared();
    let listeners: Vec<Value> = shared
        .listeners
        .iter()
        .map(|listening| {
            json!({
                "address": listening.address().to_string(),
                "read_ahead": listening.reads_ahead(),
                "writer": listening.has_writer(),
                "accepts": !listening.is_closed(),
            })
        })
        .collect();
    let mut status = serde_json::Map::new();
    status.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in asking.owner.about() {
        status.insert(name.to_owned(), value.into());
    }
    status.insert("pid".to_owned(), std::process::id().into());
    status.insert("uptime_seconds".to_owned(), json!(asking.up.as_secs_f64()));
    status.insert("draining".to_owned(), shared.is_draining().into());
    status.insert("connections".to_owned(), shared.open().into());
    let guard = &server.first().site.guard;
    let (held, budget) = guard.budget.figures();
    status.insert("buffer_bytes".to_owned(), held.into());
    status.insert("buffer_budget_bytes".to_owned(), budget.into());
    status.insert("low_on".to_owned(), guard.resources.low().map(|scarce| scarce.name()).into());
    status.insert("poll_groups".to_owned(), shared.count().into());
    status.insert("log_level".to_owned(), server.log().level().name().into());
    status.insert("control".to_owned(), json!(asking.doors.places()));
    status.insert("listeners".to_owned(), listeners.into());
    let mut roles: BTreeMap<&str, usize> = BTreeMap::new();
    for thread in threads::all(&shared.roster) {
        *roles.entry(thread.role).or_default() += 1;
    }
    let roles: Vec<Value> =
        roles.into_iter().map(|(role, count)| json!({ "role": role, "threads": count })).collect();
    status.insert("threads".to_owned(), roles.into());
    let changed = asking.owner.settings().into_iter().filter(|setting| setting.value != setting.configured);
    let changed: Vec<Value> = changed
        .map(|Setting { name, value, configured, .. }| {
            json!({ "name": name, "value": value, "configured": configured })
        })
        .collect();
    status.insert("changed".to_owned(), changed.into());
    Ok(status.into())
}

/// Counters so far, and what has been measured of exchanges; of one route with `route`.
pub(super) fn stats(asking: &Asking<'_>, given: &Given) -> Answer {
    let statistics = asking.server.statistics();
    if let Some(route) = given.value("route") {
        return of_route(&statistics.routes, route);
    }
    let counts = asking.server.snapshot();
    let (lost_errors, lost_access) = asking.server.log().dropped();
    let migrations: u64 = asking.server.groups().iter().map(|group| group.scheduler.migrations()).sum();
    Ok(json!({
        "uptime_seconds": asking.up.as_secs_f64(),
        "connections": counts.connections,
        "connections_open": counts.open,
        "requests": counts.requests,
        "refused": counts.refused,
        "errors": counts.errors,
        "cut": counts.cut,
        "timeouts": counts.timeouts,
        "body_bytes": counts.body_bytes,
        "threads": counts.threads,
        "migrations": migrations,
        "rules": rules_applied(asking),
        "log_lines_dropped": { "error": lost_errors, "access": lost_access },
        "measured": statistics.on,
        "spans": spans(&statistics.server),
        "listeners": leaves(&statistics.listeners),
        "pools": leaves(&statistics.pools),
        "classes": leaves(&statistics.classes),
        "routes": leaves(&statistics.routes),
    }))
}

/// How often each rule was applied to a peer.
fn rules_applied(asking: &Asking<'_>) -> Value {
    let totals = asking.server.first().site.guard.applied.totals();
    totals
        .map(|(name, count)| (name.to_owned(), Value::from(count)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn of_route(routes: &[(String, Leaf)], route: &str) -> Answer {
    let Some((name, leaf)) = routes.iter().find(|(name, _)| name == route) else {
        let remedy = match nearest(route, routes.iter().map(|(name, _)| name.as_str())) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => "stats shows the routes that have been counted".to_owned(),
        };
        return Err(Refusal::unknown(format!("no request of a route '{route}' has been counted; {remedy}")));
    };
    Ok(json!({ "route": name, "requests": leaf.requests, "body_bytes": leaf.bytes, "spans": spans(leaf) }))
}

/// The spans of a leaf, and the whole time.
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

/// The most of the kind first.
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

pub(super) fn pools(asking: &Asking<'_>, _: &Given) -> Answer {
    let first = asking.server.first();
    let mut limits = first.scheduler.limits();
    for group in &asking.server.groups()[1..] {
        // Of the default pool each group has a part.
        let part = group.scheduler.limits().swap_remove(0);
        let whole = &mut limits[0];
        whole.min_threads += part.min_threads;
        whole.max_threads += part.max_threads;
        whole.queue += part.queue;
        whole.max_lost += part.max_lost;
    }
    let pools = first.pool_figures().into_iter().zip(limits).map(|(figures, limits)| {
        let PoolLimits { min_threads, max_threads, queue, low_mark, high_mark, .. } = limits;
        json!({
            "name": figures.name,
            "threads": figures.threads,
            "idle": figures.parked,
            "lost": figures.lost,
            "made": figures.made,
            "queued": figures.queued,
            "waited": figures.waited,
            "refused": figures.refused,
            "min_threads": min_threads,
            "max_threads": max_threads,
            "queue": queue,
            "queue_low": low_mark,
            "queue_high": high_mark,
            "thread_idle_seconds": limits.thread_idle.as_secs_f64(),
            "thread_requests": limits.thread_requests,
            "request_timeout_seconds": limits.request_timeout.map(|limit| limit.as_secs_f64()),
            "max_lost_threads": limits.max_lost,
            "interrupt": limits.interrupt,
            "bandwidth_bytes": limits.bandwidth,
            "overflow": match limits.overflow { Overflow::Wait => "wait", Overflow::Refuse => "refuse" },
        })
    });
    Ok(json!({ "pools": pools.collect::<Vec<_>>() }))
}

pub(super) fn map(asking: &Asking<'_>, _: &Given) -> Answer {
    let map = asking.server.first().pool_map();
    Ok(json!({ "rules": rules(&map) }))
}

fn rules(map: &PoolMap) -> Vec<Value> {
    (1..).zip(map.rules()).map(|(number, rule)| shown_rule(number, rule)).collect()
}

/// A rule with its number in the order in which rules are asked, from 1 on.
pub(super) fn shown_rule(number: usize, rule: &PoolRule) -> Value {
    let PoolRule { pool, method, path, header, client } = rule;
    json!({
        "number": number,
        "pool": pool,
        "method": method.as_ref().map(ToString::to_string),
        "path": path.as_ref().map(ToString::to_string),
        "header": header.as_ref().map(ToString::to_string),
        "client": client.as_ref().map(ToString::to_string),
    })
}

pub(super) fn filters(asking: &Asking<'_>, _: &Given) -> Answer {
    Ok(asking.server.first().site.filters.list())
}

pub(super) fn handlers(asking: &Asking<'_>, _: &Given) -> Answer {
    let site = &asking.server.first().site;
    let engine = [(&site.health_path, "health of the server"), (&site.metrics_path, "figures of the server")];
    let engine = engine.into_iter().filter_map(|(path, what)| {
        Some(json!({ "path": path.as_ref()?, "leads_to": "engine", "what": what }))
    });
    let mounts = site.routes.mounts().map(|(prefix, files)| {
        json!({
            "path": format!("{prefix}/*"),
            "leads_to": "static files",
            "what": files.folder().display().to_string(),
        })
    });
    let application = site.routes.has_application().then(|| {
        let name = asking.owner.about().into_iter().find(|(name, _)| *name == "application");
        json!({ "path": "/*", "leads_to": "application", "what": name.map(|(_, value)| value) })
    });
    let all: Vec<Value> = engine.chain(mounts).chain(application).collect();
    Ok(json!({ "handlers": all }))
}

pub(super) fn locks(asking: &Asking<'_>, _: &Given) -> Answer {
    let locks = asking.server.first().locks().into_iter().map(|lock| {
        let LockSnapshot { name, acquisitions, contended, wait_total, wait_max } = lock;
        json!({
            "name": name,
            "acquisitions": acquisitions,
            "contended": contended,
            "wait_total_seconds": wait_total.as_secs_f64(),
            "wait_longest_seconds": wait_max.as_secs_f64(),
        })
    });
    Ok(json!({ "locks": locks.collect::<Vec<_>>() }))
}

pub(super) fn caches(asking: &Asking<'_>, _: &Given) -> Answer {
    let caches = asking.server.first().site.routes.mounts().map(|(prefix, files)| {
        let found = files.statistics();
        json!({
            "name": format!("files of {prefix}/"),
            "entries": found.entries,
            "bytes": found.bytes,
            "descriptors": found.descriptors,
            "hits": found.hits,
            "misses": found.misses,
            "hit_rate": found.hit_rate(),
            "evictions": found.evictions,
            "revalidations": found.revalidations,
            "invalidations": found.invalidations,
            "saved_seconds": found.saved_time.as_secs_f64(),
        })
    });
    Ok(json!({ "caches": caches.collect::<Vec<_>>() }))
}

pub(super) fn settings(asking: &Asking<'_>, _: &Given) -> Answer {
    let settings = asking.owner.settings().into_iter().map(|setting| {
        let Setting { name, value, configured, takes } = setting;
        json!({ "name": name, "value": value, "configured": configured, "takes": takes })
    });
    Ok(json!({ "settings": settings.collect::<Vec<_>>() }))
}

/// A peer as text; an IPv4 client of a socket for both is shown as IPv4.
pub(super) fn shown_peer(peer: SocketAddr) -> String {
    SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string()
}
