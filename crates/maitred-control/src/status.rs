//! The server as a whole: name and version, pools, locks and caches, rules for requests.

use std::collections::BTreeMap;

use maitred_io::rights::{Capabilities, Rights};
use maitred_stats::LockSnapshot;
use serde_json::{Value, json};

use super::{Given, QueryContext, Refusal, Setting, Wanted, sockets};
use maitred_server::{
    Application, END_REASONS, Host, Overflow, PathPattern, PoolLimits, PoolRule, Routes, START_REASONS,
};

type Answer = Result<Value, Refusal>;

pub(super) fn status(asking: &QueryContext<'_>, _: &Given) -> Answer {
    let server = asking.server;
    let listeners = server.listeners().map(|listener| {
        json!({
            "address": listener.address.to_string(),
            "read_ahead": listener.read_ahead,
            "tls": listener.tls,
            "redirect": listener.redirect,
            "proxy_protocol": listener.proxy_protocol,
            "writer": listener.writer,
            "accepts": listener.accepts,
        })
    });
    let listeners: Vec<Value> = listeners.collect();
    let mut status = serde_json::Map::new();
    status.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in asking.owner.about() {
        status.insert(name.to_owned(), value.into());
    }
    status.insert("capabilities".to_owned(), capabilities().into());
    status.insert("pid".to_owned(), std::process::id().into());
    status.insert("uptime_seconds".to_owned(), json!(asking.up.as_secs_f64()));
    status.insert("ready".to_owned(), server.is_ready().into());
    status.insert("draining".to_owned(), server.is_draining().into());
    status.insert("connections".to_owned(), server.figures().snapshot().open.into());
    let guard = server.settings().guard();
    let (held, budget) = guard.budget.figures();
    status.insert("buffer_bytes".to_owned(), held.into());
    status.insert("buffer_budget_bytes".to_owned(), budget.into());
    let bodies = server.figures().body_memory();
    status.insert("body_memory_bytes".to_owned(), bodies.held.into());
    status.insert("body_budget_bytes".to_owned(), bodies.most.into());
    status.insert("low_on".to_owned(), guard.resources.low().map(|scarce| scarce.name()).into());
    status.insert("poll_groups".to_owned(), server.pools().poll_groups().into());
    status.insert("log_level".to_owned(), server.log().level().name().into());
    status.insert("control".to_owned(), json!(asking.doors.places()));
    status.insert("listeners".to_owned(), listeners.into());
    status.insert("socket_options".to_owned(), sockets::options(server));
    let mut roles: BTreeMap<&str, usize> = BTreeMap::new();
    for thread in server.threads().of_process().threads {
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

fn by_reason<const N: usize>(reasons: [&str; N], counts: [u64; N]) -> Value {
    reasons.into_iter().zip(counts).map(|(reason, count)| (reason.to_owned(), Value::from(count))).collect()
}

pub(super) fn pools(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let pools = asking.server.pools().figures().into_iter().zip(asking.server.pools().limits());
    let pools = pools.filter(|(figures, _)| wanted.has_name(&figures.name)).map(|(figures, limits)| {
        let idleness = figures.idleness;
        let PoolLimits { min_threads, max_threads, queue, low_mark, high_mark, .. } = limits;
        json!({
            "name": figures.name,
            "threads": figures.threads,
            "starting": figures.starting,
            "idle": figures.parked,
            "lost": figures.lost,
            "made": figures.made,
            "starts": by_reason(START_REASONS, figures.starts),
            "ends": by_reason(END_REASONS, figures.ends),
            "queued": figures.queued,
            "waited": figures.waited,
            "refused": figures.refused,
            "idle_while_waiting": {
                "requests": idleness.requests,
                "total_seconds": nanos(idleness.total_ns),
                "longest_seconds": nanos(idleness.longest_ns),
            },
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

pub(super) fn map(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let map = asking.server.pools().map();
    let rules = (1..).zip(map.rules()).filter(|(_, rule)| wanted.has_name(&rule.pool));
    Ok(json!({ "rules": rules.map(|(number, rule)| shown_rule(number, rule)).collect::<Vec<_>>() }))
}

/// A rule with its number in the order in which rules are asked, from 1 on.
pub(super) fn shown_rule(number: usize, rule: &PoolRule) -> Value {
    let PoolRule { pool, host, method, path, header, client, certificate } = rule;
    json!({
        "number": number,
        "pool": pool,
        "host": host.as_ref().map(ToString::to_string),
        "method": method.as_ref().map(ToString::to_string),
        "path": path.as_ref().map(ToString::to_string),
        "header": header.as_ref().map(ToString::to_string),
        "client": client.as_ref().map(ToString::to_string),
        "client_certificate": certificate.as_ref().map(ToString::to_string),
    })
}

pub(super) fn filters(asking: &QueryContext<'_>, _: &Given) -> Answer {
    Ok(asking.server.settings().filters().list())
}

pub(super) fn handlers(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let what = ["health of the server", "figures of the server"];
    let engine = asking.server.routing().engine_paths().into_iter().zip(what);
    let engine = engine.filter_map(|((_, path), what)| {
        Some(json!({ "path": path?, "leads_to": "engine", "what": what, "pool": Value::Null }))
    });
    let hosts = asking.server.routing().hosts().all();
    let mounts = hosts.iter().flat_map(|host| {
        host.routes().folders().map(|(prefix, files)| {
            json!({
                "host": shown_host(host),
                "path": format!("{prefix}/*"),
                "leads_to": "static files",
                "what": files.folder().display().to_string(),
                "pool": Value::Null,
            })
        })
    });
    let mut all: Vec<Value> = engine.chain(mounts).filter(|_| wanted.name.is_none()).collect();
    let map = asking.server.pools().map();
    let names = asking.server.pools().names();
    for (number, host) in hosts.iter().enumerate() {
        for application in host.routes().applications() {
            let path = format!("{}/*", application.prefix);
            let row = |path: &str, pool: &str| {
                json!({
                    "host": shown_host(host),
                    "path": path,
                    "leads_to": "application",
                    "what": shown_application(asking, application),
                    "pool": pool,
                })
            };
            // On the event loop no rule counts.
            let is_ruled = asking.server.routing().pool_for(application, usize::MAX) == usize::MAX;
            let is_here = |rule: &&PoolRule| {
                let of_host = rule.host.as_ref().is_none_or(|wanted| usize::from(wanted.number) == number);
                let leads_here =
                    |path: &PathPattern| may_lead(&path.to_string(), host.routes(), &application.prefix);
                is_ruled && of_host && rule.path.as_ref().is_none_or(leads_here)
            };
            let rules: Vec<&PoolRule> = map.rules().filter(is_here).collect();
            let is_whole = |rule: &&PoolRule| {
                let PoolRule { pool: _, host: _, path: own, method, header, client, certificate } = rule;
                let others = [method.is_none(), header.is_none(), client.is_none(), certificate.is_none()];
                others == [true; 4] && own.as_ref().is_none_or(|own| own.to_string() == path)
            };
            all.extend(rules.iter().filter(|rule| wanted.has_name(&rule.pool)).map(|rule| {
                let whole = || path.clone();
                row(&rule.path.as_ref().map_or_else(whole, ToString::to_string), &rule.pool)
            }));
            let rest =
                names.get(asking.server.routing().pool_for(application, 0)).copied().unwrap_or_default();
            if wanted.has_name(rest) && !rules.iter().any(is_whole) {
                all.push(row(&path, rest));
            }
        }
    }
    Ok(json!({ "handlers": all }))
}

/// Whether something with this pattern may be the application's at `prefix`, and not that of a longer mount. A pattern such as
/// `*.pdf` is everywhere.
fn may_lead(pattern: &str, routes: &Routes, prefix: &str) -> bool {
    let literal = pattern.trim_end_matches('*');
    let is_below = |prefix: &str| match literal.strip_prefix(prefix) {
        Some(rest) => rest.starts_with('/') || (rest.is_empty() && literal == pattern),
        None => false,
    };
    let is_above = literal != pattern && prefix.starts_with(literal);
    let applications = routes.applications().map(|other| &*other.prefix);
    let mut others = applications.chain(routes.folders().map(|(other, _)| other));
    !pattern.starts_with('/')
        || is_above
        || (is_below(prefix) && !others.any(|other| other.len() > prefix.len() && is_below(other)))
}

pub(super) fn shown_host(host: &Host) -> Option<&str> {
    Some(host.name()).filter(|name| !name.is_empty())
}

pub(super) fn shown_application(asking: &QueryContext<'_>, application: &Application) -> Option<Value> {
    if !application.name.is_empty() {
        return Some((*application.name).into());
    }
    let about = asking.owner.about().into_iter().find(|(name, _)| *name == "application");
    about.map(|(_, value)| value.into())
}

/// Locks of a pool begin with its name.
pub(super) fn locks(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let of_pool = |lock: &LockSnapshot| {
        wanted.name.is_none_or(|pool| lock.name.strip_prefix(pool).is_some_and(|rest| rest.starts_with('.')))
    };
    let locks = asking.server.figures().locks().into_iter().filter(of_pool).map(|lock| {
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

pub(super) fn caches(asking: &QueryContext<'_>, _: &Given) -> Answer {
    let hosts = asking.server.routing().hosts().all().iter();
    let folders =
        hosts.flat_map(|host| host.routes().folders().map(move |(prefix, files)| (host, prefix, files)));
    let caches = folders.map(|(host, prefix, files)| {
        let found = files.statistics();
        json!({
            "name": format!("files of {}{prefix}/", host.name()),
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

pub(super) fn settings(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let settings = asking.owner.settings();
    let of_pool = wanted.name.map(|pool| format!("pool.{pool}."));
    let is_wanted = |setting: &Setting| of_pool.as_ref().is_none_or(|start| setting.name.starts_with(start));
    let settings = settings.into_iter().filter(is_wanted);
    let settings = settings.map(|setting| {
        let Setting { name, value, configured, takes } = setting;
        json!({ "name": name, "value": value, "configured": configured, "takes": takes })
    });
    Ok(json!({ "settings": settings.collect::<Vec<_>>() }))
}

/// All options with their values and origins; those that were set come first.
pub(super) fn configuration(asking: &QueryContext<'_>, given: &Given) -> Answer {
    let wanted = Wanted::of(asking, given)?;
    let of_pool = wanted.name.map(|pool| format!("pool.{pool}."));
    let mut all = asking.owner.configuration();
    all.retain(|option| of_pool.as_ref().is_none_or(|start| option.name.starts_with(start)));
    all.sort_by_key(|option| option.from == "default");
    let rows = all
        .into_iter()
        .map(|option| json!({ "name": option.name, "value": option.value, "from": option.from }));
    Ok(json!({ "configuration": rows.collect::<Vec<_>>() }))
}

fn nanos(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn capabilities() -> String {
    match Rights::of_all() {
        Err(_) => "unknown".to_owned(),
        Ok(all) => match all.iter().fold(0, |set, (_, rights)| set | rights.capabilities.held()) {
            0 => "none".to_owned(),
            set => Capabilities::names(set).join(", "),
        },
    }
}
