//! Application threads are threads of Python.
//!
//! Each is a `threading.Thread`, so that the application sees it as one (`threading.local`,
//! debuggers, profilers), and keeps one thread state for its life; while it is in the engine the
//! interpreter is released.
//!
//! A request for a thread may come from a thread without interpreter, which must not wait for one: `spawn` puts the
//! request into a queue and wakes the main thread, which makes the thread between two waits for a signal. A thread that
//! the system refuses stays in the queue, and is tried again.
//!
//! Sections below: which thread runs which request.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use maitred_http::RequestHead;
use maitred_runtime::lock_order::assert_outside;
use maitred_runtime::{InterpreterLock, Shortage, ThreadBody, ThreadHost};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::held::is_attached;
use crate::interpreter_lock::GlobalLock;
use crate::report;
use crate::report::ErrorSink;
use crate::values::lock;

/// Makes application threads through Python's `threading`.
#[derive(Clone)]
pub struct PythonThreads {
    shared: Arc<Shared>,
}

struct Shared {
    wanted: Mutex<VecDeque<(String, ThreadBody)>>,
    refused: Mutex<Refused>,
    /// Python's main thread, which makes all threads.
    main: ThreadId,
    running: Mutex<Vec<Py<PyAny>>>,
    bell: Bell,
    log: ErrorSink,
    exclusive: bool,
    lock: Option<Arc<GlobalLock>>,
}

/// The first requested thread, which cannot be made.
#[derive(Default)]
struct Refused {
    shortage: Shortage,
    /// When it is tried again.
    due: Option<Instant>,
}

impl PythonThreads {
    /// A host without threads, made on Python's main thread. Its failures go to `log`.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new(log: ErrorSink) -> io::Result<Self> {
        let exclusive = has_global_lock();
        let lock = if exclusive { Python::attach(GlobalLock::learn) } else { None };
        let shared = Shared {
            wanted: Mutex::default(),
            refused: Mutex::default(),
            main: std::thread::current().id(),
            running: Mutex::default(),
            bell: Bell::new()?,
            log,
            exclusive,
            lock: lock.map(Arc::new),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes the threads that were asked for since the last call, and one that was refused if it is time. How long it is not.
    pub(crate) fn start_wanted(&self, py: Python<'_>) -> Option<Duration> {
        let due = lock(&self.shared.refused).due;
        let ahead =
            due.map(|due| due.saturating_duration_since(Instant::now())).filter(|ahead| !ahead.is_zero());
        if ahead.is_some() {
            return ahead;
        }
        let made = self.make_wanted(py);
        let now = Instant::now();
        let (pause, line) = {
            let Refused { shortage, due } = &mut *lock(&self.shared.refused);
            let (pause, line) = match made {
                Ok(()) => (None, shortage.ends(now)),
                Err(error) => {
                    let (pause, line) = shortage.fails(now, &error);
                    (Some(pause), line)
                }
            };
            *due = pause.map(|pause| now + pause);
            (pause, line)
        };
        line.iter().for_each(|line| report::write(py, &self.shared.log, line));
        pause
    }

    fn make_wanted(&self, py: Python<'_>) -> Result<(), String> {
        loop {
            let next = lock(&self.shared.wanted).pop_front();
            let Some((name, body)) = next else { return Ok(()) };
            if let Err((error, body)) = start(py, &name, body, |thread| self.remember(py, thread)) {
                lock(&self.shared.wanted).push_front((name, body));
                return Err(report::summary(py, &error));
            }
        }
    }

    /// Keeps the thread for [`join`](Self::join) and forgets those that have ended.
    fn remember(&self, py: Python<'_>, thread: Py<PyAny>) {
        let earlier = std::mem::take(&mut *lock(&self.shared.running));
        let mut alive: Vec<_> = earlier.into_iter().filter(|thread| is_alive(py, thread)).collect();
        alive.push(thread);
        lock(&self.shared.running).append(&mut alive);
    }

    /// Waits at most `limit` for all threads to end and returns the names of those that have not.
    /// Threads that were asked for and not started are forgotten.
    pub fn join(&self, py: Python<'_>, limit: Duration) -> Vec<String> {
        let forgotten = std::mem::take(&mut *lock(&self.shared.wanted));
        py.detach(|| drop(forgotten));
        let deadline = Instant::now() + limit;
        let mut stuck = Vec::new();
        // Not in the head of the loop, which would keep the lock to its end.
        let running = std::mem::take(&mut *lock(&self.shared.running));
        for thread in running {
            let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
            // An exception from join leaves the thread alive; the next line sees it.
            let _ = thread.call_method1(py, "join", (left,));
            if is_alive(py, &thread) {
                stuck.push(
                    thread.getattr(py, "name").map_or_else(|_| "?".to_owned(), |name| name.to_string()),
                );
            }
        }
        stuck
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.shared.bell
    }
}

/// The name of the language for the server.
pub(crate) const LANGUAGE: &str = "Python";

impl ThreadHost for PythonThreads {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        lock(&self.shared.wanted).push_back((name, body));
        if std::thread::current().id() != self.shared.main {
            return self.shared.bell.ring();
        }
        // At the start, or when the configuration is read again.
        assert_outside("the interpreter is taken");
        let made = Python::attach(|py| self.make_wanted(py));
        made.map_err(io::Error::other)
    }

