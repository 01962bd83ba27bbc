//! Edges, deadlines and ends: what happens between the steps of a request.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::harness::door::Door;
use crate::harness::{
    PATIENCE, PAUSE, Running, connect, exchange, get, get_last, read_all, read_response, settings, start,
    text,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, SendError};
use maitred_server::{Routes, Settings};
use maitred_testkit::client::Client;

/// More than the socket buffers of both ends take.
const LARGE: usize = 20_000_000;

/// A file that is answered from memory, so that answers are gathered before they leave: one that has
/// not changed lately.
const FILE: &[u8] = include_bytes!("../../../../LICENSE-APACHE");

/// A server of files: `/LICENSE-APACHE` is answered from memory.
fn files() -> Settings {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let in_memory = StaticSettings { max_cached_file: 16 * 1024, ..StaticSettings::default() };
    let files = StaticFiles::open(std::path::Path::new(folder), in_memory).unwrap();
    settings(Routes::new().with_static("/", files))
}

/// An answer on another connection: what was sent before it has been seen by the server, because
/// events come in order and one thread polls.
fn let_the_server_see(other: &mut Client) {
    other.write_all(&get("/none")).unwrap();
    read_response(other);
}

/// Number of requests for the small file that are answered while the client does not read.
fn answers_that_fit(running: &Running) -> u64 {
    let mut other = connect(running.address);
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    // Both are open and known before the counting begins.
    let_the_server_see(&mut stream);
    let_the_server_see(&mut other);
    let mut fit = 0;
    loop {
        let before = running.server.figures().snapshot().requests;
        stream.write_all(&get("/LICENSE-APACHE")).unwrap();
        let_the_server_see(&mut other);
        if running.server.figures().snapshot().requests == before + 1 {
            return fit;
        }
        fit += 1;
    }
}

/// Sends one request after another and reads nothing.
fn ask_without_reading(running: &Running, other: &mut Client, count: u64) -> Client {
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    let_the_server_see(&mut stream);
    for _ in 0..count {
        stream.write_all(&get("/LICENSE-APACHE")).unwrap();
        let_the_server_see(other);
    }
    stream
}

/// Reads to the end and counts the answers; all of them must be whole.
fn whole_answers(stream: &mut Client) -> u64 {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut count = 0;
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
        assert!(rest.starts_with(b"HTTP/1.1 200 "), "answer {count}");
        rest = rest.get(end + FILE.len()..).expect("a whole body");
        count += 1;
    }
    count
}

#[test]
fn a_connection_disarmed_while_its_request_ran_hears_again_after_a_slow_answer() {
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let routes = Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        match exchange.request().head.path() {
            b"/large" => {
                inside.pass("");
                let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; LARGE]);
            }
            _ => text(exchange, "small"),
        }
    }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 2;
    let running = start(settings);
    let mut other = connect(running.address);
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    stream.write_all(&get("/large")).unwrap();
    door.wait_for(1);
    // The beginning of the next request, in packets that each wake a thread for nothing.
    let next = get("/next");
    let (beginning, rest) = next.split_at(4);
    for byte in beginning {
        stream.write_all(&[*byte]).unwrap();
        let_the_server_see(&mut other);
    }
    door.open();
    assert_eq!(read_response(&mut stream).1.len(), LARGE);
    let_the_server_see(&mut other);
    stream.write_all(rest).unwrap();
    assert_eq!(read_response(&mut stream).1, b"small");
}

#[test]
fn what_was_answered_arrives_whole_although_the_reader_pauses_longer_than_the_keep_alive_timeout() {
    let mut settings = files();
    let fit = answers_that_fit(&start(files()));
    settings.timeouts.keep_alive = Duration::from_millis(300);
    let running = start(settings);
    for count in fit.saturating_sub(6)..fit + 2 {
        let mut other = connect(running.address);
        let mut stream = ask_without_reading(&running, &mut other, count);
        // Closed by its timeout, and so is whatever has been as idle before it.
        assert_eq!(read_all(&mut other), "");
        assert_eq!(whole_answers(&mut stream), count);
    }
}

