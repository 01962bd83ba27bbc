//! Stacks of a running server on request: of all threads that run Python code, or of one.
//!
//! The interpreter is asked first; if it cannot be had, a C call keeps it, and the threads in question write their own. So does one that has
//! kept it for a while meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use maitred_runtime::{InterpreterLock, ThreadStack};
use pyo3::prelude::*;

use super::interpreter::current_frames;
use super::kept::Kept;
use super::{Dumper, Interpreter, MAX_STACKS, PATIENCE, UNREADABLE, own_frames};

const KEEPS: &str = "keeps the interpreter";

static ASKED: Mutex<Option<StackAccess>> = Mutex::new(None);

struct StackAccess {
    /// None before it is needed, and where no signal was free.
    dumper: Option<&'static Dumper>,
    interpreter: Interpreter,
}

/// Prepares the stacks. With `prepared` the signal for threads that keep the interpreter is taken now, so that stacks can
/// be had also if a C call keeps the interpreter at the first question. Else it is taken with the first question.
/// Errors: Python's own modules cannot be imported.
pub(crate) fn start(py: Python<'_>, prepared: bool) -> PyResult<()> {
    py.import("threading")?;
    let dumper = if prepared { Dumper::install(py).ok() } else { None };
    let asked = StackAccess { dumper, interpreter: Interpreter::new(py)? };
    py.detach(|| *lock() = Some(asked));
    Ok(())
}

/// Called before the interpreter ends: a question may be using it.
pub(crate) fn stop(py: Python<'_>) {
    py.detach(|| {
        let asked = lock().take();
        if let Some(mut asked) = asked {
            asked.interpreter.finish();
        }
    });
}

/// The stacks, of the thread `only` or of all; `serving` are threads that are in application code. Called without the
/// interpreter. `None` before the start and after the end.
pub(crate) fn stacks(
    gil: Option<&dyn InterpreterLock>,
    only: Option<i32>,
    serving: &[i32],
) -> Option<Vec<ThreadStack>> {
    let mut place = lock();
    let StackAccess { dumper, interpreter } = place.as_mut()?;
    // A fault in the question itself is no reason to disturb the threads.
    let question = move |py: Python<'_>| (Dumper::install(py).ok(), all(py, only).unwrap_or_default());
    let (mut kept, mut keeper, present) = (Kept::by(gil, serving), None, dumper.or_else(Dumper::installed));
    let look = || {
        if let Some(tid) = kept.look().filter(|_| keeper.is_none()) {
            keeper = Some(written(present, tid, KEEPS)).filter(|stack| stack.state.ends_with(KEEPS));
        }
    };
    if let Some((installed, mut found)) = interpreter.ask_looking(PATIENCE, question, look) {
        *dumper = installed;
        // Where it stood then: now it may be elsewhere.
        for stack in &mut found {
            if let Some(keeper) = keeper.take_if(|keeper| keeper.tid == stack.tid) {
                *stack = ThreadStack { name: std::mem::take(&mut stack.name), ..keeper };
            }
        }
        return Some(match only {
            Some(tid) if found.is_empty() => vec![stack(tid, "the thread runs no Python code", Vec::new())],
            _ => found,
        });
    }
    let wanted = match &only {
        Some(tid) => std::slice::from_ref(tid),
        None => &serving[..serving.len().min(MAX_STACKS)],
    };
    // Maybe by a question that was answered too late.
    *dumper = dumper.or_else(Dumper::installed);
    // Where threads have taken turns the machine is so slow that it only looks like that.
    let has = if keeper.is_some() || !kept.changed { KEEPS } else { "has the interpreter" };
    Some(wanted.iter().map(|tid| written(*dumper, *tid, has)).collect())
}

/// The stack of one thread, written by itself; `has` is the note if it has the interpreter.
fn written(dumper: Option<&Dumper>, tid: i32, has: &str) -> ThreadStack {
    match dumper.and_then(|dumper| dumper.dump(tid, PATIENCE)) {
        Some(dump) => {
            let state = if dump.holds { has } else { "waits for the interpreter" };
            let state = match &dump.request {
                Some(request) => format!("runs {request}, {state}"),
                None => state.to_owned(),
            };
            match dump.frames {
                Some(frames) => stack(tid, &state, own_frames(&frames).to_vec()),
                None => stack(tid, &format!("{state}; no stack: {UNREADABLE}"), Vec::new()),
            }
        }
        None => stack(tid, "the thread did not answer, and the interpreter is kept", Vec::new()),
    }
}

fn stack(tid: i32, state: &str, frames: Vec<String>) -> ThreadStack {
    ThreadStack { tid, name: String::new(), state: state.to_owned(), frames }
}

/// The stacks of the threads that Python knows and that run its code.
fn all(py: Python<'_>, only: Option<i32>) -> PyResult<Vec<ThreadStack>> {
    let frames = current_frames(py)?;
    let format = py.import("traceback")?.getattr("format_stack")?;
    let mut stacks = Vec::new();
    for thread in py.import("threading")?.call_method0("enumerate")?.try_iter()? {
        let thread = thread?;
        // A thread that is about to begin has no number.
        let Ok(tid) = thread.getattr("native_id")?.extract::<i32>() else { continue };
        let Some(frame) = frames.get_item(thread.getattr("ident")?)? else { continue };
        if only.is_some_and(|only| only != tid) {
            continue;
        }
        let entries: Vec<String> = format.call1((frame,))?.extract()?;
        let entries: Vec<String> = entries.iter().map(|entry| entry.trim_end().to_owned()).collect();
        let entries = own_frames(&entries);
        if only.is_some() || !entries.is_empty() {
            let name = thread.getattr("name")?.extract().unwrap_or_default();
            stacks.push(ThreadStack { tid, name, state: String::new(), frames: entries.to_vec() });
        }
    }
    Ok(stacks)
}

fn lock() -> MutexGuard<'static, Option<StackAccess>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}
