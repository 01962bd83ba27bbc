//! Peers that are too slow, too many, or ask too often: which rule ends them, and who is left alone.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::Live;
use crate::harness::{
    PATIENCE, Running, connect, get, get_last, read_all, read_response, start, text, wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Last};
use maitred_server::figures::Format;
use maitred_server::limits::MinimumRates;
use maitred_server::{Level, Log, LogTarget, Routes, Settings};
use maitred_testkit::client::Client;
use tempfile::TempDir;

/// More than the socket buffers of both ends take.
const LARGE: usize = 20_000_000;

/// A server whose log can be read: it answers with the length of the body, or for `/large` with a large one.
fn serve(folder: &Path, change: impl FnOnce(&mut Settings)) -> Running {
    let log = Log::open(Level::Info, LogTarget::Path(folder.join("log")), None).expect("the log opens");
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| {
        if exchange.request().head.path() == b"/large" {
            let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; LARGE]);
        } else {
            let length = exchange.request().body.len();
            text(exchange, format!("{length}"));
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

/// How often a rule was applied.
fn applied(running: &Running, rule: &str) -> u64 {
    let start = format!("maitred_rules_applied_total{{rule=\"{rule}\"}} ");
    let metrics = running.server.figures().page(Format::Prometheus);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

fn rates(inward: u64, outward: u64, grace: u64) -> MinimumRates {
    MinimumRates { inward, outward, grace: Duration::from_millis(grace) }
}

fn post(length: usize) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// Sends bytes of a body, one each few milliseconds, until something comes back; that, to the end.
fn drip(stream: &mut Client) -> String {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (begun, mut first) = (Instant::now(), [0; 64]);
    loop {
        assert!(begun.elapsed() < PATIENCE, "it is ended");
        let _ = stream.write_all(b"x");
        if let Ok(count) = stream.read(&mut first) {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut all = first[..count].to_vec();
            // The rest, or the reset that what was sent too late brings.
            let _ = stream.read_to_end(&mut all);
            return String::from_utf8_lossy(&all).into_owned();
        }
    }
}

#[test]
fn a_body_that_drips_is_ended_by_the_minimum_rate_although_it_is_never_silent() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.rates = rates(1_000_000, 0, 200);
        settings.timeouts.body = PATIENCE;
    });
    for _ in 0..2 {
        let mut stream = connect(running.address);
        stream.write_all(&post(1_000_000)).unwrap();
        assert!(drip(&mut stream).starts_with("HTTP/1.1 408 "));
    }
    wait_until("it is counted", || applied(&running, "min-rate-in") == 2);
    assert_eq!(applied(&running, "body-timeout"), 0);
    let line = " warn 127.0.0.1: a request body came too slowly; 408 and closed (--min-rate-in)\n";
    wait_until("it is in the log", || logged(folder.path()).contains(line));
    // The second one is the same for the log.
    assert_eq!(logged(folder.path()).matches(line).count(), 1);
}

#[test]
fn a_body_that_is_as_fast_as_it_has_to_be_is_received_however_long_it_takes() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| settings.limits.rates = rates(1_000, 0, 300));
    let mut stream = connect(running.address);
    stream.write_all(&post(200 * 1_000)).unwrap();
    for _ in 0..200 {
        stream.write_all(&[b'x'; 1_000]).unwrap();
        // A slow sender, not a synchronisation: ten times as fast as it has to be.
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(read_response(&mut stream).1, b"200000");
    assert_eq!(applied(&running, "min-rate-in"), 0);
}

