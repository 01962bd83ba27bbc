//! Calls within an event loop: one epoll, which the loop watches, with one timer and one descriptor for wake-ups.
//!
//! ```text
//! call waits: arm --> epoll, timer, waker --> the loop's reader: Reader() --> ready --> the call steps --> its future is done
//! ```
//! Promises: no thread; each socket is armed for one event at a time, because a connection that lies in the pool may be another
//! call's. When the loop is closed its calls end, and give everything back.
//!
//! Leaves out: loops other than those of asyncio's interface (uvloop has it).

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use maitred_io::clock;
use maitred_io::outgoing::Wanted;
use maitred_io::poller::{self, Alarm, Events, Interest, Poller};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};

use crate::values::lock;

/// Events of one turn; more come with the next.
const EVENTS: usize = 128;

const TIMER: u64 = u64::MAX;
const WOKEN: u64 = u64::MAX - 1;

static FORKS: AtomicU64 = AtomicU64::new(0);

/// The loops that have calls, by the addresses of their objects.
static LOOPS: Mutex<Vec<(usize, Weak<Core>)>> = Mutex::new(Vec::new());

/// Has clients begin anew in child processes, those of other libraries' fork(2), too.
pub(super) fn expect_forks() {
    static REGISTERED: Once = Once::new();
    // SAFETY: the function may be called in a child at any time: it stores numbers and makes system calls.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    maitred_client::after_fork_in_child();
}

/// A call that waits.
pub(super) trait Waits: Send + Sync {
    /// One of its sockets may be ready, it was woken, or its time has come. Futures that are done go to `done`, with their results.
    fn ready(self: Arc<Self>, py: Python<'_>, now: Instant, done: &mut Vec<(Py<PyAny>, bool)>);

    /// The loop is closed.
    fn end(self: Arc<Self>, py: Python<'_>);
}

/// The part of one event loop in calls.
pub(super) struct Core {
    poller: Poller,
    alarm: Alarm,
    wakes: Arc<Wakes>,
    inner: Mutex<Inner>,
    closed: AtomicBool,
    forks: u64,
}

struct Inner {
    waiting: HashMap<u64, Entry>,
    times: BTreeSet<(Instant, u64)>,
    /// The time for which the timer is set. It may ring too early: a time that moves away does not set it.
    armed: Option<Instant>,
    events: Events,
    next: u64,
}

struct Entry {
    call: Arc<dyn Waits>,
    until: Option<Instant>,
}

struct Wakes {
    event: poller::Waker,
    woken: Mutex<Vec<u64>>,
}

struct CallWaker {
    wakes: Arc<Wakes>,
    number: u64,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = lock(&self.wakes.woken);
        woken.push(self.number);
        let is_first = woken.len() == 1;
        drop(woken);
        if is_first {
            self.wakes.event.wake();
        }
    }
}

impl Core {
    /// Of the running loop.
    pub(super) fn of_running(py: Python<'_>) -> PyResult<Arc<Self>> {
        let running = running(py)?;
        let address = running.as_ptr() as usize;
        let is_usable = |core: &Arc<Core>| {
            !core.closed.load(Ordering::Acquire) && core.forks == FORKS.load(Ordering::Relaxed)
        };
        {
            let loops = LOOPS.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            let found =
                loops.iter().find(|(other, _)| *other == address).and_then(|(_, core)| core.upgrade());
            if let Some(core) = found.filter(is_usable) {
                return Ok(core);
            }
        }
        let core = Arc::new(Self::new()?);
        let reader = Py::new(py, Reader(Arc::clone(&core)))?;
        running.call_method1(intern!(py, "add_reader"), (core.poller.as_fd().as_raw_fd(), reader))?;
        let mut loops = LOOPS.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        loops.retain(|(other, core)| *other != address && core.strong_count() > 0);
        loops.push((address, Arc::downgrade(&core)));
        Ok(core)
    }

    fn new() -> io::Result<Self> {
        let core = Self {
            poller: Poller::new()?,
            alarm: Alarm::new()?,
            wakes: Arc::new(Wakes { event: poller::Waker::new()?, woken: Mutex::default() }),
            inner: Mutex::new(Inner {
                waiting: HashMap::new(),
                times: BTreeSet::new(),
                armed: None,
                events: Events::with_capacity(EVENTS),
                next: 0,
            }),
            closed: AtomicBool::new(false),
            forks: FORKS.load(Ordering::Relaxed),
        };
        core.poller.add(&core.alarm, TIMER, Interest::Read)?;
        core.poller.add_waker(&core.wakes.event, WOKEN, Interest::ReadLevel)?;
        Ok(core)
    }