#[test]
fn what_was_answered_arrives_whole_although_the_server_drains() {
    let fit = answers_that_fit(&start(files()));
    let settings = files();
    let running = start(settings);
    let mut other = connect(running.address);
    let mut streams: Vec<_> = (fit.saturating_sub(6)..fit + 2)
        .map(|count| (count, ask_without_reading(&running, &mut other, count)))
        .collect();
    running.server.drain();
    assert_eq!(read_all(&mut other), "");
    for (count, stream) in &mut streams {
        // How much fits varies a little: the last request may not have been read when the drain began.
        let answered = whole_answers(stream);
        assert!(
            answered <= *count && answered >= (*count).min(fit.saturating_sub(1)),
            "{answered} of {count}, {fit} fit"
        );
    }
    assert!(running.server.wait_drained(PATIENCE));
}

#[test]
fn a_peer_that_ends_its_side_gets_all_of_its_answers_however_slowly_it_reads() {
    let settings = files();
    let running = start(settings);
    let fit = answers_that_fit(&running);
    for count in fit.saturating_sub(12)..fit + 4 {
        let mut other = connect(running.address);
        let mut stream = connect(running.address);
        let_the_server_see(&mut stream);
        let requests: Vec<u8> = (0..count).flat_map(|_| get("/LICENSE-APACHE")).collect();
        stream.write_all(&requests).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        for _ in 0..20 {
            let_the_server_see(&mut other);
        }
        assert_eq!(whole_answers(&mut stream), count);
    }
}

/// A client that pipelines as fast as it can until its connection is shut, and one that reads it all.
fn flood(running: &Running) -> (Client, [std::thread::JoinHandle<()>; 2]) {
    let stream = connect(running.address);
    let (mut asking, mut reading) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    let requests: Vec<u8> = (0..1_000).flat_map(|_| get("/none")).collect();
    let asker = std::thread::spawn(move || while asking.write_all(&requests).is_ok() {});
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 256 * 1024];
        while reading.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    (stream, [asker, reader])
}

#[test]
fn connections_that_always_have_more_to_do_do_not_starve_the_others() {
    let mut settings = files();
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let floods: Vec<_> = (0..12).map(|_| flood(&running)).collect();
    let begun = Instant::now();
    while running.server.figures().snapshot().requests < 10_000 {
        assert!(begun.elapsed() < PATIENCE, "the flood is answered");
        std::thread::sleep(PAUSE);
    }
    for _ in 0..5 {
        let begun = Instant::now();
        exchange(running.address, &get_last("/LICENSE-APACHE"));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "answered after {took:?}");
    }
    // Answering all that has been sent by then would take a minute.
    for (stream, _) in &floods {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    for thread in floods.into_iter().flat_map(|(_, threads)| threads) {
        thread.join().unwrap();
    }
}

#[test]
fn a_peer_that_takes_nothing_is_cut_although_it_keeps_sending() {
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| {
        let large = exchange.request().head.path() == b"/large";
        let body = if large { vec![b'x'; LARGE] } else { b"small".to_vec() };
        let _ = exchange.respond(ResponseHead::new(Status::OK), body);
    }));
    let mut settings = settings(routes);
    settings.timeouts.send = Duration::from_millis(200);
    let running = start(settings);
    let mut other = connect(running.address);
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    stream.write_all(&get("/large")).unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    let begun = Instant::now();
    while running.server.figures().snapshot().open > 1 {
        assert!(begun.elapsed() < PATIENCE, "the connection is closed");
        let_the_server_see(&mut other);
        // Fails once the connection is closed.
        let _ = stream.write_all(b"x");
    }
}

#[test]
fn a_peer_that_takes_nothing_is_cut_although_the_application_keeps_sending() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let routes = Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
        let _ = stream.send(vec![b'x'; LARGE]);
        let begun = Instant::now();
        let ended = loop {
            if begun.elapsed() > PATIENCE {
                break None;
            }
            if let Err(error) = stream.send("x") {
                break Some(error);
            }
            // Paces the sending.
            let _ = stream.wait(Duration::from_millis(1));
        };
        tell.lock().unwrap().send(ended).unwrap();
    }));
    let mut settings = settings(routes);
    settings.timeouts.send = Duration::from_millis(200);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&get("/")).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE * 2).unwrap(), Some(SendError::Closed));
}

#[test]
fn a_reader_that_takes_a_little_at_a_time_is_not_cut() {
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| {
        let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; LARGE]);
    }));
    let mut settings = settings(routes);
    settings.timeouts.send = Duration::from_millis(500);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/")).unwrap();
    let mut taken = 0;
    let mut buffer = vec![0; 1_000_000];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        taken += count;
        // A slow reader, not a synchronisation.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(taken > LARGE, "{taken}");
}

