//! The calls to other servers, by server, as text for Prometheus. At most 257 servers with 47 ends each, so the labels are bounded.

use maitred_stats::exposition::{Metric, Sink, Value};
use maitred_stats::{Part, Upstream};

type Level = (&'static str, &'static str, fn(&Upstream) -> Value<'_>);

const OF_SERVERS: [Level; 7] = [
    ("maitred_upstream_running", "Calls to a server that have not ended.", |one| Value::gauge(one.running)),
    ("maitred_upstream_sent_bytes_total", "Bytes of requests that were sent to it.", |one| {
        Value::Counter(one.sent)
    }),
    ("maitred_upstream_received_bytes_total", "Bytes of its responses.", |one| Value::Counter(one.received)),
    ("maitred_upstream_reused_calls_total", "Calls on a connection that had served another one.", |one| {
        Value::Counter(one.reused)
    }),
    (
        "maitred_upstream_retried_calls_total",
        "Calls that were sent twice, as their connection was stale.",
        |one| Value::Counter(one.retried),
    ),
    ("maitred_upstream_duration_seconds", "The whole time of a call.", |one| Value::Summary(&one.total)),
    (
        "maitred_upstream_first_byte_seconds",
        "The time from the first byte of a request to the first byte of its response.",
        |one| Value::Summary(&one.first_byte),
    ),
];

/// Writes the calls of each server.
pub(super) fn write(upstreams: &[Upstream], out: &mut dyn Sink) {
    let ends: Vec<_> = upstreams
        .iter()
        .flat_map(|one| one.ends().map(|(kind, end, calls)| (one.name.as_str(), kind, end, calls)))
        .collect();
    let labels: Vec<_> = ends
        .iter()
        .map(|(server, kind, end, _)| [("server", *server), ("kind", *kind), ("end", *end)])
        .collect();
    let calls = ends.iter().zip(&labels).map(|((.., count), labels)| Metric {
        name: "maitred_upstream_calls_total",
        help: "Calls that have ended, each with exactly one end.",
        labels,
        value: Value::Counter(*count),
    });
    out.take(&calls.collect::<Vec<_>>());
    let servers: Vec<_> = upstreams.iter().map(|one| [("server", &*one.name)]).collect();
    for (name, help, value) in OF_SERVERS {
        let of = |(one, labels)| Metric { name, help, labels, value: value(one) };
        let metrics = upstreams.iter().zip(servers.iter().map(<[_; 1]>::as_slice)).map(of);
        out.take(&metrics.collect::<Vec<_>>());
    }
    let parts: Vec<_> = upstreams
        .iter()
        .flat_map(|one| {
            Part::ALL.into_iter().zip(one.parts).map(|(part, sum)| (&*one.name, part.name(), sum))
        })
        .filter(|(.., (_, count))| *count > 0)
        .collect();
    let labels: Vec<_> =
        parts.iter().map(|(server, part, _)| [("server", *server), ("part", *part)]).collect();
    let seconds = parts.iter().zip(&labels).map(|((.., (nanos, _)), labels)| Metric {
        name: "maitred_upstream_part_seconds_total",
        help: "The time of calls in each part.",
        labels,
        value: Value::SecondsTotal(*nanos),
    });
    out.take(&seconds.collect::<Vec<_>>());
    let counts = parts.iter().zip(&labels).map(|((.., (_, count)), labels)| Metric {
        name: "maitred_upstream_part_calls_total",
        help: "Calls that had such a part.",
        labels,
        value: Value::Counter(*count),
    });
    out.take(&counts.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use maitred_stats::exposition::Page;

    use super::*;

    #[test]
    fn each_server_has_its_ends_and_parts() {
        let counts = |counts: &[(&str, u64)]| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let one = Upstream {
            name: "http://api.example:80".to_owned(),
            running: 3,
            sent: 100,
            statuses: counts(&[("200", 67), ("201", 23)]),
            timeouts: counts(&[("connect", 2)]),
            failures: counts(&[("refused", 4)]),
            dropped: 1,
            parts: [(0, 0), (0, 0), (1_500_000_000, 5), (0, 0), (0, 0), (0, 0)],
            ..Upstream::default()
        };
        let text = |upstreams: &[Upstream]| {
            let mut page = Page::default();
            write(upstreams, &mut page);
            page.text
        };
        let out = text(&[one]);
        for line in [
            r#"maitred_upstream_calls_total{server="http://api.example:80",kind="status",end="201"} 23"#,
            r#"maitred_upstream_calls_total{server="http://api.example:80",kind="time-out",end="connect"} 2"#,
            r#"maitred_upstream_calls_total{server="http://api.example:80",kind="dropped",end="dropped"} 1"#,
            r#"maitred_upstream_running{server="http://api.example:80"} 3"#,
            r#"maitred_upstream_part_seconds_total{server="http://api.example:80",part="connect"} 1.5"#,
            r#"maitred_upstream_part_calls_total{server="http://api.example:80",part="connect"} 5"#,
        ] {
            assert!(out.lines().any(|own| own.starts_with(line)), "{line}\n{out}");
        }
        assert_eq!(text(&[]), "");
    }
}
