//! Stacks of threads, asked of the interpreter by a thread that may have to wait for it.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The frames of one thread, the innermost last; `None` if it runs no Python code.
pub(crate) type Frames = Option<Vec<String>>;

/// Asks the interpreter, one question at a time.
pub(crate) struct Interpreter {
    asking: Option<JoinHandle<()>>,
}

impl Interpreter {
    /// Imports what will be needed: later the interpreter may be short of descriptors.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        py.import("traceback")?;
        Ok(Self { asking: None })
    }

    /// Has `question` answered by a thread that waits for the interpreter. `None` if it cannot be had within
    /// `limit`.
    pub(crate) fn ask<T: Send + 'static>(
        &mut self,
        limit: Duration,
        question: impl FnOnce(Python<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        if self.asking.as_ref().is_some_and(|asking| !asking.is_finished()) {
            return None; // Still the same one who keeps the interpreter.
        }
        let (sender, answer) = mpsc::channel();
        let ask = move || {
            let answer = Python::attach(question);
            // Nobody listens any more when it took too long.
            let _ = sender.send(answer);
        };
        self.asking = thread::Builder::new().name("maitred-stacks".to_owned()).spawn(ask).ok();
        answer.recv_timeout(limit).ok()
    }

    /// The stacks of the threads with these numbers, in their order. `None` if the interpreter cannot be
    /// had within `limit`.
    pub(super) fn stacks(&mut self, threads: &[u64], limit: Duration) -> Option<Vec<Frames>> {
        let threads = threads.to_vec();
        self.ask(limit, move |py| stacks_of(py, &threads))
    }

    /// Waits for a question that is still open: nobody may be waiting for an interpreter that ends.
    pub(crate) fn finish(&mut self) {
        if let Some(asking) = self.asking.take() {
            // A panic has been reported by the panic hook.
            let _ = asking.join();
        }
    }
}

/// The stacks of the threads with these numbers, in their order.
pub(crate) fn stacks_of(py: Python<'_>, threads: &[u64]) -> Vec<Frames> {
    find_stacks(py, threads).unwrap_or_else(|_| vec![None; threads.len()])
}

fn find_stacks(py: Python<'_>, threads: &[u64]) -> PyResult<Vec<Frames>> {
    let frames = py.import("sys")?.call_method0("_current_frames")?.cast_into::<PyDict>()?;
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
