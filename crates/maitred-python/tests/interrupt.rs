//! Application code that is interrupted when its request has taken too long.

#![expect(unreachable_pub, reason = "the support module is shared by test programs")]
#![allow(dead_code, reason = "as above")]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use maitred_http::ResponseHead;
use maitred_runtime::{Content, Exchange, Flow, Handler, Observe, Request, Respond, SendError};
use pyo3::prelude::*;
use support::{Fixture, get};

/// Reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A peer whose request's time can be made to be over.
struct Responder {
    observers: Sender<Arc<dyn Observe>>,
    heads: Sender<u16>,
    dead: bool,
}

impl Respond for Responder {
    fn send_head(&mut self, _: &Request, head: &ResponseHead, _: Option<u64>) -> Result<(), SendError> {
        // A test that has seen enough has gone.
        let _ = self.heads.send(head.status.code());
        Ok(())
    }

    fn send_data(&mut self, _: &Request, _: Content) -> Result<Flow, SendError> {
        Ok(Flow::Ready)
    }

    fn finish(self: Box<Self>, _: Box<Request>) {}

    fn abort(self: Box<Self>, _: Box<Request>, _: &str) {}

    fn wait(&mut self, _: Duration) -> Result<Flow, SendError> {
        Ok(Flow::Ready)
    }

    fn is_closed(&self) -> bool {
        self.dead
    }

    fn is_dead(&self) -> bool {
        self.dead
    }

    fn interrupts(&self) -> bool {
        true
    }

    fn observe(&mut self, observer: Arc<dyn Observe>) {
        let _ = self.observers.send(observer);
    }

