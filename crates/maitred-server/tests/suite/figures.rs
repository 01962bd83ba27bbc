//! Figures of two servers, as of two processes, read by a third one: also those of one that has never folded its rings, as one that
//! was killed.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::harness::{Running, exchange, get_last, settings, start, text, wait_until};
use maitred_server::figures::{
    Format, MEMORY_BYTES, Owner, Retired, SharedMemory, WorkerPage, merge_pages, read_counters,
};
use maitred_server::{PoolRule, PoolSettings, Routes, Statistics};
use maitred_stats::Leaf;

/// A server, and its memory as another process has it.
fn serve() -> (Running, SharedMemory) {
    let memory = SharedMemory::new(MEMORY_BYTES).expect("memory");
    let elsewhere = SharedMemory::open(memory.as_fd().try_clone_to_owned().expect("a copy")).expect("mapped");
    let mut settings =
        settings(Routes::new().with_application(Arc::new(|exchange| text(exchange, "answer"))));
    settings.pools.push(PoolSettings::named("reports"));
    let path = Some("/report/*".parse().expect("a pattern"));
    settings.rules.push(PoolRule { pool: "reports".to_owned(), path, ..PoolRule::default() });
    settings.figures = Some(Arc::new(memory));
    (start(settings), elsewhere)
}

fn ask(running: &Running, paths: &[&str]) {
    paths.iter().for_each(|path| _ = exchange(running.address, &get_last(path)));
}

fn ended(memory: &SharedMemory) -> Statistics {
    Statistics::read(memory.words(), Owner::Ended).expect("figures")
}

/// Requests by pool and route, whatever the listener.
fn routes(statistics: &Statistics) -> BTreeMap<(&str, &str), u64> {
    let mut routes = BTreeMap::new();
    for leaf in &statistics.leaves {
        *routes.entry((&*leaf.pool, &*leaf.route)).or_default() += leaf.requests;
    }
    routes
}

/// All that is said of the times of some exchanges.
fn said(leaf: &Leaf) -> Vec<[u64; 7]> {
    let all = leaf.spans.iter().chain([&leaf.total]);
    all.map(|of| {
        let percentiles = [50.0, 90.0, 99.0].map(|percent| of.percentile(percent));
        [of.count(), of.sum(), of.min(), of.max(), percentiles[0], percentiles[1], percentiles[2]]
    })
    .collect()
}

/// The value of a series.
fn value<'a>(page: &'a str, series: &str) -> &'a str {
    let found = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {series} in {page}"))
}

#[test]
fn processes_that_end_without_a_word_leave_all_they_have_counted() {
    let ((one, of_one), (other, of_other)) = (serve(), serve());
    // Routes have other numbers in the two.
    ask(&one, &["/a", "/b", "/a", "/report/7"]);
    ask(&other, &["/report/1", "/b", "/c"]);
    // No thread folds the rings here: a reader that left the rings out would wait for ever.
    wait_until("all are counted", || {
        ended(&of_one).server.requests == 4 && ended(&of_other).server.requests == 3
    });
    let mut retired = Retired::default();
    retired.add(of_one.words(), &one.server.figures().own_page(Format::Prometheus));
    retired.add(of_other.words(), "");
    let expected = [
        (("default", "GET /a"), 2),
        (("default", "GET /b"), 2),
        (("default", "GET /c"), 1),
        (("reports", "GET /report/*"), 2),
    ];
    assert_eq!(routes(&retired.statistics), expected.into());
    let of_both = {
        let mut sum = one.server.figures().statistics();
        sum.merge(&other.server.figures().statistics());
        sum
    };
    assert_eq!(said(&retired.statistics.server), said(&of_both.server));
    let names = |statistics: &Statistics| statistics.routes.iter().map(|(name, _)| name.clone()).collect();
    let names: [Vec<String>; 2] = [&ended(&of_one), &ended(&of_other)].map(names);
    assert_ne!(names[0], names[1]);
    assert_eq!(retired.statistics.pools.len(), 2);
    assert_eq!(retired.counters["maitred_requests_total"], 7);
    assert_eq!(retired.counters["maitred_connections_accepted_total"], 7);
    let made = |running: &Running| running.server.pools().figures()[1].made as u64;
    assert_eq!(
        retired.counters["maitred_pool_threads_made_total{pool=\"reports\"}"],
        made(&one) + made(&other)
    );
    // Not in the memory, so that it comes from the last page, of the one that had one.
    assert!(retired.counters.contains_key("maitred_lock_acquisitions_total{lock=\"statistics\"}"));
}

#[test]
fn one_page_has_processes_that_run_and_those_that_have_ended() {
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let ((one, of_one), (other, of_other)) = (serve(), serve());
        ask(&one, &["/a", "/a"]);
        ask(&other, &["/b", "/a", "/report/2"]);
        wait_until("all are counted", || {
            ended(&of_one).server.requests == 2 && ended(&of_other).server.requests == 3
        });
        let mut retired = Retired::default();
        retired.add(of_one.words(), "");
        let merged = || {
            other.server.figures().settle();
            let mut statistics = retired.statistics.clone();
            statistics.merge(&Statistics::read(of_other.words(), Owner::Runs).expect("figures"));
            let text = other.server.figures().own_page(format);
            merge_pages(&[WorkerPage { worker: "2", text: &text }], &retired.counters, &statistics, format)
        };
        let page = merged();
        assert_eq!(value(&page, "maitred_requests_total"), "5");
        let route = |route: &str| format!("pool=\"default\",route=\"{route}\",class=\"2xx\"}}");
        let of_route = |name: &str| {
            let lines = page.lines().filter(|line| line.starts_with("maitred_route_requests_total"));
            let values = lines.filter(|line| line.contains(&route(name)));
            values
                .map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a number"))
                .sum::<u64>()
        };
        assert_eq!((of_route("GET /a"), of_route("GET /b")), (3, 1));
        assert_eq!(value(&page, "maitred_request_duration_seconds_count{pool=\"reports\"}"), "1");
        assert!(page.contains("process_open_fds{worker=\"2\"} "), "{page}");
        // The merged page has everything of one process's page, once.
        for line in other.server.figures().page(format).lines().filter(|line| line.starts_with("# TYPE ")) {
            assert_eq!(page.lines().filter(|other| *other == line).count(), 1, "{line}");
        }
        assert_eq!(page.ends_with("# EOF\n"), format == Format::OpenMetrics);
    }
}

#[test]
fn every_counter_of_the_server_and_its_pools_is_in_the_memory() {
    let (one, of_one) = serve();
    ask(&one, &["/a"]);
    let counters = read_counters(of_one.words());
    let page = one.server.figures().own_page(Format::Prometheus);
    // Those that come from elsewhere: see figures.rs.
    let others = [
        "maitred_lock_",
        "maitred_static_cache_",
        "maitred_log_",
        "maitred_process_",
        "process_",
        "maitred_role_",
        "maitred_thread_",
    ];
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let series = lines.filter_map(|line| Some(line.rsplit_once(' ')?.0));
    let counted =
        series.filter(|series| series.split('{').next().is_some_and(|name| name.ends_with("_total")));
    let expected: Vec<&str> =
        counted.filter(|series| !others.iter().any(|other| series.starts_with(other))).collect();
    assert!(expected.len() > 20, "{expected:?}");
    for series in expected {
        assert!(counters.contains_key(series), "{series}");
    }
}
