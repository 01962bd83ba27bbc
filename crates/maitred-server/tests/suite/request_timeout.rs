//! Requests whose handler does not answer in time: 504 in its place, and nothing of the handler afterwards.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::harness::Live;
use crate::harness::{
    PATIENCE, PAUSE, Running, connect, exchange, get, get_last, read_all, read_response, settings, start,
    text, wait_until,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{
    Exchange, Handler, InterpreterLock, NativeThreads, Observe, SendError, ThreadBody, ThreadHost,
};
use maitred_server::{Level, Log, LogTarget, Routes, Settings, Snapshot};
use maitred_stats::Span;

/// Long enough that what is answered at once is in time on a busy machine, short enough for a test.
const LIMIT: Duration = Duration::from_millis(300);

/// Two clocks that tell the times of the same requests.
const CLOCKS: Duration = Duration::from_millis(5);

/// Messages between a handler and its test.
struct Talk {
    say: Mutex<Sender<String>>,
    went: Mutex<Receiver<()>>,
}

impl Talk {
    /// Says something to the test.
    fn say(&self, word: impl Into<String>) {
        // A test that has seen enough has gone.
        let _ = self.say.lock().unwrap().send(word.into());
    }

    /// Waits until the test says go on.
    fn wait(&self) {
        let _ = self.went.lock().unwrap().recv_timeout(PATIENCE);
    }
}

/// The test's ends.
struct Test {
    said: Receiver<String>,
    go: Sender<()>,
}

impl Test {
    fn hear(&self) -> String {
        self.said.recv_timeout(PATIENCE).expect("the handler says something")
    }
}

fn talk() -> (Arc<Talk>, Test) {
    let (say, said) = channel();
    let (go, went) = channel();
    (Arc::new(Talk { say: Mutex::new(say), went: Mutex::new(went) }), Test { said, go })
}

/// A server with that limit. Of each request its path is said; `/hold` waits for the test and says how its answer went.
fn serve(change: impl FnOnce(&mut Settings)) -> (Running, Test) {
    let (talk, test) = talk();
    let running = serve_with(move |exchange: Exchange| hold_or_answer(&talk, exchange), change);
    (running, test)
}

fn hold_or_answer(talk: &Talk, exchange: Exchange) {
    let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
    talk.say(path.clone());
    match path.as_str() {
        "/hold" => {
            talk.wait();
            let dead = exchange.is_dead() && exchange.is_closed() && exchange.has_peer_ended();
            let sent = exchange.respond(ResponseHead::new(Status::OK), "too late");
            talk.say(format!("dead {dead}, {sent:?}"));
        }
        _ => text(exchange, "in time"),
    }
}

fn serve_with(handler: impl Handler, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(handler)));
    settings.pool.limits.request_timeout = Some(LIMIT);
    change(&mut settings);
    start(settings)
}

/// The counts when so many requests have been counted: an answer is counted after it has left.
fn counts_after(running: &Running, requests: u64) -> Snapshot {
    let begin = Instant::now();
    loop {
        let counts = running.server.figures().snapshot();
        if counts.requests >= requests {
            return counts;
        }
        assert!(begin.elapsed() < PATIENCE, "{counts:?}");
        std::thread::sleep(PAUSE);
    }
}

/// At least the limit passes, by the server's own clock.
fn let_the_limit_pass() {
    let (running, test) = serve(|_| {});
    assert!(exchange(running.address, &get("/hold")).starts_with("HTTP/1.1 504 "));
    test.go.send(()).unwrap();
}

#[test]
fn the_peer_gets_504_while_the_handler_runs_and_its_late_answer_does_no_harm() {
    let (running, test) = serve(|_| {});
    let answer = exchange(running.address, &get("/hold"));
    assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n504 Gateway Timeout: no response within 0.3 s\n"), "{answer}");
    assert_eq!(test.hear(), "/hold");
    // The next connection has the same place.
    let mut stream = connect(running.address);
    stream.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut stream).1, b"in time");
    assert_eq!(test.hear(), "/");
    test.go.send(()).unwrap();
    assert_eq!(test.hear(), "dead true, Err(Closed)");
    stream.write_all(&get_last("/")).unwrap();
    assert!(read_all(&mut stream).ends_with("in time"));
    let counts = counts_after(&running, 3);
    assert_eq!((counts.requests, counts.timeouts, counts.errors, counts.refused), (3, 1, 1, 0));
}

