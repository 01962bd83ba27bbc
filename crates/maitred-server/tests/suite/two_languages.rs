//! Two languages in one process: each has a host that makes its threads, pools, and perhaps an interpreter that is one lock.
//!
//! The languages are toys. Each notes a thread of the other one that comes to its code or to its gate.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{
    EventLoop, Exchange, Handler, InterpreterLock, NativeThreads, ThreadBody, ThreadHost, Turns,
};
use maitred_server::{
    CompressionSettings, HostMismatch, Level, Log, LogTarget, PoolLimits, PoolSettings, Routes, Settings,
    StartError,
};

use crate::harness::door::{Door, Opened};
use crate::harness::pools::{body, rule};
use crate::harness::{
    PATIENCE, Running, ask, connect, get_last, read_all, read_response, settings, start, start_server,
};

thread_local! {
    /// The language that has made this thread; empty for threads of the engine and of the test.
    static LANGUAGE: Cell<&'static str> = const { Cell::new("") };
    /// The number of this thread.
    static OWN: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// The lock of an interpreter. A thread that has it may leave it for a while.
struct Gate {
    language: &'static str,
    /// The thread that holds it; 0 while none does.
    holder: AtomicU64,
    taken: Mutex<bool>,
    given: Condvar,
    /// Threads of another language that have come here.
    strangers: Mutex<Vec<String>>,
}

impl Gate {
    fn new(language: &'static str) -> Arc<Self> {
        Arc::new(Self {
            language,
            holder: AtomicU64::new(0),
            taken: Mutex::default(),
            given: Condvar::new(),
            strangers: Mutex::default(),
        })
    }

    /// Notes the calling thread if another language has made it.
    fn check(&self, what: &str) {
        let language = LANGUAGE.get();
        if !language.is_empty() && language != self.language {
            let text = format!("{what} of {} by a thread of {language}", self.language);
            self.strangers.lock().unwrap().push(text);
        }
    }

    fn is_held_here(&self) -> bool {
        self.holder.load(Ordering::SeqCst) == OWN.with(|own| *own)
    }

    fn enter(&self) {
        let taken = self.taken.lock().unwrap();
        *self.given.wait_while(taken, |taken| *taken).unwrap() = true;
        self.holder.store(OWN.with(|own| *own), Ordering::SeqCst);
    }

    fn leave(&self) {
        self.holder.store(0, Ordering::SeqCst);
        *self.taken.lock().unwrap() = false;
        self.given.notify_one();
    }
}

impl InterpreterLock for Gate {
    fn holder(&self) -> u64 {
        self.holder.load(Ordering::SeqCst)
    }

    fn own(&self) -> u64 {
        self.check("key");
        OWN.with(|own| *own)
    }

    fn is_waited_for(&self, _: i64, _: u64) -> bool {
        false
    }
}

/// The host of a language, and its handler.
struct Toy {
    gate: Arc<Gate>,
    /// One thread at a time runs its code; otherwise each thread has an interpreter of its own.
    is_exclusive: bool,
    door: Arc<Door>,
    threads: AtomicUsize,
    /// How often a thread has left the gate for something else.
    releases: AtomicUsize,
    /// How many threads may be made; further ones are refused.
    most: AtomicUsize,
}

impl Toy {
    fn new(language: &'static str, is_exclusive: bool) -> (Arc<Self>, Opened) {
        let door = Arc::new(Door::default());
        let toy = Self {
            gate: Gate::new(language),
            is_exclusive,
            door: Arc::clone(&door),
            threads: AtomicUsize::new(0),
            releases: AtomicUsize::new(0),
            most: AtomicUsize::new(usize::MAX),
        };
        (Arc::new(toy), Opened(door))
    }

    fn threads(&self) -> usize {
        self.threads.load(Ordering::SeqCst)
    }

    fn strangers(&self) -> Vec<String> {
        self.gate.strangers.lock().unwrap().clone()
    }
}

impl ThreadHost for Toy {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.most
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |most| most.checked_sub(1))
            .map_err(|_| io::Error::other("the toy has broken"))?;
        self.threads.fetch_add(1, Ordering::SeqCst);
        let language = self.gate.language;
        let body = Box::new(move || {
            LANGUAGE.set(language);
            body();
        });
        NativeThreads::new(|_| {}).spawn(name, body)
    }

    fn language(&self) -> &'static str {
        self.gate.language
    }

    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        self.is_exclusive.then(|| Arc::clone(&self.gate) as Arc<dyn InterpreterLock>)
    }

    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        self.gate.check("interpreter");
        if !self.is_exclusive {
            return act();
        }
        self.gate.enter();
        act();
        self.gate.leave();
    }

    fn without_interpreter(&self, act: &mut dyn FnMut()) {
        self.gate.check("release");
        self.releases.fetch_add(1, Ordering::SeqCst);
        if !self.gate.is_held_here() {
            return act();
        }
        self.gate.leave();
        act();
        self.gate.enter();
    }
}

