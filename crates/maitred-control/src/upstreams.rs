//! `upstreams`: calls to other servers since the start, by server.

use maitred_server::Statistics;
use maitred_stats::{Distribution, Part, Upstream};
use serde_json::{Value, json};

use super::{Given, QueryContext, Refusal};

/// The query.
pub const UPSTREAMS: &str = "upstreams";

pub(super) fn upstreams(asking: &QueryContext<'_>, _given: &Given) -> Result<Value, Refusal> {
    Ok(upstreams_of(&asking.server.figures().statistics()))
}

/// The answer of `upstreams`, for one process, or for the sums of several: the servers that calls have waited for longest come first. The
/// numbers of the ends of a server add up to its calls.
#[must_use]
pub fn upstreams_of(statistics: &Statistics) -> Value {
    let mut all: Vec<&Upstream> = statistics.upstreams.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.nanos));
    let calls: u64 = all.iter().map(|one| one.calls()).sum();
    let running: u64 = all.iter().map(|one| one.running).sum();
    let rows: Vec<Value> = all.iter().map(|one| row(one)).collect();
    let ends: Vec<Value> = all.iter().flat_map(|one| ends(one)).collect();
    json!({ "calls": calls, "running": running, "upstreams": rows, "ends": ends })
}

fn row(one: &Upstream) -> Value {
    let percent = |of: &Distribution, percent| (of.count() > 0).then(|| seconds(of.percentile(percent)));
    let calls = one.calls();
    let mut row = json!({
        "server": one.name,
        "calls": calls,
        "running": one.running,
        "mean_seconds": (calls > 0).then(|| one.mean() / 1e9),
        "p50_seconds": percent(&one.total, 50.0),
        "p99_seconds": percent(&one.total, 99.0),
        "first_byte_p50_seconds": percent(&one.first_byte, 50.0),
        "first_byte_p99_seconds": percent(&one.first_byte, 99.0),
        "sent_bytes": one.sent,
        "received_bytes": one.received,
        "reused": (calls > 0).then(|| one.reused as f64 / calls as f64),
        "retried": one.retried,
    });
    // Means of the calls that had such a part: a reused connection has no connect.
    for part in [Part::Slot, Part::Resolve, Part::Connect, Part::Tls] {
        let (nanos, count) = one.parts[part as usize];
        row[format!("{}_seconds", part.name())] = (count > 0).then(|| seconds(nanos) / count as f64).into();
    }
    row
}

/// One row for each way in which calls to this server have ended.
fn ends(one: &Upstream) -> impl Iterator<Item = Value> {
    one.ends()
        .map(|(kind, end, calls)| json!({ "server": one.name, "kind": kind, "end": end, "calls": calls }))
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_server_add_up_to_its_calls() {
        let counts = |counts: &[(&str, u64)]| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let busy = Upstream {
            name: "https://api.example:443".to_owned(),
            running: 2,
            reused: 8000,
            nanos: 8275 * 13_000_000,
            statuses: counts(&[("200", 8270)]),
            timeouts: counts(&[("first byte", 3)]),
            failures: counts(&[("refused", 1)]),
            dropped: 1,
            parts: [(0, 0), (0, 0), (900_000_000, 9), (0, 0), (0, 0), (0, 0)],
            ..Upstream::default()
        };
        let idle = Upstream { name: "http://cdn.example:80".to_owned(), running: 1, ..Upstream::default() };
        let statistics = Statistics { upstreams: vec![idle, busy], ..Statistics::default() };
        let shown = upstreams_of(&statistics);
        assert_eq!((&shown["calls"], &shown["running"]), (&8275.into(), &3.into()));
        let (first, second) = (&shown["upstreams"][0], &shown["upstreams"][1]);
        assert_eq!(
            (&first["server"], &second["server"]),
            (&"https://api.example:443".into(), &"http://cdn.example:80".into())
        );
        assert_eq!((&first["mean_seconds"], &first["connect_seconds"]), (&0.013.into(), &0.1.into()));
        assert!(first["tls_seconds"].is_null() && second["mean_seconds"].is_null(), "{shown}");
        let ends = shown["ends"].as_array().expect("rows");
        assert_eq!(ends.iter().filter_map(|row| row["calls"].as_u64()).sum::<u64>(), 8275);
        let kinds: Vec<_> =
            ends.iter().filter_map(|row| Some((row["kind"].as_str()?, row["end"].as_str()?))).collect();
        assert_eq!(
            kinds,
            [("status", "200"), ("time-out", "first byte"), ("failure", "refused"), ("dropped", "dropped")]
        );
    }
}
