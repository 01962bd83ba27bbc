//! The resources of the process, as the kernel reports them (proc(5)).
//!
//! Promises: figures that cannot be read are missing, and only those. Reading costs some ten system calls, and for
//! [`Memory`] up to a millisecond for each hundred megabytes: meant for one look every few seconds.

use std::fs;

use rustix::param::page_size;

/// All figures that could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Descriptors that are open.
    pub descriptors: Option<u64>,
    /// The most that may be.
    pub max_descriptors: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Processor time of all threads in the program and in the kernel, in nanoseconds, with a resolution of
    /// microseconds.
    pub processor_ns: (u64, u64),
    /// When it started, in seconds since 1970.
    pub started: Option<u64>,
    /// The memory of the process.
    pub memory: Memory,
}

/// The memory of the process and of the machine's connections, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in memory (RSS), pages shared with others included.
    pub resident: Option<u64>,
    /// The resident memory with each shared page divided among its processes (PSS).
    pub proportional: Option<u64>,
    /// Addresses in use.
    pub virtual_size: Option<u64>,
    /// The kernel's memory for all TCP sockets of this network namespace, those of other processes included.
    pub tcp: Option<u64>,
}

impl Figures {
    /// The figures now.
    pub fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // Behind the name, which may hold anything: the fields from the third on.
        let stat: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        let field = |number: usize| stat.get(number - 3).and_then(|text| text.parse::<u64>().ok());
        Self {
            descriptors: count_descriptors(),
            max_descriptors: crate::machine::descriptor_limit(),
            threads: field(20),
            processor_ns: crate::usage::of_process(),
            started: field(22).and_then(started),
            memory: Memory::read(),
        }
    }
}

impl Memory {
    /// The figures now.
    pub fn read() -> Self {
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages =
            |text: &str| text.parse::<u64>().ok().map(|pages| pages.saturating_mul(page_size() as u64));
        let mut sizes = statm.split_ascii_whitespace().map(pages);
        let (virtual_size, resident) = (sizes.next().flatten(), sizes.next().flatten());
        let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
        let proportional =
            line(&rollup, "Pss:").and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
        let sockets = fs::read_to_string("/proc/self/net/sockstat").unwrap_or_default();
        let tcp = line(&sockets, "TCP:")
            .and_then(|rest| rest.split("mem ").nth(1)?.split_ascii_whitespace().next());
        Self {
            resident,
            proportional: proportional.map(|kib: u64| kib.saturating_mul(1024)),
            virtual_size,
            tcp: tcp.and_then(pages),
        }
    }
}

/// The resources of the process that are cheap to read: some ten system calls for any size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in memory (RSS), and the most there ever were.
    pub resident: Option<u64>,
    /// The second.
    pub peak: Option<u64>,
    /// Bytes of it that are no file's.
    pub anonymous: Option<u64>,
    /// Bytes that are swapped out.
    pub swapped: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Descriptors that are open.
    pub descriptors: Option<u64>,
    /// Processor time of all threads in the program and in the kernel, in nanoseconds.
    pub processor: (u64, u64),
    /// How often threads gave the processor away, and how often it was taken from them (getrusage(2)).
    pub switches: (u64, u64),
}

impl Usage {
    /// Now.
    pub fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name| line(&status, name)?.split_ascii_whitespace().next()?.parse::<u64>().ok();
        let kib = |name| number(name)?.checked_mul(1024);
        Self {
            resident: kib("VmRSS:"),
            peak: kib("VmHWM:"),
            anonymous: kib("RssAnon:"),
            swapped: kib("VmSwap:"),
            threads: number("Threads:"),
            descriptors: count_descriptors(),
            processor: crate::usage::of_process(),
            switches: crate::usage::switches_of_process(),
        }
    }
}

/// The memory of this process (RSS), in bytes. Costs some microseconds.
pub fn resident_bytes() -> Option<u64> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    pages.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(page_size() as u64)
}

/// Memory that belongs to this process alone as a rule, in bytes: written pages that are no file's (anonymous pages),
/// in memory or swapped out. A leak is here, while the programs and libraries that it shares with others are not; of
/// pages that a fork has left to parent and child, each counts all until it writes to them. None where the kernel does
/// not tell (before Linux 4.5).
///
/// Costs about 20 µs for any size. The share of each page (PSS, `/proc/self/smaps_rollup`) took 2 to 5 ms for each
/// hundred megabytes (measured with 1 GiB on Linux 6.18), and threads that need new memory may wait for it meanwhile.
pub fn anonymous_bytes() -> Option<u64> {
    anonymous(&fs::read_to_string("/proc/self/status").ok()?)
}

