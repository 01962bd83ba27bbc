//! Ends of exchanges in the access log and the counters: a client that has received everything counts as present.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::pools::{ALL, with_reports};
use crate::harness::{
    PATIENCE, Running, ask, connect, exchange, get, get_last, read_all, settings, start, text, wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Flow, Handler};
use maitred_server::figures::Format;
use maitred_server::{Level, Log, LogTarget, PoolRule, Routes, Settings};
use maitred_testkit::client::Client;

/// A server with an access log, and one answer without a thread: `/alive`.
struct Logged {
    running: Running,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Logged {
    fn serve(handler: impl Handler, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let log =
            Log::open(Level::Error, LogTarget::Path("/dev/null".into()), Some(LogTarget::Path(path.clone())));
        let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
        settings.log = Arc::new(log.expect("the log opens"));
        settings.health_path = Some("/alive".to_owned());
        change(&mut settings);
        Self { running: start(settings), log: path, _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// The engine has seen what happened on every connection before this.
    fn look_around(&self) {
        assert!(exchange(self.address(), &get_last("/alive")).ends_with("ok\n"));
    }

    /// Lines without those of `/alive`, when there are so many.
    fn lines(&self, count: usize) -> Vec<String> {
        let read = || -> Vec<String> {
            self.running.server.log().flush(PATIENCE);
            let text = fs::read_to_string(&self.log).expect("the log can be read");
            text.lines().filter(|line| !line.contains("/alive")).map(str::to_owned).collect()
        };
        wait_until("every exchange is written down", || read().len() >= count);
        read()
    }

    fn cut(&self) -> u64 {
        let metrics = self.running.server.figures().page(Format::Prometheus);
        let value = metrics.lines().find_map(|line| line.strip_prefix("maitred_cut_total "));
        value.expect("the figure").parse().expect("a number")
    }
}

#[test]
fn a_client_that_has_the_whole_response_and_closes_was_there() {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 40;
    for strategy in ALL {
        let server = Logged::serve(
            |exchange: Exchange| text(exchange, "hello"),
            |settings| {
                settings.pool.strategy = strategy;
                let named = with_reports(
                    std::mem::replace(settings, crate::harness::settings(Routes::new())),
                    |_| {},
                );
                *settings = named;
            },
        );
        let last = [get_last("/report"), get_last("/"), b"GET /report HTTP/1.0\r\n\r\n".to_vec()];
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    for number in 0..REQUESTS {
                        let answer = exchange(server.address(), &last[number % last.len()]);
                        assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
                    }
                });
            }
        });
        let lines = server.lines(CLIENTS * REQUESTS);
        let gone: Vec<_> = lines.iter().filter(|line| line.ends_with("peer-gone")).collect();
        assert!(gone.is_empty(), "{strategy:?}: {} of {}: {gone:?}", gone.len(), lines.len());
        assert_eq!((lines.len(), server.cut()), (CLIENTS * REQUESTS, 0), "{strategy:?}");
    }
}

/// More than the buffers of two sockets hold: at once, or in blocks.
fn large(exchange: Exchange) {
    if exchange.request().head.path() == b"/whole" {
        let _ = exchange.respond(ResponseHead::new(Status::OK), vec![b'x'; 64 << 20]);
        return;
    }
    let mut stream = exchange.start(ResponseHead::new(Status::OK), None).expect("it begins");
    loop {
        match stream.send(vec![b'x'; 1 << 20]) {
            Ok(Flow::Ready) => {}
            Ok(Flow::Full) if stream.wait(PATIENCE).is_ok() => {}
            _ => break,
        }
    }
    stream.finish();
}

#[test]
fn the_access_log_says_whether_the_server_or_an_operator_has_ended_a_response() {
    for path in ["/whole", "/blocks"] {
        let server = Logged::serve(large, |settings| {
            settings.timeouts.send = Duration::from_millis(200);
            settings.writer.file = 0;
        });
        let reader = ask(server.address(), path);
        let line = server.lines(1).remove(0);
        assert!(line.ends_with(" too-slow"), "{line}");
        drop(reader);
        let server = Logged::serve(large, |settings| settings.writer.file = 0);
        let reader = ask(server.address(), path);
        let waits = || {
            let mut found = None;
            server.running.server.connections().each(|place, shown| {
                if !shown.deliveries.is_empty() {
                    found = Some(place);
                }
            });
            found
        };
        wait_until("a part of it waits", || waits().is_some());
        server.running.server.connections().end_exchange(waits().expect("it waits"));
        let line = server.lines(1).remove(0);
        assert!(line.ends_with(" operator"), "{line}");
        assert_eq!(server.cut(), 1);
        drop(reader);
    }
}

