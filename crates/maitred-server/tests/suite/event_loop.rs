//! A server whose application runs in an event loop: turns, answers at their end, a loop that stands still.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::{
    PATIENCE, Running, ask, connect, exchange, get, get_last, read_all, read_response, settings, start, text,
    wait_until,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_io::poller::{Events, Interest, Poller, Waker};
use maitred_runtime::{
    EventLoop, Exchange, Flow, Handler, Last, NativeThreads, Observe, SendError, ThreadBody, ThreadHost,
    Turned, Turns,
};
use maitred_server::inspect::Role;
use maitred_server::{PoolLimits, Routes};

type Task = Box<dyn FnOnce() + Send>;

/// A page of Rust in the role of asyncio.
#[derive(Clone)]
struct Loop {
    tasks: Arc<Tasks>,
    /// Reports to the test whether the loop stands still.
    told: Sender<bool>,
    ended: Sender<()>,
}

struct Tasks {
    list: Mutex<VecDeque<Task>>,
    waker: Waker,
}

impl Tasks {
    /// Runs `task` on the loop's thread, outside of turns.
    fn call_soon(&self, task: impl FnOnce() + Send + 'static) {
        self.list.lock().unwrap().push_back(Box::new(task));
        self.waker.wake();
    }

    fn run(&self) {
        self.waker.clear();
        let tasks = std::mem::take(&mut *self.list.lock().unwrap());
        for task in tasks {
            task();
        }
    }
}

impl EventLoop for Loop {
    fn attach(&self, turns: Box<dyn Turns>) {
        let (tasks, ended) = (Arc::clone(&self.tasks), self.ended.clone());
        thread::spawn(move || {
            run(turns, &tasks);
            ended.send(()).unwrap();
        });
    }

    fn stands_still(&self, still: bool) {
        // A test that has seen enough has gone.
        let _ = self.told.send(still);
    }
}

fn run(mut turns: Box<dyn Turns>, tasks: &Tasks) {
    let poller = Poller::new().unwrap();
    for descriptor in turns.descriptors() {
        poller.add(descriptor, 1, Interest::ReadLevel).unwrap();
    }
    poller.add_waker(&tasks.waker, 2, Interest::ReadLevel).unwrap();
    let mut events = Events::with_capacity(8);
    loop {
        poller.wait(&mut events, None).unwrap();
        if events.iter().any(|(token, _)| token == 1) {
            loop {
                match turns.turn() {
                    Turned::Wait => break,
                    Turned::More => {}
                    Turned::Ended => return,
                }
            }
        }
        tasks.run();
        turns.flush();
    }
}

impl ThreadHost for Loop {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        assert!(name.starts_with("maitred-threads-"), "{name}: the default pool has only the event loop's");
        NativeThreads::new(|_| {}).spawn(name, body)
    }

    fn event_loop(&self) -> Option<Arc<dyn EventLoop>> {
        Some(Arc::new(self.clone()))
    }
}

struct Looped {
    running: Running,
    told: Receiver<bool>,
    ended: Receiver<()>,
    _folder: tempfile::TempDir,
}

/// A server with files below `/files` and `handler` for the rest.
fn looped(handler: impl FnOnce(Arc<Tasks>) -> Arc<dyn Handler>) -> Looped {
    looped_with(None, handler)
}

fn looped_with(limit: Option<Duration>, handler: impl FnOnce(Arc<Tasks>) -> Arc<dyn Handler>) -> Looped {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "static").unwrap();
    let tasks = Arc::new(Tasks { list: Mutex::default(), waker: Waker::new().unwrap() });
    let (told, hear) = mpsc::channel();
    let (ended, end) = mpsc::channel();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let routes = Routes::new().with_static("/files", files).with_application(handler(Arc::clone(&tasks)));
    let mut settings = settings(routes);
    settings.threads = vec![Arc::new(Loop { tasks, told, ended })];
    settings.pool.limits.request_timeout = limit;
    Looped { running: start(settings), told: hear, ended: end, _folder: folder }
}

