//! Pools of a running server: whose thread runs which request, and what is changed while it runs.

use std::io::Write;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::harness::{
    PATIENCE, PAUSE, Running, connect, get, get_last, read_response, settings, start, text,
};
use maitred_runtime::Exchange;
use maitred_server::figures::Format;
use maitred_server::{PoolLimits, PoolRule, PoolSettings, Routes, Settings, Strategy};

/// A request that takes so long counts as slow, also if it waited a little before it was inside.
const LEARNT: Duration = Duration::from_millis(20);

/// Answers with the name of the thread it runs on.
fn whose(exchange: Exchange) {
    let thread = std::thread::current();
    text(exchange, thread.name().unwrap_or_default());
}

fn rule(pool: &str, path: &str) -> PoolRule {
    PoolRule { pool: pool.to_owned(), path: Some(path.parse().unwrap()), ..PoolRule::default() }
}

fn with_reports() -> Settings {
    let mut settings = settings(Routes::new().with_application(Arc::new(whose)));
    settings.pools.push(PoolSettings::named("reports"));
    settings.rules.push(rule("reports", "/report/*"));
    settings
}

fn is_of_reports(running: &Running, path: &str) -> bool {
    let answer = crate::harness::exchange(running.address, &get_last(path));
    assert!(answer.contains("\r\n\r\nmaitred-"), "{path}: {answer}");
    answer.contains("\r\n\r\nmaitred-reports-")
}

#[test]
fn no_spelling_of_a_path_leads_past_its_rule() {
    let running = start(with_reports());
    for path in [
        "/report/a",
        "/%72eport/a",
        "/report//a?b",
        "/report/a%2Fb",
        "/%72eport/a%2Fb",
        "/%72eport/%",
        "/%72eport/a%2Fb?c=%",
    ] {
        assert!(is_of_reports(&running, path), "{path}");
    }
    for path in ["/", "/a/report/b", "/%2572eport/a%2Fb", "/a//b%2Fc"] {
        assert!(!is_of_reports(&running, path), "{path}");
    }
    // Applications differ in what these mean.
    for path in [
        "/./x/../report//a?b",
        "/x/../report/a%2Fb",
        "/report/../x",
        "//report/a%2Fb",
        "/report%2fa",
        "/%72eport/%5c",
        "/%72eport/%00",
    ] {
        let answer = crate::harness::exchange(running.address, &get_last(path));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
    }
}

#[test]
fn rules_are_exchanged_on_open_connections() {
    let running = start(with_reports());
    let mut stream = connect(running.address);
    let mut ask = |path: &str| {
        stream.write_all(&get(path)).unwrap();
        String::from_utf8(read_response(&mut stream).1).unwrap().contains("-reports-")
    };
    assert!(ask("/report/a") && !ask("/export/a"));
    running.server.pools().set_rules(&[rule("reports", "/export/*")]).unwrap();
    assert!(!ask("/report/a") && ask("/export/a"));
    let error = running.server.pools().set_rules(&[rule("report", "/report/*")]).unwrap_err();
    assert_eq!(error.to_string(), "rule 1 leads to the pool 'report', which does not exist");
    assert!(!ask("/report/a") && ask("/export/a"));
    running.server.pools().set_rules(&[]).unwrap();
    assert!(!ask("/report/a") && !ask("/export/a"));
}

