//! A process that application code has forked, and in which it returns to the engine.
//!
//! The child has one thread, a copy of this memory, and our sockets. Its answers would go into connections that its
//! parent answers, too, and the port stays taken as long as it lives. So it ends here, as the interpreter would end it,
//! but without the functions that are registered for the end of the process: they are the parent's (fork(2),
//! `os._exit`).
//!
//! A child that does not come back, such as those of `multiprocessing`, keeps no listening socket of ours, has the
//! signals that the application would have without us (`signals.rs`), and writes its log lines itself (`host.rs`).

use std::ffi::c_int;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;

use crate::standard_streams::flush_streams;

static FORKED: AtomicBool = AtomicBool::new(false);

/// The message of the exception that a call of the engine raises in a child.
pub(crate) const REFUSED: &str = "this is a child process of the server, which only its parent answers for";

/// Marks this process as the one that serves; its children do not.
/// Errors: there is no memory.
pub(crate) fn this_is_the_server() -> io::Result<()> {
    static REGISTERED: Once = Once::new();
    let mut failed = 0;
    // SAFETY: a function without arguments that may be called in a child at any time: it makes system calls and stores values.
    REGISTERED.call_once(|| failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    // The application may have forked while it was imported, to go on in the background.
    FORKED.store(false, Ordering::Relaxed);
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

unsafe extern "C" fn in_child() {
    maitred_io::forked::close_in_child();
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process is a child of the server. One load.
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The exception of a call that a child has no use for.
pub(crate) fn refuse_in_child() -> PyResult<()> {
    if is_child() { Err(PyRuntimeError::new_err(REFUSED)) } else { Ok(()) }
}

/// Ends this process if it is a child: application code has come back, with this error if with one. Called before
/// anything of the engine is: its threads are the parent's, and so are its locks.
pub(crate) fn end_if_child(py: Python<'_>, error: Option<&PyErr>) {
    if is_child() {
        end(py, error);
    }
}

fn end(py: Python<'_>, error: Option<&PyErr>) -> ! {
    let code = error.map_or(0, |error| exit_code(py, error));
    flush_streams(py);
    // SAFETY: ends the process, without anything that was registered for its end.
    unsafe { libc::_exit(code) }
}

/// The exit code as the interpreter has it: the one of `sys.exit()`, or 1 after a traceback.
fn exit_code(py: Python<'_>, error: &PyErr) -> c_int {
    if !error.is_instance_of::<PySystemExit>(py) {
        error.display(py);
        return 1;
    }
    let code = error.value(py).getattr("code");
    match code {
        Ok(code) if code.is_none() => 0,
        Ok(code) => code.extract().unwrap_or_else(|_| {
            // Printed by the interpreter, as any other object; a closed stream loses the text.
            let _ = py.import("builtins").and_then(|module| {
                let options = pyo3::types::PyDict::new(py);
                options.set_item("file", py.import("sys")?.getattr("stderr")?)?;
                module.call_method("print", (&code,), Some(&options))
            });
            1
        }),
        Err(_) => 1,
    }
}
