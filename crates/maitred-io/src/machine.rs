//! What the machine gives this process.

/// The number of processors this process may run on (`sched_getaffinity`) and is paid for (the
/// cgroup quota, rounded up); at least 1.
pub fn processors() -> usize {
    // The standard library reads both on Linux.
    std::thread::available_parallelism().map_or(1, usize::from)
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

/// The memory that this process may use, in bytes: that of the machine, or what its control group has (memory.max of
/// version 2, of the group or one above it; memory.limit_in_bytes of version 1). `None` where nothing tells.
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
