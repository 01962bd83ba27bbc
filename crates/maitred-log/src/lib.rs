//! Error log, access log, and the log of calls to other servers. Lines go to bounded asynchronous writers: no thread that serves ever
//! waits for a disk or for the reader of a pipe.

mod access;
mod access_tail;
mod calls;
mod entries;
mod escape;
mod fold;
mod format;
mod kept_entries;
mod level;
mod line;
mod lines;
mod mask;
mod number;
mod once;
mod outcome;
mod printable;
mod request_id;
mod short;
mod trouble;
mod upstream_queue;
mod wall_time;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use maitred_io::line_writer::Progress;
use maitred_io::line_writer::{Options, Severity, Target};
use maitred_stats::Span;

use access::Access;
pub use access_tail::AccessTail;
pub use calls::CallLine;
use calls::ClientLog;
use entries::Entries;
pub use format::{BadFormat, Format};
pub use kept_entries::KeptEntry;
pub use level::Level;
use lines::Lines;
pub use lines::Names;
use maitred_match::{PathPattern, Shape};
pub use mask::Mask;
use once::Once;
pub use outcome::{Database, End, Outcome, Outgoing};
pub use printable::printable;
pub use request_id::{RequestId, next_number};
pub use upstream_queue::upstream_queue;
pub use wall_time::{strftime, wall_nanos, write_iso_time};

/// An access log: a line for each request.
pub struct AccessLogSettings {
    /// Where it goes.
    pub target: Target,
    /// What is in a line.
    pub format: Format,
    /// How much of an address is kept; `None` for all.
    pub mask: Option<Mask>,
    /// Paths whose requests have no line.
    pub except: Vec<PathPattern>,
}

impl AccessLogSettings {
    /// The usual lines.
    pub fn new(target: Target) -> Self {
        Self { target, format: Format::default(), mask: None, except: Vec::new() }
    }
}

enum OfHost {
    Common,
    Off,
    Own(Box<Access>),
}

/// The logs of a server.
pub struct Log {
    errors: Arc<Entries>,
    access: Option<Access>,
    of_hosts: Vec<OfHost>,
    calls: Option<ClientLog>,
    once: Once,
    names: Arc<OnceLock<Names>>,
    traces: AtomicBool,
    /// The access log is not written now.
    pauses: AtomicBool,
    several: bool,
    /// The number of this process among several, or 0.
    worker: Arc<AtomicU32>,
}

impl Log {
    /// Opens the logs. `access` is where the access log goes, if anywhere.
    ///
    /// # Errors
    /// A file cannot be opened, or a thread cannot be made.
    pub fn open(level: Level, errors: Target, access: Option<Target>) -> io::Result<Self> {
        let log = Self::open_with(level, errors, false)?;
        match access {
            Some(target) => log.with_access(AccessLogSettings::new(target)),
            None => Ok(log),
        }
    }

    /// Opens the error log in one of several processes that write to the same logs, and with it all access logs that are added: lines are
    /// written in turns.
    pub fn open_shared(level: Level, errors: Target) -> io::Result<Self> {
        Self::open_with(level, errors, true)
    }

    fn open_with(level: Level, errors: Target, several: bool) -> io::Result<Self> {
        let worker = Arc::<AtomicU32>::default();
        let errors = Entries::open(level, errors, Arc::clone(&worker), several)?;
        Ok(Self {
            errors: Arc::new(errors),
            access: None,
            of_hosts: Vec::new(),
            calls: None,
            once: Once::default(),
            names: Arc::default(),
            traces: AtomicBool::new(false),
            pauses: AtomicBool::new(false),
            several,
            worker,
        })
    }

    /// Says which of several processes this is, from 1: entries of the error log are marked with it, as `[2]`, and `$worker` of access logs
    /// stands for it.
    pub fn set_worker(&self, number: u32) {
        self.worker.store(number, Ordering::Relaxed);
    }

    /// With an access log, instead of the one it may have.
    pub fn with_access(mut self, settings: AccessLogSettings) -> io::Result<Self> {
        self.access = Some(self.open_access(settings)?);
        Ok(self)
    }

    /// With a log of calls to other servers.
    pub fn with_calls(mut self, target: Target) -> io::Result<Self> {
        let trouble = Some(trouble::told_in(Arc::downgrade(&self.errors), "client"));
        let options = Options { trouble, several: self.several, ..Options::default() };
        self.calls = Some(ClientLog::open(target, trouble::CAPACITY, options)?);
        Ok(self)
    }

