//! What connections are doing, and which requests are in the application or wait for a thread.
//!
//! Every connection is looked at under its own lock, and copied; no two locks are held at once, so a request may be
//! seen in neither list, or end, while the others are looked at.

use std::collections::{BTreeMap, HashMap, HashSet};

use maitred_io::clock;
use serde_json::{Value, json};

use super::QueryContext;
use super::owner::Refusal;
use super::pool::Wanted;
use super::status::shown_peer;
use super::table::Given;
use crate::connection::Group;
use crate::connection::snapshot::{ConnectionSnapshot, State};
use crate::place::{Place, Token};
use crate::server::Server;
use crate::thread_registry::Member;
use maitred_log::write_iso_time;

/// At most so many are listed; what there are more is counted.
const MAX_LISTED: usize = 1000;

/// How a place is shown: `GROUP.SLOT.GENERATION`, with `.STREAM` where there are several.
pub(super) fn shown_id(Place { group, token, stream }: Place) -> String {
    let Token { slot, generation } = Token::from_u64(token);
    let stream = if stream == 0 { String::new() } else { format!(".{stream}") };
    format!("{group}.{slot}.{generation}{stream}")
}

/// The other way.
pub(super) fn parse_id(text: &str) -> Option<Place> {
    let mut parts = text.split('.');
    let group = parts.next()?.parse().ok()?;
    let token = Token { slot: parts.next()?.parse().ok()?, generation: parts.next()?.parse().ok()? };
    let stream = parts.next().map_or(Some(0), |stream| stream.parse().ok().filter(|stream| *stream > 0))?;
    parts.next().is_none().then_some(Place { group, token: token.to_u64(), stream })
}

/// What the connection at a place shows, if it is still there.
pub(super) fn look_up(server: &Server, Place { group, token, .. }: Place) -> Option<ConnectionSnapshot> {
    let token = Token::from_u64(token);
    let group = server.groups().get(group)?;
    let slot = group.slots.find(token.slot)?;
    let place = slot.lock();
    place.as_ref().filter(|_| slot.generation() == token.generation).map(|connection| connection.show(group))
}

/// Calls `look` with every connection, and its place.
pub(super) fn each(server: &Server, mut look: impl FnMut(Place, ConnectionSnapshot)) {
    for group in server.groups() {
        for (number, slot) in group.connections() {
            let shown = {
                let place = slot.lock();
                place.as_ref().map(|connection| (slot.generation(), connection.show(group)))
            };
            if let Some((generation, shown)) = shown {
                let token = Token { slot: number, generation }.to_u64();
                look(Place { group: group.number, token, stream: 0 }, shown);
            }
        }
    }
}

/// A time of the monotonic clock as a date, and how long ago it was in seconds.
pub(super) fn moment(then: u64) -> (String, f64) {
    let ago = clock::monotonic().saturating_sub(then);
    let mut text = String::new();
    write_iso_time(&mut text, clock::unix_micros().saturating_sub(ago / 1_000));
    (text, ago as f64 / 1e9)
}

/// Requests that wait, with the number of the pool and since when.
fn waiting(server: &Server) -> Vec<(Place, usize, u64)> {
    let mut found = Vec::new();
    for group in server.groups() {
        let all = group.number == server.first().number;
        group.scheduler.look_at_waiting(all, MAX_LISTED, |pool, job, since| {
            found.push((job.home, pool, since));
        });
    }
    found
}

/// Which threads run which requests.
fn threads(server: &Server) -> HashMap<Place, std::sync::Arc<Member>> {
    let members = server.shared().thread_registry.members().into_iter();
    members.filter_map(|member| Some((member.inside().map(|inside| inside.place)?, member))).collect()
}

pub(super) fn active(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let server = asking.server;
    let queued: HashSet<Place> = waiting(server).into_iter().map(|(id, _, _)| id).collect();
    let threads = threads(server);
    let names = pool_names(server.first());
    let mut found = Vec::new();
    each(server, |connection, shown| {
        for (stream, asked) in shown.requests {
            let id = Place { stream, ..connection };
            if queued.contains(&id) || !wanted.has(asked.pool) {
                continue;
            }
            let thread = threads.get(&id);
            let entered = thread.and_then(|member| member.inside()).map(|inside| inside.since);
            found.push((entered.unwrap_or(asked.since), id, shown.peer, asked, thread.cloned()));
        }
    });
    found.sort_by_key(|(since, ..)| *since);
    let total = found.len();
    let requests = found.into_iter().take(MAX_LISTED).map(|(since, id, peer, asked, thread)| {
        let (began, seconds) = moment(since);
        json!({
            "id": shown_id(id),
            "method": asked.method.as_str(),
            "path": asked.path(),
            "peer": shown_peer(peer),
            "pool": names.get(asked.pool),
            "thread": thread.as_ref().map(|member| &*member.name),
            "tid": thread.as_ref().map(|member| member.tid),
            "since": began,
            "for_seconds": seconds,
        })
    });
    Ok(json!({ "total": total, "active": requests.collect::<Vec<_>>() }))
}

