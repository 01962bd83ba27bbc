//! Writes lines to a file, a pipe or a terminal without ever making the caller wait for it.
//!
//! Lines go into a bounded buffer; a thread writes them in batches, in the order they were accepted. Each write(2)
//! ends at the end of a line, so that processes that append to the same file do not mix their lines.
//!
//! What happens when writing fails:
//!
//! | state of the target | lines in the buffer | new lines |
//! |---|---|---|
//! | pipe that nobody reads, slow disk | wait | dropped and counted while the buffer is full |
//! | ENOSPC, EIO and other errors | kept, tried again after 10 ms to 1 s | the same |
//! | EPIPE: the reader has gone | lost and counted | tried, at most once a second |
//! | syslog that is not there | kept, tried again likewise | the same |
//!
//! The begin and the end of such a state are reported by [`Options::trouble`].
//!
//! A file can be [rotated](Rotation), which the thread does between two lines.
//!
//! Of several processes that write to a file ([`Options::several`]) one at a time appends; the others wait in their threads. A process
//! that is killed loses the lines that wait in it.
//!
//! A file can be [given](Target::give_to) to another user before it is opened as that user.
//!
//! The thread does not survive a fork(2): a child opens a writer of its own.
//!
//! Where lines are missing a line tells how many, as soon as there is room for it. SIGPIPE must be ignored, as Rust's and
//! Python's start-up code does.

mod batch;
mod handover;
mod rotation;
mod sink;
mod state;
mod syslog;
mod tail;
mod writer_thread;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use handover::give_folder;
pub use rotation::{Period, Rotation, present as present_path};
use sink::Sink;
use state::State;

/// Where the lines go.
#[derive(Debug)]
pub enum Target {
    /// The process's standard output.
    Stdout,
    /// The process's standard error.
    Stderr,
    /// A file, which is made if need be and appended to, a device, or a FIFO that has a reader.
    Path(PathBuf),
    /// A file that is rotated.
    Rotated(PathBuf, Rotation),
    /// The datagram socket of the local syslog, which is `/dev/log` as a rule.
    Syslog(PathBuf),
    /// A syslog that takes UDP (RFC 5426).
    SyslogUdp(SocketAddr),
    /// Something open already, such as an inherited pipe.
    File(File),
}

/// How much a line means to syslog (RFC 5424, section 6.2.1); of no meaning to other targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Severity {
    /// Something was lost.
    Error = 3,
    /// Something is not as it should be.
    Warning = 4,
    /// It may matter.
    Notice = 5,
    /// What an operator wants to know.
    Info = 6,
    /// The rest.
    Debug = 7,
}

/// What the writer itself has to say between the lines.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    /// So many lines are missing here.
    Missing(u64),
    /// The file could not be rotated, with the number of the error.
    NotRotated(i32),
}

/// What is called when a time is over: it may say lines that are due, and when it wants to be called again.
pub type Reminder = Box<dyn Fn(&mut dyn FnMut(Severity, &[u8])) -> Option<Instant> + Send + Sync>;

/// The begin and the end of a time in which lines are not written.
#[derive(Debug)]
pub enum Trouble {
    /// Writing fails; it is tried again.
    Fails(io::Error),
    /// The buffer is full, and a line has been dropped.
    Full,
    /// Everything that was accepted is written again; so many lines were dropped.
    Over {
        /// Since the begin of this time.
        dropped: u64,
    },
}

/// Gets a report of trouble, from the writer's thread or from a thread that writes a line; it must not wait.
pub type Tell = Box<dyn Fn(Trouble) + Send + Sync>;

/// What the thread does beside writing.
#[derive(Default)]
pub struct Options {
    /// Called on the thread whenever [`remind`](LineWriter::remind) says so.
    pub reminder: Option<Reminder>,
    /// Is told when lines begin not to be written, and when they are again: once each.
    pub trouble: Option<Tell>,
    /// Other processes append to the same file: lines are written under the lock of the file, a rotation by one of them is
    /// seen by the others before they write on, and no line goes into a pipe in parts if it has at most 4,096 bytes.
    pub several: bool,
}

/// How far a writer is; who looks twice sees whether it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines that were accepted and neither written nor lost.
    pub waiting: u64,
    /// Lines that were.
    pub settled: u64,
    /// Lines that were dropped.
    pub dropped: u64,
}

/// See the module text. Dropping it ends the thread once it has tried to write what was accepted, without waiting
/// for that: call [`flush`](Self::flush) before.
pub struct LineWriter {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    settled: Condvar,
    writes: AtomicU64,
    reminder: Option<Reminder>,
    trouble: Option<Tell>,
}