    fn open_access(&self, settings: AccessLogSettings) -> io::Result<Access> {
        let lines = Lines {
            format: settings.format,
            mask: settings.mask,
            except: settings.except,
            names: Arc::clone(&self.names),
            worker: Arc::clone(&self.worker),
        };
        Access::open(settings.target, lines, &self.errors, self.several)
    }

    /// With an access log of its own for the virtual host with this number, or with none for it.
    pub fn with_access_of_host(mut self, host: u16, settings: Option<AccessLogSettings>) -> io::Result<Self> {
        let own = match settings {
            Some(settings) => {
                let access = self.open_access(settings)?;
                OfHost::Own(Box::new(access))
            }
            None => OfHost::Off,
        };
        let host = usize::from(host);
        while self.of_hosts.len() <= host {
            self.of_hosts.push(OfHost::Common);
        }
        self.of_hosts[host] = own;
        Ok(self)
    }

    fn access_logs(&self) -> impl Iterator<Item = &Access> {
        let own = self.of_hosts.iter().filter_map(|of_host| match of_host {
            OfHost::Own(access) => Some(&**access),
            OfHost::Common | OfHost::Off => None,
        });
        self.access.iter().chain(own)
    }

    /// Says what the indexes of outcomes mean; once, before the first of them.
    pub fn set_names(&self, names: Names) {
        let _ = self.names.set(names);
    }

    /// The least important entries that are written.
    pub fn level(&self) -> Level {
        self.errors.level()
    }

    /// Changes which entries are written, from now on.
    pub fn set_level(&self, level: Level) {
        self.errors.set_level(level);
    }

    /// Writes at a level.
    pub fn write(&self, level: Level, text: fmt::Arguments<'_>) {
        self.errors.write(level, text);
    }

    /// Writes at [`Level::Error`].
    pub fn error(&self, text: fmt::Arguments<'_>) {
        self.errors.write(Level::Error, text);
    }

    /// Writes at [`Level::Warn`].
    pub fn warn(&self, text: fmt::Arguments<'_>) {
        self.errors.write(Level::Warn, text);
    }

    /// Writes `text` at [`Level::Warn`], once for each route, as what the request `on` of it has shown.
    pub fn warn_once(&self, route: Shape<'_>, on: impl fmt::Display, text: &str) {
        if Level::Warn <= self.level() && self.once.is_new(route, text) {
            self.warn(format_args!("{on}: {text} (said once for this route)"));
        }
    }

    /// Writes at [`Level::Info`].
    pub fn info(&self, text: fmt::Arguments<'_>) {
        self.errors.write(Level::Info, text);
    }

    /// Writes as [`info`](Self::info) does, whatever the level is: who has changed it, for one.
    pub fn notice(&self, text: fmt::Arguments<'_>) {
        self.errors.put(Level::Info, &text.to_string());
    }

    /// Writes at [`Level::Debug`].
    pub fn debug(&self, text: fmt::Arguments<'_>) {
        self.errors.write(Level::Debug, text);
    }

    /// Writes `text` without time and level: start-up lines, tracebacks.
    pub fn plain(&self, text: &str) {
        self.errors.plain(text);
    }

    /// Writes an entry each time it comes: a line of an output whose lines belong together.
    pub fn write_each(&self, level: Level, text: fmt::Arguments<'_>) {
        self.errors.write_each(level, text);
    }

    /// Writes a line of the application's own, each time and whatever the level is: what it means is known to the application only.
    pub fn application(&self, line: &str) {
        self.errors.write_marked(Severity::Notice, "app", line);
    }

    /// Switches the dispatch trace on or off: an entry for each request that a handler answers, whatever the level, with
    /// what its pool was like when a thread got it.
    pub fn set_trace(&self, on: bool) {
        self.traces.store(on, Ordering::Relaxed);
    }

    /// Whether the dispatch trace is on.
    pub fn traces(&self) -> bool {
        self.traces.load(Ordering::Relaxed)
    }

