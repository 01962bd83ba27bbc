//! The activity of another thread of this process at this moment: it runs, or it sleeps in a system call.
//!
//! The kernel tells it in `/proc/self/task/TID/syscall` (proc(5)), for threads of the own process without any right. Reading
//! costs 2 µs and takes nothing from the thread itself.
//!
//! Promises: the answer was true when it was read. Leaves out: why a thread sleeps; the language knows which call
//! belongs to its interpreter's lock.
//!
//! Under `--cfg shuttle` the answers are made up, in one of three ways for each run: a scheduler has to be right with
//! any answers.

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The thread has a processor, or would run if it had one.
    Runs,
    /// The thread sleeps in the system call with this number, whose first argument was this.
    Sleeps {
        /// The number, as the architecture counts its calls.
        call: i64,
        /// The first argument; of futex(2) the address of the word.
        argument: u64,
    },
    /// The kernel does not tell, or the thread has ended.
    Unknown,
}

/// One thread of this process.
#[derive(Debug)]
pub struct ThreadState {
    /// The clock of the processor time that it has had.
    #[cfg(not(shuttle))]
    clock: libc::clockid_t,
    /// `None` where /proc is hidden or has no such file.
    #[cfg(not(shuttle))]
    file: Option<std::fs::File>,
    /// `status` of the same thread.
    #[cfg(not(shuttle))]
    status: Option<std::fs::File>,
}

#[cfg(not(shuttle))]
thread_local! {
    /// The calling thread's account of the scheduler; it stays open, as opening costs six times as much as reading.
    static OWN_ACCOUNT: Option<std::fs::File> = open("/proc/thread-self/schedstat");
}

/// Nanoseconds for which the calling thread has waited for a processor since it began; 0 where the kernel does not count them. Costs a
/// system call, and a descriptor for as long as the thread lives.
#[cfg(not(shuttle))]
pub fn own_starved_ns() -> u64 {
    use std::os::unix::fs::FileExt;
    let mut line = [0; LINE];
    let read = OWN_ACCOUNT.try_with(|file| file.as_ref().and_then(|file| file.read_at(&mut line, 0).ok()));
    let line = read.ok().flatten().and_then(|length| line.get(..length)).unwrap_or_default();
    crate::tasks::account(std::str::from_utf8(line).unwrap_or_default())
        .map_or(0, |(_, waited)| u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX))
}

/// A thread that always has a processor.
#[cfg(shuttle)]
pub fn own_starved_ns() -> u64 {
    0
}

#[cfg(not(shuttle))]
const LINE: usize = 256;

/// More than the kernel writes: sixty lines, of which two grow with the number of processors and memory nodes.
#[cfg(not(shuttle))]
const STATUS: usize = 4096;

#[cfg(not(shuttle))]
impl ThreadState {
    /// The calling thread. Keeps two descriptors open.
    pub fn own() -> Self {
        Self::of(crate::tasks::own())
    }

    /// The thread with this number.
    pub fn of(tid: i32) -> Self {
        // As pthread_getcpuclockid(3) makes the number of the clock of a thread: its own (4), of its processor time (2).
        let file = |name| open(&format!("/proc/self/task/{tid}/{name}"));
        Self { clock: !tid << 3 | 6, file: file("syscall"), status: file("status") }
    }

    /// How often it has gone to sleep by itself since it began; 0 where the kernel does not tell. Costs 12 µs in a virtual machine, three times [`now`](Self::now).
    pub fn sleeps(&self) -> u64 {
        use std::os::unix::fs::FileExt;
        let mut text = [0; STATUS];
        let read = self.status.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = read.and_then(|length| text.get(..length)).unwrap_or_default();
        parse_sleeps(std::str::from_utf8(text).unwrap_or_default())
    }

    /// Nanoseconds for which it has had a processor since it began; 0 if it has ended. Costs a quarter of [`now`](Self::now).
    pub fn processor_ns(&self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a local variable that outlives the call.
        if unsafe { libc::clock_gettime(self.clock, &raw mut time) } != 0 {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// The thread's activity now.
    pub fn now(&self) -> Doing {
        use std::os::unix::fs::FileExt;
        let mut line = [0; LINE];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut line, 0).ok());
        read.and_then(|length| line.get(..length)).map_or(Doing::Unknown, parse)
    }
}

/// Opens a file of this process in /proc. Once the process has given rights up, these files are root's, and the process is made one
/// whose user may open them while that happens; reading an open one is always allowed within a process.
#[cfg(not(shuttle))]
fn open(path: &str) -> Option<std::fs::File> {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
    use std::sync::{Mutex, PoisonError};
    /// One thread at a time changes it, and back.
    static CHANGES: Mutex<()> = Mutex::new(());
    match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
            let hidden = dumpable_behavior().ok()? != DumpableBehavior::Dumpable;
            if !hidden || set_dumpable_behavior(DumpableBehavior::Dumpable).is_err() {
                return None;
            }
            let opened = std::fs::File::open(path).ok();
            // A process that could set this to 1 can set it to 0.
            let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
            opened
        }
        opened => opened.ok(),
    }
}