#[test]
fn a_request_whose_client_is_gone_while_it_waits_is_not_run_and_of_one_that_ended_its_side_it_is() {
    for pool in ["default", "reports"] {
        let door = Arc::new(Door::default());
        let guard = Opened(Arc::clone(&door));
        let server = Logged::serve(guarded(&door), |settings| {
            settings.pool.limits.max_threads = 1;
            let named = with_reports(
                std::mem::replace(settings, crate::harness::settings(Routes::new())),
                |settings| {
                    settings.pools[0].limits.max_threads = 1;
                    settings.rules.push(PoolRule {
                        pool: pool.to_owned(),
                        path: Some("/wait*".parse().unwrap()),
                        ..PoolRule::default()
                    });
                },
            );
            *settings = named;
        });
        let first = ask(server.address(), "/wait/1");
        guard.0.wait_for(1);
        let mut leaver = connect(server.address());
        leaver
            .write_all(&[b"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n".to_vec(), get("/wait/2")].concat())
            .unwrap();
        server.running.wait_for_figure(pool, "queued", 1);
        let mut stayer = ask(server.address(), "/wait/3");
        server.running.wait_for_figure(pool, "queued", 2);
        stayer.shutdown(Shutdown::Write).unwrap();
        reset(leaver);
        server.look_around();
        guard.0.open();
        assert!(read_all(&mut stayer).contains("\r\n\r\n/wait/3 "));
        assert_eq!(door.came(), ["/wait/1", "/wait/3"]);
        drop(first);
        let lines = server.lines(4);
        let left = lines.iter().find(|line| line.contains("/wait/2")).expect("a line");
        assert!(left.contains("\"GET /wait/2 HTTP/1.1\" 499 0 ") && left.ends_with(" peer-gone"), "{left}");
        assert_eq!(server.cut(), 1);
    }
}

#[test]
fn a_client_that_ended_its_side_with_its_request_is_answered() {
    let door = Arc::new(Door::default());
    let guard = Opened(Arc::clone(&door));
    let server = Logged::serve(guarded(&door), |settings| settings.pool.limits.max_threads = 1);
    let mut client = ask(server.address(), "/wait/1");
    guard.0.wait_for(1);
    client.write_all(&get("/wait/2")).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    server.look_around();
    guard.0.open();
    let answers = read_all(&mut client);
    assert!(answers.contains("/wait/1 on") && answers.contains("/wait/2 on"), "{answers}");
    assert_eq!(server.cut(), 0);
}

/// Closes with a reset: bytes that were received are not read.
fn reset(mut stream: Client) {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    drop(stream);
}

#[test]
fn a_response_that_had_left_before_the_client_did_is_complete() {
    let door = Arc::new(Door::default());
    let guard = Opened(Arc::clone(&door));
    let handler = {
        let door = Arc::clone(&door);
        move |exchange: Exchange| {
            let short = exchange.request().head.path() == b"/short";
            let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(10)).unwrap();
            stream.send(if short { "01234" } else { "0123456789" }).unwrap();
            door.pass("/");
            match short {
                // Whether it has gone, it sees from this.
                true => drop(stream.send("56789")),
                false => assert!(stream.is_closed(), "the engine knows"),
            }
            stream.finish();
        }
    };
    let server = Logged::serve(handler, |_| {});
    for (number, path) in ["/whole", "/short"].into_iter().enumerate() {
        let client = ask(server.address(), path);
        guard.0.wait_for(number + 1);
        reset(client);
        server.look_around();
        guard.0.let_one_through();
        server.lines(number + 1);
    }
    let lines = server.lines(2);
    assert!(lines[0].contains("/whole HTTP/1.1\" 200 10 ") && !lines[0].ends_with("peer-gone"), "{lines:?}");
    assert!(lines[1].contains("/short HTTP/1.1\" 200 10 ") && lines[1].ends_with("peer-gone"), "{lines:?}");
    assert_eq!(server.cut(), 1);
    drop(connect(server.address()));
}