    /// Writes the entry of the dispatch trace of an exchange; `how` it got its thread.
    pub fn trace(&self, outcome: &Outcome<'_>, how: impl fmt::Display) {
        let (spans, head) = (outcome.times.spans(), outcome.head);
        let pools = self.names.get().map_or(&[][..], |names| &names.pools);
        let pool = outcome.pool.and_then(|pool| pools.get(usize::from(pool))).map_or("-", |name| name);
        // To the microsecond that the access log has.
        let seconds = |nanos: u64| Duration::from_micros(nanos / 1_000).as_secs_f64();
        let text = format!(
            "{} {} {}: pool {pool}, {how}; queue {:.6}, run {:.6}, total {:.6}",
            outcome.id,
            head.method,
            head.path().escape_ascii(),
            seconds(spans.get(Span::Queue)),
            seconds(spans.get(Span::Run)),
            seconds(spans.total())
        );
        self.errors.write_marked(Severity::Info, "trace", &text);
    }

    /// Writes the access-log line of an exchange, if its host has an access log: by default only where standard output
    /// is a terminal (`access-log = auto`). A line that finds no room in the buffer is dropped and counted.
    pub fn access(&self, outcome: &Outcome<'_>) {
        if self.pauses.load(Ordering::Relaxed) {
            return;
        }
        let access = match self.of_hosts.get(usize::from(outcome.head.host)) {
            None | Some(OfHost::Common) => self.access.as_ref(),
            Some(OfHost::Own(access)) => Some(&**access),
            Some(OfHost::Off) => None,
        };
        if let Some(access) = access {
            access.write(outcome);
        }
    }

    /// Writes the line of a call, if there is a log of calls.
    pub fn call(&self, call: &CallLine<'_>) {
        if let Some(calls) = &self.calls {
            calls.write(call);
        }
    }

    /// Whether calls are written down one by one.
    pub fn writes_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// Lines of the log of calls that were dropped; none without one.
    pub fn dropped_calls(&self) -> Option<u64> {
        self.calls.as_ref().map(|calls| calls.0.dropped())
    }

    /// How far the writer of the log of calls is.
    pub fn progress_of_calls(&self) -> Option<Progress> {
        self.calls.as_ref().map(|calls| calls.0.progress())
    }

    /// Has the access log pause, or go on.
    pub fn set_access(&self, on: bool) {
        self.pauses.store(!on, Ordering::Relaxed);
    }

    /// Whether exchanges are written down one by one.
    pub fn writes_access(&self) -> bool {
        (self.access.is_some() || !self.of_hosts.is_empty()) && !self.pauses.load(Ordering::Relaxed)
    }

    /// Opens log files anew, after they were renamed.
    pub fn reopen(&self) {
        self.errors.reopen();
        self.access_logs().for_each(Access::reopen);
        self.calls.iter().for_each(|calls| calls.0.reopen());
    }

    /// Lines dropped because a disk or a reader was too slow: of the error log, and of all access logs if there are any.
    pub fn dropped(&self) -> (u64, Option<u64>) {
        (self.errors.dropped(), self.access_logs().map(Access::dropped).reduce(|one, other| one + other))
    }

    /// The last entries of the error log of this process, the oldest first.
    pub fn kept_entries(&self) -> Vec<KeptEntry> {
        self.errors.kept()
    }

    /// The end of each access log: at most `most` of the last lines that `wanted` says. Reads files.
    pub fn access_tails(&self, most: usize, wanted: &dyn Fn(&str) -> bool) -> Vec<AccessTail> {
        self.access_logs().map(|access| access.place.tail(most, wanted)).collect()
    }

    /// How far the writers are: of the error log, and of each access log.
    pub fn progress(&self) -> (Progress, Vec<Progress>) {
        (self.errors.progress(), self.access_logs().map(Access::progress).collect())
    }

    /// Waits until everything is written, at most for `limit` each.
    pub fn flush(&self, limit: Duration) {
        self.access_logs().for_each(|access| access.flush(limit));
        self.calls.iter().for_each(|calls| _ = calls.0.flush(limit));
        self.errors.flush(limit);
    }

    /// The same at the end of the process. What cannot be written is lost; the error log says so, or standard error in its place.
    pub fn finish(&self, limit: Duration) {
        self.access_logs().for_each(|access| access.finish(limit));
        if let Some(ClientLog(writer)) = self.calls.as_ref().filter(|calls| !calls.0.flush(limit)) {
            self.error(format_args!("{}", trouble::unfinished("client", writer)));
        }
        self.errors.finish(limit);
    }
}