#[test]
fn what_was_pipelined_behind_it_is_neither_run_nor_answered() {
    let (running, test) = serve(|_| {});
    let answer = exchange(running.address, &[get("/before"), get("/hold"), get("/after")].concat());
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("HTTP/1.1 504 "), "{answer}");
    test.go.send(()).unwrap();
    assert_eq!([test.hear(), test.hear(), test.hear()], ["/before", "/hold", "dead true, Err(Closed)"]);
    assert!(exchange(running.address, &get_last("/last")).ends_with("in time"));
    assert_eq!(test.hear(), "/last");
}

#[test]
fn the_answer_to_head_has_no_body() {
    let (running, test) = serve(|_| {});
    let answer = exchange(running.address, b"HEAD /hold HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    test.go.send(()).unwrap();
}

#[test]
fn a_request_that_waits_for_a_thread_times_out_and_never_runs() {
    let (running, test) = serve(|settings| {
        settings.pool.limits.max_threads = 1;
        settings.pool.limits.max_lost = 0;
    });
    let mut held = connect(running.address);
    held.write_all(&get("/hold")).unwrap();
    assert_eq!(test.hear(), "/hold");
    let mut waiting: Vec<_> = (0..5).map(|_| connect(running.address)).collect();
    for stream in &mut waiting {
        stream.write_all(&get("/waits")).unwrap();
    }
    for stream in waiting.iter_mut().chain([&mut held]) {
        assert!(read_all(stream).starts_with("HTTP/1.1 504 "));
    }
    test.go.send(()).unwrap();
    assert!(exchange(running.address, &get_last("/then")).ends_with("in time"));
    assert_eq!([test.hear(), test.hear()], ["dead true, Err(Closed)", "/then"]);
    assert_eq!(running.server.figures().snapshot().timeouts, 6);
    // Their time was in the queue; that of the first one in the handler, once its thread was there.
    wait_until("all are written down", || running.server.figures().statistics().server.requests == 7);
    let spans = running.server.figures().statistics().server.spans;
    let sum = |span: Span| Duration::from_nanos(spans[span as usize].sum()) + CLOCKS;
    assert!(sum(Span::Queue) >= LIMIT * 5, "{:?}", sum(Span::Queue));
    assert!(sum(Span::Run) > CLOCKS, "{:?}", sum(Span::Run));
    let both = sum(Span::Queue) + sum(Span::Run);
    assert!(both >= LIMIT * 6, "{both:?}");
}

#[test]
fn files_and_idle_connections_are_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.bin"), vec![b'x'; 20_000_000]).unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let routes = Routes::new().with_static("/s", files).with_application(Arc::new(|exchange: Exchange| {
        text(exchange, "in time");
    }));
    let mut settings = settings(routes);
    settings.pool.limits.request_timeout = Some(LIMIT);
    let running = start(settings);
    let mut slow = connect(running.address);
    slow.write_all(&get_last("/s/a.bin")).unwrap();
    let mut idle = connect(running.address);
    idle.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut idle).1, b"in time");
    let_the_limit_pass();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 20_000_000);
    idle.write_all(&get("/")).unwrap();
    assert_eq!(read_response(&mut idle).1, b"in time");
    assert_eq!(running.server.figures().snapshot().timeouts, 0);
}

#[test]
fn a_response_whose_head_has_left_is_not_timed() {
    let (talk, test) = talk();
    let running = serve_with(
        move |exchange: Exchange| {
            let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
            stream.wait(Duration::ZERO).unwrap();
            talk.say("begun");
            talk.wait();
            stream.send("one").unwrap();
            talk.wait();
            stream.send("two").unwrap();
            stream.finish();
        },
        |_| {},
    );
    let mut stream = connect(running.address);
    stream.write_all(&get_last("/")).unwrap();
    assert_eq!(test.hear(), "begun");
    for _ in 0..2 {
        let_the_limit_pass();
        test.go.send(()).unwrap();
    }
    let answer = read_all(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("3\r\ntwo\r\n0\r\n\r\n"), "{answer}");
    assert_eq!(running.server.figures().snapshot().timeouts, 0);
}

