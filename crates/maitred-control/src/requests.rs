//! The state of connections, and the requests that are in the application or wait for a thread.
//!
//! Every connection is looked at under its own lock, and copied; no two locks are held at once, so a request may be
//! seen in neither list, or end, while the others are looked at.

use std::collections::{BTreeMap, HashMap, HashSet};

use maitred_http::TlsSession;
use maitred_http::trace::Hex;
use maitred_server::inspect::{Member, State, Waiting};
use maitred_server::{Place, RunningCall, Server};
use serde_json::{Value, json};

use super::shown::moment;
use super::{Given, QueryContext, Refusal, Wanted};

const MAX_LISTED: usize = 1000;

fn threads(server: &Server) -> HashMap<Place, std::sync::Arc<Member>> {
    let members = server.threads().members().into_iter();
    members.filter_map(|member| Some((member.inside().map(|inside| inside.place)?, member))).collect()
}

pub(super) fn active(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let server = asking.server;
    let queued: HashSet<Place> =
        server.connections().waiting(MAX_LISTED).into_iter().map(|waiting| waiting.place).collect();
    let threads = threads(server);
    let names = server.pools().names();
    let mut calls = HashMap::<u64, Vec<RunningCall>>::new();
    for call in server.figures().calls().running() {
        if let Some(request) = call.request {
            calls.entry(request).or_default().push(call);
        }
    }
    let mut found = Vec::new();
    server.connections().each(|connection, shown| {
        for (stream, asked) in shown.requests {
            let id = connection.with_stream(stream);
            if queued.contains(&id) || !wanted.has(asked.pool) {
                continue;
            }
            let thread = threads.get(&id);
            let entered = thread.and_then(|member| member.inside()).map(|inside| inside.since);
            let tls = shown_session(shown.tls.as_deref());
            found.push((entered.unwrap_or(asked.since), id, (shown.peer, tls), asked, thread.cloned()));
        }
    });
    found.sort_by_key(|(since, ..)| *since);
    let total = found.len();
    let requests = found.into_iter().take(MAX_LISTED).map(|(since, id, (peer, tls), asked, thread)| {
        let (began, seconds) = moment(since);
        json!({
            "id": id.to_string(),
            "method": asked.method.as_str(),
            "path": asked.path(),
            "peer": peer.to_string(),
            "pool": names.get(asked.pool),
            "thread": thread.as_ref().map(|member| &*member.name),
            "tid": thread.as_ref().map(|member| member.tid),
            "tls": tls,
            "trace_id": asked.trace.map(|place| Hex(&place.trace).to_string()),
            "span_id": asked.trace.map(|place| Hex(&place.span).to_string()),
            "calls": calls.get(&asked.number).map(|calls| calls.iter().map(running_call).collect::<Vec<_>>()),
            "since": began,
            "for_seconds": seconds,
        })
    });
    Ok(json!({ "total": total, "active": requests.collect::<Vec<_>>() }))
}

/// A call that runs: where it goes, what it waits for, and for how long.
fn running_call(call: &RunningCall) -> Value {
    json!({ "to": call.server, "part": call.part.name(), "for_seconds": moment(call.since).1 })
}

pub(super) fn queued(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let server = asking.server;
    let names = server.pools().names();
    let figures = server.pools().figures();
    let total: usize =
        figures.iter().filter(|pool| wanted.has_name(&pool.name)).map(|pool| pool.queued).sum();
    let mut found = server.connections().waiting(MAX_LISTED);
    found.retain(|waiting| wanted.has(waiting.pool));
    found.sort_by_key(|waiting| waiting.since);
    let requests = found.into_iter().take(MAX_LISTED).filter_map(|Waiting { place: id, pool, since }| {
        let shown = server.connections().at(id)?;
        let peer = shown.peer;
        let asked = shown.request(id.stream())?;
        let (began, seconds) = moment(since);
        Some(json!({
            "id": id.to_string(),
            "method": asked.method.as_str(),
            "path": asked.path(),
            "peer": peer.to_string(),
            "pool": names.get(pool),
            "since": began,
            "for_seconds": seconds,
        }))
    });
    let requests: Vec<Value> = requests.collect();
    Ok(json!({ "total": total, "queued": requests }))
}

pub(super) fn all(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let (mut all, queued) = (active(asking, given)?, queued(asking, given)?);
    let sum = [&all, &queued].into_iter().filter_map(|list| list["total"].as_u64()).sum::<u64>();
    all["total"] = sum.into();
    all["queued"] = queued["queued"].clone();
    Ok(all)
}

/// How requests have got their threads, the latest first, from the dispatch trace while it is on; and the filters that
/// are shown exchanges which have ended.
pub(super) fn traces(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let (server, names) = (asking.server, asking.server.pools().names());
    let traced = server.figures().dispatched().into_iter().filter(|entry| wanted.has(entry.pool));
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
            "db_seconds": entry.database.map(|database| database.nanos as f64 / 1e9),
            "db_statements": entry.database.map(|database| database.statements),
            "outgoing_seconds": entry.outgoing.map(|(nanos, _)| nanos as f64 / 1e9),
            "outgoing_calls": entry.outgoing.map(|(_, calls)| calls),
        })
    });
    Ok(json!({
        "dispatch_trace": if server.log().traces() { "on" } else { "off" },
        "filters": server.settings().filters().tracing().collect::<Vec<_>>(),
        "traces": shown.collect::<Vec<_>>(),
    }))
}

/// Protocol, cipher suite, whether it is resumed, and the name that the client asked for.
type SessionKind = (&'static str, &'static str, bool, Option<Box<str>>);

pub(super) fn connections(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let listeners = asking.server.addresses();
    let mut counts: BTreeMap<(u32, State), u64> = BTreeMap::new();
    let mut sessions: BTreeMap<SessionKind, u64> = BTreeMap::new();
    let mut by_http2 = 0_u64;
    asking.server.connections().each(|_, shown| {
        let mut pools = shown.requests.iter().map(|(_, asked)| asked.pool);
        if shown.requests.is_empty() && wanted.has(None) || pools.any(|pool| wanted.has(pool)) {
            *counts.entry((shown.listener, shown.state)).or_default() += 1;
            by_http2 += u64::from(shown.is_http2);
            if let Some(session) = &shown.tls {
                let kind = (session.version, session.suite, session.resumed, session.sni.clone());
                *sessions.entry(kind).or_default() += 1;
            }
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
    let by_tls: u64 = sessions.values().sum();
    // A client may ask for any name, so there may be as many names as connections.
    let listed = sessions.into_iter().take(MAX_LISTED).map(|((protocol, cipher, resumed, sni), count)| {
        json!({ "protocol": protocol, "cipher": cipher, "resumed": resumed, "sni": sni, "connections": count })
    });
    Ok(json!({
        "total": total,
        "by_tls": by_tls,
        "by_http2": by_http2,
        "connections": lines.collect::<Vec<_>>(),
        "tls_sessions": listed.collect::<Vec<_>>(),
    }))
}

fn shown_session(session: Option<&TlsSession>) -> Value {
    session.map_or(Value::Null, |session| {
        json!({
            "protocol": session.version,
            "cipher": session.suite,
            "resumed": session.resumed,
            "sni": session.sni,
            "client": session.client.as_ref().map(|client| &client.subject),
        })
    })
}
