//! What a thread has used and waited for.

use std::mem::MaybeUninit;
use std::time::Duration;

/// What the calling thread has used so far. Asking is a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, in nanoseconds, with the system's resolution of microseconds.
    pub processor_ns: u64,
    /// How often the thread has gone to sleep by itself: for a lock, a peer, a disk, a timer. Being stopped for another
    /// thread is no such time.
    pub sleeps: u64,
}

impl Usage {
    /// Of the calling thread.
    pub fn now() -> Self {
        let usage = ask(libc::RUSAGE_THREAD);
        Self {
            processor_ns: nanos(usage.ru_utime).saturating_add(nanos(usage.ru_stime)),
            sleeps: usage.ru_nvcsw.unsigned_abs(),
        }
    }
}

/// Processor time of all threads of the process in the program and in the kernel, in nanoseconds.
pub(crate) fn of_process() -> (u64, u64) {
    let usage = ask(libc::RUSAGE_SELF);
    (nanos(usage.ru_utime), nanos(usage.ru_stime))
}

/// How often threads of the process have gone to sleep by themselves, and how often the processor was taken from them.
pub(crate) fn switches_of_process() -> (u64, u64) {
    let usage = ask(libc::RUSAGE_SELF);
    (usage.ru_nvcsw.unsigned_abs(), usage.ru_nivcsw.unsigned_abs())
}

fn ask(whose: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a value of that type, which the call only writes to.
    unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    // SAFETY: a value of integers only, which was zeroed: valid also if the call had failed, which it cannot for
    // these arguments.
    unsafe { usage.assume_init() }
}

fn nanos(time: libc::timeval) -> u64 {
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = seconds + Duration::from_micros(time.tv_usec.unsigned_abs());
    u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Usage;
    use std::sync::mpsc;

    #[test]
    fn waiting_is_a_sleep_and_computing_is_processor_time() {
        let before = Usage::now();
        let (answer, answered) = mpsc::channel();
        let other = std::thread::spawn(move || {
            let mut sum = 0_u64;
            while Usage::now().processor_ns < 2_000_000 {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
            answer.send(sum).unwrap();
            Usage::now()
        });
        answered.recv().unwrap();
        assert!(other.join().unwrap().processor_ns >= 2_000_000);
        assert!(Usage::now().sleeps > before.sleeps, "it waited for the other one");
    }
}
