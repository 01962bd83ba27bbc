//! The machine's resources for this process.

mod quota;

/// The number of processors this process may run on (`sched_getaffinity`) and is paid for (the
/// cgroup quota, rounded down); at least 1.
pub fn processors() -> usize {
    // The standard library reads both on Linux.
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many worker processes use all processors that this process may use: one for each that it may run on
/// (`sched_getaffinity`), but no more than the quota of its control group and those above (version 2 or 1), rounded up;
/// at least 1.
///
/// Up, because the kernel already sees to it that all workers together take no more than the quota: with one worker too
/// many they are stopped for the rest of a period (100 ms as a rule) only while all of them compute, and get the whole
/// quota. With one too few a part of it is never used, a third of 1.5 processors. An operator who minds the pauses more
/// gives a number.
pub fn worker_count() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    let paid = quota::of(&|path| std::fs::read_to_string(path).ok());
    workers(allowed, paid)
}

fn workers(allowed: usize, paid: Option<f64>) -> usize {
    let paid = paid.map_or(usize::MAX, |paid| paid.ceil() as usize);
    allowed.min(paid).max(1)
}

/// Raises the soft limit of open descriptors to the hard limit and returns it; a server needs one
/// a connection. `None` where the system has no limit.
pub fn raise_descriptor_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        return limit.current;
    }
    limit.maximum
}

/// The memory that this process may use, in bytes: that of the machine, or the limit of its control group (memory.max
/// of version 2, of the group or one above it; memory.limit_in_bytes of version 1). `None` if there is no such file.
pub fn memory_limit() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let bytes = |text: String| text.trim().parse::<u64>().ok();
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let above = std::path::Path::new(own).ancestors().filter_map(|path| path.to_str());
    let limits = above.filter_map(|group| {
        let group = group.trim_end_matches('/');
        read(&format!("/sys/fs/cgroup{group}/memory.max")).and_then(bytes)
    });
    let first = read("/sys/fs/cgroup/memory/memory.limit_in_bytes").and_then(bytes);
    limits.chain(first).chain(machine).min()
}

/// The soft limit of open descriptors now; an operator can change it while the process runs
/// (prlimit). `None` where there is none.
pub fn descriptor_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_for_each_processor_that_is_there_and_paid_for() {
        let counts = [(8, None), (8, Some(1.5)), (8, Some(2.0)), (2, Some(3.5)), (8, Some(0.2)), (0, None)];
        assert_eq!(counts.map(|(allowed, paid)| workers(allowed, paid)), [8, 2, 2, 2, 1, 1]);
        // This machine: no more than its processors, and the standard library rounds a quota down.
        let all = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default().matches("processor\t").count();
        assert!((processors()..=all.max(1)).contains(&worker_count()), "{}", worker_count());
    }
}
