//! Figures of exchanges, of static files and of the process as text.

use maitred_files::CacheStatistics;
use maitred_io::process;
use maitred_limits::{RULES_TOTAL, Rule};
use maitred_stats::exposition::{Format, Metric, Page, Sink, Value};
use maitred_stats::{Distribution, Leaf, Span};

use super::{database, upstream_metrics};
use crate::site::{LeafCount, Statistics};

/// Writes counts of all exchanges by listener, pool, route and class; times by pool, and in short form by route.
pub fn write_exchanges(statistics: &Statistics, out: &mut dyn Sink) {
    let plain = |name, help, value| Metric { name, help, labels: &[], value };
    let metrics = [
        plain(
            "maitred_statistics_on",
            "Whether requests are counted by route (1 or 0).",
            Value::Gauge(statistics.on.into()),
        ),
        plain("maitred_statistics_bytes", "What these figures take.", Value::gauge(statistics.bytes as u64)),
        plain(
            "maitred_statistics_max_bytes",
            "What they may take.",
            Value::gauge(statistics.max_bytes as u64),
        ),
        plain(
            "maitred_statistics_routes",
            "Routes that are known.",
            Value::gauge(statistics.routes.len() as u64),
        ),
        plain(
            "maitred_application_timings_lost_total",
            "Entries of the application's Server-Timing that were not counted, for want of memory.",
            Value::Counter(statistics.application_lost),
        ),
    ];
    out.take(&metrics);
    write_leaves(&statistics.leaves, out);
    write_pools(&statistics.pools, out);
    write_routes(statistics, out);
    write_application(statistics, out);
    upstream_metrics::write(&statistics.upstreams, out);
}

fn write_leaves(leaves: &[LeafCount], out: &mut dyn Sink) {
    let labels = leaves.iter().map(|leaf| {
        let LeafCount { listener, pool, route, class, .. } = leaf;
        [("listener", &**listener), ("pool", &**pool), ("route", &**route), ("class", &**class)]
    });
    let labels: Vec<_> = labels.collect();
    let all = || leaves.iter().zip(&labels);
    let requests = all().map(|(leaf, labels)| Metric {
        name: "maitred_route_requests_total",
        help: "Requests answered or refused, by route.",
        labels,
        value: Value::Counter(leaf.requests),
    });
    let bytes = all().map(|(leaf, labels)| Metric {
        name: "maitred_route_body_bytes_total",
        help: "Body bytes of their answers.",
        labels,
        value: Value::Counter(leaf.bytes),
    });
    let metrics: Vec<_> = requests.chain(bytes).collect();
    out.take(&metrics);
}

/// The spans of a leaf with any time, with their names.
fn spans(leaf: &Leaf) -> impl Iterator<Item = (&'static str, &Distribution)> {
    Span::ALL.into_iter().map(Span::name).zip(&leaf.spans).filter(|(_, distribution)| distribution.max() > 0)
}

/// Writes the times of requests by pool.
pub fn write_pools(pools: &[(String, Leaf)], out: &mut dyn Sink) {
    let parts = pools.iter().flat_map(|(pool, leaf)| {
        spans(leaf).map(|(span, distribution)| ([("pool", &**pool), ("span", span)], distribution))
    });
    let parts: Vec<_> = parts.collect();
    let wholes: Vec<_> = pools.iter().map(|(pool, leaf)| ([("pool", &**pool)], &leaf.total)).collect();
    let wholes = wholes.iter().map(|(labels, distribution)| Metric {
        name: "maitred_request_duration_seconds",
        help: "The whole time of a request, from its receipt to the last byte of its answer.",
        labels,
        value: Value::Histogram(distribution),
    });
    let parts = parts.iter().map(|(labels, distribution)| Metric {
        name: "maitred_span_duration_seconds",
        help: "Parts of that time.",
        labels,
        value: Value::Histogram(distribution),
    });
    let metrics: Vec<_> = wholes.chain(parts).collect();
    out.take(&metrics);
}

fn write_routes(statistics: &Statistics, out: &mut dyn Sink) {
    let after = statistics.after();
    let parts = statistics.routes.iter().flat_map(|(route, leaf)| {
        let after = after.get(&**route).map(|after| ("after", after));
        let all = spans(leaf).chain([("total", &leaf.total)]).chain(after);
        all.map(|(span, distribution)| ([("route", &**route), ("span", span)], distribution))
    });
    let parts: Vec<_> = parts.collect();
    let metric = |(labels, distribution)| Metric {
        name: "maitred_route_duration_seconds",
        help: "The time of requests and its parts, by route.",
        labels,
        value: Value::Summary(distribution),
    };
    let metrics: Vec<_> = parts.iter().map(|(labels, of)| metric((labels.as_slice(), *of))).collect();
    out.take(&metrics);
}

fn write_application(statistics: &Statistics, out: &mut dyn Sink) {
    let entries: Vec<_> = statistics.application.iter().filter(|entry| entry.is_duration()).collect();
    let labels = entries
        .iter()
        .map(|entry| [("pool", &*entry.pool), ("route", &*entry.route), ("name", &*entry.name)]);
    let labels: Vec<_> = labels.collect();
    let metrics = entries.iter().zip(&labels).map(|(entry, labels)| Metric {
        name: "maitred_application_duration_seconds",
        help: "What the application says of its time (Server-Timing).",
        labels,
        value: Value::Summary(&entry.durations),
    });
    out.take(&metrics.collect::<Vec<_>>());
    database::write(statistics, out);
}