    fn language(&self) -> &'static str {
        LANGUAGE
    }

    fn is_exclusive(&self) -> bool {
        self.shared.exclusive
    }

    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        self.shared.lock.clone().map(|lock| lock as Arc<dyn InterpreterLock>)
    }

    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        assert_outside("the interpreter is taken");
        let _inside = Inside::begin();
        Python::attach(|_| act());
    }

    fn without_interpreter(&self, act: &mut dyn FnMut()) {
        without_interpreter(act);
    }
}

thread_local! {
    /// Set while the thread has the interpreter for more than one request.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread had the interpreter before the present request.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

struct Inside;

impl Inside {
    fn begin() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Calls `act` with the interpreter released if this thread holds it.
pub(crate) fn without_interpreter(act: &mut dyn FnMut()) {
    struct OnThisThread<'a>(&'a mut dyn FnMut());
    // SAFETY: `detach` calls its function on the calling thread, and asks for `Send` to keep references to Python
    // objects out; the engine has none that it uses without attaching.
    unsafe impl Send for OnThisThread<'_> {}
    if !is_attached() {
        return act();
    }
    let act = OnThisThread(act);
    Python::attach(|py| {
        py.detach(move || {
            let OnThisThread(act) = { act };
            act();
        });
    });
}

/// Wakes the main thread; the sending end also serves as Python's signal wake-up descriptor.
pub(crate) struct Bell {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Bell {
    fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.sender.as_raw_fd()
    }

    /// Replaces the bell at the same descriptors: in a forked child the old one would wake the parent.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let other = Self::new()?;
        for (new, old) in [(&other.sender, &self.sender), (&other.receiver, &self.receiver)] {
            // SAFETY: both descriptors are open and owned by these sockets; the old one stands for a copy of the new one from now on, and its
            // owner closes that.
            if unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    fn ring(&self) -> io::Result<()> {
        match (&self.sender).write(&[0]) {
            // Full: the main thread has enough bytes waiting to wake it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop),
        }
    }

    /// Waits until the bell was rung since the last call, at most for `limit`; for ever without one.
    /// May return early. Not called with the interpreter.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> io::Result<()> {
        // Zero would mean "for ever" to the socket.
        let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
        self.receiver.set_read_timeout(limit)?;
        let mut bytes = [0; 256];
        match (&self.receiver).read(&mut bytes) {
            // The bytes only wake; how many there are says nothing.
            Ok(_count) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            },
        }
    }
}

/// The target of a `threading.Thread`.
#[pyclass(frozen, module = "maitred._engine")]
struct ThreadTarget {
    body: Arc<Mutex<Option<ThreadBody>>>,
}

#[pymethods]
impl ThreadTarget {
    fn __call__(&self, py: Python<'_>) {
        let body = lock(&self.body).take();
        if let Some(body) = body {
            // A panic has been reported by the panic hook; it ends this thread and nothing else.
            let _ = py.detach(|| catch_unwind(AssertUnwindSafe(body)));
        }
    }
}

/// Threads are daemons: the interpreter must not wait for one that is stuck in the application. The end of the process
/// waits with [`PythonThreads::join`], which has a limit. Gives the body back if there is no thread.
fn start(
    py: Python<'_>,
    name: &str,
    body: ThreadBody,
    keep: impl FnOnce(Py<PyAny>),
) -> Result<(), (PyErr, ThreadBody)> {
    let body = Arc::new(Mutex::new(Some(body)));
    let begin = || -> PyResult<()> {
        let arguments = PyDict::new(py);
        arguments.set_item("target", Py::new(py, ThreadTarget { body: Arc::clone(&body) })?)?;
        arguments.set_item("name", name)?;
        arguments.set_item("daemon", true)?;
        let thread = py.import("threading")?.getattr("Thread")?.call((), Some(&arguments))?;
        thread.call_method0("start")?;
        keep(thread.unbind());
        Ok(())
    };
    let Err(error) = begin() else { return Ok(()) };
    // A signal handler that raises ends the wait for a thread that runs.
    let left = lock(&body).take();
    left.map_or(Ok(()), |body| Err((error, body)))
}

