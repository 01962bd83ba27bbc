//! Requests that stay in the application: found, and logged once, with the Python stack of their thread.
//!
//! ```text
//! ../threads.rs   thread → request and since when, written by the threads themselves
//! interpreter.rs  stacks, asked of the interpreter
//! signal.rs       stacks, when no thread gets the interpreter
//! frames.rs       the reader of frames for that; ../own_memory.rs, its copies of memory
//! asked.rs        stacks on request (`maitred ctl stacks`)
//! kept.rs         which thread keeps the interpreter meanwhile
//! ```
//! A thread without interpreter looks at them when the oldest request can be due. The stacks come from the interpreter:
//! it stands still meanwhile, so that they are right. If it cannot be had within [`PATIENCE`], a C extension keeps it,
//! or the machine is so slow that it only looks like that. Each thread in question is made to write its own stack by a
//! signal then.
//!
//! The report must not kill the thread at any point of its work. Python's `faulthandler` does where it meets a frame
//! that is being made, on the thread itself as well as from outside, so the frames are read by a reader of our own that
//! cannot fault.

pub(crate) mod asked;
mod frames;
mod interpreter;
mod kept;
mod signal;

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io, thread};

use maitred_runtime::{InterpreterLock, ThreadBody, ThreadHost, ThreadStack};
use pyo3::prelude::*;

use crate::report::ErrorSink;
use crate::threads::{self, PythonThreads, Slot};

pub(crate) use interpreter::{Interpreter, stacks_of};
pub(crate) use signal::name_requests_by;
pub use signal::{Dump, Dumper};

/// How long the interpreter may take. A thread that waits for it gets it after one switch interval (5 ms)
/// for each thread in front of it, so this is a hundred threads that compute, or one that keeps it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// The shortest sleep of the watch: the clock of `threads` steps by up to 4 ms (CLOCK_MONOTONIC_COARSE).
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

/// The most stacks at a time; further requests get their line only. Several that are stuck at once are stuck in the
/// same place.
const MAX_STACKS: usize = 20;

pub(crate) struct Watch {
    thread: JoinHandle<()>,
    stop: Sender<Infallible>,
}

impl Watch {
    /// Reports requests that have been in the application for `limit` to `log`.
    /// Errors: the process has no descriptor or no thread left, or another program's handlers took all signals.
    pub(crate) fn start(py: Python<'_>, limit: Duration, log: ErrorSink) -> PyResult<Self> {
        let dumper = Dumper::install(py)?;
        let interpreter = Interpreter::new(py)?;
        let (stop, stopped) = mpsc::channel();
        let mut watcher = Watcher { limit, log, dumper, interpreter };
        let thread =
            thread::Builder::new().name("maitred-stuck".to_owned()).spawn(move || watcher.run(&stopped))?;
        threads::watch_requests(true);
        Ok(Self { thread, stop })
    }

    /// Ends the thread. Called before the interpreter ends: it may be using it.
    pub(crate) fn stop(self, py: Python<'_>) {
        threads::watch_requests(false);
        py.detach(|| {
            drop(self.stop);
            // A panic has been reported by the panic hook.
            let _ = self.thread.join();
        });
    }
}

/// Makes threads that are known by their names.
pub(crate) struct NamedThreads(pub(crate) PythonThreads);

impl ThreadHost for NamedThreads {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        let known = name.clone();
        let named = move || {
            threads::name_thread(known);
            body();
        };
        self.0.spawn(name, Box::new(named))
    }

    fn language(&self) -> &'static str {
        self.0.language()
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }

    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        self.0.interpreter_lock()
    }

    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        self.0.with_interpreter(act);
    }

    fn without_interpreter(&self, act: &mut dyn FnMut()) {
        self.0.without_interpreter(act);
    }

    fn stacks(&self, only: Option<i32>, serving: &[i32]) -> Option<Vec<ThreadStack>> {
        asked::stacks(self.0.interpreter_lock().as_deref(), only, serving)
    }
}

struct Watcher {
    limit: Duration,
    log: ErrorSink,
    dumper: &'static Dumper,
    interpreter: Interpreter,
}

struct Stuck {
    slot: Arc<Slot>,
    since: u64,
    request: String,
}

