//! Signals of a supervisor. Its process runs no code of an application, so a thread of its own takes them.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use super::Happening;
use crate::host::Signal;

/// Has signals come as happenings, for the rest of the process.
///
/// # Errors
/// The handlers cannot be installed, or there is no thread.
pub(crate) fn install(sender: Sender<Happening>) -> io::Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new(Signal::ALL.map(|signal| i32::from(signal.number())))?;
    thread::Builder::new().name("maitred-signals".to_owned()).spawn(move || {
        for number in signals.forever() {
            let come = Signal::ALL.into_iter().find(|signal| i32::from(signal.number()) == number);
            if come.is_some_and(|signal| sender.send(Happening::Signal(signal)).is_err()) {
                return;
            }
        }
    })?;
    Ok(())
}
