//! Another server as the cause: its name, and the part of the call that requests wait for.
//!
//! Leaves out: whether requests are slow, and whether the calls are the reason (`rules.rs`).

use std::collections::BTreeMap;

use super::interval::{Interval, OfPool, OfRoute, OfServer};
use super::words::time;

/// Part of the calls to a server without a response: then the sentence has their number.
const LOST: u64 = 4;

/// A sentence and the next thing to look at.
pub(crate) struct Told {
    pub(crate) sentence: String,
    pub(crate) next: String,
}

/// The calls of a route that take most of its time; none if no server is known.
pub(crate) fn waits(interval: &Interval, pool: &OfPool, route: &OfRoute, is_full: bool) -> Option<Told> {
    let server = server_of(interval, route)?;
    let part = part_of(route, server);
    let running: u64 = server.running.values().sum();
    let taken = match running {
        0 => String::new(),
        _ if pool.after.is_loop => format!("; {running} calls to it run now"),
        _ => {
            let threads = pool.after.max_threads;
            format!("; {} of {threads} threads are in calls to it", running.min(threads))
        }
    };
    let full = if is_full {
        format!(", and {:.1} requests wait for a thread at each moment", pool.waiting())
    } else {
        String::new()
    };
    Some(Told {
        sentence: format!(
            "{:.0} % of the time of {} is spent in calls to other servers, {} of {} a request, most of it waiting for {}{}{taken}{full}.",
            route.outgoing * 100.0,
            route.name,
            time(route.outgoing * route.mean),
            time(route.mean),
            awaited(&part, &server.name),
            lost(server),
        ),
        next: next(&part, server),
    })
}

/// The failures of a server that many errors come from, as a part of a sentence; nothing if there are not so many.
pub(crate) fn behind_errors(interval: &Interval, errors: u64) -> String {
    let without = |server: &&OfServer| server.timeouts.values().chain(server.failures.values()).sum::<u64>();
    let Some(worst) = interval.servers.iter().max_by_key(without) else { return String::new() };
    if without(&worst) * 2 < errors {
        return String::new();
    }
    format!("; meanwhile {}", lost_of(worst, &worst.name))
}

/// The server that most calls of the route wait for now; without such calls the one that all calls took longest with.
fn server_of<'a>(interval: &'a Interval, route: &OfRoute) -> Option<&'a OfServer> {
    let busiest = route.calling.iter().max_by_key(|(_, parts)| parts.values().sum::<u64>());
    let named = busiest.and_then(|(name, _)| interval.servers.iter().find(|server| server.name == *name));
    let spent = |server: &&OfServer| server.parts.values().sum::<u64>();
    named.or_else(|| interval.servers.iter().max_by_key(spent).filter(|server| server.calls > 0))
}

/// The part in which the calls are, or were for longest.
fn part_of(route: &OfRoute, server: &OfServer) -> String {
    let most = |counts: &BTreeMap<String, u64>| {
        let found = counts.iter().max_by_key(|(_, count)| **count);
        found.map(|(name, _)| name.clone())
    };
    let now = route.calling.get(&server.name).and_then(most);
    now.or_else(|| most(&server.parts)).unwrap_or_else(|| "first byte".to_owned())
}

fn awaited(part: &str, server: &str) -> String {
    match part {
        "slot" => format!("a free connection to {server} (slot)"),
        "resolve" => format!("the address of {server} (resolver)"),
        "connect" => format!("a connection to {server} (connect)"),
        "tls" => format!("the TLS handshake with {server} (tls)"),
        "body" => format!("the rest of responses of {server} (body)"),
        _ => format!("{server} (first byte)"),
    }
}

/// Calls without a response, if there are many.
fn lost(server: &OfServer) -> String {
    let lost: u64 = server.timeouts.values().chain(server.failures.values()).sum();
    if lost == 0 || lost * LOST < server.calls {
        return String::new();
    }
    format!("; {}", lost_of(server, "it"))
}

fn lost_of(server: &OfServer, name: &str) -> String {
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    let (timeouts, failures) = (sum(&server.timeouts), sum(&server.failures));
    let kinds = |counts: &BTreeMap<String, u64>| {
        let mut kinds: Vec<_> = counts.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        kinds.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>().join(", ")
    };
    let timed_out = (timeouts > 0).then(|| format!("{timeouts} timed out ({})", kinds(&server.timeouts)));
    let failed = (failures > 0).then(|| format!("{failures} failed ({})", kinds(&server.failures)));
    let told: Vec<String> = timed_out.into_iter().chain(failed).collect();
    format!("of {} calls to {name} {}", server.calls, told.join(" and "))
}

fn next(part: &str, server: &OfServer) -> String {
    let OfServer { name, failures, .. } = server;
    match part {
        "slot" => format!(
            "'active' shows what holds the connections to {name}: a response that is not read to its end holds one; more of them (per_host of the client) help if the server bears more"
        ),
        "resolve" => "look at the resolver that /etc/resolv.conf names; 'upstreams' has the time of look-ups"
            .to_owned(),
        "connect" if failures.is_empty() => {
            format!("look at the way to {name}: nothing accepts connections there in time")
        }
        "connect" => {
            format!("look at {name}: it refuses or loses connections; 'upstreams' has how calls to it end")
        }
        _ => format!(
            "look at {name}: 'upstreams' has its times and how calls to it end; a time limit of the call ends it earlier, and a pool of its own keeps the route from the others"
        ),
    }
}
