//! What is said of a log that cannot be written: in the error log, or on standard error if it is the error log itself.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::Weak;

use maitred_io::line_writer::{LineWriter, Tell, Trouble, takes_a_line};

use super::Level;
use super::entries::Entries;

pub(crate) fn told_in(entries: Weak<Entries>, log: &'static str) -> Tell {
    Box::new(move |trouble| {
        let Some(entries) = entries.upgrade() else { return };
        let level = match trouble {
            Trouble::Over { .. } => Level::Warn,
            Trouble::Fails(_) | Trouble::Full => Level::Error,
        };
        entries.write(level, format_args!("{}", text(log, &trouble)));
    })
}

pub(crate) fn told_on_standard_error() -> Tell {
    Box::new(|trouble| say_on_standard_error(&text("error", &trouble)))
}

/// Never waits for its reader.
pub(crate) fn say_on_standard_error(text: &str) {
    let mut error = std::io::stderr().lock();
    if takes_a_line(error.as_fd()) {
        // There is nobody left to tell.
        let _ = writeln!(error, "maitred: {text}");
    }
}

pub(crate) fn unfinished(log: &str, writer: &LineWriter) -> String {
    let mut text = format!("the {log} log could not be written to its end");
    if let Some(failure) = writer.failure() {
        // Writing to a String does not fail.
        let _ = write!(text, " ({failure})");
    }
    let _ = write!(text, "; {} lines are lost", writer.unwritten());
    text
}

fn text(log: &str, trouble: &Trouble) -> String {
    match trouble {
        Trouble::Fails(error) => format!(
            "the {log} log cannot be written ({error}); lines wait, and are dropped when their buffer is full"
        ),
        Trouble::Full => {
            format!("the {log} log is not taken as fast as it is written: lines are dropped")
        }
        Trouble::Over { dropped } => format!("the {log} log is written again; {dropped} lines were dropped"),
    }
}