#[test]
fn an_event_loop_gets_no_threads_by_other_limits() {
    let looped = looped(|_| handler(|exchange| text(exchange, "in a turn")));
    let limits = PoolLimits { min_threads: 2, max_threads: 4, queue: 5, ..PoolLimits::default() };
    assert!(looped.running.server.pools().set_limits("default", &limits));
    let answer = exchange(looped.running.address, &get_last("/"));
    assert!(answer.ends_with("in a turn"), "{answer}");
}

/// The backup poller has read the first request, since the loop has stood still from its start.
#[test]
fn the_thread_of_a_loop_is_known_with_its_first_request() {
    let (begin, began) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (leave, stay) = mpsc::channel::<()>();
    let (stand, stands) = mpsc::channel();
    let (begin, stay) = (Mutex::new(begin), Mutex::new(stay));
    let looped = looped(move |tasks| {
        // Before any turn that has something to serve.
        tasks.call_soon(move || {
            stand.send(()).unwrap();
            let _ = wait.recv_timeout(PATIENCE);
        });
        handler(move |exchange| {
            begin.lock().unwrap().send(()).unwrap();
            let _ = stay.lock().unwrap().recv_timeout(PATIENCE);
            text(exchange, "known");
        })
    });
    let server = &looped.running.server;
    stands.recv_timeout(PATIENCE).expect("the loop stands still");
    let mut stream = connect(looped.running.address);
    stream.write_all(&get_last("/")).unwrap();
    wait_until("the backup poller has read it", || server.connections().waiting(10).len() == 1);
    drop(go);
    began.recv_timeout(PATIENCE).expect("the loop runs it");
    let inside = server.threads().members().into_iter().filter(|member| member.inside().is_some());
    assert_eq!(inside.map(|member| member.role).collect::<Vec<_>>(), [Role::EventLoop]);
    drop(leave);
    assert!(read_all(&mut stream).ends_with("known"));
}

fn handler(act: impl Fn(Exchange) + Send + Sync + 'static) -> Arc<dyn Handler> {
    Arc::new(OnLoop(act))
}

struct OnLoop<F>(F);

impl<F: Fn(Exchange) + Send + Sync + 'static> Handler for OnLoop<F> {
    fn runs_on_event_loop(&self) -> bool {
        true
    }

    fn handle(&self, exchange: Exchange) {
        (self.0)(exchange);
    }
}