#[test]
fn an_expectation_is_answered_without_100_when_no_handler_will_take_the_body() {
    for (settings, status) in [(files(), "405"), (settings(Routes::new()), "404")] {
        let running = start(settings);
        let request =
            "POST /LICENSE-APACHE HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        let mut stream = connect(running.address);
        stream.write_all(request.as_bytes()).unwrap();
        let (head, _) = read_response(&mut stream);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(head.contains("Connection: close\r\n"), "{head}");
        // A body that comes in spite of it is dropped.
        stream.write_all(b"GET /LICENSE-APACHE HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut stream), "");
    }
}

#[test]
fn an_empty_line_behind_a_request_does_not_begin_the_next_one() {
    let mut settings = files();
    settings.timeouts.head = Duration::from_millis(100);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&[get("/none"), b"\r\n".to_vec()].concat()).unwrap();
    read_response(&mut stream);
    // Begun later, and timed out before we go on.
    let mut half = connect(running.address);
    half.write_all(b"GET / HT").unwrap();
    assert!(read_all(&mut half).starts_with("HTTP/1.1 408 "));
    stream.write_all(&get("/none")).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_head_that_trickles_is_timed_out_from_its_first_byte() {
    let mut settings = files();
    settings.timeouts.head = Duration::from_millis(300);
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut other = connect(running.address);
    let begun = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: t\r\nX: ").unwrap();
    let mut answer = [0; 12];
    while stream.read(&mut answer).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the head is timed out");
        let_the_server_see(&mut other);
        let _ = stream.write_all(b"x");
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_refused_upload_can_be_sent_to_its_end_and_the_refusal_is_read_then() {
    let mut settings = settings(Routes::new().with_application(Arc::new(|exchange| text(exchange, "ok"))));
    settings.max_body = 10;
    let running = start(settings);
    let mut stream = connect(running.address);
    write!(stream, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {LARGE}\r\n\r\n").unwrap();
    stream.write_all(&vec![b'x'; LARGE]).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn a_slow_upload_that_was_refused_is_not_reset_before_its_end() {
    let mut settings = settings(Routes::new().with_application(Arc::new(|exchange| text(exchange, "ok"))));
    settings.max_body = 10;
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    // Longer than the server waits for a peer that sends nothing.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        stream.write_all(b"xxxx").unwrap();
        // A slow sender, not a synchronisation.
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = read_all(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

/// Numbers that look random and are the same in every run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Answers with the path and the length of the body: at once, in parts, or from another thread.
fn any_way(exchange: Exchange) {
    fn answer(exchange: Exchange, length: usize) {
        let path = exchange.request().head.path().to_vec();
        let body =
            [path, exchange.request().body.len().to_string().into_bytes(), vec![b'.'; length]].concat();
        if length.is_multiple_of(2) {
            let _ = exchange.respond(ResponseHead::new(Status::OK), body);
            return;
        }
        let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(body.len() as u64)).unwrap();
        for part in body.chunks(10_000) {
            let _ = stream.send(part.to_vec());
        }
        stream.finish();
    }
    let digits =
        exchange.request().head.path()[1..].iter().fold(0, |all, byte| all * 10 + usize::from(byte - b'0'));
    let length = if digits.is_multiple_of(5) { 300_000 + digits % 2 } else { digits % 3_000 };
    match digits % 3 {
        0 => drop(std::thread::spawn(move || answer(exchange, length))),
        _ => answer(exchange, length),
    }
}

/// Several requests in segments of any length, on one connection; every answer is checked.
fn ask_in_segments(stream: &mut Client, dice: &mut Dice) {
    let numbers: Vec<usize> = (0..=dice.below(6)).map(|_| dice.below(10_000)).collect();
    let mut bytes = Vec::new();
    for number in &numbers {
        let body = "b".repeat(number % 700);
        bytes.extend_from_slice(
            format!("POST /{number} HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .as_bytes(),
        );
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (segment, behind) = rest.split_at(rest.len().min(1 + dice.below(500)));
        stream.write_all(segment).unwrap();
        if dice.below(3) == 0 {
            std::thread::yield_now();
        }
        rest = behind;
    }
    for number in numbers {
        let (head, body) = read_response(stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(body.starts_with(format!("/{number}{}", number % 700).as_bytes()), "the answer to /{number}");
    }
}

#[test]
fn however_requests_are_cut_and_answered_none_is_forgotten() {
    let mut settings = settings(Routes::new().with_application(Arc::new(any_way)));
    settings.pool.limits.max_threads = 3;
    let running = start(settings);
    let address = running.address;
    let clients = (1..=8).map(|seed| {
        std::thread::spawn(move || {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            for _ in 0..8 {
                let mut stream = connect(address);
                stream.set_nodelay(true).unwrap();
                for _ in 0..10 {
                    ask_in_segments(&mut stream, &mut dice);
                }
                if dice.below(2) == 0 {
                    stream.shutdown(Shutdown::Write).unwrap();
                    assert_eq!(read_all(&mut stream), "");
                }
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.join().unwrap();
    }
    let begun = Instant::now();
    while running.server.figures().snapshot().open > 0 {
        assert!(begun.elapsed() < PATIENCE, "every connection has ended");
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn a_server_that_is_dropped_cuts_its_connections_although_a_handler_is_stuck() {
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let routes = Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        if exchange.request().head.path() == b"/stuck" {
            inside.pass("");
        }
        text(exchange, "done");
    }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let mut idle = connect(running.address);
    idle.write_all(&get("/")).unwrap();
    read_response(&mut idle);
    let mut stuck = connect(running.address);
    stuck.write_all(&get("/stuck")).unwrap();
    door.wait_for(1);
    // Queued: the only thread is stuck. The backup poller reads in order, so it has read this one when it
    // has answered the malformed one.
    let mut queued = connect(running.address);
    queued.write_all(&get("/")).unwrap();
    assert!(exchange(running.address, b"BAD\r\n\r\n").starts_with("HTTP/1.1 400 "));
    running.server.stop();
    assert_eq!(read_all(&mut idle), "");
    let answer = read_all(&mut queued);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 500 "), "{answer}");
    door.open();
    let answer = read_all(&mut stuck);
    assert!(answer.is_empty() || answer.ends_with("done"), "{answer}");
}

#[test]
fn a_second_drain_changes_nothing_and_draining_works_with_every_thread_blocked() {
    let door = Arc::new(Door::default());
    let inside = Arc::clone(&door);
    let routes = Routes::new().with_application(Arc::new(move |exchange: Exchange| {
        inside.pass("");
        text(exchange, "done");
    }));
    let mut settings = settings(routes);
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let mut idle = connect(running.address);
    let mut streams: Vec<_> = (0..4).map(|_| connect(running.address)).collect();
    for stream in &mut streams {
        stream.write_all(&get("/")).unwrap();
    }
    door.wait_for(1);
    running.server.drain();
    running.server.drain();
    assert_eq!(read_all(&mut idle), "");
    assert!(!running.server.wait_drained(Duration::ZERO));
    door.open();
    for stream in &mut streams {
        let answer = read_all(stream);
        assert!(answer.contains("Connection: close\r\n") && answer.ends_with("done"), "{answer}");
    }
    assert!(running.server.wait_drained(PATIENCE));
}

#[test]
fn a_thread_host_that_makes_no_threads_is_an_error_at_the_start() {
    struct NoThreads;
    impl maitred_runtime::ThreadHost for NoThreads {
        fn spawn(&self, _: String, _: maitred_runtime::ThreadBody) -> std::io::Result<()> {
            Err(std::io::ErrorKind::OutOfMemory.into())
        }
    }
    let mut settings = files();
    settings.threads = vec![Arc::new(NoThreads)];
    let error = maitred_server::Server::start(settings).map(drop).expect_err("it cannot start");
    assert!(error.to_string().starts_with("cannot start: "), "{error}");
}

#[test]
fn a_timer_that_rings_before_the_deadline_ends_nothing() {
    let mut settings = files();
    settings.timeouts.head = Duration::from_millis(200);
    settings.timeouts.keep_alive = 10 * PATIENCE;
    let running = start(settings);
    let mut stream = connect(running.address);
    stream.write_all(&get("/none")).unwrap();
    read_response(&mut stream);
    // Its deadline is put off, and the timer of its first request rings before that of this one, which is closed then.
    let mut later = connect(running.address);
    later.write_all(b"GET").unwrap();
    assert!(read_all(&mut later).starts_with("HTTP/1.1 408"));
    stream.write_all(&get("/none")).unwrap();
    assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 404"));
}
