//! The access log's writer: a thread that makes the lines as well, or the threads that answer.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use maitred_io::line_writer::{DirectWriter, LineWriter, Options, Tell, Trouble};

use super::entries::Entries;
use super::{AccessLogSettings, CAPACITY, Level, trouble};
use crate::access_log::{Line, Lines, Names};
use crate::outcome::Outcome;

/// Bytes of what lines are made of that wait; it takes twice as much as other lines.
const FACTS_CAPACITY: usize = 2 * CAPACITY;

/// How long lines wait for others: nobody who watches them sees it, and the thread that makes them is not busy for long at a
/// time.
const LINGER: Duration = Duration::from_millis(5);

pub(super) struct Access {
    lines: Arc<Lines>,
    writer: Writer,
    errors: Arc<Entries>,
}

enum Writer {
    Thread(LineWriter),
    Direct(Box<Direct>),
}

struct Direct {
    writer: DirectWriter,
    made: Mutex<(Line, Vec<u8>)>,
    tell: Tell,
    /// Lines that could not be written since one was.
    missing: AtomicU64,
}

impl Access {
    pub(super) fn open(
        settings: AccessLogSettings,
        names: Arc<OnceLock<Names>>,
        errors: &Arc<Entries>,
    ) -> io::Result<Self> {
        let AccessLogSettings { target, format, mask, synchronous } = settings;
        let lines = Arc::new(Lines::new(format, mask, names));
        let tell = trouble::told_in(Arc::downgrade(errors));
        let writer = if synchronous {
            let writer = DirectWriter::open(target)?;
            let direct = Direct { writer, made: Mutex::default(), tell, missing: AtomicU64::new(0) };
            Writer::Direct(Box::new(direct))
        } else {
            let (made_of, mut line) = (Arc::clone(&lines), Line::default());
            let make = Box::new(move |facts: &[u8], out: &mut Vec<u8>| line.make(&made_of, facts, out));
            let options = Options { make: Some(make), trouble: Some(tell), ..Options::default() };
            let writer = LineWriter::open_with(target, FACTS_CAPACITY, options)?;
            writer.set_linger(LINGER);
            if let Some(notice) = lines.notice() {
                writer.set_notice(notice);
            }
            Writer::Thread(writer)
        };
        Ok(Self { lines, writer, errors: Arc::clone(errors) })
    }

    pub(super) fn write(&self, outcome: &Outcome<'_>) {
        self.lines.with_facts(outcome, |facts| match &self.writer {
            Writer::Thread(writer) => _ = writer.write(facts),
            Writer::Direct(direct) => direct.write(&self.lines, facts),
        });
    }

    pub(super) fn reopen(&self) {
        match &self.writer {
            Writer::Thread(writer) => writer.reopen(),
            Writer::Direct(direct) => direct.writer.reopen(),
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        match &self.writer {
            Writer::Thread(writer) => writer.dropped(),
            Writer::Direct(direct) => direct.writer.dropped(),
        }
    }

    pub(super) fn flush(&self, limit: Duration) {
        if let Writer::Thread(writer) = &self.writer {
            writer.flush(limit);
        }
    }

    pub(super) fn finish(&self, limit: Duration) {
        if let Writer::Thread(writer) = &self.writer
            && !writer.flush(limit)
        {
            self.errors.write(Level::Error, format_args!("{}", trouble::unfinished("access", writer)));
        }
    }
}

impl Direct {
    fn write(&self, lines: &Lines, facts: &[u8]) {
        let (line, text) = &mut *self.made.lock().unwrap_or_else(PoisonError::into_inner);
        text.clear();
        line.make(lines, facts, text);
        match self.writer.write(text) {
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
