//! WebSockets: the counters, and the open ones.

use maitred_io::clock;
use serde_json::{Map, Value, json};

use super::{Given, QueryContext, Refusal, Wanted};

const MAX_LISTED: usize = 100;

pub(super) fn websockets(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let plain = |series: &str| {
        series
            .replacen("maitred_websocket_", "", 1)
            .replacen("maitred_websockets_", "", 1)
            .replacen("_total", "", 1)
    };
    // Those of several workers are added up by these names.
    let counts: Map<String, Value> = asking
        .server
        .figures()
        .websockets()
        .iter()
        .map(|(series, count)| (plain(series), (*count).into()))
        .collect();
    let mut open = Vec::new();
    asking.server.connections().each(|_, shown| {
        for (number, socket) in &shown.websockets {
            let asked = shown.requests.iter().find(|(own, _)| own == number).map(|(_, asked)| asked);
            if let Some(asked) = asked.filter(|asked| wanted.has(Some(asked.pool))) {
                open.push((shown.peer, asked.path(), socket.clone()));
            }
        }
    });
    let total = open.len();
    open.sort_by_key(|(.., socket)| socket.since);
    let now = clock::monotonic();
    let seconds = |since: u64| now.saturating_sub(since) as f64 / 1e9;
    let listed = open.into_iter().take(MAX_LISTED).map(|(peer, path, socket)| {
        json!({
            "peer": peer.to_string(),
            "path": path,
            "open_seconds": seconds(socket.since),
            "silent_seconds": seconds(socket.heard),
            "received": socket.received.messages,
            "received_bytes": socket.received.bytes,
            "sent": socket.sent.messages,
            "sent_bytes": socket.sent.bytes,
            "waiting_bytes": socket.waiting,
            "compressed": socket.compressed,
        })
    });
    Ok(json!({ "counts": counts, "open": total, "websockets": listed.collect::<Vec<_>>() }))
}
