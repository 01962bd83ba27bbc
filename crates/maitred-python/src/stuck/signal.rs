//! Stacks of threads without the interpreter: each writes its own, from a signal handler.
//!
//! The handler that reads the frames is Python's own, from `faulthandler.register`: it is made for any
//! moment and needs neither the interpreter nor memory. Ours stands around it and says who is meant, whether
//! the thread has the interpreter, and where the text ends.
//!
//! ```text
//! this thread: WANTED = tid, signal to tid --> thread tid: faulthandler writes frames into the pipe
//!              reads up to the end mark    <--             end mark: NUL and K (keeps) or W (waits)
//! ```
//! A system call of that thread is begun again by the kernel (SA_RESTART); the few that are not (signal(7):
//! poll, sleep) end with EINTR, as for any other signal.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::held::is_attached;

/// The thread that is to write its stack; 0 when nobody is, so that a signal that comes too late does nothing.
static WANTED: AtomicI32 = AtomicI32::new(0);
/// The handler of `faulthandler`.
static FAULTHANDLER: AtomicUsize = AtomicUsize::new(0);
/// Where it writes.
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

/// What a line begins with that names the request.
const REQUEST: char = '\x01';

/// What a thread wrote.
pub(crate) struct Dump {
    /// Whether it has the interpreter; otherwise it waits for it or does without.
    pub(crate) holds: bool,
    /// The innermost last.
    pub(crate) frames: Vec<String>,
    /// The request of an event loop that it runs.
    pub(crate) request: Option<String>,
}

/// The installed handlers and the reading end of their pipe. There is one in a process, for ever: a
/// signal may be on its way.
pub(crate) struct Dumper {
    number: c_int,
    reader: Mutex<File>,
    // Open as long as the handlers write.
    _writer: PipeWriter,
}

impl Dumper {
    /// Takes the highest real-time signal that nobody uses. After the application was imported, so that
    /// it has taken those it wants.
    pub(crate) fn install(py: Python<'_>) -> PyResult<&'static Self> {
        static INSTALLED: OnceLock<Dumper> = OnceLock::new();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed);
        }
        let (reader, writer) = io::pipe()?;
        // A thread that writes must not wait, whatever becomes of us; what does not fit is lost.
        set_nonblocking(writer.as_raw_fd())?;
        set_nonblocking(reader.as_raw_fd())?;
        let number = free_signal()?;
        let arguments = PyDict::new(py);
        arguments.set_item("file", writer.as_raw_fd())?;
        arguments.set_item("all_threads", false)?;
        py.import("faulthandler")?.call_method("register", (number,), Some(&arguments))?;
        WRITER.store(writer.as_raw_fd(), Ordering::Relaxed);
        surround(number)?;
        let reader = Mutex::new(File::from(OwnedFd::from(reader)));
        Ok(INSTALLED.get_or_init(|| Self { number, reader, _writer: writer }))
    }

    /// The stack of the thread, if it answers within `limit`. One that has blocked all signals, or that the
    /// kernel does not interrupt, does not.
    pub(crate) fn dump(&self, tid: i32, limit: Duration) -> Option<Dump> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut written = Vec::new();
        read_available(&mut reader, &mut written);
        written.clear(); // Of a thread that answered too late.
        WANTED.store(tid, Ordering::Release);
        // SAFETY: three numbers; a thread that has gone is an error.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, self.number) };
        let deadline = Instant::now() + limit;
        let mut end = None;
        while sent == 0 && end.is_none() && wait(&reader, deadline) {
            read_available(&mut reader, &mut written);
            end = written.iter().position(|byte| *byte == 0).filter(|end| written.len() > end + 1);
        }
        WANTED.store(0, Ordering::Release);
        let end = end?;
        let text = String::from_utf8_lossy(&written[..end]);
        let frames = text.lines().filter(|line| line.starts_with("  ")).rev().map(ToOwned::to_owned);
        let request =
            text.lines().find_map(|line| line.strip_prefix(REQUEST)).filter(|name| !name.is_empty());
        let request = request.map(ToOwned::to_owned);
        Some(Dump { holds: written[end + 1] == b'K', frames: frames.collect(), request })
    }
}

/// The handler. Nothing in it allocates, locks or waits.
extern "C" fn on_signal(number: c_int) {
    // SAFETY: the place of errno is valid for the life of the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: no argument, cannot fail, allowed in a signal handler (signal-safety(7): it is a bare system call).
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    if WANTED.compare_exchange(tid, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        // Compares two values of this thread, without memory or locks.
        let holds = is_attached();
        let handler = FAULTHANDLER.load(Ordering::Relaxed);
        // SAFETY: set by `surround` before our handler was installed, from a handler without SA_SIGINFO: it
        // takes the number. faulthandler's own rules allow it at any moment.
        let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
        handler(number);
        let write = |bytes: &[u8]| {
            // SAFETY: the descriptor is never closed, the bytes are valid, and write is allowed in a handler.
            // When the pipe is full the reader's time ends instead.
            let _ =
                unsafe { libc::write(WRITER.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len()) };
        };
        write(b"\n\x01");
        if let Some(named_by) = NAMED_BY.get() {
            named_by(tid, &mut |bytes| write(bytes));
        }
        write(b"\n");
        let mark: &[u8; 2] = if holds { b"\0K" } else { b"\0W" };
        write(mark);
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

/// Puts our handler around the one that is installed.
fn surround(number: c_int) -> io::Result<()> {
    let mut action = action(number)?;
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        return Err(io::Error::other("the handler of faulthandler has another form"));
    }
    FAULTHANDLER.store(action.sa_sigaction, Ordering::Relaxed);
    let ours: extern "C" fn(c_int) = on_signal;
    action.sa_sigaction = ours as libc::sighandler_t;
    action.sa_flags |= libc::SA_RESTART;
    // SAFETY: the action is one that the kernel gave, with a handler of the same form.
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

/// Reads until the pipe is empty.
fn read_available(reader: &mut File, into: &mut Vec<u8>) {
    // The end is the error "would block": there is always a writer. What came before it is kept.
    let _ = reader.read_to_end(into);
}
