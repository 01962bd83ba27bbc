//! Responses that may leave only so fast.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, connect, get, read_response, settings, start, text, wait_until};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Handler};
use maitred_server::figures::Format;
use maitred_server::limits::RouteBandwidth;
use maitred_server::{Limits, PoolLimits, Routes, Settings};
use maitred_testkit::client::Client;
use tempfile::TempDir;

/// Bytes of a body, and how many a second may leave.
const BODY: usize = 100_000;
const RATE: u64 = 200_000;

/// The least time for a body, without what may leave at once.
const LEAST: Duration = Duration::from_millis(400);

fn handler() -> impl Handler {
    |exchange: Exchange| {
        if exchange.request().head.path() == b"/small" {
            return text(exchange, "small");
        }
        if exchange.request().head.path() == b"/stream" {
            let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
            for _ in 0..10 {
                let _ = stream.send(vec![b'x'; BODY / 10]);
            }
            return stream.finish();
        }
        let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; BODY]);
    }
}

fn limited(change: impl FnOnce(&mut Settings)) -> crate::harness::Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(handler())));
    settings.pool.limits.max_threads = 1;
    change(&mut settings);
    start(settings)
}

/// How long it takes until the response is there.
fn fetch(stream: &mut Client, path: &str) -> Duration {
    let begun = Instant::now();
    stream.write_all(&get(path)).unwrap();
    assert!(read_response(stream).1.len() >= 5);
    begun.elapsed()
}

fn route(path: &str, bytes: u64) -> RouteBandwidth {
    RouteBandwidth { path: path.parse().unwrap(), bytes }
}

#[test]
fn a_connection_gets_its_rate_and_the_only_thread_is_free_meanwhile() {
    let running = limited(|settings| settings.limits.bandwidth.connection = RATE);
    let mut slow = connect(running.address);
    slow.write_all(&get("/large")).unwrap();
    let mut first = [0; 1];
    slow.read_exact(&mut first).unwrap();
    let begun = Instant::now();
    // Others are answered while most of it waits.
    for _ in 0..10 {
        fetch(&mut connect(running.address), "/small");
    }
    let mut answer = vec![0; BODY];
    slow.read_exact(&mut answer).unwrap();
    let _ = begun;
    // The next response is under the same limit.
    assert!(fetch(&mut connect(running.address), "/large") >= LEAST);
}

#[test]
fn responses_of_one_connection_follow_one_another_at_its_rate() {
    let running = limited(|settings| settings.limits.bandwidth.connection = RATE);
    let mut stream = connect(running.address);
    let begun = Instant::now();
    stream.write_all(&[get("/large"), get("/small"), get("/large")].concat()).unwrap();
    let lengths = [0; 3].map(|_| read_response(&mut stream).1.len());
    assert_eq!(lengths, [BODY, 5, BODY]);
    assert!(begun.elapsed() >= LEAST * 2, "{:?}", begun.elapsed());
}

#[test]
fn a_pool_shares_its_rate_among_its_connections_in_turns() {
    let running = limited(|settings| settings.pool.limits.bandwidth = RATE);
    let mut streams: Vec<_> = (0..4).map(|_| connect(running.address)).collect();
    let begun = Instant::now();
    for stream in &mut streams {
        stream.write_all(&get("/large")).unwrap();
    }
    let threads: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            std::thread::spawn(move || {
                assert_eq!(read_response(&mut stream).1.len(), BODY);
                begun.elapsed()
            })
        })
        .collect();
    let mut ends: Vec<Duration> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    ends.sort();
    assert!(ends[3] >= LEAST * 4, "together: {ends:?}");
    // In turns all end near the end; one after the other the first one would after a quarter of the time.
    assert!(ends[0] >= LEAST * 2, "in turns: {ends:?}");
}

#[test]
fn a_route_is_limited_also_for_files_and_others_are_not() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("large"), vec![b'x'; BODY]).unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let routes = Routes::new().with_static("/files", files).with_application(Arc::new(handler()));
    let mut settings = settings(routes);
    settings.limits.bandwidth.routes = vec![route("/files/*", RATE), route("/stream", RATE)];
    let running = start(settings);
    let mut stream = connect(running.address);
    // An escape does not lead past it.
    assert!(fetch(&mut stream, "/fil%65s/large") >= LEAST);
    // The bucket of the connection is no other one: what is not limited leaves at once, also behind what was.
    assert_eq!(running.server.figures().page(Format::Prometheus).matches("maitred_cut_total 0").count(), 1);
    fetch(&mut stream, "/large");
    stream.write_all(&get("/stream")).unwrap();
    let begun = Instant::now();
    let mut taken = 0;
    let mut buffer = vec![0; 1 << 16];
    while taken < BODY {
        taken += stream.read(&mut buffer).unwrap();
    }
    assert!(begun.elapsed() >= LEAST, "{:?}", begun.elapsed());
}

#[test]
fn a_delivery_that_is_held_is_not_a_reader_that_is_slow() {
    let running = limited(|settings| {
        settings.limits.bandwidth.connection = RATE;
        settings.limits.rates.outward = 100 * RATE;
        settings.limits.rates.grace = Duration::from_millis(50);
        settings.timeouts.send = Duration::from_millis(50);
    });
    assert!(fetch(&mut connect(running.address), "/large") >= LEAST);
}

#[test]
fn a_reader_that_has_paused_has_its_time_anew_when_it_is_a_limit_that_holds_the_rest() {
    // More than the socket buffers take, at a rate at which they fill up while the reader pauses.
    let length = 20_000_000;
    let large = move |exchange: Exchange| {
        let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; length]);
    };
    let mut settings = settings(Routes::new().with_application(Arc::new(large)));
    settings.limits.bandwidth.connection = 6_000_000;
    settings.limits.rates.outward = 1_000_000_000;
    settings.limits.rates.grace = Duration::from_secs(2);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&get("/")).unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).unwrap();
}

#[test]
fn a_rate_that_is_changed_holds_for_a_delivery_that_has_begun() {
    let running = limited(|settings| settings.limits.bandwidth.connection = 10_000);
    let mut stream = connect(running.address);
    stream.write_all(&get("/large")).unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    running.server.settings().guard().set(&Limits::default());
    let begun = Instant::now();
    let mut rest = vec![0; BODY];
    stream.read_exact(&mut rest).unwrap();
    // At the rate before it would have taken ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn the_bandwidth_of_a_pool_is_changed_with_its_limits() {
    let running = limited(|_| {});
    let limits = PoolLimits { max_threads: 1, bandwidth: RATE, ..PoolLimits::default() };
    assert!(running.server.pools().set_limits("default", &limits));
    assert!(fetch(&mut connect(running.address), "/large") >= LEAST);
}

#[test]
fn a_client_that_goes_leaves_its_share_to_the_others() {
    let running = limited(|settings| settings.pool.limits.bandwidth = RATE);
    let gone: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = connect(running.address);
            stream.write_all(&get("/large")).unwrap();
            let mut first = [0; 1];
            stream.read_exact(&mut first).unwrap();
            stream
        })
        .collect();
    drop(gone);
    wait_until("they are gone", || running.server.figures().snapshot().open == 0);
    let took = fetch(&mut connect(running.address), "/large");
    // Twenty bodies take ten seconds.
    assert!(took < PATIENCE / 4, "{took:?}");
}
