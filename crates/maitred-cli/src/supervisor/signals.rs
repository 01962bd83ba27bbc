//! Signals of a supervisor. Its process runs no code of an application, so a thread of its own takes them.

use std::fmt;
use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};

use super::Happening;

/// What a signal asks of a supervisor.
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
    /// SIGUSR2: a new program takes over.
    Upgrade,
    /// SIGTTIN: one worker more.
    More,
    /// SIGTTOU: one worker fewer.
    Fewer,
}

impl Signal {
    /// The number of the signal.
    pub(crate) fn number(self) -> u8 {
        let number = match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
            Self::Hangup => SIGHUP,
            Self::Reopen => SIGUSR1,
            Self::Upgrade => SIGUSR2,
            Self::More => SIGTTIN,
            Self::Fewer => SIGTTOU,
        };
        u8::try_from(number).unwrap_or_default()
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
            Self::Reopen => "SIGUSR1",
            Self::Upgrade => "SIGUSR2",
            Self::More => "SIGTTIN",
            Self::Fewer => "SIGTTOU",
        })
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
                SIGUSR2 => Signal::Upgrade,
                SIGTTIN => Signal::More,
                SIGTTOU => Signal::Fewer,
                _ => Signal::Terminate,
            };
            if sender.send(Happening::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