/// The code of a language: it keeps its gate while it waits at the door.
struct Code(Arc<Toy>);

impl Handler for Code {
    fn language(&self) -> &'static str {
        self.0.gate.language
    }

    fn handle(&self, exchange: Exchange) {
        let Toy { gate, door, is_exclusive, .. } = &*self.0;
        gate.check("code");
        let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        let enters = *is_exclusive && !gate.is_held_here();
        if enters {
            gate.enter();
        }
        door.pass(&path);
        let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
        let long = if path.ends_with("/long") { "long ".repeat(20_000) } else { String::new() };
        let _ = exchange.respond(head, format!("{path} {}{long}", gate.language));
        if enters {
            gate.leave();
        }
    }
}

/// The first language runs in the default pool, the second one in the pool `second` and at `/b`.
struct Two {
    running: Running,
    first: (Arc<Toy>, Opened),
    second: (Arc<Toy>, Opened),
}

impl Two {
    fn start(second_is_exclusive: bool, change: impl FnOnce(&mut Settings)) -> Self {
        let (first, second) = (Toy::new("First", true), Toy::new("Second", second_is_exclusive));
        let mut settings = settings_of(&first.0, &second.0);
        change(&mut settings);
        Self { running: start(settings), first, second }
    }

    fn open(&self) {
        self.first.1.0.open();
        self.second.1.0.open();
    }

    /// Ends the server: no thread looks at a gate any more.
    fn assert_no_strangers(self) {
        self.open();
        drop(self.running);
        assert_eq!((self.first.0.strangers(), self.second.0.strangers()), (Vec::new(), Vec::new()));
    }
}

fn settings_of(first: &Arc<Toy>, second: &Arc<Toy>) -> Settings {
    let code = |toy: &Arc<Toy>| Arc::new(Code(Arc::clone(toy)));
    let routes = Routes::new().with_root("first", code(first)).with_mounted("/b", "second", code(second));
    let mut settings = settings(routes);
    settings.threads = vec![Arc::clone(first) as Arc<dyn ThreadHost>, Arc::clone(second) as _];
    settings.pools.push(PoolSettings { thread_host: 1, ..PoolSettings::named("second") });
    settings.metrics_path = Some("/metrics".to_owned());
    settings
}

fn answered(clients: Vec<maitred_testkit::client::Client>) -> Vec<String> {
    clients.into_iter().map(|mut client| body(&mut client)).collect()
}

#[test]
fn both_languages_run_while_each_gate_is_held() {
    let two = Two::start(true, |_| ());
    let (first, second) = (&two.first.1.0, &two.second.1.0);
    let address = two.running.address;
    let mut clients = vec![ask(address, "/1")];
    first.wait_for_inside(1);
    clients.push(ask(address, "/b/1"));
    second.wait_for_inside(1);
    // A request of each language holds its gate: those that follow wait at it.
    clients.extend(["/2", "/b/2", "/3", "/b/3"].map(|path| ask(address, path)));
    first.let_one_through();
    first.wait_for(2);
    second.let_one_through();
    second.wait_for(2);
    two.open();
    let mut answers = answered(clients);
    answers.sort();
    assert_eq!(answers, ["/1 First", "/2 First", "/3 First", "/b/1 Second", "/b/2 Second", "/b/3 Second"]);
    assert_eq!((first.most(), second.most()), (1, 1), "each gate admits one at a time");
    assert!(two.first.0.threads() >= 1 && two.second.0.threads() >= 1);
    two.assert_no_strangers();
}

#[test]
fn a_language_without_a_gate_runs_side_by_side_while_that_of_another_one_is_held() {
    let two = Two::start(false, |_| ());
    let address = two.running.address;
    let mut clients = vec![ask(address, "/1")];
    two.first.1.0.wait_for_inside(1);
    clients.extend((0..4).map(|_| ask(address, "/b/")));
    two.second.1.0.wait_for_inside(4);
    assert!(two.second.0.threads() >= 4, "one for each, and perhaps one that was asked for meanwhile");
    two.open();
    answered(clients);
    two.assert_no_strangers();
}

