//! Several workers that accept at the same addresses. Here they are servers of one process: to the kernel, which knows sockets and
//! their watchers, that makes no difference.

use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::harness::{
    PATIENCE, Running, ask, connect, get, get_last, read_all, read_response, settings, start, text,
    wait_until,
};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, InterpreterLock, NativeThreads, ThreadBody, ThreadHost};
use maitred_server::listening::{Address, UnixAddress};
use maitred_server::{
    Accept, Bell, BoundListeners, ListenerSettings, PoolLimits, PoolSettings, Routes, Settings,
    WorkerListeners,
};
use maitred_testkit::client::Client;

/// Longer than one waits for a worker that is free, as long as the machine is not overloaded.
const PITY: Duration = Duration::from_millis(500);

/// A gate that handlers of `/wait` stand before.
#[derive(Default)]
struct Gate {
    inside: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut inside = self.inside.lock().expect("no panic");
        inside.0 += 1;
        self.changed.notify_all();
        while !inside.1 {
            inside = self.changed.wait(inside).expect("no panic");
        }
    }

    fn wait_for(&self, count: usize) {
        assert!(self.wait_within(count, PATIENCE), "not as many requests have begun");
    }

    /// The next one may have gone to a worker that is busy with another one.
    fn wait_shortly_for(&self, count: usize) {
        self.wait_within(count, PITY);
    }

    fn has(&self, count: usize) -> bool {
        self.inside.lock().expect("no panic").0 >= count
    }

    fn wait_within(&self, count: usize, limit: Duration) -> bool {
        let inside = self.inside.lock().expect("no panic");
        let (_inside, timeout) =
            self.changed.wait_timeout_while(inside, limit, |inside| inside.0 < count).expect("no panic");
        !timeout.timed_out()
    }

    fn open(&self) {
        self.inside.lock().expect("no panic").1 = true;
        self.changed.notify_all();
    }
}

/// A language that runs one thread at a time, as far as its server believes.
struct Exclusive;

impl ThreadHost for Exclusive {
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

fn listeners() -> Vec<ListenerSettings> {
    vec!["127.0.0.1:0".parse().expect("an address")]
}

fn copies<'a>(sockets: impl IntoIterator<Item = BorrowedFd<'a>>) -> Vec<OwnedFd> {
    sockets.into_iter().map(|socket| socket.try_clone_to_owned().expect("a descriptor")).collect()
}

/// A worker with one thread, which answers with its name.
fn worker(name: &'static str, sockets: Vec<OwnedFd>, accept: Accept, gate: &Arc<Gate>) -> Running {
    let gate = Arc::clone(gate);
    let handler = move |exchange: Exchange| {
        if exchange.request().head.path_and_query() == b"/wait" {
            gate.pass();
        }
        text(exchange, name);
    };
    let routes = Routes::new().with_application(Arc::new(handler));
    let own = BoundListeners::adopt(sockets, &listeners()).expect("adopted");
    let limits = PoolLimits { min_threads: 1, max_threads: 1, ..PoolLimits::default() };
    start(Settings {
        listeners: listeners(),
        bound: Some(own),
        accept,
        health_path: Some("/alive".to_owned()),
        pool: PoolSettings { limits, ..PoolSettings::default() },
        ..settings(routes)
    })
}

fn address_of(address: Option<&Address>) -> SocketAddr {
    address.and_then(Address::tcp).expect("TCP")
}

/// By whom a connection was served.
fn served(stream: &mut Client) -> String {
    let (head, body) = read_response(stream);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    String::from_utf8(body).expect("a name")
}

