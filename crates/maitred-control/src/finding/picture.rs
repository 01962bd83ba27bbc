//! A picture of this process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use maitred_certificates::Status;
use maitred_finding::{Certificate, Collector, Delivery, Log, Memory, Picture, Pool, Queue};
use maitred_io::{clock, machine, process, tasks};
use maitred_match::Shape;
use maitred_server::inspect::{Member, RequestSummary, Role};
use maitred_server::tls::IdentityInfo;
use maitred_server::{Computing, Place, Progress, RunningCall, Server};
use maitred_stats::{Part, Span};

use crate::QueryContext;
use crate::shown::ENGINE;
use crate::tls::is_for;

/// Requests that wait are looked at, of each pool, and deliveries that are kept: those that wait for longest.
const MOST: usize = 1000;

/// The names of database time and of the time of calls in `Server-Timing`.
const DATABASE: &str = "db";
const OUTGOING: &str = "outgoing";

/// A request that is longer on a thread is stuck.
const STUCK: u64 = 30_000_000_000;

/// The time of a first order from the start of its stand-in's validity on, in seconds: an hour, and the day by which it is dated back.
const FIRST_ORDER: u64 = 25 * 60 * 60;

/// Takes a picture of this process now. Takes some milliseconds with many routes or connections.
pub(crate) fn of(asking: &QueryContext<'_>) -> Picture {
    let server = asking.server;
    let mut picture = Picture { at: clock::monotonic(), ..Picture::default() };
    add_pools(server, &mut picture);
    add_routes(server, &mut picture);
    let members = server.threads().members();
    add_connections(server, &members, &mut picture);
    let runs = |member: &&std::sync::Arc<Member>| member.role != Role::BackupPoller;
    for (ran, waited) in members.iter().filter(runs).filter_map(|member| tasks::schedule(member.tid)) {
        picture.ran += nanos(ran);
        picture.wanted += nanos(ran + waited);
    }
    picture.timeouts = server.figures().snapshot().timeouts;
    picture.parallel = server.threads().parallel() as u64;
    picture.processors = machine::processors() as u64;
    let (errors, access) = server.log().progress();
    picture.logs.insert("error".to_owned(), log(errors));
    for own in access {
        let sum = picture.logs.entry("access".to_owned()).or_default();
        let own = log(own);
        sum.waiting += own.waiting;
        sum.settled += own.settled;
        sum.dropped += own.dropped;
    }
    if let Some(own) = server.log().progress_of_calls() {
        picture.logs.insert("client".to_owned(), log(own));
    }
    for state in server.otlp() {
        let (waiting, lost) = (state.counts.waiting, state.counts.dropped + state.counts.refused);
        let failing = state.trouble.map(|(why, _)| why).unwrap_or_default();
        picture.collectors.insert(state.signal.to_owned(), Collector { waiting, lost, failing });
    }
    let (waiting, done) = server.figures().spool_progress();
    picture.spool = Queue { waiting, done };
    let bodies = server.figures().body_memory().held + server.settings().guard().budget.figures().0;
    picture.memory = Memory {
        resident: process::resident_bytes().unwrap_or_default(),
        held: picture.memory.held + bodies,
        limit: machine::memory_limit(),
    };
    add_certificates(asking, &mut picture);
    picture
}

fn add_certificates(asking: &QueryContext<'_>, picture: &mut Picture) {
    let Some(terms) = asking.server.settings().tls() else { return };
    let now = clock::unix_seconds();
    for order in asking.owner.orders() {
        let own = terms.identities().iter().find(|info| is_for(info, &order));
        picture.certificates.extend(certificate(own, &order, now).map(|one| (order.name, one)));
    }
}

