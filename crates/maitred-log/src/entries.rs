//! The error log: entries with time and level, counted where they come again and again.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use maitred_io::clock;
use maitred_io::line_writer::{LineWriter, Options, Progress, Reminder, Severity, Target};

use super::fold::{Fold, Folds};
use super::kept_entries::{KeptEntries, KeptEntry};
use crate::level::Level;
use crate::printable;
use crate::trouble;
use crate::wall_time::write_iso_time;

pub(crate) struct Entries {
    level: AtomicU8,
    writer: LineWriter,
    folds: Arc<Folds>,
    kept: Arc<KeptEntries>,
    /// Whether standard error is another place.
    elsewhere: bool,
    worker: Arc<AtomicU32>,
}

impl Entries {
    pub(crate) fn open(
        level: Level,
        target: Target,
        worker: Arc<AtomicU32>,
        several: bool,
    ) -> io::Result<Self> {
        let folds = Arc::<Folds>::default();
        let elsewhere = !matches!(target, Target::Stderr);
        let kept = Arc::<KeptEntries>::default();
        let reminder = Some(reminder(&folds, &worker, &kept));
        let trouble = elsewhere.then(trouble::told_on_standard_error);
        let writer =
            LineWriter::open_with(target, trouble::CAPACITY, Options { reminder, trouble, several })?;
        Ok(Self { level: AtomicU8::new(level as u8), writer, folds, kept, elsewhere, worker })
    }

    pub(crate) fn level(&self) -> Level {
        let level = self.level.load(Ordering::Relaxed);
        Level::ALL.into_iter().find(|known| *known as u8 == level).unwrap_or(Level::Info)
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, level: Level, text: fmt::Arguments<'_>) {
        // What was asked for twice is told twice.
        if level > Level::Warn {
            return self.write_each(level, text);
        }
        if level as u8 > self.level.load(Ordering::Relaxed) {
            return;
        }
        let text = text.to_string();
        match self.folds.note(level, &text, Instant::now(), &mut |level, text| self.put(level, text)) {
            Fold::Write => self.put(level, &text),
            Fold::Count(at) => self.writer.remind(at),
        }
    }

    pub(crate) fn write_each(&self, level: Level, text: fmt::Arguments<'_>) {
        if level as u8 <= self.level.load(Ordering::Relaxed) {
            self.put(level, &text.to_string());
        }
    }

    /// Whatever the level is.
    pub(crate) fn put(&self, level: Level, text: &str) {
        self.write_marked(level.severity(), level.name(), text);
    }

    pub(crate) fn write_marked(&self, severity: Severity, mark: &'static str, text: &str) {
        let (worker, micros) = (self.worker.load(Ordering::Relaxed), clock::unix_micros());
        let line = entry(micros, mark, worker, text);
        self.kept.add(micros, mark, &line);
        self.writer.write_as(severity, line.as_bytes());
    }

    pub(crate) fn plain(&self, text: &str) {
        let text = printable(text.trim_end());
        self.kept.add(clock::unix_micros(), "", &text);
        self.writer.write(text.as_bytes());
    }

    pub(crate) fn reopen(&self) {
        self.writer.reopen();
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    pub(crate) fn kept(&self) -> Vec<KeptEntry> {
        self.kept.all()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.writer.progress()
    }

    pub(crate) fn flush(&self, limit: Duration) -> bool {
        self.folds.all(Instant::now(), &mut |level, text| self.put(level, text));
        self.writer.flush(limit)
    }

    pub(crate) fn finish(&self, limit: Duration) {
        if !self.flush(limit) && self.elsewhere {
            trouble::say_on_standard_error(&trouble::unfinished("error", &self.writer));
        }
    }
}

fn reminder(folds: &Arc<Folds>, worker: &Arc<AtomicU32>, kept: &Arc<KeptEntries>) -> Reminder {
    let (folds, worker, kept) = (Arc::clone(folds), Arc::clone(worker), Arc::clone(kept));
    Box::new(move |write| {
        folds.due(Instant::now(), &mut |level, text| {
            let (worker, micros) = (worker.load(Ordering::Relaxed), clock::unix_micros());
            let line = entry(micros, level.name(), worker, text);
            kept.add(micros, level.name(), &line);
            write(level.severity(), line.as_bytes());
        })
    })
}

/// An entry of the process with this number, or of the only one.
fn entry(micros: u64, mark: &str, worker: u32, text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 64);
    write_iso_time(&mut line, micros);
    line.push(' ');
    line.push_str(mark);
    line.push(' ');
    if worker > 0 {
        // Writing to a String does not fail.
        let _ = write!(line, "[{worker}] ");
    }
    printable::push(&mut line, text);
    line.push('\n');
    line
}
