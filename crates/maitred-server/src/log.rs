//! Error log and access log. Lines go to bounded asynchronous writers: no thread that serves ever
//! waits for a disk or for the reader of a pipe.

mod fold;

use std::fmt::{self, Write as _};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use maitred_io::clock;
use maitred_io::line_writer::{DirectWriter, LineWriter, Options, Reminder, Severity, Target};
use maitred_stats::Span;

use crate::access_log::{self, Format, Line, Lines, Mask, Names};
use crate::dispatch::Trace;
use crate::outcome::Outcome;
use fold::{Fold, Folds};

/// Bytes of log lines that wait for a slow disk or pipe before lines are dropped and counted.
const CAPACITY: usize = 1024 * 1024;

/// The same for what lines of the access log are made of, which takes twice as much.
const FACTS_CAPACITY: usize = 2 * CAPACITY;

/// How long lines of the access log wait for others: nobody who watches them sees it, and the thread that makes them is not busy
/// for long at a time.
const LINGER: Duration = Duration::from_millis(5);

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

impl Level {
    /// From the least to the most.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// As in the log and in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warn => Severity::Warning,
            Self::Info => Severity::Info,
            Self::Debug => Severity::Debug,
        }
    }
}

/// An access log: a line for each request.
pub struct AccessLogSettings {
    /// Where it goes.
    pub target: Target,
    /// What is in a line.
    pub format: Format,
    /// How much of an address is kept; `None` for all.
    pub mask: Option<Mask>,
    /// Lines are written by the threads that answer, which wait for it: for comparison only.
    pub synchronous: bool,
}

impl AccessLogSettings {
    /// The usual lines.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, format: Format::default(), mask: None, synchronous: false }
    }
}

/// The logs of a server.
pub struct Log {
    level: AtomicU8,
    errors: LineWriter,
    folds: Arc<Folds>,
    access: Option<Access>,
    names: Arc<OnceLock<Names>>,
    traces: AtomicBool,
    /// The access log is not written now.
    pauses: AtomicBool,
}

struct Access {
    lines: Arc<Lines>,
    writer: AccessWriter,
}

enum AccessWriter {
    /// Which makes the lines as well.
    Thread(LineWriter),
    Direct(DirectWriter, Box<Mutex<(Line, Vec<u8>)>>),
}

impl Log {
    /// Opens the logs. `access` is where the access log goes, if anywhere.
    ///
    /// # Errors
    /// A file cannot be opened, or a thread cannot be made.
    pub fn open(level: Level, errors: Target, access: Option<Target>) -> io::Result<Self> {
        let folds = Arc::<Folds>::default();
        let errors = {
            let reminder = Some(reminder(&folds));
            LineWriter::open_with(errors, CAPACITY, Options { reminder, ..Options::default() })?
        };
        let level = AtomicU8::new(level as u8);
        let log = Self {
            level,
            errors,
            folds,
            access: None,
            names: Arc::default(),
            traces: AtomicBool::new(false),
            pauses: AtomicBool::new(false),
        };
        match access {
            Some(target) => log.with_access(AccessLogSettings::new(target)),
            None => Ok(log),
        }
    }

