//! Whether a worker is idle while requests wait: looks at the states of all threads of all workers, again and again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Between two looks: each costs a system call for every thread, and takes a processor from the workers.
const APART: Duration = Duration::from_millis(3);

/// A worker that looks idle is looked at again after this time. Waking a thread takes less, so a worker that is idle twice is not just
/// waking up.
const AGAIN: Duration = Duration::from_micros(200);

/// Looks until the threads are listed anew.
const LIST: u32 = 50;

/// What was seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) looks: u64,
    /// Both times a worker slept in all its threads although there were more requests than workers that did not.
    pub(crate) idle: u64,
}

/// Looks until `ended`; `asked` is how many requests have been sent and not answered.
pub(crate) fn watch(workers: &[u32], asked: &AtomicUsize, ended: &AtomicBool) -> io::Result<Seen> {
    let mut seen = Seen::default();
    let mut threads = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        if seen.looks.is_multiple_of(LIST.into()) {
            threads = workers.iter().map(|pid| states_of(*pid)).collect::<io::Result<Vec<_>>>()?;
        }
        let first = idle(&threads, asked);
        let both = if first == 0 {
            0
        } else {
            std::thread::sleep(AGAIN);
            first & idle(&threads, asked)
        };
        seen.looks += 1;
        seen.idle += u64::from(both != 0);
        std::thread::sleep(APART);
    }
    Ok(seen)
}

/// The workers that sleep although requests wait, one bit for each.
fn idle(workers: &[Vec<File>], asked: &AtomicUsize) -> u64 {
    // Before the threads, which may get to it meanwhile.
    let open = asked.load(Ordering::SeqCst);
    let idle = workers.iter().enumerate().filter(|(_, own)| own.iter().all(sleeps));
    let idle = idle.fold(0_u64, |bits, (worker, _)| bits | 1 << (worker % 64));
    if open > workers.len() - idle.count_ones() as usize { idle } else { 0 }
}

/// The states of the threads of a process (proc(5)), to be read again and again.
fn states_of(pid: u32) -> io::Result<Vec<File>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(tasks.filter_map(|task| File::open(task.ok()?.path().join("stat")).ok()).collect())
}

/// Whether a thread waits for something; one that has ended does.
fn sleeps(stat: &File) -> bool {
    let mut line = [0; 64];
    let length = stat.read_at(&mut line, 0).unwrap_or(0);
    let name_end = line[..length].iter().rposition(|byte| *byte == b')');
    name_end.and_then(|end| line.get(end + 2)).is_none_or(|state| *state != b'R')
}