fn is_alive(py: Python<'_>, thread: &Py<PyAny>) -> bool {
    thread.call_method0(py, "is_alive").and_then(|alive| alive.is_truthy(py)).unwrap_or(false)
}

/// Free-threaded builds can run without it (PEP 703); every other interpreter has it.
fn has_global_lock() -> bool {
    Python::attach(|py| {
        let enabled = py.import("sys").and_then(|sys| sys.getattr("_is_gil_enabled")?.call0()?.is_truthy());
        enabled.unwrap_or(true)
    })
}

// ---- Which thread runs which request ----
//
// And since when.
//
// A thread writes into a slot of its own and never waits: a few stores for each request. A reader copies the slot and
// checks whether it was changed meanwhile (a sequence lock; the sequence is the time of entry, which differs between
// two requests that are both long in the application).

/// Bytes of method and path that are kept, with a zero behind them.
const TEXT: usize = 160;
const WORDS: usize = TEXT / 8;

static WATCHED: AtomicBool = AtomicBool::new(false);
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

pub(super) struct Slot {
    pub(super) name: String,
    /// The system's number of the thread.
    pub(super) tid: i32,
    /// Python's number of the thread (`threading.get_ident()`).
    pub(super) ident: u64,
    /// When the request came, by [`coarse_now`]; zero while there is none.
    since: AtomicU64,
    /// `since` of the request that was reported last.
    reported: AtomicU64,
    text: [AtomicU64; WORDS],
}

/// Whether requests are entered at all.
pub(super) fn watch_requests(on: bool) {
    WATCHED.store(on, Ordering::Relaxed);
}

pub(super) fn running_requests() -> Vec<Arc<Slot>> {
    all().clone()
}

/// Says how the current thread is called in reports. Before its first request.
pub(super) fn name_thread(name: String) {
    NAME.set(name);
}

/// Notes that the current thread runs this request, until the result is dropped.
pub(crate) fn enter_request(head: &RequestHead) -> Entered {
    let watched = WATCHED.load(Ordering::Relaxed);
    if watched {
        OWN.with(|own| own.get_or_init(Own::new).0.begin(head.method.as_str(), head.path()));
    }
    Entered { watched, not_send: PhantomData }
}

pub(crate) struct Entered {
    watched: bool,
    // It must end on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.watched {
            OWN.with(|own| {
                if let Some(own) = own.get() {
                    own.0.since.store(0, Ordering::Relaxed);
                }
            });
        }
    }
}

/// Nanoseconds of a clock that never goes back and steps every few milliseconds: reading it costs a
/// fifth of reading an exact one.
pub(super) fn coarse_now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Slot {
    fn begin(&self, method: &str, path: &[u8]) {
        let mut text = [0; TEXT];
        let mut length = 0;
        for part in [method.as_bytes(), b" ", path] {
            let part = &part[..part.len().min(TEXT - 1 - length)];
            text[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        // A reader that sees any of the words also sees that the earlier request has ended.
        fence(Ordering::Release);
        let (words, _) = text.as_chunks::<8>();
        for (word, bytes) in self.text.iter().zip(&words[..=length / 8]) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.since.store(coarse_now(), Ordering::Release);
    }

    /// The request that the thread runs, if it runs one, and its start: `GET /path`, as printable ASCII.
    pub(super) fn running(&self) -> Option<(u64, String)> {
        let since = self.since.load(Ordering::Acquire);
        let bytes: Vec<u8> =
            self.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        fence(Ordering::Acquire);
        if since == 0 || self.since.load(Ordering::Relaxed) != since {
            return None;
        }
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let more = if text.len() == TEXT - 1 { "..." } else { "" };
        Some((since, format!("{}{more}", text.escape_ascii())))
    }

    /// Whether the request that came then has not been reported yet; from now on it has.
    pub(super) fn report_once(&self, since: u64) -> bool {
        self.reported.swap(since, Ordering::Relaxed) != since
    }
}

struct Own(Arc<Slot>);

impl Own {
    fn new() -> Self {
        let slot = Arc::new(Slot {
            name: NAME.take(),
            // SAFETY: neither call has an argument or can fail.
            tid: unsafe { libc::syscall(libc::SYS_gettid) } as i32,
            // SAFETY: as above.
            ident: unsafe { libc::pthread_self() } as u64,
            since: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            text: [const { AtomicU64::new(0) }; WORDS],
        });
        all().push(slot.clone());
        Self(slot)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        all().retain(|slot| !Arc::ptr_eq(slot, &self.0));
    }
}

/// A panic elsewhere cannot leave the list half-changed.
fn all() -> MutexGuard<'static, Vec<Arc<Slot>>> {
    lock(&SLOTS)
}
