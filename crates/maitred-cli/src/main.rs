//! The `maitred` binary: the command with a host that has no language.
//!
//! This program serves static folders. The command of the Python package runs Python applications:
//! it is the same library with another host.

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use maitred_process::host::{Application, ApplicationSpec, Host, LoadError, Signal, Signals};

fn main() -> ExitCode {
    ExitCode::from(maitred_cli::main(std::env::args_os().collect(), &NativeHost))
}

struct NativeHost;

impl Host for NativeHost {
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        Err(LoadError::new(
            format!("this binary has no Python and cannot run '{}'", spec.target),
            "run it with the maitred command of the Python package (python -m maitred); this binary \
             serves folders: maitred folder/",
        ))
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        NativeSignals::install().map(|signals| Box::new(signals) as Box<dyn Signals>)
    }

    fn languages(&self) -> &'static str {
        "native"
    }
}

/// Signals from a thread of their own, so that a wait for them can have a limit.
struct NativeSignals {
    incoming: Receiver<Signal>,
}

impl NativeSignals {
    fn install() -> io::Result<Self> {
        let answered = Signal::answered();
        let mut signals =
            signal_hook::iterator::Signals::new(answered.iter().map(|signal| i32::from(signal.number())))?;
        let (sender, incoming) = mpsc::channel();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for number in signals.forever() {
                let signal = answered.iter().find(|signal| i32::from(signal.number()) == number);
                if signal.is_some_and(|signal| sender.send(*signal).is_err()) {
                    return;
                }
            }
        })?;
        Ok(Self { incoming })
    }
}

impl Signals for NativeSignals {
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
        match limit {
            Some(limit) => self.incoming.recv_timeout(limit).ok(),
            None => self.incoming.recv().ok(),
        }
    }
}
