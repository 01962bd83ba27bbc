//! `wsgi.file_wrapper` (PEP 3333, "Optional Platform-Specific File Handling").
//!
//! A file of the system that stands behind one of Python's own file objects is sent by the engine,
//! from the object's position. Everything else is read block by block: an object that merely has a
//! `fileno()` may show other bytes than the descriptor does (`gzip.GzipFile` is one).

use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use maitred_runtime::FileRange;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

#[pyclass(frozen, module = "maitred._engine")]
pub(crate) struct FileWrapper {
    file: Py<PyAny>,
    block: isize,
}

#[pymethods]
impl FileWrapper {
    /// The block size is the one of `wsgiref.util.FileWrapper`.
    #[new]
    #[pyo3(signature = (filelike, blksize = 8192))]
    fn new(filelike: Py<PyAny>, blksize: isize) -> Self {
        Self { file: filelike, block: blksize }
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let block = self.file.bind(py).call_method1(intern!(py, "read"), (self.block,))?;
        Ok(block.is_truthy()?.then_some(block))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.file.bind(py).getattr_opt(intern!(py, "close"))? {
            Some(close) => close.call0().map(drop),
            None => Ok(()),
        }
    }
}

impl FileWrapper {
    /// The range from the file's position to its end; `None` where it has to be read block by block, which also shows
    /// any error in it.
    pub(super) fn range(&self, py: Python<'_>) -> Option<FileRange> {
        range(self.file.bind(py)).ok().flatten()
    }
}

fn range(file: &Bound<'_, PyAny>) -> PyResult<Option<FileRange>> {
    let py = file.py();
    let types = FileTypes::of(py)?;
    let is = |object: &Bound<'_, PyAny>, class: &Py<PyType>| object.get_type().is(class);
    let inner = if is(file, &types.temporary) { file.getattr(intern!(py, "file"))? } else { file.clone() };
    if is(&inner, &types.random) {
        // Written bytes may still be in Python's buffer.
        inner.call_method0(intern!(py, "flush"))?;
    }
    let raw = match is(&inner, &types.reader) || is(&inner, &types.random) {
        true => inner.getattr(intern!(py, "raw"))?,
        false => inner.clone(),
    };
    if !is(&raw, &types.raw) {
        return Ok(None);
    }
    // Of the outer object: bytes that were read ahead count as not read.
    let offset: u64 = inner.call_method0(intern!(py, "tell"))?.extract()?;
    let descriptor: RawFd = raw.call_method0(intern!(py, "fileno"))?.extract()?;
    // SAFETY: the descriptor belongs to `raw`, which is referenced here, and no other code of Python
    // that could close it runs before the borrow ends.
    let own = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?;
    let file = File::from(own);
    let facts = file.metadata()?;
    // A file that says it is empty may have content all the same (below /proc).
    let length = if facts.is_file() { facts.len().saturating_sub(offset) } else { 0 };
    Ok((length > 0).then(|| FileRange { file: Arc::new(file), offset, length }))
}

/// The classes whose descriptor and content are the same thing.
struct FileTypes {
    raw: Py<PyType>,
    reader: Py<PyType>,
    random: Py<PyType>,
    temporary: Py<PyType>,
}

impl FileTypes {
    fn of(py: Python<'_>) -> PyResult<&Self> {
        static TYPES: PyOnceLock<FileTypes> = PyOnceLock::new();
        TYPES.get_or_try_init(py, || {
            let class = |module: &str, name: &str| -> PyResult<Py<PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?.unbind())
            };
            Ok(Self {
                raw: class("io", "FileIO")?,
                reader: class("io", "BufferedReader")?,
                random: class("io", "BufferedRandom")?,
                temporary: class("tempfile", "_TemporaryFileWrapper")?,
            })
        })
    }
}
