//! The interpreter's global lock, looked at by threads that do not take it.
//!
//! The scheduler has to know which thread holds the interpreter, and which one waits for it. CPython has no call for
//! that. Its lock is a condition variable beside two words: the thread that has taken it last, and whether it is taken
//! (`_gil_runtime_state`, 3.10 to 3.14). Their place is found at the start, with the lock held: another thread asks for
//! the lock, the kernel reports the word on which that thread sleeps (`/proc/self/task/TID/syscall`), and the two words
//! are looked for in front of it. They have to be right both while the lock is held and after it was given up.
//! Otherwise, as where /proc is hidden or the layout is another one, there is no answer, and threads run side by side.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use maitred_io::thread_state::{Doing, ThreadState};
use maitred_runtime::InterpreterLock;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::own_memory;

/// How long learning may take. The thread that asks sleeps after some microseconds; a busy machine may take longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The two words are at most so far in front of the word on which a thread sleeps: there is the condition variable itself (48
/// bytes with glibc) and a counter between.
const REACH: usize = 128;

/// The lock with its condition variables and mutexes has at most so many bytes from the two words on.
const SIZE: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GlobalLock {
    /// The address of the thread that has taken it last. Behind it is whether it is taken.
    last_holder: usize,
    /// The number of the system call in which a thread waits for it.
    call: i64,
}

impl GlobalLock {
    pub(crate) fn learn(py: Python<'_>) -> Option<Self> {
        // SAFETY: this thread is attached.
        let own = unsafe { ffi::PyThreadState_Get() } as u64;
        let (tell, told) = mpsc::channel();
        let asks = move || {
            // SAFETY: the call has no argument and cannot fail.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            if tell.send(tid).is_ok() {
                Python::attach(|_| ());
            }
        };
        let asking = thread::Builder::new().name("maitred-learns".to_owned()).spawn(asks).ok()?;
        let found = told.recv().ok().and_then(|tid| Self::find(own, tid));
        py.detach(|| {
            let given_up = found.is_none_or(|lock| lock.holder() != own);
            // It panics only if the interpreter cannot be attached to, which ends the start elsewhere.
            let asked = asking.join().is_ok();
            found.filter(|_| given_up && asked)
        })
    }

    /// Looks for it while the thread `own` holds it and another one asks for it.
    fn find(own: u64, tid: i64) -> Option<Self> {
        let asking = ThreadState::of(i32::try_from(tid).ok()?);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match asking.now() {
                Doing::Unknown => return None,
                Doing::Sleeps { call, argument } => {
                    let word = usize::try_from(argument).ok()?;
                    if let Some(last_holder) = words_before(word, own) {
                        return Some(Self { last_holder, call });
                    }
                }
                Doing::Runs => {}
            }
            thread::yield_now();
        }
        None
    }
}

/// The address in front of `word` at which `holder` stands, with a 1 behind it.
fn words_before(word: usize, holder: u64) -> Option<usize> {
    let from = (word & !7).checked_sub(REACH)?;
    let mut bytes = [0; REACH];
    own_memory::copy(from, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    // The second one is an int, with another int or padding behind it.
    let taken = |word: u64| i32::from_ne_bytes([0, 1, 2, 3].map(|at| word.to_ne_bytes()[at])) == 1;
    let index = words.windows(2).position(|pair| pair[0] == holder && taken(pair[1]))?;
    Some(from + index * 8)
}

impl InterpreterLock for GlobalLock {
    fn holder(&self) -> u64 {
        // SAFETY: both words belong to the runtime, whose memory stays until the process ends; CPython reads and writes
        // them as atomic words, too.
        let (taken, last) = unsafe {
            let taken = AtomicI32::from_ptr((self.last_holder + 8) as *mut i32);
            (taken.load(Ordering::Relaxed), AtomicU64::from_ptr(self.last_holder as *mut u64))
        };
        if taken == 1 { last.load(Ordering::Relaxed) } else { 0 }
    }

    fn own(&self) -> u64 {
        // SAFETY: may be called by any thread once Python is initialised; null for one that Python does not know.
        unsafe { ffi::PyGILState_GetThisThreadState() as u64 }
    }

    fn is_waited_for(&self, call: i64, argument: u64) -> bool {
        let from = self.last_holder as u64 - 16;
        call == self.call && (from..from + SIZE).contains(&argument)
    }
}
