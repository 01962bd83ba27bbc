//! Slow deliveries: connections whose writer holds bytes.

use maitred_http::target;
use maitred_io::clock;
use maitred_match::Shape;
use maitred_server::Place;
use maitred_server::inspect::{Delivery, RequestSummary};
use serde_json::{Value, json};

use super::shown::moment;
use super::{Done, Given, QueryContext, Refusal, Wanted};

const MAX_LISTED: usize = 1000;

pub(super) fn deliveries(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let mut found = Vec::new();
    asking.server.connections().each(|connection, shown| {
        let pool = |delivery: &Delivery| delivery.answers.as_ref().and_then(|(_, pool)| *pool);
        for (stream, delivery) in shown.deliveries {
            if wanted.has(pool(&delivery)) {
                found.push((delivery, connection.with_stream(stream), shown.peer));
            }
        }
    });
    found.sort_by_key(|(delivery, ..)| delivery.since);
    let total = found.len();
    let now = clock::monotonic();
    let members = asking.server.threads().members();
    let names = asking.server.pools().names();
    let listed = found.into_iter().take(MAX_LISTED).map(|(delivery, id, peer)| {
        let (began, seconds) = moment(delivery.since.min(now));
        let rate = if seconds > 0.0 { delivery.sent as f64 / seconds } else { 0.0 };
        let thread = members.iter().find(|member| member.tid == delivery.thread);
        let (asked, pool) = delivery.answers.map_or((None, None), |(asked, pool)| (Some(asked), pool));
        json!({
            "id": id.to_string(),
            "peer": peer.to_string(),
            "method": asked.as_ref().map(|asked| asked.method.as_str()),
            "path": asked.as_ref().map(RequestSummary::path),
            "route": asked.as_ref().map(|asked| route(asking, asked, pool.is_some())),
            "label": delivery.label.as_deref(),
            "pool": pool.and_then(|pool| names.get(pool)),
            "thread": thread.map(|member| &*member.name),
            "sent_bytes": delivery.sent,
            "remaining_bytes": delivery.remaining,
            "memory_bytes": delivery.marks.memory,
            "spooled_bytes": delivery.marks.file,
            "rate_bytes": rate.round() as u64,
            "limit_bytes": delivery.limit,
            "since": began,
            "for_seconds": seconds,
        })
    });
    Ok(json!({ "total": total, "deliveries": listed.collect::<Vec<_>>() }))
}

fn route(asking: &QueryContext<'_>, asked: &RequestSummary, in_application: bool) -> String {
    let mut path = Vec::new();
    let known = target::normalise(&asked.path, &mut path).is_ok() && !in_application;
    match known.then(|| asking.server.routing().engine_route(&path, asked.host)).flatten() {
        Some(route) => route,
        None => {
            let shape = Shape { method: asked.method.as_str(), path: &asked.path, host: asked.host };
            asking.server.routing().route_name(shape)
        }
    }
}

/// Ends a delivery. The next thread that serves the connection closes it, as if its peer had gone; of a connection with
/// several exchanges only this one ends.
pub(super) fn end(asking: &QueryContext<'_>, given: &Given) -> Result<Done, Refusal> {
    let text = given.needed("id");
    let Ok(id) = text.parse::<Place>() else {
        return Err(Refusal::wrong(format!(
            "'{text}' is no id; write one that deliveries shows, such as 0.12.3"
        )));
    };
    let gone =
        || Refusal::unknown(format!("there is no delivery {text}; 'deliveries' lists those there are"));
    let shown = asking.server.connections().at(id).ok_or_else(gone)?;
    let own = shown.deliveries.into_iter().find(|(stream, _)| *stream == id.stream());
    let (_, delivery) = own.ok_or_else(gone)?;
    asking.server.connections().end_exchange(id);
    Ok(Done::line(format!("delivery {text} to {}: ended with {} bytes left", shown.peer, delivery.remaining)))
}