    /// With an access log, instead of the one it may have.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with_access(self, settings: AccessLogSettings) -> io::Result<Self> {
        let access = Access::open(settings, Arc::clone(&self.names))?;
        Ok(Self { access: Some(access), ..self })
    }

    /// Says what the indexes of outcomes mean; once, before the first of them.
    pub(crate) fn set_names(&self, names: Names) {
        let _ = self.names.set(names);
    }

    /// The least important entries that are written.
    #[must_use]
    pub fn level(&self) -> Level {
        let level = self.level.load(Ordering::Relaxed);
        Level::ALL.into_iter().find(|known| *known as u8 == level).unwrap_or(Level::Info)
    }

    /// Changes which entries are written, from now on.
    pub fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// Writes at [`Level::Error`].
    pub fn error(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Error, text);
    }

    /// Writes at [`Level::Warn`].
    pub fn warn(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Warn, text);
    }

    /// Writes at [`Level::Info`].
    pub fn info(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Info, text);
    }

    /// Writes as [`info`](Self::info) does, whatever the level is: who has changed it, for one.
    pub fn notice(&self, text: fmt::Arguments<'_>) {
        self.put(Level::Info, &text.to_string());
    }

    /// Writes at [`Level::Debug`].
    pub fn debug(&self, text: fmt::Arguments<'_>) {
        self.write(Level::Debug, text);
    }

    /// Writes `text` as it is, without time and level: start-up lines, tracebacks.
    pub fn plain(&self, text: &str) {
        let mut line = text.trim_end().to_owned();
        line.push('\n');
        self.errors.write(line.as_bytes());
    }

    fn write(&self, level: Level, text: fmt::Arguments<'_>) {
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
            Fold::Count(at) => self.errors.remind(at),
        }
    }

    /// Writes an entry each time it comes: a line of an output whose lines belong together.
    pub fn write_each(&self, level: Level, text: fmt::Arguments<'_>) {
        if level as u8 <= self.level.load(Ordering::Relaxed) {
            self.errors.write_as(level.severity(), entry(level.name(), text).as_bytes());
        }
    }

    fn put(&self, level: Level, text: &str) {
        self.errors.write_as(level.severity(), entry(level.name(), format_args!("{text}")).as_bytes());
    }

    /// Switches the dispatch trace on or off: an entry for each request that a handler answers, whatever the level, with
    /// what its pool was like when a thread got it.
    pub fn set_trace(&self, on: bool) {
        self.traces.store(on, Ordering::Relaxed);
    }

    /// Whether the dispatch trace is on.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.traces.load(Ordering::Relaxed)
    }

    /// Writes the entry of the dispatch trace of an exchange.
    pub(crate) fn trace(&self, outcome: &Outcome<'_>, trace: &Trace) {
        let Trace { waiting, threads, idle, budget, queued } = *trace;
        let (spans, head) = (outcome.times.spans(), outcome.head);
        let pools = self.names.get().map_or(&[][..], |names| &names.pools);
        let pool = outcome.pool.and_then(|pool| pools.get(usize::from(pool))).map_or("-", |name| name);
        let budget = budget.map_or("-".to_owned(), |budget| budget.to_string());
        // To the microsecond that the access log has.
        let seconds = |nanos: u64| Duration::from_micros(nanos / 1_000).as_secs_f64();
        let text = format_args!(
            "{} {} {}: pool {pool}, {waiting} waiting, {threads} threads, {idle} idle, budget {budget}, {}; queue {:.6}, \
             run {:.6}, total {:.6}",
            outcome.id,
            head.method,
            head.path().escape_ascii(),
            if queued { "from the queue" } else { "direct" },
            seconds(spans.get(Span::Queue)),
            seconds(spans.get(Span::Run)),
            seconds(spans.total())
        );
        self.errors.write_as(Severity::Info, entry("trace", text).as_bytes());
    }

    /// Writes the access-log line of an exchange, if there is an access log.
    pub(crate) fn access(&self, outcome: &Outcome<'_>) {
        if self.pauses.load(Ordering::Relaxed) {
            return;
        }
        if let Some(Access { lines, writer }) = &self.access {
            lines.with_facts(outcome, |facts| match writer {
                AccessWriter::Thread(writer) => _ = writer.write(facts),
                AccessWriter::Direct(writer, made) => {
                    let (line, text) = &mut *made.lock().unwrap_or_else(PoisonError::into_inner);
                    text.clear();
                    line.make(lines, facts, text);
                    writer.write(text);
                }
            });
        }
    }

    /// Has the access log pause, or go on.
    pub fn set_access(&self, on: bool) {
        self.pauses.store(!on, Ordering::Relaxed);
    }

    /// Whether exchanges are written down one by one.
    #[must_use]
    pub fn writes_access(&self) -> bool {
        self.access.is_some() && !self.pauses.load(Ordering::Relaxed)
    }

    /// Opens log files anew, after they were renamed.
    pub fn reopen(&self) {
        self.errors.reopen();
        match self.access.as_ref().map(|access| &access.writer) {
            Some(AccessWriter::Thread(writer)) => writer.reopen(),
            Some(AccessWriter::Direct(writer, _)) => writer.reopen(),
            None => {}
        }
    }

    /// Lines dropped because a disk or a reader was too slow: of the error log, and of the access log if there is one.
    pub fn dropped(&self) -> (u64, Option<u64>) {
        let access = self.access.as_ref().map(|access| match &access.writer {
            AccessWriter::Thread(writer) => writer.dropped(),
            AccessWriter::Direct(writer, _) => writer.dropped(),
        });
        (self.errors.dropped(), access)
    }

    /// Waits until everything is written, at most for `limit` each.
    pub fn flush(&self, limit: Duration) {
        self.folds.all(Instant::now(), &mut |level, text| self.put(level, text));
        self.errors.flush(limit);
        if let Some(Access { writer: AccessWriter::Thread(writer), .. }) = &self.access {
            writer.flush(limit);
        }
    }
}

impl Access {
    fn open(settings: AccessLogSettings, names: Arc<OnceLock<Names>>) -> io::Result<Self> {
        let AccessLogSettings { target, format, mask, synchronous } = settings;
        let lines = Arc::new(Lines::new(format, mask, names));
        if synchronous {
            let writer = AccessWriter::Direct(DirectWriter::open(target)?, Box::default());
            return Ok(Self { lines, writer });
        }
        let make = {
            let (lines, mut line) = (Arc::clone(&lines), Line::default());
            Box::new(move |facts: &[u8], out: &mut Vec<u8>| line.make(&lines, facts, out))
        };
        let writer = LineWriter::open_with(
            target,
            FACTS_CAPACITY,
            Options { make: Some(make), ..Options::default() },
        )?;
        writer.set_linger(LINGER);
        if let Some(notice) = lines.notice() {
            writer.set_notice(notice);
        }
        Ok(Self { lines, writer: AccessWriter::Thread(writer) })
    }
}

/// Tells of repeated entries when their time is over.
fn reminder(folds: &Arc<Folds>) -> Reminder {
    let folds = Arc::clone(folds);
    Box::new(move |write| {
        folds.due(Instant::now(), &mut |level, text| {
            write(level.severity(), entry(level.name(), format_args!("{text}")).as_bytes());
        })
    })
}

fn entry(level: &str, text: fmt::Arguments<'_>) -> String {
    let mut line = String::with_capacity(128);
    access_log::write_iso_time(&mut line, clock::unix_micros());
    // Writing to a String does not fail.
    let _ = writeln!(line, " {level} {text}");
    line
}
