//! An exception as Python itself would print it, in bounded time and length.
//!
//! Formatting costs some 10 µs a frame and keeps the interpreter from all other requests. Where the application was a
//! hundred thousand calls deep, or has an exception of ten thousand behind it, only the two ends are useful.

use std::fmt::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTraceback};

use super::type_name;

/// The number of frames that are shown of each end of a longer traceback.
const ENDS: usize = 50;

/// The number of exceptions that are shown of a longer chain of causes and contexts, the last ones.
const MOST_EXCEPTIONS: usize = 8;

/// The number of bytes that are shown of a longer text, half of them of each end: a line of the log has to fit into its
/// buffer.
const MOST_BYTES: usize = 128 * 1024;

pub(crate) fn traceback(py: Python<'_>, error: &PyErr) -> String {
    match formatted(py, error) {
        Ok(text) => shortened(text.trim_end()),
        // An exception whose own text fails must not hide that it happened.
        Err(_) => format!("{} (its traceback cannot be formatted)", type_name(error.value(py))),
    }
}

fn formatted(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    let module = py.import("traceback")?;
    let chain = Chain::of(py, error)?;
    if !chain.is_long() {
        // The limit is for the members of exception groups.
        let options = PyDict::new(py);
        options.set_item("limit", 2 * ENDS)?;
        let last = &chain.links[0];
        // Before Python 3.12 the value does not carry the traceback by itself.
        let parts = (last.value.get_type(), &last.value, &last.traceback);
        let lines = module.call_method("format_exception", parts, Some(&options))?;
        return Ok(lines.extract::<Vec<String>>()?.concat());
    }
    let mut text = String::new();
    if chain.goes_on {
        text.push_str("[earlier exceptions are left out]\n\n");
    }
    for (position, link) in chain.links.iter().enumerate().rev() {
        link.format(&module, &mut text)?;
        if position > 0 {
            text.push_str(if link.is_cause { CAUSE } else { CONTEXT });
        }
    }
    Ok(text)
}

const CAUSE: &str = "\nThe above exception was the direct cause of the following exception:\n\n";
const CONTEXT: &str = "\nDuring handling of the above exception, another exception occurred:\n\n";

/// An exception and those behind it, the last one first.
struct Chain<'py> {
    links: Vec<Link<'py>>,
    /// The chain has more exceptions.
    goes_on: bool,
}

struct Link<'py> {
    value: Bound<'py, PyAny>,
    traceback: Option<Bound<'py, PyAny>>,
    frames: usize,
    /// The exception is the cause of the one before, and not only its context.
    is_cause: bool,
}

impl<'py> Chain<'py> {
    fn of(py: Python<'py>, error: &PyErr) -> PyResult<Self> {
        let traceback = error.traceback(py).map(Bound::into_any);
        let mut links = vec![Link::new(error.value(py).clone().into_any(), traceback, false)?];
        while let Some((value, is_cause)) = behind(&links[links.len() - 1].value)? {
            // Python does not follow a circle either.
            if links.iter().any(|link| link.value.is(&value)) {
                break;
            }
            if links.len() == MOST_EXCEPTIONS {
                return Ok(Self { links, goes_on: true });
            }
            let traceback = value.getattr("__traceback__")?;
            let traceback = (!traceback.is_none()).then_some(traceback);
            links.push(Link::new(value, traceback, is_cause)?);
        }
        Ok(Self { links, goes_on: false })
    }

    fn is_long(&self) -> bool {
        self.goes_on || self.links.iter().any(|link| link.frames > 2 * ENDS)
    }
}

fn behind<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
    let cause = value.getattr("__cause__")?;
    if !cause.is_none() {
        return Ok(Some((cause, true)));
    }
    let context = value.getattr("__context__")?;
    let is_shown = !context.is_none() && !value.getattr("__suppress_context__")?.is_truthy()?;
    Ok(is_shown.then_some((context, false)))
}

impl<'py> Link<'py> {
    fn new(value: Bound<'py, PyAny>, traceback: Option<Bound<'py, PyAny>>, is_cause: bool) -> PyResult<Self> {
        let frames = traceback.as_ref().map_or(Ok(0), count)?;
        Ok(Self { value, traceback, frames, is_cause })
    }

    fn format(&self, module: &Bound<'py, PyModule>, text: &mut String) -> PyResult<()> {
        if let Some(traceback) = &self.traceback {
            text.push_str("Traceback (most recent call last):\n");
            push_frames(module, traceback, self.frames.min(ENDS), text)?;
            let left_out = self.frames.saturating_sub(2 * ENDS);
            if left_out > 0 {
                // Writing to a String does not fail.
                let _ = writeln!(text, "  [{left_out} frames are left out]");
            }
            if let Some(rest) = after(traceback, ENDS + left_out)? {
                push_frames(module, &rest, ENDS, text)?;
            }
        }
        let lines = module.call_method1("format_exception_only", (self.value.get_type(), &self.value))?;
        text.push_str(&lines.extract::<Vec<String>>()?.concat());
        Ok(())
    }
}

fn push_frames(
    module: &Bound<'_, PyModule>,
    traceback: &Bound<'_, PyAny>,
    most: usize,
    text: &mut String,
) -> PyResult<()> {
    let lines = module.call_method1("format_tb", (traceback, most))?;
    text.push_str(&lines.extract::<Vec<String>>()?.concat());
    Ok(())
}

fn count(traceback: &Bound<'_, PyAny>) -> PyResult<usize> {
    let mut frames = 0;
    let mut next = Some(traceback.clone());
    while let Some(traceback) = next {
        frames += 1;
        next = following(&traceback)?;
    }
    Ok(frames)
}

fn after<'py>(traceback: &Bound<'py, PyAny>, frames: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut rest = Some(traceback.clone());
    for _ in 0..frames {
        rest = rest.as_ref().map_or(Ok(None), following)?;
    }
    Ok(rest)
}

fn following<'py>(traceback: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let next = traceback.cast::<PyTraceback>()?.getattr(pyo3::intern!(traceback.py(), "tb_next"))?;
    Ok((!next.is_none()).then_some(next))
}

/// The text, or its two ends.
fn shortened(text: &str) -> String {
    if text.len() <= MOST_BYTES {
        return text.to_owned();
    }
    let begin = (0..=MOST_BYTES / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let rest = text.len() - MOST_BYTES / 2;
    let end = (rest..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n[{} bytes are left out]\n{}", &text[..begin], end - begin, &text[end..])
}