/// The application of the root runs on the loop; what is mounted at /threads does not.
#[test]
fn handlers_of_both_kinds_run_beside_each_other() {
    let tasks = Arc::new(Tasks { list: Mutex::default(), waker: Waker::new().unwrap() });
    let ((told, _hear), (ended, _end)) = (mpsc::channel(), mpsc::channel());
    let name = || thread::current().name().unwrap_or_default().to_owned();
    let (hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let on_threads = move |exchange: Exchange| {
        if exchange.request().head.path() == b"/threads/held" {
            let _ = held.lock().unwrap().recv_timeout(PATIENCE);
        }
        text(exchange, name());
    };
    let routes = Routes::new()
        .with_mounted("/threads", "beside", Arc::new(on_threads))
        .with_application(handler(move |exchange| text(exchange, format!("loop{}", name()))));
    let mut settings = settings(routes);
    settings.threads = vec![Arc::new(Loop { tasks, told, ended })];
    settings.pool.limits = PoolLimits { min_threads: 1, max_threads: 2, ..PoolLimits::default() };
    let running = start(settings);
    assert_eq!(running.server.pools().names(), ["default", "threads"]);
    let mut waits = ask(running.address, "/threads/held");
    running.wait_for_figure("threads", "threads", 1);
    for _ in 0..3 {
        assert!(exchange(running.address, &get_last("/")).ends_with("\r\nloop"));
    }
    let beside = exchange(running.address, &get_last("/threads/x"));
    assert!(beside.ends_with("\r\nmaitred-threads-2"), "{beside}");
    drop(hold);
    let (_, first) = read_response(&mut waits);
    assert_eq!(first, b"maitred-threads-1");
    let limits = PoolLimits { min_threads: 1, max_threads: 3, ..PoolLimits::default() };
    assert!(running.server.pools().set_limits("threads", &limits));
    assert_eq!(running.server.pools().limits()[1].max_threads, 3);
}

#[test]
fn requests_are_answered_in_turns() {
    let looped = looped(|_| handler(|exchange| text(exchange, "in a turn")));
    let mut streams: Vec<_> = (0..50).map(|_| connect(looped.running.address)).collect();
    for _ in 0..20 {
        for stream in &mut streams {
            stream.write_all(&[get("/"), get("/files/a.txt"), get("/")].concat()).unwrap();
        }
        for stream in &mut streams {
            assert_eq!(read_response(stream).1, b"in a turn");
            assert_eq!(read_response(stream).1, b"static");
            assert_eq!(read_response(stream).1, b"in a turn");
        }
    }
    let answer = exchange(looped.running.address, &get_last("/"));
    assert!(answer.ends_with("in a turn"), "{answer}");
}

#[test]
fn answers_that_are_ready_outside_of_a_turn_leave() {
    let looped = looped(|tasks| handler(move |exchange| tasks.call_soon(move || text(exchange, "later"))));
    let mut stream = connect(looped.running.address);
    for _ in 0..100 {
        stream.write_all(&[get("/"), get("/")].concat()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"later");
        assert_eq!(read_response(&mut stream).1, b"later");
    }
}

#[test]
fn answers_from_other_threads_leave() {
    let looped = looped(|_| handler(|exchange| drop(thread::spawn(move || text(exchange, "elsewhere")))));
    let mut stream = connect(looped.running.address);
    for _ in 0..50 {
        stream.write_all(&[get("/"), get("/")].concat()).unwrap();
        assert_eq!(read_response(&mut stream).1, b"elsewhere");
        assert_eq!(read_response(&mut stream).1, b"elsewhere");
    }
}

#[test]
fn while_the_loop_stands_still_files_are_served_and_pages_wait() {
    let (open, door) = mpsc::channel::<()>();
    let door = Mutex::new(door);
    let looped = looped(|_| {
        handler(move |exchange| {
            if exchange.request().head.path() == b"/stuck" {
                door.lock().unwrap().recv().unwrap();
            }
            text(exchange, "page");
        })
    });
    let mut stuck = connect(looped.running.address);
    stuck.write_all(&get_last("/stuck")).unwrap();
    let mut page = connect(looped.running.address);
    page.write_all(&get_last("/page")).unwrap();
    for _ in 0..20 {
        let file = exchange(looped.running.address, &get_last("/files/a.txt"));
        assert!(file.ends_with("static"), "{file}");
    }
    assert!(looped.told.recv_timeout(PATIENCE).unwrap(), "the backup poller has taken over");
    open.send(()).unwrap();
    assert!(!looped.told.recv_timeout(PATIENCE).unwrap(), "the loop is back");
    assert!(read_all(&mut stuck).ends_with("page"));
    assert!(read_all(&mut page).ends_with("page"));
}

#[test]
fn while_the_loop_stands_still_requests_time_out() {
    let (open, door) = mpsc::channel::<()>();
    let door = Mutex::new(door);
    let (ran, seen) = mpsc::channel();
    let looped = looped_with(Some(Duration::from_millis(300)), |_| {
        handler(move |exchange| {
            let path = exchange.request().head.path().to_vec();
            if path == b"/stuck" {
                door.lock().unwrap().recv().unwrap();
            }
            ran.send(path).unwrap();
            text(exchange, "page");
        })
    });
    let mut both = [connect(looped.running.address), connect(looped.running.address)];
    both[0].write_all(&get("/stuck")).unwrap();
    assert!(looped.told.recv_timeout(PATIENCE).unwrap(), "the backup poller has taken over");
    both[1].write_all(&get("/waits")).unwrap();
    for stream in &mut both {
        assert!(read_all(stream).starts_with("HTTP/1.1 504 "));
    }
    open.send(()).unwrap();
    assert!(exchange(looped.running.address, &get_last("/then")).ends_with("page"));
    let seen: Vec<_> = (0..2).map(|_| seen.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(seen, [b"/stuck".to_vec(), b"/then".to_vec()]);
}

#[test]
fn a_task_that_takes_too_long_answers_nobody() {
    let (kept, keep) = mpsc::channel();
    let kept = Mutex::new(kept);
    let looped = looped_with(Some(Duration::from_millis(300)), |tasks| {
        handler(move |exchange| match exchange.request().head.path() {
            b"/kept" => kept.lock().unwrap().send((Arc::clone(&tasks), exchange)).unwrap(),
            _ => text(exchange, "page"),
        })
    });
    assert!(exchange(looped.running.address, &get("/kept")).starts_with("HTTP/1.1 504 "));
    let (tasks, late) = keep.recv_timeout(PATIENCE).unwrap();
    let (send, sent) = mpsc::channel();
    let head = ResponseHead::new(Status::OK);
    tasks.call_soon(move || send.send((late.is_dead(), late.respond(head, "late"))).unwrap());
    assert_eq!(sent.recv_timeout(PATIENCE).unwrap(), (true, Err(SendError::Closed)));
    assert!(exchange(looped.running.address, &get_last("/then")).ends_with("page"));
}

#[test]
fn an_answer_given_by_a_task_leaves_although_the_next_task_stands_still() {
    let (open, door) = mpsc::channel::<()>();
    let door = Arc::new(Mutex::new(door));
    let looped = looped(|tasks| {
        handler(move |exchange| {
            let door = Arc::clone(&door);
            tasks.call_soon(move || {
                text(exchange, "before");
                // The end of the turn does not come.
                door.lock().unwrap().recv().unwrap();
            });
        })
    });
    let answer = exchange(looped.running.address, &get_last("/"));
    assert!(answer.ends_with("before"), "{answer}");
    open.send(()).unwrap();
}

struct Told(Sender<()>);

impl Observe for Told {
    fn changed(&self) {
        // Told again after the test has seen it.
        let _ = self.0.send(());
    }
}

#[test]
fn the_end_of_the_peer_is_told() {
    let (told, hear) = mpsc::channel();
    let (give, exchanges) = mpsc::channel::<Exchange>();
    let (told, give) = (Mutex::new(told), Mutex::new(give));
    let looped = looped(|_| {
        handler(move |mut exchange| {
            exchange.observe(Arc::new(Told(told.lock().unwrap().clone())));
            assert!(!exchange.has_peer_ended());
            give.lock().unwrap().send(exchange).unwrap();
        })
    });
    let mut stream = connect(looped.running.address);
    stream.write_all(&get("/")).unwrap();
    let exchange = exchanges.recv_timeout(PATIENCE).unwrap();
    // Packets that wake the server for nothing are not watched for any more; the end still is.
    for _ in 0..5 {
        stream.write_all(b"GET /more").unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    while !exchange.has_peer_ended() {
        hear.recv_timeout(PATIENCE).unwrap();
    }
    // It may still read.
    text(exchange, "answered");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\r\n\r\nanswered"), "{answer}");
}

#[test]
fn room_is_told() {
    const BLOCK: usize = 64 * 1024;
    let (told, hear) = mpsc::channel();
    let (give, streams) = mpsc::channel();
    let (told, give) = (Mutex::new(told), Mutex::new(give));
    let looped = looped(|_| {
        handler(move |mut exchange| {
            exchange.observe(Arc::new(Told(told.lock().unwrap().clone())));
            let mut stream = exchange.start(ResponseHead::new(Status::OK), None).unwrap();
            let mut sent = 0;
            while stream.send(vec![b'x'; BLOCK]).unwrap() == Flow::Ready {
                sent += BLOCK;
            }
            assert!(stream.is_full());
            give.lock().unwrap().send((stream, sent + BLOCK)).unwrap();
        })
    });
    let mut client = connect(looped.running.address);
    client.write_all(&get_last("/")).unwrap();
    let (stream, sent) = streams.recv_timeout(PATIENCE).unwrap();
    let reader = thread::spawn(move || read_all(&mut client));
    while stream.is_full() {
        hear.recv_timeout(PATIENCE).unwrap();
    }
    stream.finish_with(Last::Given("the end".into())).unwrap();
    let answer = reader.join().unwrap();
    assert!(answer.ends_with("7\r\nthe end\r\n0\r\n\r\n"));
    assert_eq!(answer.matches('x').count(), sent);
}

#[test]
fn the_loop_is_told_of_the_end() {
    let looped = looped(|_| handler(|exchange| text(exchange, "page")));
    assert!(exchange(looped.running.address, &get_last("/")).ends_with("page"));
    looped.running.server.stop();
    looped.ended.recv_timeout(PATIENCE).unwrap();
}