/// None of a name whose first order still has time.
fn certificate(own: Option<&IdentityInfo>, order: &Status, now: u64) -> Option<Certificate> {
    let issued = own.filter(|own| !own.stands_in()).map(|own| &own.certificate);
    let begin = own.map_or(now, |own| own.certificate.not_before);
    if order.fault.is_none() && issued.is_none() && now < begin.saturating_add(FIRST_ORDER) {
        return None;
    }
    let of_seconds = |seconds: u64| seconds.saturating_mul(1_000_000_000);
    Some(Certificate {
        left: of_seconds(issued.map_or(0, |own| own.not_after.saturating_sub(now))),
        valid_for: of_seconds(issued.map_or(0, |own| own.not_after.saturating_sub(own.not_before))),
        fault: order.fault.as_ref().map(|fault| fault.text.clone()).unwrap_or_default(),
    })
}

fn log(progress: Progress) -> Log {
    let Progress { waiting, settled, dropped } = progress;
    Log { waiting, settled, dropped }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn add_pools(server: &Server, picture: &mut Picture) {
    for (number, figures) in server.pools().figures().into_iter().enumerate() {
        let pool = Pool {
            threads: figures.threads as u64,
            max_threads: figures.max as u64,
            idle: figures.parked as u64,
            queued: figures.queued as u64,
            is_loop: server.threads().is_loop(number),
            ..Pool::default()
        };
        picture.pools.insert(figures.name, pool);
    }
}

fn add_routes(server: &Server, picture: &mut Picture) {
    let statistics = server.figures().statistics();
    let mut most = HashMap::<&str, u64>::new();
    for leaf in statistics.leaves.iter().filter(|leaf| leaf.pool != ENGINE) {
        let route = picture.routes.entry(leaf.route.clone()).or_default();
        route.requests += leaf.requests;
        route.errors += if leaf.class == "5xx" { leaf.requests } else { 0 };
        let so_far = most.entry(&leaf.route).or_default();
        if leaf.requests >= *so_far {
            *so_far = leaf.requests;
            route.pool.clone_from(&leaf.pool);
        }
    }
    for one in statistics.databases() {
        if let Some(route) = picture.routes.get_mut(&one.route) {
            route.asking += one.statements.count();
            // Counted in thousandths.
            route.statements += one.statements.sum() / 1000;
        }
    }
    let measured = statistics.computing();
    for (name, leaf) in &statistics.routes {
        if let Some(route) = picture.routes.get_mut(name) {
            let sum = |span: Span| leaf.spans[span as usize].sum();
            route.run = sum(Span::Run);
            route.waited = sum(Span::Queue).saturating_add(sum(Span::Gate));
            let Computing { computed, starved, measured } =
                measured.get(&**name).copied().unwrap_or_default();
            (route.computed, route.starved, route.measured) = (computed, starved, measured);
        }
    }
    for timing in &statistics.application {
        let Some(route) = picture.routes.get_mut(&timing.route) else { continue };
        let sum = match &*timing.name {
            DATABASE => &mut route.database,
            OUTGOING => &mut route.outgoing,
            _ => continue,
        };
        *sum = sum.saturating_add(timing.durations.sum());
    }
    for one in statistics.upstreams {
        let server = picture.servers.entry(one.name).or_default();
        server.answered = one.statuses.values().sum::<u64>() + one.dropped;
        (server.timeouts, server.failures) = (one.timeouts, one.failures);
        let parts = Part::ALL.into_iter().zip(one.parts).filter(|(_, (nanos, _))| *nanos > 0);
        server.parts = parts.map(|(part, (nanos, _))| (part.name().to_owned(), nanos)).collect();
    }
}

fn add_connections(server: &Server, members: &[std::sync::Arc<Member>], picture: &mut Picture) {
    let now = picture.at;
    let names = server.pools().names();
    let waiting = server.connections().waiting(MOST);
    for one in &waiting {
        if let Some(pool) = names.get(one.pool).and_then(|name| picture.pools.get_mut(*name)) {
            pool.queued_for += now.saturating_sub(one.since);
        }
    }
    let queued: HashSet<Place> = waiting.into_iter().map(|one| one.place).collect();
    let inside: HashMap<Place, u64> = members
        .iter()
        .filter_map(|member| member.inside())
        .map(|inside| (inside.place, inside.since))
        .collect();
    let mut calls = HashMap::<u64, Vec<RunningCall>>::new();
    for call in server.figures().calls().running() {
        let running = &mut picture.servers.entry(call.server.clone()).or_default().running;
        *running.entry(call.part.name().to_owned()).or_default() += 1;
        if let Some(request) = call.request {
            calls.entry(request).or_default().push(call);
        }
    }
    let mut deliveries = Vec::new();
    server.connections().each(|connection, shown| {
        for (stream, asked) in &shown.requests {
            let id = connection.with_stream(*stream);
            let Some(name) = names.get(asked.pool) else { continue };
            let Some(pool) = picture.pools.get_mut(*name) else { continue };
            let on_thread = inside.get(&id).copied();
            // On a loop all are in the application that it has been given; WebSockets stay there for ever.
            let is_socket = shown.websockets.iter().any(|(number, _)| number == stream);
            let since = on_thread
                .or(Some(asked.since).filter(|_| pool.is_loop && !queued.contains(&id) && !is_socket));
            let Some(since) = since else { continue };
            let lasts = now.saturating_sub(since);
            pool.inside += 1;
            pool.stuck += u64::from(on_thread.is_some() && lasts > STUCK);
            let route = picture.routes.entry(route_of(server, asked)).or_default();
            if route.pool.is_empty() {
                (*name).clone_into(&mut route.pool);
            }
            route.inside += 1;
            route.inside_for += lasts;
            for call in calls.get(&asked.number).map(Vec::as_slice).unwrap_or_default() {
                route.calling_for += now.saturating_sub(call.since) + call.earlier;
                let parts = route.calling.entry(call.server.clone()).or_default();
                *parts.entry(call.part.name().to_owned()).or_default() += 1;
            }
        }
        for (stream, delivery) in shown.deliveries {
            picture.memory.held += delivery.marks.memory + delivery.marks.file;
            let route = delivery.answers.as_ref().map(|(asked, _)| route_of(server, asked));
            let id = format!("{}@{}", connection.with_stream(stream), delivery.since);
            let (sent, waiting) = (delivery.sent, delivery.marks.memory + delivery.marks.file);
            deliveries.push((
                delivery.since,
                id,
                Delivery { sent, waiting, route: route.unwrap_or_default() },
            ));
        }
    });
    deliveries.sort_by_key(|(since, ..)| *since);
    picture.deliveries = deliveries.into_iter().take(MOST).map(|(_, id, one)| (id, one)).collect();
}

fn route_of(server: &Server, asked: &RequestSummary) -> String {
    server.routing().route_name(Shape { method: asked.method.as_str(), path: &asked.path, host: asked.host })
}

#[cfg(test)]
mod tests {
    use maitred_server::tls::Identity;

    use super::*;

    #[test]
    fn the_end_of_a_certificate_counts_also_where_no_order_has_failed() {
        const HOUR: u64 = 60 * 60;
        const NOW: u64 = 1_800_000_000;
        let (identity, _) = Identity::development(&["shop.example".to_owned()], || NOW).expect("made");
        let order = Status {
            name: "shop.example".to_owned(),
            state: "none".to_owned(),
            until: None,
            fault: None,
            next: None,
        };
        let left = |info: &IdentityInfo, now| {
            certificate(Some(info), &order, now).map(|one| one.left / 1_000_000_000)
        };
        let issued = identity.info().clone();
        assert_eq!(left(&issued, NOW), Some(issued.certificate.not_after - NOW));
        let stand_in = identity.ordered().info().clone();
        assert_eq!((left(&stand_in, NOW), left(&stand_in, NOW + HOUR)), (None, Some(0)));
    }
}
