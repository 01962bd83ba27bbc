//! Bodies in memory and in files over real sockets: the same bytes, and nothing left behind.

#[path = "suite/harness/mod.rs"]
mod harness;

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use harness::{PATIENCE, PAUSE, Running, connect, exchange, get_last, read_response, settings, start, text};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_runtime::Exchange;
use maitred_server::Routes;

const MEMORY: usize = 10_000;

/// Tells length, sum and place of the body.
fn summary(exchange: Exchange) {
    let body = &exchange.request().body;
    let place = if body.as_bytes().is_some() { "memory" } else { "file" };
    let answer = format!("{} {place}", sum(&body.to_vec().expect("readable")));
    text(exchange, answer);
}

/// A sum in which the order counts.
fn sum(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} {sum}", bytes.len())
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for part in body.chunks(7_001) {
        request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

/// A server with a spool folder of its own, which shows what is open in it.
fn serve(routes: Routes) -> (Running, tempfile::TempDir) {
    serve_with(routes, 0)
}

/// The same with a budget for what is longer than [`MEMORY`].
fn serve_with(routes: Routes, budget: u64) -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = settings(routes);
    settings.body_memory = MEMORY as u64;
    settings.body_budget = budget;
    settings.spool = folder.path().to_owned();
    (start(settings), folder)
}

fn application() -> Routes {
    Routes::new().with_application(Arc::new(summary))
}

/// Files of `folder` that this process has open, without a name or with one.
fn open_in(folder: &tempfile::TempDir) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    descriptors
        .filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
        .filter(|path| path.starts_with(folder.path()))
        .count()
}

