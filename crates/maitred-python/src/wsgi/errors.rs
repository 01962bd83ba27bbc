//! `wsgi.errors`: whole lines go to the error log.

use std::cell::RefCell;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::logging::is_handling;
use crate::report::{self, ErrorSink, say_last};

/// The longest part of a line that is kept back: an application that never ends its line must not
/// grow the process. As long as the longest line that common log collectors take in one piece.
const MAX_PARTIAL_LINE: usize = 16 * 1024;

thread_local! {
    // One stream serves all threads; their unfinished lines must not mix.
    static PARTIAL: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The text stream behind `wsgi.errors`. One object serves all requests.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct ErrorStream {
    log: ErrorSink,
}

impl ErrorStream {
    pub(super) fn new(log: ErrorSink) -> Self {
        Self { log }
    }

    /// Writes the unfinished line of this thread, if there is one.
    pub(super) fn end_line(&self, py: Python<'_>) {
        let rest = PARTIAL.with_borrow_mut(std::mem::take);
        if !rest.is_empty() {
            self.say(py, &rest);
        }
    }

    fn append(&self, py: Python<'_>, text: &str) {
        let whole = PARTIAL.with_borrow_mut(|partial| {
            partial.push_str(text);
            let end = match partial.rfind('\n') {
                Some(end) => end,
                None if partial.len() > MAX_PARTIAL_LINE => partial.len(),
                None => return None,
            };
            let rest = partial.get(end + 1..).unwrap_or_default().to_owned();
            let mut whole = std::mem::replace(partial, rest);
            whole.truncate(end);
            Some(whole)
        });
        for line in whole.iter().flat_map(|whole| whole.split('\n')) {
            self.say(py, line);
        }
    }

    fn say(&self, py: Python<'_>, line: &str) {
        if is_handling() {
            // It comes from a handler that is given the lines of this log: it would be given this one, too, without end.
            return py.detach(|| say_last(line));
        }
        report::write(py, &self.log, line);
    }
}

#[pymethods]
impl ErrorStream {
    fn write(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let Ok(text) = text.cast::<PyString>() else {
            let given = report::type_name(text);
            return Err(PyTypeError::new_err(format!("wsgi.errors takes str, not {given}")));
        };
        self.append(py, &text.to_string_lossy());
        text.len()
    }

    fn writelines(&self, py: Python<'_>, lines: &Bound<'_, PyAny>) -> PyResult<()> {
        for line in lines.try_iter()? {
            self.write(py, &line?)?;
        }
        Ok(())
    }

    fn flush(&self, py: Python<'_>) {
        self.end_line(py);
    }
}
