//! What another thread of this process is doing: its processor time, and whether it wants a processor.
//!
//! Promises: asking takes nothing from the thread itself. Its processor time costs one system call of some hundred
//! nanoseconds, its state three of some microseconds (proc(5)). Leaves out: why a thread sleeps, which the system does not tell.
//!
//! Under `--cfg shuttle` the answers are made up, in one of four ways for each run: a scheduler has to be right whatever it
//! is told.

use crate::usage::Usage;

/// One thread of this process.
#[derive(Debug)]
pub struct Activity {
    #[cfg(not(shuttle))]
    clock: libc::clockid_t,
    #[cfg(not(shuttle))]
    stat: std::path::PathBuf,
}

#[cfg(not(shuttle))]
impl Activity {
    /// The calling thread.
    pub fn own() -> Self {
        let tid = crate::tasks::own();
        Self {
            // CPUCLOCK_SCHED of one thread, as pthread_getcpuclockid(3) makes it: part of the system's interface.
            clock: (!tid << 3) | 6,
            stat: format!("/proc/self/task/{tid}/stat").into(),
        }
    }

    /// Processor time of the thread so far, in nanoseconds; `None` when it has ended.
    pub fn processor_ns(&self) -> Option<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a value of that type, which the call only writes to.
        let failed = unsafe { libc::clock_gettime(self.clock, &raw mut time) } != 0;
        let nanos = time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs();
        (!failed).then_some(nanos)
    }

    /// What the calling thread has used so far.
    pub fn own_usage() -> Usage {
        Usage::now()
    }

    /// Whether the thread runs or would if it had a processor. False where the system does not tell, and when it has ended.
    pub fn wants_processor(&self) -> bool {
        use std::io::Read;
        // `TID (name) R ...`; the name has at most 15 bytes and may hold anything, what follows it are numbers.
        let mut line = [0; 64];
        let read = std::fs::File::open(&self.stat).and_then(|mut file| file.read(&mut line));
        let Ok(length) = read else { return false };
        let line = line.get(..length).unwrap_or_default();
        let name_end = line.iter().rposition(|byte| *byte == b')');
        name_end.and_then(|end| line.get(end + 2)).is_some_and(|state| *state == b'R')
    }
}

#[cfg(shuttle)]
impl Activity {
    /// The calling thread.
    pub fn own() -> Self {
        Self {}
    }

    /// Processor time, made up: it stands still, goes with the clock, or by chance.
    pub fn processor_ns(&self) -> Option<u64> {
        let now = crate::clock::monotonic();
        match simulated::mode() {
            simulated::Mode::Waits | simulated::Mode::Queues => Some(0),
            simulated::Mode::Computes => Some(now),
            simulated::Mode::Chance => Some(if simulated::toss() { now } else { 0 }),
        }
    }

    /// What the calling thread has used, made up: it has slept each time, or never.
    pub fn own_usage() -> Usage {
        let now = crate::clock::monotonic();
        let (processor_ns, sleeps) = match simulated::mode() {
            simulated::Mode::Waits => (0, now),
            simulated::Mode::Queues => (0, 0),
            simulated::Mode::Computes => (now, 0),
            simulated::Mode::Chance => (now, if simulated::toss() { now } else { 0 }),
        };
        Usage { processor_ns, sleeps }
    }

    /// A state, made up.
    pub fn wants_processor(&self) -> bool {
        match simulated::mode() {
            simulated::Mode::Waits => false,
            simulated::Mode::Computes | simulated::Mode::Queues => true,
            simulated::Mode::Chance => simulated::toss(),
        }
    }
}

#[cfg(shuttle)]
mod simulated {
    use shuttle::rand::Rng as _;

    /// How the answers of one run are made up.
    #[derive(Clone, Copy)]
    pub(super) enum Mode {
        /// All threads sleep.
        Waits,
        /// All threads compute, with the interpreter or without it.
        Computes,
        /// All threads want a processor and get none.
        Queues,
        /// Each answer for itself.
        Chance,
    }

    pub(super) fn toss() -> bool {
        shuttle::rand::thread_rng().gen_bool(0.5)
    }

    shuttle::lazy_static::lazy_static! {
        static ref MODE: Mode = match (toss(), toss()) {
            (false, false) => Mode::Waits,
            (false, true) => Mode::Computes,
            (true, false) => Mode::Queues,
            (true, true) => Mode::Chance,
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

    use super::Activity;

    #[test]
    fn a_thread_that_computes_is_told_from_one_that_waits() {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let waits = thread::spawn({
            let tell = tell.clone();
            move || {
                tell.send(Activity::own()).unwrap();
                stopped.recv().unwrap_err();
            }
        });
        let waiting = told.recv().unwrap();
        while waiting.wants_processor() {
            thread::yield_now();
        }
        let before = waiting.processor_ns().unwrap();
        let own = Activity::own();
        while own.processor_ns().unwrap() < 2_000_000 {}
        assert!(own.wants_processor(), "it runs");
        assert_eq!(waiting.processor_ns(), Some(before), "it has waited all the time");
        drop(stop);
        waits.join().unwrap();
        // The system counts the thread for a moment longer than join() does. A thread that never ends makes the test hang.
        while waiting.processor_ns().is_some() {
            thread::yield_now();
        }
        assert!(!waiting.wants_processor());
    }
}
