//! Stacks of threads without the interpreter: each writes its own, from a signal handler.
//!
//! On the thread itself its frames cannot change under the reader. They may be half made, which [`frames`](super::frames)
//! is written for.
//!
//! ```text
//! this thread: WANTED = tid, signal to tid --> thread tid: writes its frames and its request into the pipe
//!              reads up to its end mark    <--             end mark: NUL, K (keeps) or W (waits), F (frames) or N (none), tid
//! ```
//! A system call of that thread is begun again by the kernel (SA_RESTART); the few that are not (signal(7):
//! poll, sleep) end with EINTR, as for any other signal.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::frames;
use crate::held::is_attached;

/// The thread that is to write its stack; 0 without one, so that a signal that comes too late does nothing.
static WANTED: AtomicI32 = AtomicI32::new(0);
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// Calls the function with the parts of `GET /path`, if the calling thread, whose number is given, runs a request that only
/// that thread knows. Called in a signal handler, where nothing may be allocated, locked or waited for.
pub(crate) type NameRequest = fn(i32, &mut dyn FnMut(&[u8]));

/// Set before the first stack is asked for; reading it is one load.
static NAMED_BY: OnceLock<NameRequest> = OnceLock::new();

/// Requests of an event loop are named by this from now on.
pub(crate) fn name_requests_by(name: NameRequest) {
    // Another loop of this process has the same function.
    let _ = NAMED_BY.set(name);
}

/// The first character of a line that names the request.
const REQUEST: char = '\x01';

/// The stack that a thread wrote.
pub struct Dump {
    /// Whether it has the interpreter; otherwise it waits for it or does without.
    pub holds: bool,
    /// The innermost last. `None` if the frames of this Python cannot be read without the interpreter.
    pub frames: Option<Vec<String>>,
    /// The request of an event loop that it runs.
    pub request: Option<String>,
}

/// The installed handlers and the reading end of their pipe. There is one in a process, for ever: a
/// signal may be on its way.
pub struct Dumper {
    number: c_int,
    reader: Mutex<File>,
    // Open as long as the handlers write.
    _writer: PipeWriter,
}

static INSTALLED: OnceLock<Dumper> = OnceLock::new();

impl Dumper {
    pub(super) fn installed() -> Option<&'static Self> {
        INSTALLED.get()
    }

    /// Takes the highest real-time signal that is unused. After the application was imported, so that it has taken
    /// those it wants.
    ///
    /// # Errors
    /// The process has no descriptor left, or another program's handlers took all signals.
    pub fn install(py: Python<'_>) -> PyResult<&'static Self> {
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed);
        }
        let (reader, writer) = io::pipe()?;
        // A thread that writes must not wait for a reader; text that does not fit is lost.
        set_nonblocking(writer.as_raw_fd())?;
        set_nonblocking(reader.as_raw_fd())?;
        frames::prepare(py)?;
        let number = free_signal()?;
        WRITER.store(writer.as_raw_fd(), Ordering::Relaxed);
        handle(number)?;
        let reader = Mutex::new(File::from(OwnedFd::from(reader)));
        Ok(INSTALLED.get_or_init(|| Self { number, reader, _writer: writer }))
    }

    /// The stack of the thread, if it answers within `limit`. One that has blocked all signals, or that the
    /// kernel does not interrupt, does not.
    pub fn dump(&self, tid: i32, limit: Duration) -> Option<Dump> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut written = Vec::new();
        read_available(&mut reader, &mut written);
        written.clear(); // Of a thread that answered too late.
        WANTED.store(tid, Ordering::Release);
        // SAFETY: three numbers; a thread that has gone is an error.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, self.number) };
        let deadline = Instant::now() + limit;
        let mut mark = None;
        while sent == 0 && mark.is_none() && wait(&reader, deadline) {
            read_available(&mut reader, &mut written);
            mark = mark_of(tid, &mut written);
        }
        WANTED.store(0, Ordering::Release);
        let (end, [holds, readable]) = mark?;
        let text = String::from_utf8_lossy(&written[..end]);
        let frames =
            text.lines().filter(|line| line.starts_with("  ")).rev().map(ToOwned::to_owned).collect();
        let request =
            text.lines().find_map(|line| line.strip_prefix(REQUEST)).filter(|name| !name.is_empty());
        let request = request.map(ToOwned::to_owned);
        Some(Dump { holds: holds == b'K', frames: (readable == b'F').then_some(frames), request })
    }
}

/// The end of this thread's text, and the content of its end mark. The text of another thread, which answered too late,
/// is removed.
fn mark_of(tid: i32, written: &mut Vec<u8>) -> Option<(usize, [u8; 2])> {
    loop {
        let end = written.iter().position(|byte| *byte == 0)?;
        let [_, holds, readable, number @ ..] = written[end..].first_chunk::<7>()?;
        if *number == tid.to_ne_bytes() {
            return Some((end, [*holds, *readable]));
        }
        written.drain(..end + 7);
    }
}

/// The handler. Nothing in it allocates, locks or waits.
extern "C" fn on_signal(_number: c_int) {
    // SAFETY: the place of errno is valid for the life of the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: no argument, cannot fail, allowed in a signal handler (signal-safety(7): it is a bare system call).
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if WANTED.compare_exchange(tid, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        // Compares two values of this thread, without memory or locks.
        let holds = is_attached();
        let mut write = |bytes: &[u8]| {
            // SAFETY: the descriptor is never closed, the bytes are valid, and write is allowed in a handler.
            // When the pipe is full the reader's time ends instead.
            let _ =
                unsafe { libc::write(WRITER.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len()) };
        };
        let readable = frames::write_own(&mut write);
        write(b"\x01");
        if let Some(named_by) = NAMED_BY.get() {
            named_by(tid, &mut |bytes| write(bytes));
        }
        write(b"\n");
        let (holds, readable) = (if holds { b'K' } else { b'W' }, if readable { b'F' } else { b'N' });
        let [a, b, c, d] = tid.to_ne_bytes();
        write(&[0, holds, readable, a, b, c, d]);
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// The highest real-time signal with the default action.
fn free_signal() -> io::Result<c_int> {
    (libc::SIGRTMIN()..=libc::SIGRTMAX())
        .rev()
        .find(|number| action(*number).is_ok_and(|action| action.sa_sigaction == libc::SIG_DFL))
        .ok_or_else(|| io::Error::other("all real-time signals are in use"))
}

fn handle(number: c_int) -> io::Result<()> {
    let mut action = action(number)?;
    let handler: extern "C" fn(c_int) = on_signal;
    action.sa_sigaction = handler as libc::sighandler_t;
    // On the other stack where a thread has one: this one may be almost used up.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the action is one that the kernel gave, with a handler that takes the number alone.
    match unsafe { libc::sigaction(number, &action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn action(number: c_int) -> io::Result<libc::sigaction> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: only reads, into a structure of our own.
    match unsafe { libc::sigaction(number, ptr::null(), &mut action) } {
        0 => Ok(action),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_nonblocking(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; a new pipe has no other flag that would be lost.
    match unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Waits until something can be read; false at the deadline.
fn wait(reader: &File, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now()).as_millis() as c_int;
    let mut wanted = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure of our own, and its number.
    unsafe { libc::poll(&mut wanted, 1, left) > 0 }
}

fn read_available(reader: &mut File, into: &mut Vec<u8>) {
    // The end is the error "would block": there is always a writer. The bytes before it are kept.
    let _ = reader.read_to_end(into);
}