impl LineWriter {
    /// Opens `target` and starts the thread. At most `capacity_bytes` are buffered; a line costs its length and 17
    /// bytes.
    ///
    /// # Errors
    /// When the target cannot be opened (for a FIFO without a reader: ENXIO) or the thread not be started.
    pub fn open(target: Target, capacity_bytes: usize) -> io::Result<Self> {
        Self::open_with(target, capacity_bytes, Options::default())
    }

    /// The same with more for the thread to do.
    pub fn open_with(target: Target, capacity_bytes: usize, options: Options) -> io::Result<Self> {
        let Options { reminder, trouble, several } = options;
        let sink = Sink::open(target, several)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(capacity_bytes)),
            work: Condvar::new(),
            settled: Condvar::new(),
            writes: AtomicU64::new(0),
            reminder,
            trouble,
        });
        writer_thread::start(Arc::clone(&shared), sink)?;
        Ok(Self { shared })
    }

    /// Appends `line`, and a line feed unless it ends in one. Never waits for the target. Returns false when there
    /// is no room: the line is dropped and counted.
    pub fn write(&self, line: &[u8]) -> bool {
        self.write_as(Severity::Info, line)
    }

    /// The same, with what the line means to syslog.
    pub fn write_as(&self, severity: Severity, line: &[u8]) -> bool {
        let mut state = self.shared.lock();
        let (was_empty, was_much) = (state.pending.is_empty(), state.is_much());
        let accepted = state.accept(severity, line);
        let wanted = was_empty || (!was_much && state.is_much());
        let begins = !accepted && state.trouble_begins(1);
        drop(state);
        if begins {
            self.shared.tell(Trouble::Full);
        }
        if accepted && wanted {
            self.shared.work.notify_one();
        }
        accepted
    }

    /// Lets the thread open a path anew (after the file was renamed) before it writes the next line; a line written in
    /// part is repeated whole. Standard output and error are taken over again, in case they were redirected. When
    /// it fails the old file stays in use, see [`failure`](Self::failure).
    pub fn reopen(&self) {
        self.shared.lock().reopen_asked += 1;
        self.shared.work.notify_one();
    }

    /// Has lines wait for so long, to be written together with those that come meanwhile: a line by itself costs two changes of
    /// the thread and a call. Not where half of the buffer is used, or somebody waits.
    pub fn set_linger(&self, linger: Duration) {
        self.shared.lock().linger = linger;
    }

    /// Has the reminder called at `at`, or earlier if that has been asked for; nothing without one.
    pub fn remind(&self, at: Instant) {
        if self.shared.reminder.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        if state.remind_at.is_none_or(|earlier| at < earlier) {
            state.remind_at = Some(at);
            drop(state);
            self.shared.work.notify_one();
        }
    }

    /// Number of lines dropped for want of room or lost in a failed write, ever.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let state = self.shared.lock();
        Progress { waiting: state.accepted - state.settled, settled: state.settled, dropped: state.dropped }
    }

    /// Number of lines accepted and neither written nor lost so far, and of those dropped that no line has told of yet.
    pub fn unwritten(&self) -> u64 {
        let state = self.shared.lock();
        state.accepted - state.settled + state.unreported
    }

    /// Number of write(2) calls, successful or not.
    pub fn writes(&self) -> u64 {
        self.shared.writes.load(Relaxed)
    }

    /// The error of the last write or reopening; `None` when it succeeded.
    pub fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failure.map(io::Error::from)
    }

    /// Replaces the text of the lines that the writer adds, for logs with a format of their own.
    pub fn set_notice(&self, notice: fn(Notice) -> String) {
        self.shared.lock().notice = notice;
    }

    /// Waits until the lines accepted so far are written or lost, at most for `limit`. Returns whether they are. It
    /// cannot hang: the thread may stay blocked in write(2), this gives up.
    pub fn flush(&self, limit: Duration) -> bool {
        let mut state = self.shared.lock();
        if state.unreported > 0 && state.failure.is_none() {
            state.push_notice();
        }
        let (accepted, asked) = (state.accepted, state.reopen_asked);
        state.hurry = true;
        self.shared.work.notify_one();
        let waiting = |state: &mut State| state.settled < accepted || state.reopened < asked;
        let (_state, timeout) = self
            .shared
            .settled
            .wait_timeout_while(state, limit, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never called with the lock held: who is told may write to another log.
    fn tell(&self, trouble: Trouble) {
        if let Some(tell) = &self.trouble {
            tell(trouble);
        }
    }
}

/// Whether a pipe, a file or a terminal takes a line of up to 4,096 bytes at once (pipe(7): PIPE_BUF).
pub fn takes_a_line(descriptor: std::os::fd::BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut descriptors, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
