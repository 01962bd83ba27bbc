//! `recent`: the slowest requests of this minute and the one before, and the last ones that failed.

use maitred_http::trace::Hex;
use maitred_server::inspect::RecentRequest;
use maitred_stats::Span;
use serde_json::{Value, json};

use super::shown::moment;
use super::{Given, QueryContext, Refusal, Wanted};

/// The query.
pub const RECENT: &str = "recent";

pub(super) fn recent(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let (wanted, route) = (Wanted::of(asking, given)?, given.value("route"));
    let names = asking.server.pools().names();
    let found = asking.server.figures().recent();
    let is_wanted = |request: &RecentRequest| {
        wanted.has(request.pool) && route.is_none_or(|route| request.route.as_deref() == Some(route))
    };
    let rows = |requests: Vec<RecentRequest>| -> Vec<Value> {
        requests.into_iter().filter(&is_wanted).map(|request| row(&request, &names)).collect()
    };
    Ok(json!({ "slow": rows(found.slow), "failed": rows(found.failed) }))
}

fn row(request: &RecentRequest, names: &[&str]) -> Value {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let mut row = json!({
        "ended": moment(request.noted).0,
        "status": request.status,
        "method": request.method,
        "target": request.target,
        "total_seconds": seconds(request.spans.total()),
    });
    for span in Span::ALL {
        row[format!("{}_seconds", span.name())] = seconds(request.spans.get(span)).into();
    }
    row["db_seconds"] = request.database.map(|database| seconds(database.nanos)).into();
    row["db_statements"] = request.database.map(|database| database.statements).into();
    let calls = request.outgoing.as_ref();
    row["outgoing_seconds"] = calls.map(|calls| seconds(calls.nanos)).into();
    row["outgoing_calls"] = calls.map(|calls| calls.calls).into();
    row["outgoing_failed"] = calls.map(|calls| calls.failed).into();
    row["slowest_call"] = calls.map(|calls| &*calls.slowest).into();
    row["slowest_call_seconds"] = calls.map(|calls| seconds(calls.slowest_nanos)).into();
    row["slowest_call_part"] = calls.map(|calls| calls.slowest_part).into();
    row["route"] = request.route.clone().into();
    row["peer"] = request.peer.clone().into();
    row["pool"] = request.pool.and_then(|pool| names.get(pool)).copied().into();
    row["thread"] = request.thread.clone().into();
    row["end"] = request.end.into();
    row["id"] = request.id.clone().into();
    row["trace_id"] = request.trace.map(|place| Hex(&place.trace).to_string()).into();
    row
}

/// Sorts the rows of several processes as one process does, and cuts them to its limit.
pub fn merge_recent(merged: &mut Value) {
    let total = |row: &Value| row["total_seconds"].as_f64().unwrap_or_default();
    let ended = |row: &Value| row["ended"].as_str().unwrap_or_default().to_owned();
    if let Some(slow) = merged["slow"].as_array_mut() {
        slow.sort_by(|one, other| total(other).total_cmp(&total(one)));
        slow.truncate(64);
    }
    if let Some(failed) = merged["failed"].as_array_mut() {
        failed.sort_by_key(|row| std::cmp::Reverse(ended(row)));
        failed.truncate(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_processes_are_in_one_order() {
        let row = |total: f64, ended: &str| json!({ "total_seconds": total, "ended": ended });
        let (slow, failed) =
            (vec![row(1.0, ""), row(3.0, ""), row(2.0, "")], vec![row(0.0, "a"), row(0.0, "b")]);
        let mut merged = json!({ "slow": slow, "failed": failed });
        merge_recent(&mut merged);
        assert_eq!(
            merged["slow"].as_array().expect("rows").iter().map(total_of).collect::<Vec<_>>(),
            [3.0, 2.0, 1.0]
        );
        assert_eq!(merged["failed"][0]["ended"], "b");
    }

    fn total_of(row: &Value) -> f64 {
        row["total_seconds"].as_f64().expect("a number")
    }
}
