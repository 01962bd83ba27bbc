//! `wsgi.input`: a body as the file that PEP 3333 describes, with the answers of `io.BytesIO`.
//!
//! Promises: the interpreter is released while a file is read and while a live body is awaited. Bytes in memory are
//! copied once, into the object that the application gets. Any number of threads may read; each byte goes to one of
//! them. Of a live body (a listener that does not read ahead) a call waits until it has the bytes that `io.BytesIO`
//! would return.
//!
//! While the reader is locked no Python code runs and no object is made that the garbage collector tracks.

use std::io::BufRead;
use std::sync::{Mutex, MutexGuard, PoisonError};

use maitred_runtime::Body;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList};

use crate::child::refuse_in_child;

/// Bytes read at once from a file or a live body for lines and for small reads. Reads of at least this size go
/// past it. As large as the pieces in which frameworks read forms.
const BUFFER: usize = 64 * 1024;

/// The input stream of one request.
#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct Input {
    reader: Mutex<Reader>,
}

struct Reader {
    body: Body,
    /// Where the application is.
    position: u64,
    /// Bytes of a file or a live body from `start` on.
    buffer: Vec<u8>,
    start: u64,
}

impl Input {
    pub(super) fn new(body: Body) -> Self {
        Self { reader: Mutex::new(Reader { body, position: 0, buffer: Vec::new(), start: 0 }) }
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Reader> {
        // Waits without the interpreter: the thread with the lock may be waiting for it.
        self.reader.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Input {
    /// Reads at most `size` bytes; all that are left when it is negative or None.
    #[pyo3(signature = (size = None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock(py).read(py, size)
    }

    /// The bytes up to the end of the line, at most `size` of them.
    #[pyo3(signature = (size = None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.lock(py).line(py, size)
    }

    /// The lines that are left; no further ones once they have `hint` bytes.
    #[pyo3(signature = (hint = None, /))]
    fn readlines<'py>(&self, py: Python<'py>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let hint = hint.and_then(|hint| usize::try_from(hint).ok()).filter(|hint| *hint > 0);
        let (mut lines, mut total) = (Vec::new(), 0);
        let mut reader = self.lock(py);
        while hint.is_none_or(|hint| total < hint) {
            let line = reader.line(py, None)?;
            let length = line.as_bytes().len();
            if length == 0 {
                break;
            }
            total += length;
            lines.push(line);
        }
        // Before the list: to make one may run application code.
        drop(reader);
        PyList::new(py, lines)
    }

    fn readable(&self) -> bool {
        true
    }

    /// A complete body can be read again, a live one cannot.
    fn seekable(&self, py: Python<'_>) -> bool {
        !self.lock(py).body.is_live()
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        let position = self.lock(py).tell();
        position.ok_or_else(|| unsupported(py))
    }

    #[pyo3(signature = (offset, whence = 0, /))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let position = self.lock(py).seek(offset, whence)?;
        position.ok_or_else(|| unsupported(py))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let line = self.lock(py).line(py, None)?;
        Ok((!line.as_bytes().is_empty()).then_some(line))
    }
}

/// The exception of Python's files that cannot be read again.
fn unsupported(py: Python<'_>) -> PyErr {
    match py.import("io").and_then(|io| io.getattr("UnsupportedOperation")) {
        Ok(kind) => PyErr::from_type(
            kind.cast_into().unwrap_or_else(|_| py.get_type::<PyOSError>()),
            "a body that is read as it comes cannot be read again",
        ),
        Err(error) => error,
    }
}

/// `size` as applications mean it: negative and None stand for everything.
fn limit(size: Option<isize>) -> usize {
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX)
}

impl Reader {
    fn left(&self) -> usize {
        usize::try_from(self.body.len().saturating_sub(self.position)).unwrap_or(usize::MAX)
    }

    /// The position; none of a live body.
    fn tell(&self) -> Option<u64> {
        (!self.body.is_live()).then_some(self.position)
    }

    /// Moves the position; none of a live body.
    fn seek(&mut self, offset: i64, whence: i32) -> PyResult<Option<u64>> {
        if self.body.is_live() {
            return Ok(None);
        }
        let position = match whence {
            0 => u64::try_from(offset)
                .map_err(|_| PyValueError::new_err(format!("negative seek value {offset}")))?,
            1 => self.position.saturating_add_signed(offset),
            2 => self.body.len().saturating_add_signed(offset),
            _ => {
                return Err(PyValueError::new_err(format!("invalid whence ({whence}, should be 0, 1 or 2)")));
            }
        };
        self.position = position;
        if position < self.start {
            self.buffer.clear();
        }
        Ok(Some(position))
    }

