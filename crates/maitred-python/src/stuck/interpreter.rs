//! Stacks of threads, asked of the interpreter by a thread that may have to wait for it.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A thread that waits for the interpreter has it after one switch interval (5 ms), unless it is kept.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How long a question looks that follows one which waits still.
const FEW_LOOKS: Duration = Duration::from_millis(100);

/// The frames of one thread, the innermost last; `None` if it runs no Python code.
pub(crate) type Frames = Option<Vec<String>>;

/// Asks the interpreter, one question at a time.
pub(crate) struct Interpreter {
    /// Took too long, and may be waiting still.
    late: Option<Asking>,
}

struct Asking {
    thread: JoinHandle<()>,
    since: Instant,
    /// Nothing is sent: the other end is dropped when the thread has given the interpreter up.
    ended: Receiver<Infallible>,
}

impl Interpreter {
    /// Imports the needed modules now: later the interpreter may be short of descriptors.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        py.import("traceback")?;
        Ok(Self { late: None })
    }

    /// Has `question` answered by a thread that waits for the interpreter. `None` if it cannot be had within `limit`,
    /// or if there is no thread to be had. Returns soon while an earlier question has waited for `limit`: the
    /// interpreter cannot be had then.
    pub(crate) fn ask<T: Send + 'static>(
        &mut self,
        limit: Duration,
        question: impl FnOnce(Python<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        self.ask_looking(limit, question, || ())
    }

    /// The same; meanwhile `look` is called again and again.
    pub(super) fn ask_looking<T: Send + 'static>(
        &mut self,
        limit: Duration,
        question: impl FnOnce(Python<'_>) -> T + Send + 'static,
        mut look: impl FnMut(),
    ) -> Option<T> {
        if let Some(late) = self.late.take() {
            // This question has a few looks at least.
            let begun = Instant::now();
            let ended = loop {
                look();
                let left = left(late.since, limit).max(left(begun, FEW_LOOKS));
                match late.ended.recv_timeout(left.min(BETWEEN_LOOKS)) {
                    Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                    ended => break ended,
                }
            };
            if let Err(RecvTimeoutError::Timeout) = ended {
                self.late = Some(late);
                return None;
            }
            late.join();
        }
        let since = Instant::now();
        let (sender, answer) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let ask = move || {
            let _end: Sender<Infallible> = end;
            // A caller that has given up receives nothing any more.
            let _ = sender.send(Python::attach(question));
        };
        let thread = thread::Builder::new().name("maitred-stacks".to_owned()).spawn(ask).ok()?;
        let asking = Asking { thread, since, ended };
        let answered = loop {
            look();
            let left = left(since, limit);
            match answer.recv_timeout(left.min(BETWEEN_LOOKS)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                answered => break answered,
            }
        };
        if let Err(RecvTimeoutError::Timeout) = answered {
            self.late = Some(asking);
        } else {
            // It has nothing left to do; the next question is not to meet it.
            asking.join();
        }
        answered.ok()
    }

    /// The stacks of the threads with these numbers, in their order. `None` if the interpreter cannot be
    /// had within `limit`.
    pub(super) fn stacks(&mut self, threads: &[u64], limit: Duration) -> Option<Vec<Frames>> {
        let threads = threads.to_vec();
        self.ask(limit, move |py| stacks_of(py, &threads))
    }

    /// Waits for a question that is still open: no thread may be waiting for an interpreter that ends.
    pub(crate) fn finish(&mut self) {
        if let Some(late) = self.late.take() {
            late.join();
        }
    }
}

fn left(since: Instant, limit: Duration) -> Duration {
    limit.saturating_sub(since.elapsed())
}

impl Asking {
    fn join(self) {
        // A panic has been reported by the panic hook.
        let _ = self.thread.join();
    }
}

pub(crate) fn stacks_of(py: Python<'_>, threads: &[u64]) -> Vec<Frames> {
    find_stacks(py, threads).unwrap_or_else(|_| vec![None; threads.len()])
}

fn find_stacks(py: Python<'_>, threads: &[u64]) -> PyResult<Vec<Frames>> {
    let frames = current_frames(py)?;
    let format = py.import("traceback")?.getattr("format_stack")?;
    let stack = |thread: &u64| match frames.get_item(thread)? {
        Some(frame) => {
            let entries: Vec<String> = format.call1((frame,))?.extract()?;
            Ok(Some(entries.iter().map(|entry| entry.trim_end().to_owned()).collect()))
        }
        None => Ok(None),
    };
    threads.iter().map(stack).collect()
}

/// The innermost frame of each thread, by Python's number of it.
pub(super) fn current_frames(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // Without the collector: before Python 3.11.9 it can run in the call, which holds a lock that each new thread needs. The end of
    // an object can give the interpreter to one that waits for that lock, for ever (gh-106883).
    // SAFETY: attached; both set and return a number.
    let collected = unsafe { ffi::PyGC_Disable() } == 1;
    let frames = py.import("sys").and_then(|sys| sys.call_method0("_current_frames"));
    if collected {
        // SAFETY: as above.
        unsafe { ffi::PyGC_Enable() };
    }
    Ok(frames?.cast_into::<PyDict>()?)
}