pub(super) fn queued(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let server = asking.server;
    let names = pool_names(server.first());
    let figures = server.first().pool_figures();
    let total: usize =
        figures.iter().filter(|pool| wanted.has_name(&pool.name)).map(|pool| pool.queued).sum();
    let mut found = waiting(server);
    found.retain(|(_, pool, _)| wanted.has(*pool));
    found.sort_by_key(|(_, _, since)| *since);
    let requests = found.into_iter().take(MAX_LISTED).filter_map(|(id, pool, since)| {
        let shown = look_up(server, id)?;
        let peer = shown.peer;
        let asked = shown.request(id.stream)?;
        let (began, seconds) = moment(since);
        Some(json!({
            "id": shown_id(id),
            "method": asked.method.as_str(),
            "path": asked.path(),
            "peer": shown_peer(peer),
            "pool": names.get(pool),
            "since": began,
            "for_seconds": seconds,
        }))
    });
    let requests: Vec<Value> = requests.collect();
    Ok(json!({ "total": total, "queued": requests }))
}

/// Both: those in the application, and those that wait.
pub(super) fn all(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let (mut all, queued) = (active(asking, given)?, queued(asking, given)?);
    let sum = [&all, &queued].into_iter().filter_map(|list| list["total"].as_u64()).sum::<u64>();
    all["total"] = sum.into();
    all["queued"] = queued["queued"].clone();
    Ok(all)
}

/// How requests have got their threads, the latest first: what the dispatch trace keeps while it is on; and the filters
/// that are shown exchanges which have ended.
pub(super) fn traces(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let (names, site) = (pool_names(asking.server.first()), &asking.server.first().site);
    let traced = site.traced.all().into_iter().filter(|entry| wanted.has(entry.pool));
    let shown = traced.map(|entry| {
        let [queue, run, total] = entry.seconds();
        let (noted, _) = moment(entry.noted);
        let trace = entry.trace;
        json!({
            "id": entry.id,
            "noted": noted,
            "method": entry.method,
            "path": entry.path,
            "status": entry.status,
            "pool": entry.pool.and_then(|pool| names.get(pool)),
            "waiting": trace.waiting,
            "threads": trace.threads,
            "idle": trace.idle,
            "budget": trace.budget,
            "got": if trace.queued { "from the queue" } else { "direct" },
            "queue_seconds": queue,
            "run_seconds": run,
            "total_seconds": total,
        })
    });
    Ok(json!({
        "dispatch_trace": if site.log.traces() { "on" } else { "off" },
        "filters": site.filters.tracing().collect::<Vec<_>>(),
        "traces": shown.collect::<Vec<_>>(),
    }))
}

/// With a pool: of those connections whose request it has.
pub(super) fn connections(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let listeners = asking.server.addresses();
    let mut counts: BTreeMap<(u32, State), u64> = BTreeMap::new();
    each(asking.server, |_, shown| {
        let mut pools = shown.requests.iter().map(|(_, asked)| asked.pool);
        if shown.requests.is_empty() && wanted.has(None) || pools.any(|pool| wanted.has(pool)) {
            *counts.entry((shown.listener, shown.state)).or_default() += 1;
        }
    });
    let lines = (0..).zip(&listeners).map(|(number, address)| {
        let mut line = serde_json::Map::new();
        line.insert("listener".to_owned(), address.to_string().into());
        for state in State::ALL {
            let count = counts.get(&(number, state)).copied().unwrap_or(0);
            line.insert(state.name().to_owned(), count.into());
        }
        Value::Object(line)
    });
    let total: u64 = counts.values().sum();
    Ok(json!({ "total": total, "connections": lines.collect::<Vec<_>>() }))
}

pub(super) fn pool_names(group: &Group) -> Vec<String> {
    group.scheduler.names().into_iter().map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_shown() {
        let id = Place { group: 3, token: Token { slot: 70_000, generation: 9 }.to_u64(), stream: 0 };
        assert_eq!(shown_id(id), "3.70000.9");
        assert_eq!(parse_id("3.70000.9"), Some(id));
        let of_several = Place { stream: 7, ..id };
        assert_eq!(shown_id(of_several), "3.70000.9.7");
        assert_eq!(parse_id("3.70000.9.7"), Some(of_several));
        for wrong in ["", "1", "1.2", "1.2.3.0", "1.2.3.4.5", "1.x.3", "1.2.-3"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }
}
