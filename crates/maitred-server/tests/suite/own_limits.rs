//! Limits of a response's own: its rate, and its send timeout.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, Running, ask, connect, get, read_response, start, wait_until};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::figures::Format;
use maitred_server::limits::MinimumRates;
use maitred_server::{Level, Log, LogTarget, Routes, Settings, Submissions};
use maitred_testkit::client::Client;
use tempfile::TempDir;

/// Bytes of a body, and how many a second may leave.
const BODY: usize = 100_000;
const RATE: u64 = 200_000;

/// The least time for a body, without what may leave at once.
const LEAST: Duration = Duration::from_millis(400);

/// More than the socket buffers of both ends take.
const LARGE: usize = 20_000_000;

/// A server whose log can be read. It answers `/LENGTH?NAME=VALUE&...` with so many bytes, in parts where the path ends so, and these
/// fields.
fn serve(folder: &Path, change: impl FnOnce(&mut Settings)) -> Running {
    let log = Log::open(Level::Info, LogTarget::Path(folder.join("log")), None).expect("the log opens");
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| {
        let target = String::from_utf8_lossy(exchange.request().head.target()).into_owned();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut head = ResponseHead::new(Status::OK);
        for field in query.split('&').filter_map(|field| field.split_once('=')) {
            head = head.with(field.0, field.1);
        }
        let (length, parts) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        let length: usize = length.parse().expect("a length");
        if parts.is_empty() {
            let _ = exchange.respond(head, vec![b'x'; length]);
        } else {
            let mut stream = exchange.start(head, Some(length as u64)).expect("a good head");
            (0..10).for_each(|_| drop(stream.send(vec![b'x'; length / 10])));
            stream.finish();
        }
    }));
    let mut settings = Settings::new(routes, Arc::new(log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    change(&mut settings);
    start(settings)
}

fn logged(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).expect("a log")
}

/// The head of the response, its length, and how long it takes until it is there.
fn fetch(stream: &mut Client, target: &str) -> (String, usize, Duration) {
    let begun = Instant::now();
    stream.write_all(&get(target)).expect("the server takes it");
    let (head, body) = read_response(stream);
    (head.to_ascii_lowercase(), body.len(), begun.elapsed())
}

/// How often a rule was applied.
fn applied(running: &Running, rule: &str) -> u64 {
    let start = format!("maitred_rules_applied_total{{rule=\"{rule}\"}} ");
    let metrics = running.server.figures().page(Format::Prometheus);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

#[test]
fn a_response_leaves_no_faster_than_it_asks_for_and_the_next_one_asks_for_itself() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |_| {});
    let mut stream = connect(running.address);
    for path in [format!("/{BODY}"), format!("/{BODY}/parts")] {
        let (head, length, took) = fetch(&mut stream, &format!("{path}?Maitred-Bandwidth={RATE}"));
        assert_eq!(length, BODY);
        assert!(took >= LEAST, "{path}: {took:?}");
        assert!(!head.contains("maitred-"), "{head}");
    }
    let beside = serve(folder.path(), |settings| settings.limits.bandwidth.connection = 1000 * RATE);
    for mut stream in [stream, connect(beside.address)] {
        // At this rate a body would take a day. What may leave at once is enough for the first one.
        fetch(&mut stream, "/5?Maitred-Bandwidth=1");
        assert_eq!(fetch(&mut stream, &format!("/{BODY}")).1, BODY);
        fetch(&mut stream, "/5?Maitred-Bandwidth=1");
        assert_eq!(fetch(&mut stream, &format!("/{BODY}?Maitred-Bandwidth=off")).1, BODY);
    }
}

#[test]
fn the_lowest_limit_counts() {
    let folder = TempDir::new().unwrap();
    let own = |bytes: u64| format!("/{BODY}?Maitred-Bandwidth={bytes}");
    let running = serve(folder.path(), |settings| settings.limits.bandwidth.connection = 100 * RATE);
    assert!(fetch(&mut connect(running.address), &own(RATE)).2 >= LEAST);
    let running = serve(folder.path(), |settings| settings.limits.bandwidth.connection = RATE);
    for bytes in [100 * RATE, 0] {
        assert!(fetch(&mut connect(running.address), &own(bytes)).2 >= LEAST, "{bytes}");
    }
    let running = serve(folder.path(), |settings| settings.pool.limits.bandwidth = RATE);
    assert!(fetch(&mut connect(running.address), &own(100 * RATE)).2 >= LEAST);
    let running = serve(folder.path(), |settings| settings.pool.limits.bandwidth = 100 * RATE);
    assert!(fetch(&mut connect(running.address), &own(RATE)).2 >= LEAST);
}

