//! The access log's writer: a thread, or the threads that answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use maitred_io::line_writer::{DirectWriter, LineWriter, Options, Progress, Target, Tell, Trouble};

use super::access_tail::Place;
use super::entries::Entries;
use super::{CAPACITY, Level, trouble};
use crate::lines::Lines;
use crate::outcome::Outcome;

/// How long lines wait for others: nobody who watches them sees it.
const LINGER: Duration = Duration::from_millis(5);

pub(crate) struct Access {
    lines: Lines,
    writer: Writer,
    errors: Arc<Entries>,
    pub(crate) place: Place,
}

enum Writer {
    Thread(LineWriter),
    Direct(Box<Direct>),
}

struct Direct {
    writer: DirectWriter,
    tell: Tell,
    /// Lines that could not be written since one was.
    missing: AtomicU64,
}

impl Access {
    pub(crate) fn open(
        target: Target,
        lines: Lines,
        errors: &Arc<Entries>,
        several: bool,
    ) -> io::Result<Self> {
        let place = Place::of(&target);
        let trouble = Some(trouble::told_in(Arc::downgrade(errors)));
        let options = Options { trouble, several, ..Options::default() };
        let writer = LineWriter::open_with(target, CAPACITY, options)?;
        writer.set_linger(LINGER);
        if let Some(notice) = lines.notice() {
            writer.set_notice(notice);
        }
        Ok(Self { lines, writer: Writer::Thread(writer), errors: Arc::clone(errors), place })
    }

    /// Whose lines the threads that answer write.
    pub(crate) fn open_direct(target: Target, lines: Lines, errors: &Arc<Entries>) -> io::Result<Self> {
        let place = Place::of(&target);
        let tell = trouble::told_in(Arc::downgrade(errors));
        let direct = Direct { writer: DirectWriter::open(target)?, tell, missing: AtomicU64::new(0) };
        Ok(Self { lines, writer: Writer::Direct(Box::new(direct)), errors: Arc::clone(errors), place })
    }

    pub(crate) fn write(&self, outcome: &Outcome<'_>) {
        self.lines.with_line(outcome, |line| match &self.writer {
            _ if line.is_empty() => {}
            Writer::Thread(writer) => _ = writer.write(line),
            Writer::Direct(direct) => direct.write(line),
        });
    }

    pub(crate) fn reopen(&self) {
        match &self.writer {
            Writer::Thread(writer) => writer.reopen(),
            Writer::Direct(direct) => direct.writer.reopen(),
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        match &self.writer {
            Writer::Thread(writer) => writer.dropped(),
            Writer::Direct(direct) => direct.writer.dropped(),
        }
    }

    /// A log without a thread has written each line, or lost it.
    pub(crate) fn progress(&self) -> Progress {
        match &self.writer {
            Writer::Thread(writer) => writer.progress(),
            Writer::Direct(direct) => Progress { dropped: direct.writer.dropped(), ..Progress::default() },
        }
    }

    pub(crate) fn flush(&self, limit: Duration) {
        if let Writer::Thread(writer) = &self.writer {
            writer.flush(limit);
        }
    }

    pub(crate) fn finish(&self, limit: Duration) {
        if let Writer::Thread(writer) = &self.writer
            && !writer.flush(limit)
        {
            self.errors.write(Level::Error, format_args!("{}", trouble::unfinished("access", writer)));
        }
    }
}

impl Direct {
    fn write(&self, line: &[u8]) {
        match self.writer.write(line) {
            Ok(()) if self.missing.load(Relaxed) == 0 => {}
            Ok(()) => (self.tell)(Trouble::Over { dropped: self.missing.swap(0, Relaxed) }),
            Err(error) => {
                if self.missing.fetch_add(1, Relaxed) == 0 {
                    (self.tell)(Trouble::Fails(error));
                }
            }
        }
    }
}
