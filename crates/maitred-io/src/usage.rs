//! Processor time of the process, and its switches between threads.

use std::mem::MaybeUninit;
use std::time::Duration;

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