#[test]
fn the_limit_is_shown_with_the_delivery_and_holds_no_other_response() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| settings.pool.limits.max_threads = 1);
    let _slow = ask(running.address, &format!("/{BODY}?Maitred-Bandwidth=1000"));
    let limits = || {
        let mut limits = Vec::new();
        running.server.connections().each(|_, shown| {
            limits.extend(shown.deliveries.iter().map(|(_, delivery)| delivery.limit));
        });
        limits
    };
    wait_until("it is shown", || limits() == [Some(1000)]);
    // The only thread is free.
    assert_eq!(fetch(&mut connect(running.address), &format!("/{BODY}")).1, BODY);
}

#[test]
fn what_means_nothing_is_told_once_and_the_response_goes_on() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |_| {});
    let mut stream = connect(running.address);
    for _ in 0..2 {
        let target = format!("/{BODY}?Maitred-Bandwidth=20k&maitred-send-timeout=4000&X-Other=1");
        let (head, length, _) = fetch(&mut stream, &target);
        assert!(length == BODY && !head.contains("maitred-") && head.contains("x-other: 1"), "{head}");
    }
    for line in [
        "Maitred-Bandwidth cannot be '20k', so it has no effect: write bytes a second in digits, or off (said once",
        "Maitred-Send-Timeout cannot be '4000', so it has no effect: write seconds from 0.001 to 3600 (said once",
    ] {
        wait_until(line, || logged(folder.path()).contains(line));
        assert_eq!(logged(folder.path()).matches(line).count(), 1);
    }
}

#[test]
fn the_field_of_nginx_counts_where_its_other_fields_do() {
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("file"), vec![b'f'; BODY]).unwrap();
    let limit = format!("X-Accel-Limit-Rate={RATE}");
    let running = serve(folder.path(), |settings| {
        let files = StaticFiles::open(&files, StaticSettings::default()).expect("the folder");
        settings.submissions = Submissions::default().with_root("/protected", files);
    });
    for target in [format!("/{BODY}?{limit}"), format!("/3?X-Accel-Redirect=/protected/file&{limit}")] {
        let (head, length, took) = fetch(&mut connect(running.address), &target);
        assert_eq!(length, BODY);
        assert!(took >= LEAST && !head.contains("x-accel"), "{took:?}: {head}");
    }
    // Without folders they are for a proxy in front. At this rate its body would take a day.
    let running = serve(folder.path(), |_| {});
    let (head, length, _) = fetch(&mut connect(running.address), &format!("/{BODY}?X-Accel-Limit-Rate=1"));
    assert!(length == BODY && head.contains("x-accel-limit-rate: 1\r\n"), "{head}");
}

#[test]
fn a_response_may_ask_for_a_shorter_time_for_its_reader() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| settings.timeouts.send = 10 * PATIENCE);
    let _reader = ask(running.address, &format!("/{LARGE}?Maitred-Send-Timeout=0.1"));
    wait_until("it is ended", || applied(&running, "own-send-timeout") == 1);
    wait_until("it is closed", || running.server.figures().snapshot().open == 0);
    assert_eq!(applied(&running, "body-timeout-out"), 0);
    let line = " warn 127.0.0.1: nothing was taken of a response; closed (Maitred-Send-Timeout)\n";
    wait_until("it is in the log", || logged(folder.path()).contains(line));
}

#[test]
fn a_response_may_ask_for_a_longer_time_for_its_reader() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.timeouts.send = Duration::from_millis(100);
        let grace = Duration::from_millis(100);
        settings.limits.rates = MinimumRates { inward: 0, outward: 240, grace };
    });
    let mut patient = ask(running.address, &format!("/{LARGE}?Maitred-Send-Timeout=60"));
    let mut first = [0; 1];
    patient.read_exact(&mut first).unwrap();
    // Those that ask for nothing end, one after the other.
    for ended in 1..=3 {
        let _other = ask(running.address, &format!("/{LARGE}"));
        wait_until("another one ends", || {
            applied(&running, "body-timeout-out") + applied(&running, "min-rate-out") == ended
        });
    }
    wait_until("only it is left", || running.server.figures().snapshot().open == 1);
    // The next one on its connection asks for nothing. Who has read much has a larger buffer by now: up to 32 MiB (tcp_rmem).
    let mut rest = vec![0; LARGE];
    patient.read_exact(&mut rest).unwrap();
    patient.write_all(&get(&format!("/{}", 4 * LARGE))).unwrap();
    wait_until("it ends as all do", || running.server.figures().snapshot().open == 0);
}
