//! Applications that are imported before workers are forked.
//!
//! Promises: until the fork there is the main thread only, and no state of the engine that two processes must not
//! share, except the bell, which a fork makes anew. Leaves out: forking itself (`maitred/_preload.py`) and the decision
//! for it (`maitred-process`).

use std::collections::VecDeque;
use std::ffi::OsString;

use pyo3::prelude::*;

/// An application as `maitred._load` has found it.
pub(crate) struct LoadedApplication {
    pub(crate) application: Py<PyAny>,
    pub(crate) description: String,
    /// `wsgi` or `asgi`.
    pub(crate) interface: String,
}

#[derive(Default)]
pub(crate) struct Preloaded {
    found: VecDeque<(String, LoadedApplication)>,
    /// The current folder after their imports.
    folder: Option<OsString>,
    /// This process is the one that workers are forked from.
    pub(crate) is_template: bool,
}

impl Preloaded {
    pub(crate) fn add(&mut self, target: &str, found: LoadedApplication) {
        self.found.push_back((target.to_owned(), found));
        self.is_template = true;
    }

    /// Notes where their imports have led.
    pub(crate) fn note_folder(&mut self, py: Python<'_>) -> PyResult<()> {
        self.folder = Some(py.import("os")?.call_method0("getcwd")?.extract()?);
        Ok(())
    }

    /// The next one, if it is the one that is meant. The current folder is the one that it has left.
    pub(crate) fn take(&mut self, py: Python<'_>, target: &str) -> PyResult<Option<LoadedApplication>> {
        if self.found.front().is_none_or(|(name, _)| name != target) {
            return Ok(None);
        }
        if let Some(folder) = self.folder.take() {
            py.import("os")?.call_method1("chdir", (folder,))?;
        }
        Ok(self.found.pop_front().map(|(_, found)| found))
    }
}

/// Forks, as `maitred._preload.fork` has it; none in the fork.
pub(crate) fn fork(py: Python<'_>) -> PyResult<Option<u32>> {
    let pid: u32 = py.import("maitred._preload")?.call_method0("fork")?.extract()?;
    Ok((pid != 0).then_some(pid))
}