#[test]
fn a_response_that_was_started_and_has_not_left_is_timed() {
    let (talk, test) = talk();
    let running = serve_with(
        move |exchange: Exchange| {
            let mut stream = exchange.start(ResponseHead::new(Status::OK), Some(3)).unwrap();
            talk.wait();
            let sent = stream.send("one");
            talk.say(format!("{sent:?} {:?}", stream.wait(PATIENCE)));
            stream.finish();
        },
        |_| {},
    );
    let answer = exchange(running.address, &get("/"));
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    test.go.send(()).unwrap();
    assert_eq!(test.hear(), "Err(Closed) Err(Closed)");
}

#[test]
fn observers_of_an_exchange_are_told_of_the_timeout() {
    struct Told(Sender<&'static str>);
    impl Observe for Told {
        fn changed(&self) {
            self.0.send("changed").unwrap();
        }

        fn timed_out(&self) {
            self.0.send("timed out").unwrap();
        }
    }
    let (kept, keep) = channel();
    let (told, hear) = channel();
    let kept = Mutex::new(kept);
    // The exchange is finished elsewhere: no thread has to stay for it to be timed.
    let running = serve_with(
        move |mut exchange: Exchange| {
            exchange.observe(Arc::new(Told(told.clone())));
            kept.lock().unwrap().send(exchange).unwrap();
        },
        |settings| settings.pool.limits.interrupt = true,
    );
    assert!(exchange(running.address, &get("/")).starts_with("HTTP/1.1 504 "));
    let late: Exchange = keep.recv_timeout(PATIENCE).unwrap();
    assert!(late.interrupts() && late.is_dead());
    assert_eq!(hear.recv_timeout(PATIENCE), Ok("timed out"));
    drop(late);
    let counts = running.server.figures().snapshot();
    assert_eq!(
        (counts.requests, counts.timeouts, counts.errors),
        (1, 1, 1),
        "dropped, it counts no second time"
    );
}

#[test]
fn a_peer_that_has_left_does_not_stop_the_time_of_its_request() {
    let (talk, test) = talk();
    let running = serve_with(
        move |exchange: Exchange| {
            talk.say("runs");
            let begin = Instant::now();
            while !exchange.is_dead() {
                assert!(begin.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
            talk.say("dead");
        },
        |_| {},
    );
    let mut stream = connect(running.address);
    let expecting = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx";
    stream.write_all(expecting.as_bytes()).unwrap();
    assert_eq!(test.hear(), "runs");
    // `100 Continue` is there and not read: the server gets a reset.
    stream.set_nonblocking(false).unwrap();
    stream.peek(&mut [0]).unwrap();
    drop(stream);
    assert_eq!(test.hear(), "dead");
    assert_eq!(running.server.figures().snapshot().timeouts, 1);
}

#[test]
fn the_logs_have_one_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let (errors, access) = (folder.path().join("errors"), folder.path().join("access"));
    let targets = (LogTarget::Path(errors.clone()), Some(LogTarget::Path(access.clone())));
    let log = Arc::new(Log::open(Level::Info, targets.0, targets.1).unwrap());
    let own = Arc::clone(&log);
    let (running, test) = serve(move |settings| settings.log = own);
    let request =
        "POST /hold?token=secret HTTP/1.1\r\nHost: t\r\nUser-Agent: ua\r\nContent-Length: 0\r\n\r\n";
    let mut stream = connect(running.address);
    stream.write_all(request.as_bytes()).unwrap();
    let peer = stream.local_addr().unwrap();
    assert!(read_all(&mut stream).starts_with("HTTP/1.1 504 "));
    test.go.send(()).unwrap();
    assert_eq!([test.hear(), test.hear()], ["/hold", "dead true, Err(Closed)"]);
    drop(running);
    log.flush(PATIENCE);
    let errors = std::fs::read_to_string(errors).unwrap();
    let line = format!(" error {peer}: POST /hold: no response within 0.3 s; 504\n");
    assert!(errors.ends_with(&line) && errors.lines().count() == 1, "{errors}");
    let access = std::fs::read_to_string(access).unwrap();
    assert!(access.contains("\"POST /hold?token=secret HTTP/1.1\" 504 46 \"-\" \"ua\" 0."), "{access}");
    assert_eq!(access.lines().count(), 1, "{access}");
}

/// Threads of which one at a time can run application code.
struct OneInterpreter;

impl ThreadHost for OneInterpreter {
    fn spawn(&self, name: String, body: ThreadBody) -> std::io::Result<()> {
        NativeThreads::new(|_| {}).spawn(name, body)
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        Some(Arc::new(crate::harness::FreeLock))
    }
}

/// Answers at about the limit, each of several connections again and again: every request gets one whole answer.
fn race(threads: Arc<dyn ThreadHost>) {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 150;
    let limit = Duration::from_millis(4);
    let count = AtomicUsize::new(0);
    let handler = move |exchange: Exchange| {
        // From well before the limit to well behind it: a plain delay, no wait for an event.
        let micros = 3_000 + (count.fetch_add(1, Ordering::Relaxed) % 20) as u64 * 100;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        match exchange.respond(ResponseHead::new(Status::OK), "answered") {
            Ok(()) | Err(SendError::Closed) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let running = serve_with(handler, |settings| {
        settings.pool.limits.request_timeout = Some(limit);
        settings.threads = vec![threads];
    });
    let late = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut stream = connect(running.address);
                for _ in 0..REQUESTS {
                    stream.write_all(&get("/")).unwrap();
                    let (head, body) = read_response(&mut stream);
                    if head.starts_with("HTTP/1.1 200 ") {
                        assert_eq!(body, b"answered");
                        continue;
                    }
                    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
                    assert_eq!(read_all(&mut stream), "", "the last answer");
                    late.fetch_add(1, Ordering::Relaxed);
                    stream = connect(running.address);
                }
            });
        }
    });
    let late = late.load(Ordering::Relaxed) as u64;
    let all = (CLIENTS * REQUESTS) as u64;
    let counts = counts_after(&running, all);
    assert_eq!((counts.requests, counts.timeouts, counts.errors), (all, late, late));
}

