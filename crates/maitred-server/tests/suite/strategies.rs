//! Every strategy under the same mixture, and while the server drains: each request is run once and answered once.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::door::{Door, Opened};
use crate::harness::pools::{ALL, block};
use crate::harness::{
    PATIENCE, Running, ask, connect, exchange, get, get_last, read_response, settings, start, text,
    wait_until,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Flow, Handler};
use maitred_server::{DEFAULT_POOL, Routes, Settings, Strategy};
use maitred_testkit::client::Client;

/// Clients that stay connected, rounds of each of them, and requests of the mixture that are sent together.
const CLIENTS: usize = 6;
const ROUNDS: usize = 15;
const TOGETHER: usize = 4;

/// Beyond what is kept in memory here, so that it goes through the spool.
const LARGE: usize = 100_000;

/// A streamed response: so many blocks of so many bytes, more than a socket takes at once.
const BLOCKS: usize = 40;
const BLOCK: usize = 20_000;

/// Notes how often each request ran, by the number at the end of its path, and on which threads.
#[derive(Default)]
struct Book {
    runs: Vec<AtomicUsize>,
    threads: Mutex<BTreeSet<String>>,
}

impl Book {
    fn new(requests: usize) -> Arc<Self> {
        Arc::new(Self { runs: (0..requests).map(|_| AtomicUsize::new(0)).collect(), ..Self::default() })
    }

    fn runs(&self, number: usize) -> usize {
        self.runs[number].load(Ordering::SeqCst)
    }

    fn total(&self) -> usize {
        self.runs.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

/// `/echo/N` answers with N and the bytes of the body, `/stream/N` streams; `/wait` waits at the door.
fn mixture(book: &Arc<Book>, door: &Arc<Door>) -> impl Handler + use<> {
    let (book, door) = (Arc::clone(book), Arc::clone(door));
    move |exchange: Exchange| {
        let name = thread::current().name().unwrap_or_default().to_owned();
        book.threads.lock().unwrap().insert(name);
        let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        if path == "/wait" {
            door.pass(&path);
            return text(exchange, path);
        }
        let (kind, number) = path.rsplit_once('/').unwrap();
        book.runs[number.parse::<usize>().unwrap()].fetch_add(1, Ordering::SeqCst);
        if kind == "/stream" {
            return stream(exchange);
        }
        let body = exchange.request().body.to_vec().unwrap();
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        text(exchange, format!("{number} {} {sum}", body.len()));
    }
}

fn stream(exchange: Exchange) {
    let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
    for block in 0..BLOCKS {
        if let Ok(Flow::Full) = stream.send(vec![b'a' + block as u8 % 26; BLOCK]) {
            let _ = stream.wait(PATIENCE);
        }
    }
    stream.finish();
}

fn serve(strategy: Strategy, book: &Arc<Book>, change: impl FnOnce(&mut Settings)) -> (Running, Opened) {
    let door = Arc::new(Door::default());
    let mut settings = settings(Routes::new().with_application(Arc::new(mixture(book, &door))));
    settings.pool.strategy = strategy;
    settings.body_memory = LARGE as u64 / 4;
    settings.body_budget = 0;
    change(&mut settings);
    (start(settings), Opened(door))
}

/// The body of a chunked response.
fn read_chunked(stream: &mut Client) -> Vec<u8> {
    let (head, _) = read_response(stream);
    assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"), "{head}");
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a whole line");
            line.push(byte[0]);
        }
        let size = usize::from_str_radix(str::from_utf8(&line).unwrap().trim_end(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).expect("a whole chunk");
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

/// One client of the mixture. Its requests have the numbers from `first` on; how many there were.
fn converse(address: SocketAddr, first: usize) -> usize {
    let mut stream = connect(address);
    let mut number = first;
    for _ in 0..ROUNDS {
        let together: Vec<_> = (number..number + TOGETHER).map(|n| get(&format!("/echo/{n}"))).collect();
        stream.write_all(&together.concat()).unwrap();
        for n in number..number + TOGETHER {
            assert_eq!(read_response(&mut stream).1, format!("{n} 0 0").as_bytes());
        }
        number += TOGETHER;
        let head = format!("POST /echo/{number} HTTP/1.1\r\nHost: test\r\nContent-Length: {LARGE}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![number as u8; LARGE]).unwrap();
        let expected = format!("{number} {LARGE} {}", LARGE * usize::from(number as u8));
        assert_eq!(read_response(&mut stream).1, expected.as_bytes());
        number += 1;
        stream.write_all(&get(&format!("/stream/{number}"))).unwrap();
        let body = read_chunked(&mut stream);
        assert_eq!(body.len(), BLOCKS * BLOCK);
        assert!(body.chunks(BLOCK).enumerate().all(|(at, block)| block == [b'a' + at as u8 % 26; BLOCK]));
        number += 1;
    }
    number - first
}

#[test]
fn with_every_strategy_each_request_is_run_once_and_answered_once() {
    for strategy in ALL {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "static").unwrap();
        let of_one = ROUNDS * (TOGETHER + 2);
        let book = Book::new(CLIENTS * of_one);
        let (running, Opened(door)) = &serve(strategy, &book, |settings| {
            let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
            let routes = std::mem::take(&mut settings.routes);
            settings.routes = routes.with_static("/s", files);
            (settings.pool.limits.min_threads, settings.pool.limits.max_threads) = (2, 4);
        });
        // A handler stands still all the time, where there is more than one thread.
        let mut blocked = Vec::new();
        if strategy != Strategy::Pc {
            blocked = block(running, door, DEFAULT_POOL, 1);
        }
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| scope.spawn(move || converse(running.address, client * of_one)))
                .collect();
            for _ in 0..50 {
                assert!(exchange(running.address, &get_last("/s/a.txt")).ends_with("static"));
            }
            for client in clients {
                assert_eq!(client.join().unwrap(), of_one);
            }
        });
        door.open();
        for stream in &mut blocked {
            assert_eq!(read_response(stream).1, b"/wait");
        }
        for number in 0..CLIENTS * of_one {
            assert_eq!(book.runs(number), 1, "{strategy:?}: request {number}");
        }
        let threads = book.threads.lock().unwrap().clone();
        assert!(!threads.contains("maitred-poller"), "{strategy:?}: {threads:?}");
        if strategy == Strategy::Pc {
            assert_eq!(threads, BTreeSet::from(["maitred-1".to_owned()]));
            assert_eq!(running.figure(DEFAULT_POOL, "threads_made_total"), 1);
        }
    }
}