/// Writes counts and contents of the caches of static files, all mounts together.
pub fn write_cache(cache: &CacheStatistics, out: &mut dyn Sink) {
    let count = |name, help, value| Metric { name, help, labels: &[], value: Value::Counter(value) };
    let level = |name, help, value| Metric { name, help, labels: &[], value: Value::gauge(value) };
    let load_ns = u64::try_from(cache.load_time.as_nanos()).unwrap_or(u64::MAX);
    let metrics = [
        level("maitred_static_cache_entries", "Static files that are cached.", cache.entries),
        level("maitred_static_cache_bytes", "Bytes of their content in memory.", cache.bytes),
        level("maitred_static_cache_descriptors", "Descriptors held open for them.", cache.descriptors),
        count("maitred_static_cache_hits_total", "Answers from the cache.", cache.hits),
        count("maitred_static_cache_misses_total", "Answers for which a file was opened.", cache.misses),
        count("maitred_static_cache_evictions_total", "Files that gave way to others.", cache.evictions),
        count(
            "maitred_static_cache_invalidations_total",
            "Checks that found a file changed or gone.",
            cache.invalidations,
        ),
        count(
            "maitred_static_cache_revalidations_total",
            "Checks that found a file unchanged.",
            cache.revalidations,
        ),
        Metric {
            name: "maitred_static_cache_load_seconds_total",
            help: "Time spent opening and reading them.",
            labels: &[],
            value: Value::SecondsTotal(load_ns),
        },
    ];
    out.take(&metrics);
}

/// The commit that the program was built from; none unless the build named one.
const COMMIT: Option<&str> = option_env!("MAITRED_COMMIT");

/// Writes the version of the program. The value is always 1, so that other figures can be multiplied by it for its
/// labels.
pub fn write_build(language: &str, out: &mut dyn Sink) {
    let mut labels = vec![("version", env!("CARGO_PKG_VERSION"))];
    labels.extend(COMMIT.map(|commit| ("commit", commit)));
    labels.extend(language.strip_prefix("Python ").map(|version| ("python", version)));
    let metric = Metric {
        name: "maitred_build_info",
        help: "Version, commit and Python of this server; always 1.",
        labels: &labels,
        value: Value::Gauge(1),
    };
    out.take(&[metric]);
}

/// The page of a supervisor's own figures: serving workers, wanted workers, and replaced workers by reason. The admin
/// listener is the supervisor's; `wrong_tokens` counts wrong tokens at that listener.
#[must_use]
pub fn page_of_workers(
    ready: usize,
    wanted: usize,
    restarts: &[(&'static str, u64)],
    wrong_tokens: u64,
    format: Format,
) -> String {
    let level =
        |name, help, value: usize| Metric { name, help, labels: &[], value: Value::gauge(value as u64) };
    let labels: Vec<_> = restarts.iter().map(|(reason, _)| [("reason", *reason)]).collect();
    let restarts = restarts.iter().zip(&labels).map(|((_, count), labels)| Metric {
        name: "maitred_worker_restarts_total",
        help: "Workers started in the place of others.",
        labels,
        value: Value::Counter(*count),
    });
    let levels = [
        level("maitred_workers_ready", "Workers that serve.", ready),
        level("maitred_workers_wanted", "Workers that should.", wanted),
    ];
    let refused = Metric {
        name: RULES_TOTAL,
        help: "Connections ended and requests refused because of a limit on peers.",
        labels: &[("rule", Rule::WrongToken.name())],
        value: Value::Counter(wrong_tokens),
    };
    let mut out = Page::new(format);
    let all: Vec<_> = levels.into_iter().chain(restarts).chain([refused]).collect();
    out.take(&all);
    out.text
}

/// Writes the resources of the process. Readers expect the names without `maitred` of every process.
pub fn write_process(process: &process::Figures, out: &mut dyn Sink) {
    let memory = &process.memory;
    let levels = [
        ("process_open_fds", "Open descriptors.", process.descriptors),
        ("process_max_fds", "The most that may be.", process.max_descriptors),
        ("process_resident_memory_bytes", "Memory in use (RSS).", memory.resident),
        ("process_virtual_memory_bytes", "Addresses in use.", memory.virtual_size),
        ("process_start_time_seconds", "When the process started, in seconds since 1970.", process.started),
        (
            "maitred_process_threads",
            "Threads of the process, those of the application included.",
            process.threads,
        ),
        (
            "maitred_process_proportional_memory_bytes",
            "Memory in use, shared pages divided among those who share them (PSS).",
            memory.proportional,
        ),
        (
            "maitred_tcp_memory_bytes",
            "What the kernel holds for all TCP connections of the network namespace.",
            memory.tcp,
        ),
    ];
    let levels = levels.into_iter().filter_map(|(name, help, value)| {
        Some(Metric { name, help, labels: &[], value: Value::gauge(value?) })
    });
    let (user, system) = process.processor_ns;
    let time = |mode, value| Metric {
        name: "maitred_process_cpu_seconds_total",
        help: "Processor time in the program (user) and in the kernel for it (system).",
        labels: mode,
        value: Value::SecondsTotal(value),
    };
    let total = Metric {
        name: "process_cpu_seconds_total",
        help: "Processor time.",
        labels: &[],
        value: Value::SecondsTotal(user.saturating_add(system)),
    };
    let times = [total, time(&[("mode", "user")], user), time(&[("mode", "system")], system)];
    out.take(&levels.chain(times).collect::<Vec<_>>());
}
