//! Signals that come before the server answers signals: while the application is imported, or a hook runs.
//!
//! Such signals would end the process by default. They are kept, and answered when the process serves. Leaves out: SIGTERM and SIGINT, which
//! end a start, and SIGHUP of a process with a terminal, which may have hung up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maitred_server::terminal::Terminal;
use signal_hook::{SigId, flag, low_level};

use crate::host::Signal;

/// Signals that have come and are not answered yet.
pub(crate) struct EarlySignals {
    kept: Vec<(Signal, SigId, Arc<AtomicBool>)>,
}

impl EarlySignals {
    /// Begins to keep signals, in a process with this terminal.
    pub(crate) fn keep(terminal: Terminal) -> Self {
        let signals = Signal::answered().into_iter().filter(|signal| match signal {
            Signal::Stop(_) => false,
            Signal::Reload => !terminal.is_there(),
            Signal::Reopen | Signal::ForSupervisor(_) => true,
        });
        let kept = signals.filter_map(|signal| {
            let came = Arc::new(AtomicBool::new(false));
            // A signal that cannot be kept has its default effect.
            let id = flag::register(signal.number().into(), Arc::clone(&came)).ok()?;
            Some((signal, id, came))
        });
        Self { kept: kept.collect() }
    }

    /// Stops keeping signals; other handlers get the next ones. Signals that came before stay for [`next`](Self::next).
    pub(crate) fn end(&self) {
        for (_, id, _) in &self.kept {
            low_level::unregister(*id);
        }
    }

    /// Takes a signal that came and was not answered.
    pub(crate) fn next(&self) -> Option<Signal> {
        let came = self.kept.iter().find(|(_, _, came)| came.swap(false, Ordering::Relaxed));
        came.map(|(signal, _, _)| *signal)
    }
}