impl Watcher {
    fn run(&mut self, stopped: &Receiver<Infallible>) {
        let mut sleep = self.limit;
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(sleep.max(SHORTEST_SLEEP)) {
            let (due, next) = self.look();
            if !due.is_empty() {
                self.report(&due);
            }
            sleep = next;
        }
        self.interpreter.finish();
    }

    /// The requests that are due and not yet reported, and the time until the next one can be due: a request that
    /// enters from now on is not due before `limit` is over.
    fn look(&self) -> (Vec<Stuck>, Duration) {
        let now = threads::coarse_now();
        let mut due = Vec::new();
        let mut next = self.limit;
        for slot in threads::running_requests() {
            let Some((since, request)) = slot.running() else { continue };
            let left = self.limit.saturating_sub(Duration::from_nanos(now.saturating_sub(since)));
            if !left.is_zero() {
                next = next.min(left);
            } else if slot.report_once(since) {
                due.push(Stuck { slot, since, request });
            }
        }
        (due, next)
    }

    fn report(&mut self, due: &[Stuck]) {
        let shown = &due[..due.len().min(MAX_STACKS)];
        let threads: Vec<u64> = shown.iter().map(|stuck| stuck.slot.ident).collect();
        let mut stacks = self.interpreter.stacks(&threads, PATIENCE);
        for (position, stuck) in due.iter().enumerate() {
            let (state, stack) = match (&mut stacks, position < shown.len()) {
                (_, false) => ("", Stack::Missing("not asked for: too many at once")),
                _ if !stuck.is_running() => ("", Stack::Missing("the request ended meanwhile")),
                (Some(stacks), true) => ("", stacks[position].take().into()),
                (None, true) => match self.dumper.dump(stuck.slot.tid, PATIENCE) {
                    Some(dump) if dump.holds => {
                        (", which keeps the interpreter", Stack::written(dump.frames))
                    }
                    Some(dump) => (", which waits for the interpreter", Stack::written(dump.frames)),
                    None => ("", Stack::Missing("the thread did not answer")),
                },
            };
            (self.log)(&stuck.entry(state, stack));
        }
    }
}

/// Why a thread from which C code keeps the interpreter has no stack.
const UNREADABLE: &str =
    "C code keeps the interpreter, and the frames of this version of Python cannot be read without";

/// The known part of a stack, the innermost call last.
pub(crate) enum Stack {
    Frames(String),
    Missing(&'static str),
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(frames) => write!(f, "Stack (most recent call last):\n{frames}"),
            Self::Missing(why) => write!(f, "No stack: {why}"),
        }
    }
}

impl Stack {
    pub(crate) fn written(frames: Option<Vec<String>>) -> Self {
        frames.map_or(Self::Missing(UNREADABLE), Self::from)
    }
}

/// Leaves out the frames of `threading` in which every application thread begins: they say nothing.
fn own_frames(frames: &[String]) -> &[String] {
    let begins = frames.iter().take_while(|frame| frame.contains("/threading.py\", line ")).count();
    &frames[begins..]
}

impl From<Option<Vec<String>>> for Stack {
    fn from(frames: Option<Vec<String>>) -> Self {
        frames.map_or(Self::Missing("the thread runs no Python code"), Self::from)
    }
}

impl From<Vec<String>> for Stack {
    fn from(frames: Vec<String>) -> Self {
        match own_frames(&frames) {
            [] => Self::Missing("the thread runs no Python code"),
            frames => Self::Frames(frames.join("\n")),
        }
    }
}

impl Stuck {
    fn is_running(&self) -> bool {
        self.slot.running().is_some_and(|(since, _)| since == self.since)
    }

    fn entry(&self, state: &str, stack: Stack) -> String {
        let age = Duration::from_nanos(threads::coarse_now().saturating_sub(self.since)).as_secs_f64();
        let Slot { name, tid, .. } = &*self.slot;
        let mut text = format!(
            "{}: has been in the application for {age:.1} s, on thread {name} (tid {tid}){state}\n",
            self.request
        );
        // Writing to a String does not fail.
        let _ = write!(text, "{stack}");
        text
    }
}