    fn inner(&self, py: Python<'_>) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new call, and the waker with it.
    pub(super) fn register(&self, py: Python<'_>) -> (u64, Waker) {
        let mut inner = self.inner(py);
        inner.next += 1;
        let number = inner.next;
        (number, Waker::from(Arc::new(CallWaker { wakes: Arc::clone(&self.wakes), number })))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// `call` waits for one of `sockets`, for its waker, or for the time.
    ///
    /// # Errors
    /// The system cannot watch a socket.
    pub(super) fn arm<'a>(
        &self,
        py: Python<'_>,
        number: u64,
        call: Arc<dyn Waits>,
        sockets: impl Iterator<Item = (BorrowedFd<'a>, Wanted)>,
        until: Option<Instant>,
    ) -> io::Result<()> {
        for (socket, wanted) in sockets {
            let interest = match wanted {
                Wanted::Read => Interest::ReadOnce,
                Wanted::Write => Interest::WriteOnce,
                Wanted::Both => Interest::ReadWriteOnce,
            };
            match self.poller.modify(socket, number, interest) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.poller.add(socket, number, interest)?;
                }
                changed => changed?,
            }
        }
        let mut inner = self.inner(py);
        let before = inner.waiting.insert(number, Entry { call, until });
        if let Some(at) = before.as_ref().and_then(|entry| entry.until).filter(|at| Some(*at) != until) {
            inner.times.remove(&(at, number));
        }
        if let Some(at) = until {
            inner.times.insert((at, number));
        }
        inner.set_alarm(&self.alarm);
        drop(inner);
        drop(before);
        Ok(())
    }

    /// The call waits no more.
    pub(super) fn disarm(&self, py: Python<'_>, number: u64) {
        let entry = self.inner(py).take(number);
        drop(entry);
    }

    /// The calls that have something to do.
    fn ready(&self, py: Python<'_>, now: Instant) -> io::Result<Vec<Arc<dyn Waits>>> {
        let mut inner = self.inner(py);
        let mut events = std::mem::replace(&mut inner.events, Events::with_capacity(0));
        let waited = self.poller.wait(&mut events, Some(Duration::ZERO));
        let mut found = Vec::new();
        for (token, _) in events.iter() {
            match token {
                TIMER => inner.armed = None,
                WOKEN => {
                    self.wakes.event.clear();
                    let woken = std::mem::take(&mut *lock(&self.wakes.woken));
                    found.extend(woken.into_iter().filter_map(|number| inner.take(number)));
                }
                number => found.extend(inner.take(number)),
            }
        }
        inner.events = events;
        while let Some((_, number)) = inner.times.first().copied().filter(|(at, _)| *at <= now) {
            match inner.take(number) {
                Some(call) => found.push(call),
                None => drop(inner.times.pop_first()),
            }
        }
        inner.set_alarm(&self.alarm);
        waited.map(|()| found)
    }

    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut self.inner(py).waiting);
        for entry in waiting.into_values() {
            entry.call.end(py);
        }
    }
}

impl Inner {
    fn take(&mut self, number: u64) -> Option<Arc<dyn Waits>> {
        let entry = self.waiting.remove(&number)?;
        if let Some(at) = entry.until {
            self.times.remove(&(at, number));
        }
        Some(entry.call)
    }

    fn set_alarm(&mut self, alarm: &Alarm) {
        let Some((first, _)) = self.times.first().copied() else { return };
        if self.armed.is_none_or(|armed| first < armed) {
            self.armed = Some(first);
            let left = first.saturating_duration_since(Instant::now());
            let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX / 2);
            alarm.set(clock::monotonic().saturating_add(left));
        }
    }
}

/// The callback that the loop has for the epoll. The loop alone holds it, so its end is that of the loop.
#[pyclass(frozen, module = "maitred._engine")]
struct Reader(Arc<Core>);

#[pymethods]
impl Reader {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.forks != FORKS.load(Ordering::Relaxed) {
            // A copy of the loop in a child process: the epoll is the parent's, too.
            return Ok(());
        }
        let now = Instant::now();
        let mut done = Vec::new();
        for call in self.0.ready(py, now)? {
            call.ready(py, now, &mut done);
        }
        resolve(py, done);
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        Python::attach(|py| self.0.close(py));
    }
}

/// Sets the results of futures that were not cancelled meanwhile.
pub(super) fn resolve(py: Python<'_>, done: Vec<(Py<PyAny>, bool)>) {
    for (future, result) in done {
        let future = future.bind(py);
        let set = || -> PyResult<()> {
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                future.call_method1(intern!(py, "set_result"), (result,))?;
            }
            Ok(())
        };
        if let Err(error) = set() {
            error.write_unraisable(py, Some(future));
        }
    }
}

/// The running loop of this thread.
pub(super) fn running<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        py.import("asyncio.events")?.getattr("_get_running_loop").map(Bound::unbind)
    })?;
    let running = function.bind(py).call0()?;
    if running.is_none() {
        return Err(PyRuntimeError::new_err(
            "an awaitable call needs a running event loop of asyncio; elsewhere (trio, curio, plain threads) make a blocking \
             call in a thread",
        ));
    }
    Ok(running)
}