fn until_none_is_open(folder: &tempfile::TempDir) {
    let begun = Instant::now();
    while open_in(folder) > 0 {
        assert!(begun.elapsed() < PATIENCE, "a file stays open");
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn a_body_is_the_same_in_memory_and_in_a_file() {
    let (running, folder) = serve(application());
    let mut stream = connect(running.address);
    for length in [0, 1, MEMORY - 1, MEMORY, MEMORY + 1, 65_536, 131_072, 262_144, 3_000_001] {
        let body = pattern(length);
        let place = if length > MEMORY { "file" } else { "memory" };
        for request in [with_length(&body), chunked(&body)] {
            stream.write_all(&request).unwrap();
            let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
            assert_eq!(answer, format!("{} {place}", sum(&body)), "on one connection");
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "no file has a name");
    until_none_is_open(&folder);
}

const BUDGET: u64 = 4 * 1024 * 1024;

/// Waits until what bodies hold of the budget is such.
fn wait_until_held(running: &Running, such: impl Fn(u64) -> bool) {
    let begun = Instant::now();
    while !such(running.server.figures().body_memory().held) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", running.server.figures().body_memory());
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn a_body_stays_in_memory_while_the_budget_lasts_and_gives_its_share_back() {
    let (running, folder) = serve_with(application(), BUDGET);
    let mut stream = connect(running.address);
    let quarter = BUDGET as usize / 4;
    for length in [MEMORY, MEMORY + 1, 65_536, 300_000, quarter - 1, quarter, quarter + 1, 3_000_001] {
        let body = pattern(length);
        let place = if length > quarter { "file" } else { "memory" };
        for request in [with_length(&body), chunked(&body)] {
            stream.write_all(&request).unwrap();
            let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
            assert_eq!(answer, format!("{} {place}", sum(&body)), "on one connection");
            wait_until_held(&running, |held| held == 0);
        }
    }
    let mut left = connect(running.address);
    left.write_all(&with_length(&pattern(quarter))[..quarter / 2]).unwrap();
    wait_until_held(&running, |held| held > 0);
    drop(left);
    wait_until_held(&running, |held| held == 0);
    until_none_is_open(&folder);
}

#[test]
fn when_the_budget_is_short_the_largest_body_goes_to_its_file() {
    let (running, folder) = serve_with(application(), BUDGET);
    let body = pattern(1_000_000);
    let request = with_length(&body);
    let head = request.len() - body.len();
    let mut all = Vec::new();
    for sent in [999_999, 900_000, 900_000] {
        let mut stream = connect(running.address);
        stream.write_all(&request[..head + sent]).unwrap();
        all.push((stream, head + sent));
        let sum: usize = all.iter().map(|(_, sent)| sent - head).sum();
        wait_until_held(&running, |held| held >= sum as u64);
    }
    assert_eq!(open_in(&folder), 0);
    let mut stream = connect(running.address);
    stream.write_all(&request[..head + 900_000]).unwrap();
    all.push((stream, head + 900_000));
    let begun = Instant::now();
    while open_in(&folder) == 0 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", running.server.figures().body_memory());
        std::thread::sleep(PAUSE);
    }
    wait_until_held(&running, |held| (2_700_000..3_000_000).contains(&held));
    for (number, (mut stream, sent)) in all.into_iter().enumerate() {
        stream.write_all(&request[sent..]).unwrap();
        let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
        let place = if number == 0 { "file" } else { "memory" };
        assert_eq!(answer, format!("{} {place}", sum(&body)), "number {number}");
    }
    until_none_is_open(&folder);
}

#[test]
fn many_uploads_stay_within_the_budget() {
    let (running, folder) = serve_with(application(), BUDGET);
    let address = running.address;
    let clients: Vec<_> = (0..30usize)
        .map(|number| {
            std::thread::spawn(move || {
                let body = pattern(900_000 + number);
                let mut stream = connect(address);
                for part in with_length(&body).chunks(50_021) {
                    stream.write_all(part).unwrap();
                }
                let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
                assert!(answer.starts_with(&sum(&body)), "{answer}");
            })
        })
        .collect();
    while !clients.iter().all(std::thread::JoinHandle::is_finished) {
        let held = running.server.figures().body_memory().held;
        assert!(held <= BUDGET, "{held}");
        std::thread::yield_now();
    }
    for client in clients {
        client.join().expect("every client gets its answer");
    }
    wait_until_held(&running, |held| held == 0);
    until_none_is_open(&folder);
}

#[test]
fn requests_behind_a_body_in_a_file_wait_for_it_and_are_answered_in_order() {
    let (running, _folder) = serve(application());
    let mut stream = connect(running.address);
    let bodies = [50_000, 3, 200_000, 0, 131_072].map(pattern);
    let requests: Vec<u8> = bodies.iter().flat_map(|body| with_length(body)).collect();
    stream.write_all(&requests).unwrap();
    for body in &bodies {
        let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
        assert!(answer.starts_with(&sum(body)), "{answer}");
    }
}

#[test]
fn many_uploads_at_once_keep_their_bytes_apart() {
    let (running, folder) = serve(application());
    let address = running.address;
    let clients: Vec<_> = (1..20usize)
        .map(|number| {
            std::thread::spawn(move || {
                let body: Vec<u8> = pattern(number * 61_007).iter().map(|byte| byte ^ number as u8).collect();
                let mut stream = connect(address);
                for part in chunked(&body).chunks(30_011) {
                    stream.write_all(part).unwrap();
                }
                let answer = String::from_utf8(read_response(&mut stream).1).unwrap();
                assert_eq!(answer, format!("{} file", sum(&body)));
            })
        })
        .collect();
    for client in clients {
        client.join().expect("every client gets its answer");
    }
    until_none_is_open(&folder);
}

#[test]
fn an_upload_that_ends_early_leaves_no_file_open() {
    let (running, folder) = serve(application());
    let mut stream = connect(running.address);
    let whole = with_length(&pattern(2_000_000));
    stream.write_all(&whole[..1_000_000]).unwrap();
    let begun = Instant::now();
    while open_in(&folder) == 0 {
        assert!(begun.elapsed() < PATIENCE, "it goes to a file");
        std::thread::sleep(PAUSE);
    }
    drop(stream);
    until_none_is_open(&folder);
}

#[test]
fn a_chunked_body_in_a_file_meets_the_limit_too() {
    let mut settings = settings(application());
    settings.body_memory = MEMORY as u64;
    settings.body_budget = 0;
    settings.max_body = 300_000;
    settings.spool = std::env::temp_dir();
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&chunked(&pattern(300_000))).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200 "));
    stream.write_all(&chunked(&pattern(300_001))).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 413 "));
}

#[test]
fn half_sent_requests_hold_no_thread() {
    let (mut settings, folder) = (settings(application()), tempfile::tempdir().expect("a folder"));
    settings.body_memory = MEMORY as u64;
    settings.body_budget = 0;
    settings.spool = folder.path().to_owned();
    settings.pool.limits.max_threads = 2;
    let running = start(settings);
    let body = pattern(1_000_000);
    // Heads and bodies, in memory, in a file and in chunks, each cut somewhere else.
    let requests: Vec<(Vec<u8>, usize)> = [
        (with_length(&body), 1),
        (chunked(&body), 20),
        (with_length(&body), 60),
        (with_length(&body), 5_000),
    ]
    .into_iter()
    .chain([(with_length(&body), 900_000), (chunked(&body), 900_000), (chunked(&body), 5_000)])
    .collect();
    let mut halves: Vec<_> = requests
        .iter()
        .map(|(request, sent)| {
            let mut stream = connect(running.address);
            stream.write_all(&request[..*sent]).unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert!(exchange(running.address, &get_last("/")).starts_with("HTTP/1.1 200 "));
    }
    assert!(running.server.figures().snapshot().threads <= 2);
    for (stream, (request, sent)) in halves.iter_mut().zip(&requests) {
        stream.write_all(&request[*sent..]).unwrap();
        let answer = String::from_utf8(read_response(stream).1).unwrap();
        assert_eq!(answer, format!("{} file", sum(&body)));
    }
}

#[test]
fn a_body_that_no_application_gets_is_kept_nowhere() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("page.txt"), "page").unwrap();
    let files = || StaticFiles::open(root.path(), StaticSettings::default()).expect("the folder");
    for (path, routes) in [
        ("/page.txt", Routes::new().with_static("/", files())),
        ("/files/page.txt", Routes::new().with_static("/files", files()).with_application(Arc::new(summary))),
    ] {
        let mut settings = settings(routes);
        settings.body_memory = MEMORY as u64;
        settings.body_budget = 0;
        // Where no file can be made.
        settings.spool = root.path().join("missing");
        let running = start(settings);
        let mut stream = connect(running.address);
        for _ in 0..2 {
            let body = "x".repeat(500_000);
            write!(stream, "POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 500000\r\n\r\n{body}")
                .unwrap();
            let head = read_response(&mut stream).0;
            assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
        }
    }
}

#[test]
fn a_spool_folder_that_is_not_there_costs_large_bodies_only() {
    let root = tempfile::tempdir().unwrap();
    let mut settings = settings(application());
    settings.body_memory = MEMORY as u64;
    settings.body_budget = 0;
    settings.spool = root.path().join("missing");
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&with_length(&pattern(MEMORY))).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200 "));
    stream.write_all(&with_length(&pattern(MEMORY + 1))).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 503 "));
    assert!(exchange(running.address, &get_last("/")).starts_with("HTTP/1.1 200 "));
}