#[test]
fn a_body_that_is_read_as_it_comes_has_a_minimum_rate_until_its_response_begins() {
    let handler = |mut exchange: Exchange| {
        if exchange.request().head.path() != b"/answers" {
            let read = exchange.request().body.to_vec();
            return text(
                exchange,
                read.map_or_else(|error| error.to_string(), |bytes| bytes.len().to_string()),
            );
        }
        let body = std::mem::take(&mut exchange.request_mut().body);
        let stream = exchange.start(ResponseHead::new(Status::OK), Some(2)).unwrap();
        let read = body.to_vec().expect("all of it comes");
        stream.finish_with(Last::Given(read.len().to_string().into_bytes().into())).unwrap();
    };
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.routes = Routes::new().with_application(Arc::new(Live(handler)));
        settings.listeners[0].read_ahead = Some(false);
        settings.limits.rates = rates(1_000_000, 0, 200);
        settings.timeouts.body = PATIENCE;
    });
    let mut stream = connect(running.address);
    stream.write_all(&post(1_000_000)).unwrap();
    assert!(drip(&mut stream).ends_with("the request body came too slowly (--min-rate-in)"));
    assert_eq!(applied(&running, "min-rate-in"), 1);
    let mut stream = connect(running.address);
    stream.write_all(b"POST /answers HTTP/1.1\r\nHost: t\r\nContent-Length: 50\r\n\r\n").unwrap();
    for _ in 0..50 {
        stream.write_all(b"x").unwrap();
        // A slow sender, not a synchronisation: all of it takes longer than the grace.
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(read_response(&mut stream).1, b"50");
    assert_eq!(applied(&running, "min-rate-in"), 1);
}

#[test]
fn a_reader_that_is_too_slow_is_ended_and_the_log_says_why() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.rates = rates(0, 1_000_000_000, 200);
        settings.timeouts.send = PATIENCE;
    });
    let mut stream = connect(running.address);
    stream.write_all(&get("/large")).unwrap();
    let mut taken = [0; 1000];
    stream.read_exact(&mut taken).unwrap();
    let begun = Instant::now();
    while running.server.figures().snapshot().open > 0 {
        assert!(begun.elapsed() < PATIENCE, "it is ended");
        // It takes a little all the time.
        let _ = stream.read(&mut taken);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(applied(&running, "min-rate-out"), 1);
    let line = "127.0.0.1: a response was taken too slowly; closed (--min-rate-out)";
    wait_until("it is in the log", || logged(folder.path()).contains(line));
}

#[test]
fn a_reader_whose_system_takes_something_is_not_silent_although_our_socket_takes_nothing() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.rates = rates(0, 0, 1_000);
        settings.timeouts.send = Duration::from_millis(1_500);
    });
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/large")).unwrap();
    // A fast beginning, so that the buffers of both ends are as large as they become.
    let mut buffer = vec![0; 48 << 10];
    let mut taken = 6_000_000;
    stream.read_exact(&mut vec![0; 6_000_000]).unwrap();
    // Then about 480 KiB a second: it takes longer than the timeout until a third of our send buffer is free, which is when
    // the kernel says that there is room.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(7) {
        // All of it: by TLS a read has no more than a record.
        stream.read_exact(&mut buffer).expect("it goes on");
        taken += buffer.len();
        std::thread::sleep(Duration::from_millis(100));
    }
    taken += read_all(&mut stream).len();
    assert!(taken > LARGE, "{taken}");
    assert_eq!(applied(&running, "body-timeout-out"), 0);
}

#[test]
fn each_timeout_is_a_rule_with_a_name() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.timeouts.head = Duration::from_millis(100);
        settings.timeouts.body = Duration::from_millis(100);
        settings.timeouts.send = Duration::from_millis(100);
    });
    let mut head = connect(running.address);
    head.write_all(b"GET / HT").unwrap();
    assert!(read_all(&mut head).starts_with("HTTP/1.1 408 "));
    let mut body = connect(running.address);
    body.write_all(&post(10)).unwrap();
    assert!(read_all(&mut body).starts_with("HTTP/1.1 408 "));
    let mut reader = connect(running.address);
    reader.write_all(&get("/large")).unwrap();
    for rule in ["head-timeout", "body-timeout", "body-timeout-out"] {
        wait_until(rule, || applied(&running, rule) == 1);
    }
    wait_until("they are in the log", || logged(folder.path()).matches("(--body-timeout)").count() == 2);
    assert!(logged(folder.path()).contains("(--head-timeout)"));
}