    fn read<'py>(&mut self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        if self.body.is_live() {
            refuse_in_child()?;
            return self.read_live(py, limit(size));
        }
        let count = limit(size).min(self.left());
        if count < BUFFER || self.body.as_bytes().is_some() {
            let window = self.window(py)?;
            if window.len() >= count {
                let bytes = PyBytes::new(py, &window[..count]);
                self.position += count as u64;
                return Ok(bytes);
            }
        }
        let bytes = PyBytes::new_with(py, count, |bytes| self.fill(py, bytes))?;
        self.position += count as u64;
        Ok(bytes)
    }

    /// Memory grows with the bytes that arrive, not with the length that the peer has declared.
    fn read_live<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        if count <= BUFFER {
            self.gather(py, count)?;
            let buffered = self.buffered();
            let bytes = PyBytes::new(py, &buffered[..buffered.len().min(count)]);
            self.position += bytes.as_bytes().len() as u64;
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let wanted = count - bytes.len();
            let window = self.window(py)?;
            let part = &window[..window.len().min(wanted)];
            let length = part.len();
            if bytes.is_empty() && length == wanted {
                let bytes = PyBytes::new(py, part);
                self.position += length as u64;
                return Ok(bytes);
            }
            bytes.extend_from_slice(part);
            self.position += length as u64;
            if length == 0 {
                break;
            }
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Has the next `count` bytes of a live body in the buffer, at most [`BUFFER`], fewer only at its end.
    fn gather(&mut self, py: Python<'_>, count: usize) -> PyResult<()> {
        let mut filled = self.buffered().len();
        if filled >= count {
            return Ok(());
        }
        // Old bytes are written over where nothing of them is left.
        if filled > 0 {
            self.buffer.drain(..self.buffer.len() - filled);
        }
        self.buffer.resize(BUFFER, 0);
        self.start = self.position;
        let Self { body, buffer, .. } = self;
        let gathered = py.detach(|| {
            while let Some(live) = body.live_mut().filter(|_| filled < count) {
                match live.read(&mut buffer[filled..])? {
                    0 => break,
                    more => filled += more,
                }
            }
            Ok::<(), std::io::Error>(())
        });
        self.buffer.truncate(filled);
        Ok(gathered?)
    }

    fn line<'py>(&mut self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let mut wanted = limit(size);
        if wanted == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        let mut begun: Vec<u8> = Vec::new();
        loop {
            let window = self.window(py)?;
            let window = &window[..window.len().min(wanted)];
            let mut rest = window;
            // Cannot fail: it is memory.
            let count = rest.skip_until(b'\n')?;
            let (part, rest) = window.split_at(count);
            let ended = part.last().is_none_or(|byte| *byte == b'\n') || count == wanted;
            debug_assert!(ended || rest.is_empty());
            let line = match (ended, begun.is_empty()) {
                (true, true) => Some(PyBytes::new(py, part)),
                (ended, _) => {
                    begun.extend_from_slice(part);
                    ended.then(|| PyBytes::new(py, &begun))
                }
            };
            self.position += count as u64;
            wanted -= count;
            if let Some(line) = line {
                return Ok(line);
            }
        }
    }

    /// The bytes that can be had at once: of a body in memory the whole rest, of a file a part, of a live one the bytes
    /// that have arrived, and at least one; none only at the end.
    fn window(&mut self, py: Python<'_>) -> PyResult<&[u8]> {
        if self.body.as_bytes().is_none() && self.buffered().is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(if self.body.is_live() { BUFFER } else { self.left().min(BUFFER) }, 0);
            self.start = self.position;
            let Self { body, start, .. } = self;
            let count = py.detach(|| match body.live_mut() {
                Some(live) => live.read(&mut buffer),
                None => body.read_at(&mut buffer, *start),
            })?;
            buffer.truncate(count);
            self.buffer = buffer;
        }
        Ok(match self.body.as_bytes() {
            // Not longer than usize: it is in memory.
            Some(bytes) => bytes.get(self.position as usize..).unwrap_or_default(),
            None => self.buffered(),
        })
    }

    /// The part of the buffer that the application has not read.
    fn buffered(&self) -> &[u8] {
        let passed = usize::try_from(self.position.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.buffer.get(passed..).unwrap_or_default()
    }

    /// Fills `bytes` from the position on, without moving it. There are as many.
    fn fill(&self, py: Python<'_>, bytes: &mut [u8]) -> PyResult<()> {
        let buffered = self.buffered();
        let (first, rest) = bytes.split_at_mut(buffered.len().min(bytes.len()));
        first.copy_from_slice(&buffered[..first.len()]);
        let offset = self.position + first.len() as u64;
        let (body, wanted) = (&self.body, rest.len());
        if py.detach(|| body.read_at(rest, offset))? != wanted {
            return Err(PyOSError::new_err("the request body has lost its end"));
        }
        Ok(())
    }
}
