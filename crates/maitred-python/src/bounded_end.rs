//! The end of the command, which Python takes over when the server has ended: Python waits for non-daemon threads of
//! the application, such as those of executors, for children of multiprocessing, and for functions of `atexit`.
//!
//! Promises: that takes as long as the drain might have, and some seconds. Then a line names the threads and children
//! that are still running, and the process ends. Leaves out: programs that call `maitred.run` go on after it, and their
//! end is their own.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::report;

/// How long the end takes at most beyond the application's own time. The supervisor of several workers is a second more
/// patient.
const GRACE: Duration = Duration::from_secs(3);

/// All the time there is after an end at once, by a second signal.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How long the thread that looks for the remaining threads may wait for the interpreter.
const PATIENCE: Duration = Duration::from_secs(1);

/// Set by a signal that asks for the end at once when the server has ended already.
static HURRIES: AtomicBool = AtomicBool::new(false);

/// When the application has had its time.
static APPLICATION_ENDS: Mutex<Option<Instant>> = Mutex::new(None);

/// Ends the wait early.
pub(crate) fn hurry() {
    HURRIES.store(true, Ordering::Relaxed);
}

/// The application ends, and has so much time for it.
pub(crate) fn application_ends_within(limit: Duration) {
    *APPLICATION_ENDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + limit);
}

/// The command has ended with this code, and the process is about to.
#[pyfunction]
pub(crate) fn bound_end(py: Python<'_>, code: u8) -> PyResult<()> {
    bound(code);
    // A further Ctrl-C ends it at once, as SIGTERM does. As an exception it would only end one wait of several.
    let signal = py.import("signal")?;
    let number = signal.getattr("SIGINT")?;
    if signal.call_method1("getsignal", (&number,))?.is(&signal.getattr("default_int_handler")?) {
        signal.call_method1("signal", (number, signal.getattr("SIG_DFL")?))?;
    }
    Ok(())
}

fn bound(code: u8) {
    let ends = *APPLICATION_ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    let time = match ends {
        _ if code >= 128 || HURRIES.load(Ordering::Relaxed) => AT_ONCE,
        Some(ends) => ends.saturating_duration_since(Instant::now()) + GRACE,
        None => GRACE,
    };
    let watch = move || {
        // The process ends meanwhile, as a rule.
        thread::sleep(time);
        let said = format!("maitred: the process does not end by itself: {}", waited_for());
        report::say_last(&said);
        // SAFETY: it ends the process, and nothing of it is used any more. Python's own end would be waited for again.
        unsafe { libc::_exit(code.max(1).into()) }
    };
    // Without it the end is as long as Python makes it.
    let _ = thread::Builder::new().name("maitred-end".to_owned()).spawn(watch);
}

fn waited_for() -> String {
    let (tell, told) = mpsc::channel();
    let ask = move || {
        let known = Python::try_attach(|py| in_python(py).unwrap_or_default());
        let _ = tell.send(known.unwrap_or_default());
    };
    let asked = thread::Builder::new().spawn(ask);
    let known = asked.ok().and_then(|_| told.recv_timeout(PATIENCE).ok());
    let mut parts = known.unwrap_or_else(|| vec!["a thread keeps the interpreter".to_owned()]);
    let children: Vec<String> = children().iter().map(|child| format!("process {child}")).collect();
    if !children.is_empty() {
        parts.push(format!("it may wait for {}", children.join(", ")));
    }
    parts.join("; ")
}

fn in_python(py: Python<'_>) -> PyResult<Vec<String>> {
    let threading = py.import("threading")?;
    let frames = py.import("sys")?.call_method0("_current_frames")?;
    let main = threading.call_method0("main_thread")?;
    let mut waited = Vec::new();
    for thread in threading.call_method0("enumerate")?.try_iter()? {
        let thread = thread?;
        if thread.is(&main) || thread.getattr("daemon")?.is_truthy()? {
            continue;
        }
        let name = thread.getattr("name")?;
        waited.push(format!("{name}{}", place(&frames, &thread).unwrap_or_default()));
    }
    let mut parts = Vec::new();
    if !waited.is_empty() {
        parts.push(format!("it waits for the threads {}", waited.join(", ")));
    }
    if let Ok(place) = place(&frames, &main) {
        parts.push(format!("its main thread is{place}"));
    }
    Ok(parts)
}

/// ` in FUNCTION (FILE:LINE)`, where a thread is.
fn place(frames: &Bound<'_, PyAny>, thread: &Bound<'_, PyAny>) -> PyResult<String> {
    let frame = frames.get_item(thread.getattr("ident")?)?;
    let code = frame.getattr("f_code")?;
    let (name, file) = (code.getattr("co_name")?, code.getattr("co_filename")?);
    Ok(format!(" in {name} ({file}:{})", frame.getattr("f_lineno")?))
}

/// `NUMBER (NAME)` of each child process. Nothing where the kernel does not list children (proc(5)).
fn children() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers: Vec<String> =
        listed.flat_map(|all| all.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let name = |number: &String| fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    numbers.iter().map(|number| format!("{number} ({})", name(number).trim_end())).collect()
}
