//! `otlp`: spans, figures and records for a collector of OpenTelemetry, by their fate.

use serde_json::{Value, json};

use super::shown::moment;
use super::{Given, QueryContext, Refusal};

pub(super) fn otlp(asking: &QueryContext<'_>, _given: &Given) -> Result<Value, Refusal> {
    let rows: Vec<Value> = (asking.server.otlp().into_iter())
        .map(|state| {
            let counts = state.counts;
            let (failing, since) = state.trouble.unzip();
            json!({
                "signal": state.signal,
                "to": state.to,
                "queued": counts.waiting,
                "queued_bytes": counts.bytes,
                "sent": counts.sent,
                "dropped": counts.dropped,
                "refused": counts.refused,
                "posts": counts.posts,
                "failed_posts": counts.failed,
                "failing": failing,
                "since": since.map(|since| moment(since).0),
            })
        })
        .collect();
    Ok(json!({ "otlp": rows }))
}