/// The value of a figure of a pool.
fn figure(running: &Running, name: &str, pool: &str) -> usize {
    let metrics = running.server.figures().page(Format::Prometheus);
    let start = format!("{name}{{pool=\"{pool}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("{start} in {metrics}")).parse().unwrap()
}

#[test]
fn limits_of_every_pool_can_be_changed() {
    let running = start(with_reports());
    let limits = |min_threads, max_threads| PoolLimits { min_threads, max_threads, ..PoolLimits::default() };
    assert!(running.server.pools().set_limits("reports", &limits(2, 3)));
    assert!(running.server.pools().set_limits("default", &limits(0, 0)));
    assert!(!running.server.pools().set_limits("other", &limits(2, 3)));
    assert_eq!(figure(&running, "maitred_pool_threads_max", "reports"), 3);
    assert_eq!(figure(&running, "maitred_pool_threads", "reports"), 2);
    // The default pool needs a thread that polls.
    assert_eq!(figure(&running, "maitred_pool_threads_max", "default"), 1);
    assert!(is_of_reports(&running, "/report/a") && !is_of_reports(&running, "/"));
}

#[test]
fn one_thread_that_does_everything_stays_alone() {
    let mut settings = with_reports();
    settings.pool.strategy = Strategy::Pc;
    let running = start(settings);
    let limits = PoolLimits { min_threads: 3, max_threads: 5, ..PoolLimits::default() };
    assert!(running.server.pools().set_limits("default", &limits));
    assert_eq!(figure(&running, "maitred_pool_threads_max", "default"), 1);
    assert_eq!(figure(&running, "maitred_pool_threads", "default"), 1);
    assert!(!is_of_reports(&running, "/"));
}

#[test]
fn more_threads_than_at_the_start_run_side_by_side() {
    let everybody = Arc::new(Barrier::new(4));
    let mut settings = settings(Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        everybody.wait();
        text(exchange, "together");
    })));
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let mut streams: Vec<_> = (0..4).map(|_| connect(running.address)).collect();
    for stream in &mut streams {
        stream.write_all(&get("/")).unwrap();
    }
    assert!(
        running.server.pools().set_limits("default", &PoolLimits { max_threads: 4, ..PoolLimits::default() })
    );
    for stream in &mut streams {
        assert_eq!(read_response(stream).1, b"together");
    }
}

#[test]
fn requests_that_already_wait_get_the_threads_of_a_higher_limit() {
    let everybody = Arc::new(Barrier::new(3));
    let mut settings = settings(Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        everybody.wait();
        text(exchange, "together");
    })));
    let mut pool = PoolSettings::named("reports");
    pool.limits.max_threads = 1;
    settings.pools.push(pool);
    settings.rules.push(rule("reports", "/report/*"));
    let running = start(settings);
    let mut streams: Vec<_> = (0..3).map(|_| connect(running.address)).collect();
    for stream in &mut streams {
        stream.write_all(&get("/report/a")).unwrap();
    }
    let patience = Instant::now() + PATIENCE;
    while figure(&running, "maitred_pool_queued", "reports") < 2 {
        assert!(Instant::now() < patience, "two of three wait");
        std::thread::sleep(PAUSE);
    }
    assert!(
        running.server.pools().set_limits("reports", &PoolLimits { max_threads: 3, ..PoolLimits::default() })
    );
    for stream in &mut streams {
        assert_eq!(read_response(stream).1, b"together");
    }
}

#[test]
fn slow_requests_that_wait_are_run_when_only_one_thread_is_left() {
    let (open, door) = mpsc::channel::<()>();
    let door = Mutex::new(door);
    let mut settings = settings(Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        if exchange.request().head.path() == b"/slow" {
            door.lock().unwrap().recv().unwrap();
        }
        text(exchange, "done");
    })));
    settings.pool.limits.max_threads = 2;
    let running = start(settings);
    // First the server learns the usual time: a slow request takes much longer.
    for _ in 0..50 {
        let mut stream = connect(running.address);
        stream.write_all(&get("/")).unwrap();
        assert_eq!(read_response(&mut stream).1, b"done");
    }
    // Learnt as slow: each stays inside until it has been there for long enough.
    let ask = || {
        let mut stream = connect(running.address);
        stream.write_all(&get("/slow")).unwrap();
        stream
    };
    for _ in 0..8 {
        let mut stream = ask();
        let began = Instant::now();
        while began.elapsed() < LEARNT {
            std::thread::yield_now();
        }
        open.send(()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"done");
    }
    let mut streams: Vec<_> = (0..4).map(|_| ask()).collect();
    let patience = Instant::now() + PATIENCE;
    while figure(&running, "maitred_pool_queued", "default") < 2 {
        assert!(Instant::now() < patience, "two of four run");
        std::thread::sleep(PAUSE);
    }
    assert!(
        running.server.pools().set_limits("default", &PoolLimits { max_threads: 1, ..PoolLimits::default() })
    );
    // They need not run in the order in which they were sent.
    (0..streams.len()).for_each(|_| open.send(()).unwrap());
    for stream in &mut streams {
        assert_eq!(read_response(stream).1, b"done");
    }
}