fn counts(names: impl IntoIterator<Item = String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

/// Two workers that share a socket, and who is asked for it.
struct Pair {
    address: SocketAddr,
    gate: Arc<Gate>,
    one: Running,
    other: Running,
    bound: BoundListeners,
    bell: Bell,
}

impl Pair {
    fn start() -> Self {
        let bound = BoundListeners::bind(&listeners()).expect("bound");
        let address = address_of(bound.addresses().next());
        let (bell, gate) = (Bell::new().expect("a descriptor"), Arc::default());
        let one = worker("one", copies(bound.descriptors()), Accept::Shared(bell.clone()), &gate);
        let other = worker("other", copies(bound.descriptors()), Accept::Shared(bell.clone()), &gate);
        Self { address, gate, one, other, bound, bell }
    }

    /// The thread of each is in the application.
    fn occupy(&self) -> Vec<Client> {
        let mut held = Vec::new();
        while !self.gate.has(2) {
            held.push(ask(self.address, "/wait"));
            self.gate.wait_shortly_for(2.min(held.len()));
        }
        held
    }
}

#[test]
fn connections_in_turn_go_to_all_workers() {
    let pair = Pair::start();
    let asked = |_| read_all(&mut ask_last(pair.address));
    let counts =
        counts((0..100).map(asked).map(|answer| answer.rsplit("\r\n").next().unwrap_or("").to_owned()));
    assert_eq!(counts.len(), 2, "{counts:?}");
}

fn ask_last(address: SocketAddr) -> Client {
    let mut stream = connect(address);
    stream.write_all(&get_last("/")).expect("the server takes the request");
    stream
}

#[test]
fn a_worker_without_a_free_thread_leaves_connections_to_one_that_has_one() {
    for round in 0..4 {
        let pair = Pair::start();
        // One of the two processes is busy.
        let mut held = ask(pair.address, "/wait");
        pair.gate.wait_for(1);
        let mut waiting: Vec<_> = (0..20)
            .map(|_| {
                let stream = ask(pair.address, "/");
                // The other one has answered; or it had no processor for so long that the busy one took pity on the connection.
                stream.set_read_timeout(Some(PITY)).expect("a timeout can be set");
                let _ = stream.peek(&mut [0]);
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
                stream
            })
            .collect();
        pair.gate.open();
        let busy = served(&mut held);
        let names = counts(waiting.iter_mut().map(served));
        assert!(names.get(&busy).is_none_or(|count| *count < 5), "round {round}: {busy} was busy: {names:?}");
    }
}

#[test]
fn where_all_are_busy_the_engine_still_takes_connections() {
    let pair = Pair::start();
    let mut held = pair.occupy();
    // It needs no thread of the application.
    let mut alive = ask(pair.address, "/alive");
    assert_eq!(read_response(&mut alive).1, b"ok\n");
    // This one does.
    let mut waits = ask(pair.address, "/");
    pair.gate.open();
    assert_eq!(counts(held.iter_mut().map(served)).len(), 2);
    served(&mut waits);
}

#[test]
fn a_worker_that_drains_loses_no_connection() {
    let pair = Pair::start();
    let mut held = pair.occupy();
    let Pair { address, gate, one, other, bound, bell } = pair;
    // They wait in the queue of the socket, or in one of the two.
    let mut waiting: Vec<_> = (0..30).map(|_| ask(address, "/")).collect();
    one.server.drain();
    waiting.extend((0..30).map(|_| ask(address, "/")));
    gate.open();
    for stream in held.iter_mut().chain(&mut waiting) {
        served(stream);
    }
    assert!(one.server.wait_drained(PATIENCE));
    drop(one);
    // Another one comes in its place, and the last one ends.
    let third = worker("third", copies(bound.descriptors()), Accept::Shared(bell), &gate);
    other.server.drain();
    assert_eq!(counts((0..10).map(|_| served(&mut ask(address, "/"))))["third"], 10);
    let mut waiting: Vec<_> = (0..30).map(|_| ask(address, "/")).collect();
    third.server.drain_last();
    drop(bound);
    waiting.iter_mut().for_each(|stream| assert_eq!(served(stream), "third"));
    assert!(third.server.wait_drained(PATIENCE));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_connection_that_a_dead_worker_was_woken_for_is_taken_when_the_bell_rings() {
    let bound = BoundListeners::bind(&listeners()).expect("bound");
    let address = address_of(bound.addresses().next());
    let (bell, gate) = (Bell::new().expect("a descriptor"), Arc::default());
    let own = worker("own", copies(bound.descriptors()), Accept::Shared(bell.clone()), &gate);
    own.wait_for_figure("default", "threads", 1);
    bell.ring();
    assert_eq!(served(&mut ask(address, "/")), "own");
    // Also for one that has just become busy: it hears of it when it is free.
    let mut held = ask(address, "/wait");
    gate.wait_for(1);
    let mut waits = ask(address, "/");
    bell.ring();
    gate.open();
    assert_eq!((served(&mut held), served(&mut waits)), ("own".to_owned(), "own".to_owned()));
}

#[test]
fn a_language_that_runs_one_thread_at_a_time_takes_turns_too() {
    let bound = BoundListeners::bind(&listeners()).expect("bound");
    let address = address_of(bound.addresses().next());
    let bell = Bell::new().expect("a descriptor");
    let workers: Vec<_> = ["one", "other"]
        .into_iter()
        .map(|name| {
            let handler = move |exchange: Exchange| {
                let head = ResponseHead::new(Status::OK).with("X-Worker", name);
                let _ = exchange.respond(head, name);
            };
            start(Settings {
                listeners: listeners(),
                bound: Some(
                    BoundListeners::adopt(copies(bound.descriptors()), &listeners()).expect("adopted"),
                ),
                accept: Accept::Shared(bell.clone()),
                threads: vec![Arc::new(Exclusive)],
                ..settings(Routes::new().with_application(Arc::new(handler)))
            })
        })
        .collect();
    // Many clients without a pause, each with a connection for each request; every client is served.
    let names: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..200)
                        .map(|_| read_all(&mut ask_last(address)))
                        .map(|answer| answer.rsplit("\r\n").next().unwrap_or("").to_owned())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("no panic")).collect()
    });
    let counts = counts(names);
    assert_eq!(counts.values().sum::<usize>(), 1600);
    assert!(counts["one"] > 0 && counts["other"] > 0, "{counts:?}");
    drop(workers);
}

