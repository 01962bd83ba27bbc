//! Signals of a supervisor. Its process runs no code of an application, so a thread of its own takes them.

use std::fmt;
use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};

use super::Happening;
use crate::host::{self, StopSignal, SupervisorSignal};

/// A signal to a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT: the end.
    Interrupt,
    /// SIGTERM: the end.
    Terminate,
    /// SIGHUP: new workers with the configuration of now.
    Hangup,
    /// SIGUSR1: log files are opened anew.
    Reopen,
    /// A signal that only a supervisor handles.
    Own(SupervisorSignal),
}

impl Signal {
    /// The number of the signal.
    pub(crate) fn number(self) -> u8 {
        let number = match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
            Self::Hangup => SIGHUP,
            Self::Reopen => SIGUSR1,
            Self::Own(signal) => return signal.number(),
        };
        u8::try_from(number).unwrap_or_default()
    }
}

impl From<host::Signal> for Signal {
    fn from(signal: host::Signal) -> Self {
        match signal {
            host::Signal::Stop(StopSignal::Interrupt) => Self::Interrupt,
            host::Signal::Stop(StopSignal::Terminate) => Self::Terminate,
            host::Signal::Stop(StopSignal::Hangup) | host::Signal::Reload => Self::Hangup,
            host::Signal::Reopen => Self::Reopen,
            host::Signal::ForSupervisor(signal) => Self::Own(signal),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => f.write_str("SIGINT"),
            Self::Terminate => f.write_str("SIGTERM"),
            Self::Hangup => f.write_str("SIGHUP"),
            Self::Reopen => f.write_str("SIGUSR1"),
            Self::Own(signal) => signal.fmt(f),
        }
    }
}

/// Has signals come as happenings, for the rest of the process.
///
/// # Errors
/// The handlers cannot be installed, or there is no thread.
pub(crate) fn install(sender: Sender<Happening>) -> io::Result<()> {
    let numbers = [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU];
    let mut signals = signal_hook::iterator::Signals::new(numbers)?;
    thread::Builder::new().name("maitred-signals".to_owned()).spawn(move || {
        for number in signals.forever() {
            let signal = match number {
                SIGINT => Signal::Interrupt,
                SIGHUP => Signal::Hangup,
                SIGUSR1 => Signal::Reopen,
                SIGUSR2 => Signal::Own(SupervisorSignal::Upgrade),
                SIGTTIN => Signal::Own(SupervisorSignal::More),
                SIGTTOU => Signal::Own(SupervisorSignal::Fewer),
                _ => Signal::Terminate,
            };
            if sender.send(Happening::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
