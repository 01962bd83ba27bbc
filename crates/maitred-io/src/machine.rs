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

/// The soft limit of open descriptors now; an operator can change it while the process runs
/// (prlimit). `None` where there is none.
pub fn descriptor_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}