fn anonymous(status: &str) -> Option<u64> {
    // Kernels without swap have no such line.
    let swapped = kibibytes(status, "VmSwap:").unwrap_or(0);
    Some(kibibytes(status, "RssAnon:")?.saturating_add(swapped).saturating_mul(1024))
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    line(status, name)?.split_ascii_whitespace().next()?.parse().ok()
}

/// The same, and all memory of the process (RSS), with pages that are shared with other processes. Costs as much.
pub fn memory_bytes() -> (Option<u64>, Option<u64>) {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return (None, None) };
    (anonymous(&status), kibibytes(&status, "VmRSS:").map(|kib| kib.saturating_mul(1024)))
}

/// Processor time of all threads so far, in the program and in the kernel, in nanoseconds. Costs a system call.
pub fn processor_ns() -> [u64; 2] {
    crate::usage::of_process().into()
}

/// Processor time of this thread so far, in nanoseconds. Costs a system call.
pub fn thread_processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}

fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// The number of open descriptors, without the one that is open for counting.
fn count_descriptors() -> Option<u64> {
    Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

fn started(ticks: u64) -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let booted: u64 = line(&stat, "btime ")?.trim().parse().ok()?;
    Some(booted + ticks / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_itself() {
        let before = Figures::read();
        let files: Vec<_> = (0..10).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        let block = vec![1_u8; 32 << 20];
        let barrier = std::sync::Barrier::new(2);
        let now = std::thread::scope(|scope| {
            scope.spawn(|| barrier.wait());
            let now = Figures::read();
            barrier.wait();
            now
        });
        // Other tests run beside this one.
        assert!(
            now.descriptors.unwrap() >= 10
                && now.max_descriptors.unwrap_or(u64::MAX) >= now.descriptors.unwrap()
        );
        assert!(now.threads.unwrap() >= 2);
        assert!(now.processor_ns.0 + now.processor_ns.1 >= before.processor_ns.0 + before.processor_ns.1);
        let memory = now.memory;
        let usage = Usage::read();
        assert!(usage.resident.unwrap() >= 32 << 20 && usage.peak >= usage.resident && usage.switches.0 > 0);
        assert!(resident_bytes().unwrap() >= 32 << 20);
        assert!(memory.resident.unwrap() >= 32 << 20, "{memory:?}");
        assert!(memory.virtual_size.unwrap() >= memory.resident.unwrap());
        assert!(memory.proportional.unwrap() >= 32 << 20);
        let age = crate::clock::unix_seconds().abs_diff(now.started.unwrap());
        assert!(age < 24 * 3600, "{age}");
        drop((files, block));
    }
    #[test]
    fn anonymous_memory_is_written_memory() {
        const BLOCK: u64 = 256 << 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![1; BLOCK as usize]).unwrap();
        let before = anonymous_bytes().unwrap();
        let file = fs::File::open(&path).unwrap();
        let (access, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::PRIVATE);
        let flags = flags | rustix::mm::MapFlags::POPULATE;
        // SAFETY: the kernel chooses a free place, and the file is not written to.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), BLOCK as usize, access, flags, &file, 0).unwrap()
        };
        // Other tests beside this one take some megabytes.
        let with_file = anonymous_bytes().unwrap();
        assert!(with_file < before + BLOCK / 2, "{before} {with_file}");
        let block = vec![1_u8; BLOCK as usize];
        let with_block = anonymous_bytes().unwrap();
        assert!(with_block > before + BLOCK / 2, "{before} {with_block}");
        drop(block);
        // SAFETY: as it was mapped, and without references to it.
        unsafe { rustix::mm::munmap(mapped, BLOCK as usize).unwrap() };
    }

    #[test]
    fn swapped_memory_counts() {
        assert_eq!(anonymous("VmRSS:\t 9 kB\nRssAnon:\t    2 kB\nVmSwap:\t    1 kB\n"), Some(3 << 10));
        assert_eq!(anonymous("RssAnon:\t    2 kB\n"), Some(2 << 10));
        assert_eq!(anonymous("VmSwap:\t    1 kB\n"), None);
    }
}