#[test]
fn a_client_has_as_many_connections_as_it_may_and_one_more_is_closed() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| settings.limits.clients.connections = 2);
    let mut streams = [connect(running.address), connect(running.address)];
    for stream in &mut streams {
        stream.write_all(&get("/")).unwrap();
        assert_eq!(read_response(stream).1, b"0");
    }
    let mut third = connect(running.address);
    assert_eq!(third.read(&mut [0; 1]).unwrap(), 0, "closed without an answer");
    assert_eq!(applied(&running, "client-connections"), 1);
    wait_until("it is in the log", || logged(folder.path()).contains("(--client-connections)"));
    // One that has ended makes room for another one.
    let [first, _second] = streams;
    drop(first);
    wait_until("it has ended", || running.server.figures().snapshot().open == 1);
    let mut next = connect(running.address);
    next.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut next).1, b"0");
}

#[test]
fn a_limit_that_is_set_later_counts_the_connections_from_then_on_and_exempt_ones_never() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |_| {});
    let mut limits = maitred_server::Limits::default();
    let mut before = connect(running.address);
    before.write_all(&get("/")).unwrap();
    read_response(&mut before);
    limits.clients.connections = 1;
    running.server.settings().guard().set(&limits);
    let mut counted = connect(running.address);
    counted.write_all(&get("/")).unwrap();
    read_response(&mut counted);
    // The end of one that was not counted frees nothing.
    drop(before);
    wait_until("it has ended", || running.server.figures().snapshot().open == 1);
    assert_eq!(connect(running.address).read(&mut [0; 1]).unwrap(), 0);
    limits.clients.exempt = vec!["127.0.0.0/8".parse().unwrap()];
    running.server.settings().guard().set(&limits);
    let mut exempt = connect(running.address);
    exempt.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut exempt).1, b"0");
}

#[test]
fn requests_beyond_the_rate_are_told_when_to_come_again_and_keep_their_connection() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        // One in a hundred seconds: no test takes as long.
        settings.limits.clients.rate = 10;
        settings.limits.clients.burst = 3;
    });
    let mut stream = connect(running.address);
    // Pipelined, so that they are answered in one turn.
    stream.write_all(&get("/").repeat(5)).unwrap();
    let heads: Vec<String> = (0..5).map(|_| read_response(&mut stream).0).collect();
    assert!(heads[..3].iter().all(|head| head.starts_with("HTTP/1.1 200 ")), "{heads:?}");
    for head in &heads[3..] {
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        let seconds = head.lines().find_map(|line| line.strip_prefix("Retry-After: ")).expect("when");
        assert!((90..=100).contains(&seconds.parse::<u64>().unwrap()), "{seconds}");
    }
    // Of one with a body nothing is received.
    let mut upload = connect(running.address);
    upload.write_all(&post(1_000_000_000)).unwrap();
    let (head, _) = read_response(&mut upload);
    assert!(head.starts_with("HTTP/1.1 429 ") && head.contains("Connection: close\r\n"), "{head}");
    assert_eq!(applied(&running, "client-rate"), 3);
    wait_until("it is in the log", || {
        logged(folder.path()).contains("too many requests; 429 (--client-rate)")
    });
}

#[test]
fn one_request_with_a_body_counts_once() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.clients.rate = 10;
        settings.limits.clients.burst = 2;
    });
    let mut stream = connect(running.address);
    for _ in 0..2 {
        stream.write_all(&[post(3), b"abc".to_vec()].concat()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"3");
    }
    stream.write_all(&get("/")).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 429 "));
}

