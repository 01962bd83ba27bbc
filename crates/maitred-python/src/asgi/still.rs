//! A loop that stands still: found by the server's backup poller, logged here, with the Python stack of the loop's
//! thread and the request it is in.
//!
//! The backup poller says when the loop has not come back although something waits, and when it is back. A thread
//! of our own waits for a time that people notice, and asks for the stack as `stuck` does: the interpreter,
//! and by a signal if a C extension keeps that.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use maitred_config::value::LogLevel;
use pyo3::intern;
use pyo3::prelude::*;

use super::adapter::Adapter;
use super::runner::{THREAD, Whereabouts};
use crate::report::LeveledSink;
use crate::stuck::{Dumper, Interpreter, PATIENCE, Stack, stacks_of};

/// From this time on a loop that stands still is reported. The backup poller notices it after a tenth of that.
const TOLD_AFTER: Duration = Duration::from_millis(100);

/// One stack in this time at most: a handler that always blocks would fill the log.
const BETWEEN_STACKS: Duration = Duration::from_secs(10);

pub(super) struct StillWatch {
    tell: Option<Sender<StillEvent>>,
}

pub(crate) struct StillThread {
    thread: JoinHandle<()>,
    tell: Sender<StillEvent>,
}

enum StillEvent {
    Still(Instant),
    Back(Instant),
    End,
}

impl StillWatch {
    /// A watch that reports nothing.
    pub(super) fn off() -> Self {
        Self { tell: None }
    }

    /// Starts the thread that tells.
    /// Errors: the process has no descriptor or no thread left, or another program's handlers took all signals.
    pub(super) fn start(
        py: Python<'_>,
        adapter: &Py<Adapter>,
        thread: Whereabouts,
        log: LeveledSink,
    ) -> PyResult<(Self, StillThread)> {
        let dumper = Dumper::install(py)?;
        let interpreter = Interpreter::new(py)?;
        let (tell, changes) = mpsc::channel();
        let adapter = Arc::new(adapter.clone_ref(py));
        let teller = Teller { adapter, thread, log, dumper, interpreter, last_stack: None, untold: 0 };
        let thread = thread::Builder::new().name("maitred-still".to_owned());
        let thread = thread.spawn(move || teller.run(&changes))?;
        Ok((Self { tell: Some(tell.clone()) }, StillThread { thread, tell }))
    }

    /// The loop stands still, or is back. Never waits.
    pub(super) fn tell(&self, still: bool) {
        if let Some(tell) = &self.tell {
            let now = Instant::now();
            // The thread has ended if it panicked, which was reported, or if everything ends.
            let _ = tell.send(if still { StillEvent::Still(now) } else { StillEvent::Back(now) });
        }
    }
}

impl StillThread {
    /// Ends the thread. Called before the interpreter ends: this thread, or one that asks for a stack, may be using it.
    pub(crate) fn stop(self, py: Python<'_>) {
        py.detach(|| {
            // It has ended if it panicked, which was reported by the panic hook.
            let _ = self.tell.send(StillEvent::End);
            let _ = self.thread.join();
        });
    }
}

struct Teller {
    // Shared without the interpreter.
    adapter: Arc<Py<Adapter>>,
    thread: Whereabouts,
    log: LeveledSink,
    dumper: &'static Dumper,
    interpreter: Interpreter,
    last_stack: Option<Instant>,
    /// Times that were too close to a stack to get one of their own.
    untold: u64,
}

impl Teller {
    fn run(mut self, changes: &Receiver<StillEvent>) {
        loop {
            match changes.recv() {
                Ok(StillEvent::Still(since)) if !self.watch(changes, since) => break,
                Ok(StillEvent::Still(_) | StillEvent::Back(_)) => {}
                Ok(StillEvent::End) | Err(_) => break,
            }
        }
        self.interpreter.finish();
    }

    /// Waits until the loop is back; false if the loop has ended.
    fn watch(&mut self, changes: &Receiver<StillEvent>, since: Instant) -> bool {
        let left = TOLD_AFTER.saturating_sub(since.elapsed());
        match changes.recv_timeout(left) {
            Ok(StillEvent::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(_back) => return true,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let told = self.last_stack.is_none_or(|last| last.elapsed() >= BETWEEN_STACKS);
        if told {
            self.last_stack = Some(Instant::now());
            let entry = self.entry(since);
            (self.log)(LogLevel::Error, &entry);
        } else {
            self.untold += 1;
        }
        loop {
            match changes.recv() {
                Ok(StillEvent::Still(_)) => {}
                Ok(StillEvent::Back(at)) => {
                    if told {
                        let stood = at.duration_since(since).as_secs_f64();
                        let text = format!("the event loop is back after {stood:.2} s");
                        (self.log)(LogLevel::Warn, &text);
                    }
                    return true;
                }
                Ok(StillEvent::End) | Err(_) => return false,
            }
        }
    }

    fn entry(&mut self, since: Instant) -> String {
        let (adapter, ident) = (Arc::clone(&self.adapter), self.thread.ident);
        let asked = self.interpreter.ask(PATIENCE, move |py| {
            // Only a text is missing if the task cannot be asked.
            let request = running_request(py, adapter.get()).ok().flatten();
            (request, stacks_of(py, &[ident]).pop().flatten())
        });
        let (request, state, stack) = match asked {
            Some((request, frames)) => (request, "", frames.into()),
            None => match self.dumper.dump(self.thread.tid, PATIENCE) {
                Some(dump) => {
                    let state = if dump.holds { ", which keeps the interpreter" } else { "" };
                    (dump.request, state, Stack::written(dump.frames))
                }
                None => (None, "", Stack::Missing("the thread did not answer")),
            },
        };
        let who = request.unwrap_or_else(|| "no request".to_owned());
        let stood = since.elapsed().as_secs_f64();
        let untold = match std::mem::take(&mut self.untold) {
            0 => String::new(),
            1 => "; it did so once more since the last entry".to_owned(),
            times => format!("; it did so {times} times more since the last entry"),
        };
        format!(
            "{who}: the event loop has been standing still for {stood:.2} s, on thread {THREAD} (tid {}){state}; \
             all other requests wait{untold}\n{stack}",
            self.thread.tid
        )
    }
}

fn running_request(py: Python<'_>, adapter: &Adapter) -> PyResult<Option<String>> {
    let Some(event_loop) = adapter.polling.event_loop(py) else { return Ok(None) };
    let task = py.import(intern!(py, "asyncio"))?.call_method1(intern!(py, "current_task"), (event_loop,))?;
    if task.is_none() {
        return Ok(None);
    }
    let coroutine = task.call_method0(intern!(py, "get_coro"))?;
    Ok(match adapter.classes.coroutine.cast(&coroutine) {
        Some(request) => Some(request.channel().name(py)),
        None => Some(format!("task {}", task.call_method0(intern!(py, "get_name"))?)),
    })
}
