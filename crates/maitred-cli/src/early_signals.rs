//! Signals that come before the server answers them: while the application is imported, or a hook runs.
//!
//! By default they would end the process. They are kept, and answered when it serves. Leaves out: SIGTERM and SIGINT, which end a
//! start, and SIGHUP of a process with a terminal, which may have hung up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maitred_server::terminal::Terminal;
use signal_hook::{SigId, flag, low_level};

use crate::host::Signal;

/// Those that have come, until they are answered.
pub(crate) struct EarlySignals {
    kept: Vec<(Signal, SigId, Arc<AtomicBool>)>,
}

impl EarlySignals {
    /// Begins to keep them, in a process with this terminal.
    pub(crate) fn keep(terminal: Terminal) -> Self {
        let signals = Signal::answered().into_iter().filter(|signal| match signal {
            Signal::Stop(_) => false,
            Signal::Reload => !terminal.is_there(),
            Signal::Reopen | Signal::ForSupervisor(_) => true,
        });
        let kept = signals.filter_map(|signal| {
            let came = Arc::new(AtomicBool::new(false));
            // One that cannot be kept does what it does by default.
            let id = flag::register(signal.number().into(), Arc::clone(&came)).ok()?;
            Some((signal, id, came))
        });
        Self { kept: kept.collect() }
    }

    /// Somebody else answers signals from now on: those that came are left.
    pub(crate) fn end(&self) {
        for (_, id, _) in &self.kept {
            low_level::unregister(*id);
        }
    }

    /// One that came and was not answered.
    pub(crate) fn next(&self) -> Option<Signal> {
        let came = self.kept.iter().find(|(_, _, came)| came.swap(false, Ordering::Relaxed));
        came.map(|(signal, _, _)| *signal)
    }
}
