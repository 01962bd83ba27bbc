//! An access log: its lines, and the thread that writes them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use maitred_io::line_writer::{LineWriter, Options, Progress, Target};

use super::access_tail::Place;
use super::entries::Entries;
use super::{CAPACITY, Level, trouble};
use crate::lines::Lines;
use crate::outcome::Outcome;

/// How long lines wait for others: nobody who watches them sees it.
const LINGER: Duration = Duration::from_millis(5);

pub(crate) struct Access {
    lines: Lines,
    writer: LineWriter,
    errors: Arc<Entries>,
    pub(crate) place: Place,
}

impl Access {
    pub(crate) fn open(
        target: Target,
        lines: Lines,
        errors: &Arc<Entries>,
        several: bool,
    ) -> io::Result<Self> {
        let place = Place::of(&target);
        let trouble = Some(trouble::told_in(Arc::downgrade(errors), "access"));
        let options = Options { trouble, several, ..Options::default() };
        let writer = LineWriter::open_with(target, CAPACITY, options)?;
        writer.set_linger(LINGER);
        if let Some(notice) = lines.notice() {
            writer.set_notice(notice);
        }
        Ok(Self { lines, writer, errors: Arc::clone(errors), place })
    }

    pub(crate) fn write(&self, outcome: &Outcome<'_>) {
        self.lines.with_line(outcome, |line| {
            if !line.is_empty() {
                self.writer.write(line);
            }
        });
    }

    pub(crate) fn reopen(&self) {
        self.writer.reopen();
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.writer.dropped()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.writer.progress()
    }

    pub(crate) fn flush(&self, limit: Duration) {
        self.writer.flush(limit);
    }

    pub(crate) fn finish(&self, limit: Duration) {
        if !self.writer.flush(limit) {
            self.errors.write(Level::Error, format_args!("{}", trouble::unfinished("access", &self.writer)));
        }
    }
}