#[test]
fn a_rule_that_leads_to_threads_of_another_language_does_not_hold() {
    let two = Two::start(true, |settings| {
        settings.rules.push(rule("second", "/wrong"));
        settings.rules.push(rule("default", "/b/*"));
        settings.pools.push(PoolSettings { thread_host: 1, ..PoolSettings::named("third") });
        settings.rules.push(rule("third", "/b/third"));
    });
    two.open();
    let address = two.running.address;
    let names = ["/wrong", "/b/wrong", "/b/third"].map(|path| ask(address, path));
    assert_eq!(answered(names.into()), ["/wrong First", "/b/wrong Second", "/b/third Second"]);
    for (pool, made) in [("second", 1), ("third", 1)] {
        assert_eq!(two.running.figure(pool, "threads_made_total"), made, "{pool}");
    }
    two.assert_no_strangers();
}

#[test]
fn the_interpreter_that_is_given_up_is_that_of_the_handler() {
    let two = Two::start(true, |settings| settings.compression = Some(CompressionSettings::default()));
    two.open();
    for (path, releases) in [("/long", (1, 0)), ("/b/long", (1, 1))] {
        let mut stream = connect(two.running.address);
        let fields = "Host: t\r\nAccept-Encoding: gzip\r\n";
        write!(stream, "GET {path} HTTP/1.1\r\n{fields}\r\n").unwrap();
        let (head, _) = read_response(&mut stream);
        assert!(head.contains("Content-Encoding: gzip"), "{head}");
        let released = |toy: &Toy| toy.releases.load(Ordering::SeqCst);
        assert_eq!((released(&two.first.0), released(&two.second.0)), releases, "{path}");
    }
    two.assert_no_strangers();
}

#[test]
fn a_language_that_cannot_start_is_named_by_its_pool() {
    let ((first, _first), (second, _second)) = (Toy::new("First", true), Toy::new("Second", true));
    second.most.store(0, Ordering::SeqCst);
    let mut settings = settings_of(&first, &second);
    settings.pools[0].limits.min_threads = 1;
    let error = start_server(settings).err().expect("it does not start").to_string();
    assert!(error.contains("pool second: the toy has broken"), "{error}");
}

#[test]
fn a_change_that_a_language_refuses_is_reported_with_the_name_of_its_pool() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("errors");
    let log = Arc::new(Log::open(Level::Info, LogTarget::Path(file.clone()), None).unwrap());
    let own = Arc::clone(&log);
    let two = Two::start(true, move |settings| settings.log = own);
    two.open();
    two.second.0.most.store(0, Ordering::SeqCst);
    let limits = PoolLimits { min_threads: 1, ..PoolLimits::default() };
    assert!(two.running.server.pools().set_limits("second", &limits));
    // The other language serves on, and so does the engine.
    let answer = read_all(&mut {
        let mut stream = connect(two.running.address);
        stream.write_all(&get_last("/")).unwrap();
        stream
    });
    assert!(answer.ends_with("/ First"), "{answer}");
    log.flush(PATIENCE);
    let errors = std::fs::read_to_string(file).unwrap();
    let line = "pool second: no thread can be made now: the toy has broken; it is tried again\n";
    assert!(errors.ends_with(line) && errors.lines().count() == 1, "{errors}");
    two.assert_no_strangers();
}

/// A loop that no server asks for anything.
struct Looped(Arc<Toy>);

impl EventLoop for Looped {
    fn attach(&self, _: Box<dyn Turns>) {}

    fn stands_still(&self, _: bool) {}
}

impl ThreadHost for Looped {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        self.0.spawn(name, body)
    }

    fn language(&self) -> &'static str {
        self.0.language()
    }

    fn event_loop(&self) -> Option<Arc<dyn EventLoop>> {
        Some(Arc::new(Looped(Arc::clone(&self.0))))
    }
}

#[test]
fn languages_without_fitting_pools_do_not_start() {
    let ((first, _first), (second, _second)) = (Toy::new("First", true), Toy::new("Second", true));
    let refused = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings_of(&first, &second);
        change(&mut settings);
        match start_server(settings).err() {
            Some(StartError::Threads(mismatch)) => mismatch,
            other => panic!("{other:?}"),
        }
    };
    let without_pool = refused(&|settings| settings.pools.clear());
    assert_eq!(
        without_pool.to_string(),
        "the application at /b/ (second) needs threads of Second, and no pool has such threads"
    );
    let without_host = refused(&|settings| settings.pools[0].thread_host = 2);
    assert_eq!(without_host, HostMismatch::NoHost { pool: "second".to_owned(), number: 2 });
    let looped = refused(&|settings| settings.threads[1] = Arc::new(Looped(Arc::clone(&second))));
    assert_eq!(looped, HostMismatch::LoopBeside { language: "Second" });
    assert_eq!((first.threads(), second.threads()), (0, 0), "nothing has begun");
}