#[test]
fn produce_consume_runs_one_request_at_a_time_in_the_order_in_which_they_came() {
    let book = Book::new(10);
    let (running, Opened(door)) = &serve(Strategy::Pc, &book, |_| {});
    let mut blocked = block(running, door, DEFAULT_POOL, 1);
    let mut waiting: Vec<_> = (0..10)
        .map(|number| {
            let stream = ask(running.address, &format!("/echo/{number}"));
            running.wait_for_figure(DEFAULT_POOL, "queued", number + 1);
            stream
        })
        .collect();
    assert_eq!(book.total(), 0);
    door.open();
    assert_eq!(read_response(&mut blocked[0]).1, b"/wait");
    for (number, stream) in waiting.iter_mut().enumerate() {
        assert_eq!(read_response(stream).1, format!("{number} 0 0").as_bytes());
    }
    assert_eq!(running.server.figures().snapshot().threads, 1);
}

#[test]
fn execute_produce_consume_calls_the_next_thread_before_it_runs_a_request() {
    let book = Book::new(1);
    let (running, _opened) = &serve(Strategy::Epc, &book, |settings| {
        (settings.pool.limits.min_threads, settings.pool.limits.max_threads) = (1, 2);
    });
    assert!(exchange(running.address, &get_last("/echo/0")).ends_with("0 0 0"));
    assert_eq!(running.figure(DEFAULT_POOL, "threads_made_total"), 2);
}

/// Asks until the server says that an answer is the last one, or closes without having run the request; how many were
/// answered.
fn ask_until_closed(mut stream: Client, first: usize, book: &Book) -> usize {
    for number in first.. {
        let sent = stream.write_all(&get(&format!("/echo/{number}")));
        let mut start = [0];
        match sent.and_then(|()| stream.read(&mut start)) {
            Ok(1) => {
                let (head, body) = read_response(&mut stream);
                assert!(head.starts_with("TTP/1.1 200 "), "{head}");
                assert_eq!(body, format!("{number} 0 0").as_bytes());
                if head.contains("\r\nConnection: close\r\n") {
                    return number + 1 - first;
                }
            }
            Err(error) if !matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                panic!("{number}: {error}");
            }
            _ => {
                assert_eq!(book.runs(number), 0, "{number} was run, and not answered");
                return number - first;
            }
        }
    }
    unreachable!("the server drains")
}

#[test]
fn with_every_strategy_a_drain_answers_whatever_has_been_run() {
    /// More than a client asks until the drain ends it.
    const MANY: usize = 100_000;
    for strategy in ALL {
        let book = Book::new(CLIENTS * MANY);
        let (running, Opened(door)) = &serve(strategy, &book, |settings| {
            settings.pool.limits.max_threads = 3;
        });
        let mut blocked = Vec::new();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (book, stream) = (&book, connect(running.address));
                    scope.spawn(move || ask_until_closed(stream, client * MANY, book))
                })
                .collect();
            wait_until("requests are run", || running.server.figures().snapshot().requests > 200);
            blocked = block(running, door, DEFAULT_POOL, 1);
            running.server.drain();
            door.open();
            let answered: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
            assert_eq!(book.total(), answered, "{strategy:?}");
        });
        let (head, body) = read_response(&mut blocked[0]);
        assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
        assert_eq!(body, b"/wait");
        assert!(running.server.wait_drained(PATIENCE), "{strategy:?}");
    }
}