fn gauge(running: &Running, name: &str) -> u64 {
    let start = format!("maitred_{name} ");
    let metrics = running.server.figures().page(Format::Prometheus);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

#[test]
fn beyond_the_budget_new_requests_are_refused_until_there_is_room() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.buffers = Some(100_000);
        settings.health_path = Some("/health".to_owned());
        // Longer than the test waits.
        settings.timeouts.keep_alive = 10 * PATIENCE;
    });
    let mut idle = connect(running.address);
    idle.write_all(&get("/")).unwrap();
    read_response(&mut idle);
    let mut first = connect(running.address);
    first.write_all(&[post(120_000), vec![b'x'; 110_000]].concat()).unwrap();
    wait_until("it is held", || gauge(&running, "buffer_bytes") == 110_000);
    wait_until("the mode is entered", || gauge(&running, "low_resources") == 1);
    let mut refused = connect(running.address);
    refused.write_all(&get_last("/")).unwrap();
    let answer = read_all(&mut refused);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nRetry-After: 1\r\n"), "{answer}");
    assert!(crate::harness::exchange(running.address, &get_last("/health")).starts_with("HTTP/1.1 200 "));
    assert_eq!(applied(&running, "buffer-budget"), 1);
    // Idle connections do not stay for their whole time.
    assert_eq!(read_all(&mut idle), "");
    // Admitted uploads are served; then there is room.
    first.write_all(&[b'x'; 10_000]).unwrap();
    assert_eq!(read_response(&mut first).1, b"120000");
    wait_until("nothing is held", || gauge(&running, "buffer_bytes") == 0);
    assert!(crate::harness::exchange(running.address, &get_last("/")).starts_with("HTTP/1.1 200 "));
    wait_until("the mode is left", || gauge(&running, "low_resources") == 0);
    let log = || logged(folder.path());
    wait_until("it is in the log", || log().contains("not low on anything any more"));
    assert!(
        log().contains("low on memory: connections hold 110000 bytes of 100000 (--buffer-budget)"),
        "{}",
        log()
    );
    assert!(log().contains("503 and closed (--buffer-budget)"));
}

/// All of them have been let in while there was room, and none is long enough for a file by itself.
#[test]
fn uploads_that_are_under_way_hold_no_more_than_the_budget() {
    const UPLOADS: usize = 40;
    const PART: usize = 10_000;
    const BUDGET: u64 = 1_000_000;
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| settings.limits.buffers = Some(BUDGET));
    let mut uploads: Vec<Client> = (0..UPLOADS).map(|_| connect(running.address)).collect();
    for upload in &mut uploads {
        upload.write_all(&[post(20 * PART + 1), vec![b'x']].concat()).unwrap();
    }
    wait_until("all are let in", || gauge(&running, "buffer_bytes") == UPLOADS as u64);
    for _ in 0..20 {
        for upload in &mut uploads {
            upload.write_all(&[b'x'; PART]).unwrap();
        }
        // Bytes that the disk has not taken yet are held; then each upload gathers some 4 KiB at most.
        let most = BUDGET + UPLOADS as u64 * 4096;
        wait_until("the disk has had the rest", || gauge(&running, "buffer_bytes") <= most);
    }
    for upload in &mut uploads {
        assert_eq!(read_response(upload).1, b"200001");
    }
    wait_until("nothing is held", || gauge(&running, "buffer_bytes") == 0);
}

#[test]
fn nothing_is_held_when_everybody_has_gone_however_they_went() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.buffers = Some(1 << 40);
        settings.spool = folder.path().to_owned();
    });
    let mut streams = Vec::new();
    for _ in 0..3 {
        // A body in memory, one in a file, a response that waits, a pipelined request behind it.
        let requests = [
            [post(200_000), vec![b'x'; 100_000]].concat(),
            [post(2_000_000), vec![b'x'; 1_000_000]].concat(),
            get("/large"),
            [get("/large"), get("/"), b"GET /".to_vec()].concat(),
        ];
        for request in requests {
            let mut stream = connect(running.address);
            stream.write_all(&request).unwrap();
            streams.push(stream);
        }
    }
    // Six responses of which the sockets have taken a part, and three bodies.
    wait_until("all is held", || gauge(&running, "buffer_bytes") > 6 * 1_000_000 + 300_000);
    drop(streams);
    wait_until("nothing is held", || gauge(&running, "buffer_bytes") == 0);
}