#[test]
fn a_group_of_sockets_shrinks_and_grows_without_losing_a_connection() {
    let sockets = WorkerListeners::bind(&listeners(), 3).expect("bound");
    let address = address_of(sockets.addresses().next());
    let gate = Arc::default();
    let bell = Bell::new().expect("a descriptor");
    let one = |name, number: usize| {
        let own = copies(sockets.descriptors(number).expect("there are three"));
        worker(name, own, Accept::Own(bell.clone()), &gate)
    };
    assert!(sockets.descriptors(3).is_none());
    let workers = [one("0", 0), one("1", 1), one("2", 2)];
    sockets.steer(&[0, 1, 2]).expect("there are three");
    let names = counts((0..100).map(|_| served(&mut ask(address, "/"))));
    assert_eq!(names.len(), 3, "{names:?}");
    // A worker stops accepting, and its successor has what came meanwhile.
    workers[1].server.drain();
    let mut waiting: Vec<_> = (0..60).map(|_| ask(address, "/")).collect();
    let successor = one("successor", 1);
    let names = counts(waiting.iter_mut().map(served));
    assert!(names["successor"] > 0 && !names.contains_key("1"), "{names:?}");
    // Two are gone for good: their queues are emptied by the third one.
    successor.server.drain();
    workers[2].server.drain();
    let mut waiting: Vec<_> = (0..60).map(|_| ask(address, "/")).collect();
    sockets.steer(&[0]).expect("there is one");
    waiting.extend((0..20).map(|_| ask(address, "/")));
    let surplus = [1, 2].into_iter().flat_map(|number| sockets.own_descriptors(number));
    let emptied: usize = surplus
        .map(|(listener, socket)| {
            let socket = socket.try_clone_to_owned().expect("a descriptor");
            workers[0].server.empty(listener, socket).expect("there is room")
        })
        .sum();
    assert!(emptied > 0);
    assert_eq!(counts(waiting.iter_mut().map(served)), HashMap::from([("0".to_owned(), 80)]));
    // And one comes again.
    let again = one("again", 2);
    sockets.steer(&[2]).expect("there is one");
    assert_eq!(served(&mut ask(address, "/")), "again");
    drop(again);
}

#[test]
fn what_is_no_socket_of_the_listener_is_not_emptied() {
    let gate = Arc::default();
    let sockets = WorkerListeners::bind(&listeners(), 2).expect("bound");
    let own = copies(sockets.descriptors(0).expect("there is one"));
    let running = worker("own", own, Accept::Own(Bell::new().expect("a descriptor")), &gate);
    let other = BoundListeners::bind(&listeners()).expect("bound");
    for (listener, socket) in
        [(0, copies(other.descriptors())), (1, copies(sockets.descriptors(1).expect("two")))]
    {
        let socket = socket.into_iter().next().expect("one");
        let (socket, error) = running.server.empty(listener, socket).expect_err("it is refused");
        assert!(socket.is_none(), "{error}");
    }
}

#[test]
fn sockets_of_workers_are_handed_on_with_their_queues() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let listeners = vec![listeners().remove(0), UnixAddress::path(&path).into()];
    let mut first = WorkerListeners::bind(&listeners, 2).expect("bound");
    let address = address_of(first.addresses().next());
    let mut waiting = connect(address);
    waiting.write_all(&get("/")).expect("the kernel takes it");
    let all: Vec<_> = first.all_descriptors().into_iter().map(copies).collect();
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    let second = WorkerListeners::adopt(all, &listeners).expect("adopted");
    first.disown_files();
    drop(first);
    assert!(path.exists());
    let own = copies(second.descriptors(0).expect("there are two")).into_iter().take(1).collect();
    let gate = Arc::default();
    let running = worker("second", own, Accept::Own(Bell::new().expect("a descriptor")), &gate);
    assert_eq!(served(&mut waiting), "second");
    assert_eq!(second.most(), 2);
    drop(running);
    drop(second);
    assert!(!path.exists());
    wait_until("nobody listens any more", || TcpStream::connect(address).is_err());
}