#[test]
fn of_answer_and_timeout_one_wins() {
    race(Arc::new(NativeThreads::new(|_| {})));
}

#[test]
fn of_answer_and_timeout_one_wins_with_one_interpreter() {
    race(Arc::new(OneInterpreter));
}

const UPLOAD: &[u8] = b"POST /up HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n";

#[test]
fn waiting_for_the_peer_s_body_is_not_the_handler_s_time() {
    let running = serve_with(
        Live(|exchange: Exchange| {
            let body = exchange.request().body.to_vec();
            text(exchange, format!("{body:?}"));
        }),
        |settings| settings.listeners[0].read_ahead = Some(false),
    );
    let mut stream = connect(running.address);
    stream.write_all(UPLOAD).unwrap();
    assert_eq!(read_response(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
    for part in [b"abc", b"def"] {
        let_the_limit_pass();
        stream.write_all(part).unwrap();
    }
    assert_eq!(read_response(&mut stream).1, format!("Ok({:?})", b"abcdef").as_bytes());
    assert_eq!(running.server.figures().snapshot().timeouts, 0);
}

#[test]
fn a_body_cannot_be_read_after_the_time_is_over() {
    let (talk, test) = talk();
    let running = serve_with(
        Live(move |exchange: Exchange| {
            let mut reader = exchange.request().body.reader();
            let mut part = [0; 3];
            reader.read_exact(&mut part).unwrap();
            talk.wait();
            let read = reader.read(&mut part).map_err(|error| error.kind());
            talk.say(format!("{read:?} {:?}", exchange.respond(ResponseHead::new(Status::OK), "late")));
        }),
        |settings| settings.listeners[0].read_ahead = Some(false),
    );
    let mut stream = connect(running.address);
    stream.write_all(UPLOAD).unwrap();
    assert_eq!(read_response(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").unwrap();
    let (head, _) = read_response(&mut stream);
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    stream.write_all(b"def").unwrap();
    test.go.send(()).unwrap();
    assert_eq!(test.hear(), "Err(ConnectionReset) Err(Closed)");
}