/// Reads `running`, or `NUMBER 0xARGUMENT ...`; `-1 ...` is a thread that sleeps outside a system call, as in a page fault.
#[cfg(not(shuttle))]
fn parse(line: &[u8]) -> Doing {
    if line.starts_with(b"running") {
        return Doing::Runs;
    }
    let mut words = std::str::from_utf8(line).unwrap_or_default().split_ascii_whitespace();
    let Some(Ok(call)) = words.next().map(str::parse) else { return Doing::Unknown };
    let argument = words.next().and_then(|word| word.strip_prefix("0x"));
    let argument = argument.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    Doing::Sleeps { call, argument }
}

#[cfg(not(shuttle))]
fn parse_sleeps(status: &str) -> u64 {
    let mut lines = status.lines().rev();
    let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

#[cfg(shuttle)]
impl ThreadState {
    /// The calling thread.
    pub fn own() -> Self {
        Self {}
    }

    /// Nanoseconds of a thread that always has a processor.
    pub fn processor_ns(&self) -> u64 {
        crate::clock::monotonic()
    }

    /// A simulated thread never sleeps.
    pub fn sleeps(&self) -> u64 {
        0
    }

    /// A state, made up.
    pub fn now(&self) -> Doing {
        match simulated::mode() {
            simulated::Mode::Waits => SLEEPS,
            simulated::Mode::Computes => Doing::Runs,
            simulated::Mode::Chance if simulated::toss() => Doing::Runs,
            simulated::Mode::Chance => SLEEPS,
        }
    }
}

#[cfg(shuttle)]
const SLEEPS: Doing = Doing::Sleeps { call: 0, argument: 0 };

#[cfg(shuttle)]
mod simulated {
    use shuttle::rand::Rng as _;

    #[derive(Clone, Copy)]
    pub(super) enum Mode {
        Waits,
        Computes,
        /// Each answer for itself.
        Chance,
    }

    pub(super) fn toss() -> bool {
        shuttle::rand::thread_rng().gen_bool(0.5)
    }

    shuttle::lazy_static::lazy_static! {
        static ref MODE: Mode = match (toss(), toss()) {
            (false, false) => Mode::Waits,
            (true, true) => Mode::Computes,
            _ => Mode::Chance,
        };
    }

    pub(super) fn mode() -> Mode {
        *MODE
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::{Doing, ThreadState, parse, parse_sleeps};

    #[test]
    fn lines_of_the_kernel_are_read() {
        assert_eq!(parse(b"running\n"), Doing::Runs);
        let sleeps = |call, argument| Doing::Sleeps { call, argument };
        assert_eq!(parse(b"202 0x7fa907d40c70 0x89 0x0 0x7ffd 0x7fa9\n"), sleeps(202, 0x7fa9_07d4_0c70));
        assert_eq!(parse(b"-1 0x7ffd 0x55d0\n"), sleeps(-1, 0x7ffd));
        assert_eq!(parse(b"35\n"), sleeps(35, 0));
        for line in [&b""[..], b"\n", b"what", b"\xff\xfe"] {
            assert_eq!(parse(line), Doing::Unknown, "{line:?}");
        }
        let status = "Name:\tmaitred\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(
            (parse_sleeps(status), parse_sleeps(""), parse_sleeps("voluntary_ctxt_switches:\n")),
            (12, 0, 0)
        );
    }

    #[test]
    fn a_thread_that_computes_is_told_from_one_that_waits() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let computes = thread::spawn(move || {
            tell.send(ThreadState::own()).unwrap();
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {}
        });
        let computing = told.recv().unwrap();
        // One that is never seen to run makes the test hang.
        while computing.now() != Doing::Runs {}
        drop(end);
        computes.join().unwrap();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let waits = thread::spawn(move || {
            tell.send(ThreadState::own()).unwrap();
            stopped.recv().unwrap_err();
        });
        let waiting = told.recv().unwrap();
        // A thread that is never counted makes the test hang.
        while waiting.sleeps() == 0 {
            thread::yield_now();
        }
        // A thread that never sleeps makes the test hang.
        while !matches!(waiting.now(), Doing::Sleeps { argument, .. } if argument != 0) {
            thread::yield_now();
        }
        drop(stop);
        waits.join().unwrap();
        // The kernel knows the thread for a moment longer than join() does.
        while waiting.now() != Doing::Unknown {
            thread::yield_now();
        }
    }

    #[test]
    fn an_unreadable_state_is_unknown() {
        assert_eq!((ThreadState::of(0).now(), ThreadState::of(0).sleeps()), (Doing::Unknown, 0));
    }
}
