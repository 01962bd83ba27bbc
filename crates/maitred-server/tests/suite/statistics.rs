//! Requests over real sockets, counted by listener, pool, route and class of status, each once.

use std::time::Duration;

use crate::harness::{Running, exchange, get_last, settings, start, text, wait_until};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::{Insight, PoolRule, PoolSettings, Routes, Statistics};
use maitred_stats::Span;

fn app(exchange: Exchange) {
    match exchange.request().head.path() {
        b"/nothing" => drop(exchange.respond(ResponseHead::new(Status::NOT_FOUND), "")),
        b"/timed" => {
            let head = ResponseHead::new(Status::OK).with("Server-Timing", "db;dur=12.5, cache;dur=1");
            drop(exchange.respond(head, "timed"));
        }
        b"/dropped" => drop(exchange),
        _ => text(exchange, "answer"),
    }
}

/// With the folder of its files.
fn serve(change: impl FnOnce(&mut maitred_server::Settings)) -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.txt"), "a").expect("a file");
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).expect("the folder is there");
    let routes = Routes::new().with_static("/files", files).with_application(std::sync::Arc::new(app));
    let mut settings = settings(routes);
    settings.health_path = Some("/alive".to_owned());
    settings.metrics_path = Some("/figures".to_owned());
    change(&mut settings);
    let running = start(settings);
    running.ask("/files/a.txt");
    (running, folder)
}

trait Ask {
    fn ask(&self, path: &str) -> String;
    fn counted(&self, requests: u64) -> Statistics;
}

impl Ask for Running {
    fn ask(&self, path: &str) -> String {
        exchange(self.address, &get_last(path))
    }

    /// The figures when so many requests are in them: the peer has the answer a moment before it is written down.
    fn counted(&self, requests: u64) -> Statistics {
        wait_until("all requests are counted", || {
            self.server.figures().statistics().server.requests == requests
        });
        self.server.figures().statistics()
    }
}

/// Pool, route, class and number of requests.
fn leaves(statistics: &Statistics) -> Vec<(&str, &str, &str, u64)> {
    let mut leaves: Vec<_> = (statistics.leaves.iter())
        .map(|leaf| (&*leaf.pool, &*leaf.route, &*leaf.class, leaf.requests))
        .collect();
    leaves.sort_unstable();
    leaves
}

#[test]
fn each_request_is_counted_once_by_handler_or_engine() {
    let (running, _folder) = serve(|settings| {
        settings.pools.push(PoolSettings::named("reports"));
        let path = Some("/report/*".parse().expect("a pattern"));
        settings.rules.push(PoolRule { pool: "reports".to_owned(), path, ..PoolRule::default() });
    });
    for path in
        ["/user/1", "/user/2?x", "/nothing", "/dropped", "/report/7", "/alive", "/files/none", "/timed"]
    {
        running.ask(path);
    }
    assert!(exchange(running.address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let statistics = running.counted(10);
    let expected = [
        ("default", "GET /dropped", "5xx", 1),
        ("default", "GET /timed", "2xx", 1),
        ("default", "GET /user/*", "2xx", 2),
        ("default", "other", "4xx", 1),
        ("engine", "/alive", "2xx", 1),
        ("engine", "/files/*", "2xx", 1),
        ("engine", "/files/*", "4xx", 1),
        ("engine", "other", "4xx", 1),
        ("reports", "GET /report/*", "2xx", 1),
    ];
    assert_eq!(leaves(&statistics), expected);
    let address = running.address.to_string();
    assert!(statistics.leaves.iter().all(|leaf| leaf.listener == address));
    assert_eq!(statistics.server.spans[Span::Run as usize].count(), 10);
    assert!(statistics.server.total.max() >= statistics.server.spans[Span::Run as usize].max());
    let counted = || {
        let snapshot = running.server.figures().snapshot();
        snapshot.requests + snapshot.refused
    };
    wait_until("the server's own counts are up", || counted() == 10);
}

#[test]
fn what_the_application_says_of_its_time_is_counted_by_name() {
    let (running, _folder) = serve(|_| {});
    for _ in 0..3 {
        assert!(running.ask("/timed").contains("db;dur=12.5"), "the client is told it too");
    }
    let statistics = running.counted(4);
    let of = |timing: &maitred_server::ApplicationTiming| {
        let mean = Duration::from_nanos(timing.durations.mean() as u64);
        (timing.route.clone(), timing.name.clone(), timing.durations.count(), mean)
    };
    let entry =
        |name: &str, micros| ("GET /timed".to_owned(), name.to_owned(), 3, Duration::from_micros(micros));
    // On a busy machine there may be a time behind the answer, which the server counts by itself.
    let by_application = |timing: &&maitred_server::ApplicationTiming| !timing.name.contains(';');
    let told: Vec<_> = statistics.application.iter().filter(by_application).map(of).collect();
    assert_eq!(told, [entry("db", 12_500), entry("cache", 1000)]);
}

#[test]
fn counting_is_switched_off_and_on_while_the_server_runs() {
    let (running, _folder) = serve(|_| {});
    running.counted(1);
    let on = running.server.settings().insight();
    running.server.settings().set_insight(Insight { statistics: false, ..on });
    assert!(!running.server.settings().insight().statistics);
    running.ask("/user/1");
    // Written down, too: its thread does that after its peer has the answer, and may be late.
    wait_until("it is over", || running.server.figures().snapshot().requests == 2);
    running.server.settings().set_insight(on);
    running.ask("/user/1");
    assert_eq!(running.counted(2).server.requests, 2);
}

#[test]
fn the_text_of_the_figures_is_the_one_that_was_asked_for() {
    let (running, _folder) = serve(|_| {});
    let ask = |accept: &str| {
        let request =
            format!("GET /figures HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: {accept}\r\n\r\n");
        exchange(running.address, request.as_bytes())
    };
    let plain = ask("*/*");
    assert!(plain.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{plain}");
    assert!(plain.contains("\n# TYPE maitred_requests_total counter\n") && !plain.contains("# EOF"));
    let open = ask("application/openmetrics-text;version=1.0.0,*/*;q=0.1");
    assert!(
        open.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n")
    );
    assert!(open.contains("\n# TYPE maitred_requests counter\n") && open.ends_with("\n# EOF\n"));
    assert!(open.contains("\nmaitred_route_requests_total{listener=\"127.0.0.1:"), "{open}");
    assert!(open.contains("\nprocess_resident_memory_bytes "));
}