    fn has_peer_ended(&self) -> bool {
        self.dead
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// The test's side of one request.
struct Asked {
    observers: Receiver<Arc<dyn Observe>>,
    heads: Receiver<u16>,
}

impl Asked {
    fn observer(&self) -> Arc<dyn Observe> {
        self.observers.recv_timeout(PATIENCE).expect("the handler observes its exchange")
    }

    fn status(&self) -> u16 {
        self.heads.recv_timeout(PATIENCE).expect("an answer")
    }
}

fn exchange(target: &str, dead: bool) -> (Exchange, Asked) {
    let (observers, observed) = channel();
    let (heads, sent) = channel();
    let exchange = Exchange::new(get(target), Box::new(Responder { observers, heads, dead }));
    (exchange, Asked { observers: observed, heads: sent })
}

const APP: &str = "
import queue, threading
blocks = queue.SimpleQueue()
inside, seen = threading.Event(), []

def app(environ, start_response):
    path = environ['PATH_INFO']
    seen.append(path)
    status = '200 OK'
    try:
        if path == '/loops':
            inside.set()
            while True:
                pass
        if path == '/short':
            for number in range(20):
                pass
    except Exception as error:
        seen.append(f'{type(error).__module__}.{type(error).__name__}')
        status = '503 Too Slow'
    if path == '/raises':
        inside.set()
        while True:
            pass
    start_response(status, [])
    if path == '/in-c':
        inside.set()
        return iter(blocks.get, b'')
    return []
";

/// The application. The interpreter has one module of its name: one test at a time.
fn application() -> (MutexGuard<'static, ()>, Fixture) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, Fixture::new(APP))
}

/// Calls `act` as on a thread that Python has made: its state stays from request to request, with all that was left in
/// it.
fn as_application_thread(act: impl FnOnce() + Send) {
    Python::attach(|py| py.detach(act));
}

fn handle_both(app: &Fixture, first: Exchange, second: Exchange) {
    app.handler.handle(first);
    app.handler.handle(second);
}

fn wait_inside(app: &Fixture) {
    assert_eq!(app.evaluate("(inside.wait(20), inside.clear())[0]"), "True");
}

#[test]
fn the_application_gets_the_exception_and_may_answer() {
    let (_alone, app) = application();
    let (request, asked) = exchange("/loops", false);
    thread::scope(|scope| {
        scope.spawn(|| app.handler.handle(request));
        let observer = asked.observer();
        wait_inside(&app);
        observer.changed(); // The peer has ended its sending side, say.
        observer.timed_out();
        assert_eq!(asked.status(), 503);
    });
    assert_eq!(app.evaluate("seen"), "['/loops', 'maitred.RequestTimeout']");
    assert_eq!(app.log(), "");
}

#[test]
fn an_exception_that_is_not_caught_is_logged_with_its_place() {
    let (_alone, app) = application();
    let (request, asked) = exchange("/raises", false);
    thread::scope(|scope| {
        scope.spawn(|| app.handler.handle(request));
        let observer = asked.observer();
        wait_inside(&app);
        observer.timed_out();
        assert_eq!(asked.status(), 500);
    });
    let log = app.log();
    assert!(log.starts_with("GET /raises: the application raised an exception\nTraceback"), "{log}");
    assert!(log.contains("in app\n") && log.trim_end().ends_with("maitred.RequestTimeout"), "{log}");
}

#[test]
fn a_request_whose_time_is_over_before_it_begins_is_not_run() {
    let (_alone, app) = application();
    app.handler.handle(exchange("/never", true).0);
    assert_eq!(app.evaluate("seen"), "[]");
}

#[test]
fn only_the_request_itself_is_interrupted_and_nothing_after_it() {
    let (_alone, app) = application();
    let begin = Instant::now();
    for round in 0..300 {
        let (request, asked) = exchange("/short", false);
        let (other, answered) = exchange("/after", false);
        thread::scope(|scope| {
            scope.spawn(|| as_application_thread(|| handle_both(&app, request, other)));
            let observer = asked.observer();
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            observer.timed_out();
            // In the first request or nowhere. That one catches exceptions; this one would have answered 500.
            assert_eq!(answered.status(), 200);
        });
        assert!(begin.elapsed() < PATIENCE);
    }
}

#[test]
fn an_exception_that_comes_too_late_is_not_raised() {
    let (_alone, app) = application();
    as_application_thread(|| {
        let (request, asked) = exchange("/short", false);
        app.handler.handle(request);
        asked.observer().timed_out();
        // The queue is served in order: when the second one has been interrupted, the first has been looked at.
        let (request, second) = exchange("/loops", false);
        thread::scope(|scope| {
            scope.spawn(|| app.handler.handle(request));
            let observer = second.observer();
            wait_inside(&app);
            observer.timed_out();
            assert_eq!(second.status(), 503);
        });
        // Python code of this thread, on which the first one ran.
        assert_eq!(app.evaluate("sum(number for number in range(1000))"), "499500");
    });
    assert_eq!(app.evaluate("seen"), "['/short', '/loops', 'maitred.RequestTimeout']");
}

#[test]
fn an_exception_not_raised_before_the_end_is_taken_back() {
    let (_alone, app) = application();
    let (request, asked) = exchange("/in-c", false);
    let (other, answered) = exchange("/after", false);
    let (third, last) = exchange("/loops", false);
    thread::scope(|scope| {
        scope.spawn(|| as_application_thread(|| handle_both(&app, request, other)));
        let observer = asked.observer();
        wait_inside(&app);
        observer.timed_out();
        // The queue is served in order: when this one has been interrupted, the first one has been, too.
        scope.spawn(|| app.handler.handle(third));
        let observer = last.observer();
        wait_inside(&app);
        observer.timed_out();
        assert_eq!(last.status(), 503);
        // From here to the end of the request no Python code runs.
        app.evaluate("blocks.put(b'')");
        assert_eq!((asked.status(), answered.status()), (200, 200));
    });
    assert_eq!(app.evaluate("seen"), "['/in-c', '/loops', 'maitred.RequestTimeout', '/after']");
    assert_eq!(app.log(), "");
}

#[test]
fn python_knows_the_exception() {
    Python::initialize();
    Python::attach(|py| {
        let exception = py.get_type::<_engine::RequestTimeout>();
        assert_eq!(exception.to_string(), "<class 'maitred.RequestTimeout'>");
        assert!(exception.is_subclass_of::<pyo3::exceptions::PyException>().unwrap());
    });
}
