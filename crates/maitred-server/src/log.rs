//! Error log and access log. Lines go to bounded asynchronous writers: no thread that serves ever
//! waits for a disk or for the reader of a pipe.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use maitred_io::clock;
use maitred_io::line_writer::{LineWriter, Target};

use crate::access_log;
use crate::outcome::Outcome;

/// Bytes of log lines that wait for a slow disk or pipe before lines are dropped and counted.
const CAPACITY: usize = 1024 * 1024;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Something was lost or is wrong.
    Error,
    /// Something is not as it should be, but nothing was lost.
    Warn,
    /// What an operator wants to know.
    Info,
    /// Every refused byte.
    Debug,
}

/// The logs of a server.
pub struct Log {
    level: AtomicU8,
    errors: LineWriter,
    access: Option<LineWriter>,
    lines: AtomicU64,
}

impl Log {
    /// Opens the logs. `access` is where the access log goes, if anywhere.
    ///
    /// # Errors
    /// A file cannot be opened, or a thread cannot be made.
    pub fn open(level: Level, errors: Target, access: Option<Target>) -> io::Result<Self> {
        Ok(Self {
            level: AtomicU8::new(level as u8),
            errors: LineWriter::open(errors, CAPACITY)?,
            access: access.map(|target| LineWriter::open(target, CAPACITY)).transpose()?,
            lines: AtomicU64::new(0),
        })
    }

    /// Writes at [`Level::Error`].
    pub fn error(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Error, "error", text);
    }

    /// Writes at [`Level::Warn`].
    pub fn warn(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Warn, "warn", text);
    }

    /// Writes at [`Level::Info`].
    pub fn info(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Info, "info", text);
    }

    /// Writes at [`Level::Debug`].
    pub fn debug(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Debug, "debug", text);
    }

    /// Writes `text` as it is, without time and level: start-up lines, tracebacks.
    pub fn plain(&self, text: &str) {
        let mut line = text.trim_end().to_owned();
        line.push('\n');
        self.errors.write(line.as_bytes());
    }

    fn write(&self, level: Level, name: &str, text: fmt::Arguments<'_>) {
        if level as u8 > self.level.load(Ordering::Relaxed) {
            return;
        }
        self.lines.fetch_add(1, Ordering::Relaxed);
        let mut line = String::with_capacity(128);
        access_log::write_iso_time(&mut line, clock::unix_micros());
        // Writing to a String does not fail.
        let _ = writeln!(line, " {name} {text}");
        self.errors.write(line.as_bytes());
    }

    /// Writes the access-log line of an exchange, if there is an access log.
    pub(crate) fn access(&self, outcome: &Outcome<'_>) {
        if let Some(writer) = &self.access {
            access_log::with_line(outcome, |line| {
                writer.write(line);
            });
        }
    }

    /// Whether exchanges are written down one by one.
    pub(crate) fn has_access(&self) -> bool {
        self.access.is_some()
    }

    /// Opens log files anew, after they were renamed.
    pub fn reopen(&self) {
        self.errors.reopen();
        if let Some(access) = &self.access {
            access.reopen();
        }
    }

    /// Lines dropped because a disk or a reader was too slow.
    pub fn dropped(&self) -> u64 {
        self.errors.dropped() + self.access.as_ref().map_or(0, LineWriter::dropped)
    }

    /// Waits until everything is written, at most for `limit` each.
    pub fn flush(&self, limit: Duration) {
        self.errors.flush(limit);
        if let Some(access) = &self.access {
            access.flush(limit);
        }
    }
}