/// The bytes of HTTP/1 requests that a peer never completes: `large` bytes of a head, or behind it.
fn unfinished(large: usize) -> [Vec<u8>; 3] {
    let field = format!("X-Large: {}\r\n", "x".repeat(large));
    let head = |more: &str| format!("POST / HTTP/1.1\r\nHost: t\r\n{more}").into_bytes();
    [
        head(&field),
        head(&format!("{field}Content-Length: 10\r\n\r\nx")),
        [head("Transfer-Encoding: chunked\r\n\r\n"), format!("1\r\nx\r\n0\r\n{field}").into_bytes()].concat(),
    ]
}

#[test]
fn beyond_the_budget_of_heads_the_largest_that_are_not_complete_are_refused() {
    for (what, more) in ["a head", "a body", "trailers"].into_iter().enumerate().map(|(at, what)| (what, at))
    {
        let folder = TempDir::new().unwrap();
        let running = serve(folder.path(), |settings| settings.limits.heads = 60_000);
        let send = |large: usize| {
            let mut stream = connect(running.address);
            stream.write_all(&unfinished(large)[more]).unwrap();
            stream
        };
        let before = gauge(&running, "buffer_bytes");
        let mut largest = send(15_000);
        wait_until("it is held", || gauge(&running, "buffer_bytes") >= before + 12_000);
        let mut others = Vec::new();
        while applied(&running, "head-budget") == 0 {
            let before = gauge(&running, "buffer_bytes");
            others.push(send(8000));
            assert!(others.len() < 20, "{what}");
            wait_until("it is held, or one is refused", || {
                gauge(&running, "buffer_bytes") >= before + 5000 || applied(&running, "head-budget") > 0
            });
        }
        let answer = read_all(&mut largest);
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nConnection: close\r\n"),
            "{what}: {answer}"
        );
        // Whose heads are usual does not notice.
        let mut usual = connect(running.address);
        usual.write_all(&[post(3), b"x".to_vec()].concat()).unwrap();
        usual.write_all(b"yz").unwrap();
        assert_eq!(read_response(&mut usual).1, b"3");
        drop(others);
        wait_until("nothing is held", || gauge(&running, "buffer_bytes") == 0);
        wait_until("the mode is left", || gauge(&running, "low_resources") == 0);
        let log = || logged(folder.path());
        wait_until("it is in the log", || log().contains("refused (--head-budget)"));
    }
}

#[test]
fn with_few_connections_left_idle_ones_make_room() {
    let folder = TempDir::new().unwrap();
    let running = serve(folder.path(), |settings| {
        settings.limits.connections = 10;
        // Longer than the test waits.
        settings.timeouts.keep_alive = 10 * PATIENCE;
    });
    let mut idle: Vec<Client> = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(running.address);
        stream.write_all(&get("/")).unwrap();
        read_response(&mut stream);
        idle.push(stream);
    }
    assert_eq!(gauge(&running, "low_resources"), 0);
    // Two more than there may be: they are answered when others have gone.
    for _ in 0..4 {
        let answer = crate::harness::exchange(running.address, &get_last("/"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let mut kept = connect(running.address);
        kept.write_all(&get("/")).unwrap();
        read_response(&mut kept);
        idle.push(kept);
    }
    assert_eq!(read_all(&mut idle[0]), "", "closed, long before its time");
    let log = || logged(folder.path());
    wait_until("it is in the log", || log().contains("low on connections: 9 of 10 are open"));
    wait_until("the mode is left", || gauge(&running, "low_resources") == 0);
}
