//! The threads of this process, as the system sees them (proc(5)).
//!
//! Promises: reading takes a system call or three for each thread, about 10 µs, and nothing from the threads themselves.
//! Where there is no `/proc` the list is an error.

use std::fs;
use std::io;
use std::time::Duration;

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The system's number of it.
    pub tid: i32,
    /// The name of at most 15 bytes.
    pub name: String,
    /// `R` runs or could, `S` sleeps, `D` waits for a disk, and the other letters of proc(5).
    pub state: char,
    /// Processor time in the program, in the system's resolution of 10 ms.
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
}

/// The calling thread's number.
pub fn own() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread as a message names it: `thread 4711 (worker)`.
pub fn describe(tid: i32) -> String {
    match read(tid) {
        Some(task) => format!("thread {tid} ({})", task.name),
        None => format!("thread {tid}, which has ended"),
    }
}

/// All threads of this process, in the order of their numbers.
pub fn list() -> io::Result<Vec<Task>> {
    let entries = fs::read_dir("/proc/self/task")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut tasks: Vec<Task> = numbers.filter_map(read).collect();
    tasks.sort_by_key(|task| task.tid);
    Ok(tasks)
}

/// One thread of this process; none when it has ended.
pub fn read(tid: i32) -> Option<Task> {
    parse(tid, &fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?)
}

/// How long a thread of this process has run or waited for a processor so far: on a machine with too few processors a
/// thread that computes does both. None when it has ended.
pub fn busy(tid: i32) -> Option<Duration> {
    schedule(tid).map(|(ran, waited)| ran + waited)
}

/// The thread's time in two parts: how long it has run, and how long it has waited for a processor.
pub fn schedule(tid: i32) -> Option<(Duration, Duration)> {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap_or_default();
    // A kernel without these counts has none to read.
    account(&text).or_else(|| read(tid).map(|task| (task.user + task.system, Duration::ZERO)))
}

/// Reads `RAN WAITED ...`: nanoseconds that a thread ran, and that it waited in a processor's queue
/// (Documentation/scheduler/sched-stats.rst).
pub(crate) fn account(text: &str) -> Option<(Duration, Duration)> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok().map(Duration::from_nanos));
    Some((fields.next()??, fields.next()??))
}

/// `TID (name) S ...`; the name may hold anything, parentheses too.
fn parse(tid: i32, stat: &str) -> Option<Task> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // utime is field 14 of the line and stime 15; the state is field 3.
    let mut ticks = fields.skip(10).map(|field| field.parse::<u64>().ok());
    let second = rustix::param::clock_ticks_per_second().max(1);
    let time = |ticks: u64| Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / second));
    Some(Task { tid, name, state, user: time(ticks.next()??), system: time(ticks.next()??) })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name_is() {
        let line = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0";
        let task = parse(7, line).expect("a line");
        assert_eq!((task.name.as_str(), task.state), ("a) b (c", 'S'));
        assert_eq!(task.user.as_nanos(), 5 * task.system.as_nanos());
        assert!(parse(7, "7 (a) S 1").is_none());
    }

    #[test]
    fn the_own_thread_is_in_the_list_with_its_name() {
        let thread = std::thread::Builder::new().name("looked-for".to_owned());
        let found = thread.spawn(|| list().expect("proc").into_iter().find(|task| task.tid == own()));
        let task = found.expect("a thread").join().expect("no panic").expect("listed");
        assert_eq!(task.name, "looked-for");
        assert_eq!(account("17 4 2\n"), Some((Duration::from_nanos(17), Duration::from_nanos(4))));
        assert!(account("17").is_none() && account("").is_none() && account("a b c").is_none());
        assert_eq!(read(i32::MAX), None);
        assert!(busy(own()).is_some() && busy(i32::MAX).is_none());
    }
}
