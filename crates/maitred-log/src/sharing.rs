//! Logs of several processes: the memory for the lines of one of them, and its parts.
//!
//! A part for each log, in the order in which the worker opens them. The key of its target says whose lines are in a part, so that
//! whoever reads them needs no order.

use std::io;
use std::sync::Arc;

use maitred_io::line_writer::{Kept, Options, left_behind};
use maitred_io::shared_memory::SharedMemory;

use super::CAPACITY;

/// As much as the buffer of a log.
const PART: usize = Kept::bytes(CAPACITY);

/// How this process writes its logs.
pub(crate) struct Sharing {
    several: bool,
    /// There is memory, be it used up.
    keeps: bool,
    /// The parts that no log has yet.
    free: std::vec::IntoIter<Kept>,
}

impl Sharing {
    /// This process alone.
    pub(crate) fn none() -> Self {
        Self { several: false, ..Self::with(None) }
    }

    /// One of several, with memory for its lines.
    pub(crate) fn with(kept: Option<&Arc<SharedMemory>>) -> Self {
        let free: Vec<Kept> = kept.into_iter().flat_map(parts).collect();
        Self { several: true, keeps: kept.is_some(), free: free.into_iter() }
    }

    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// For the next log.
    pub(crate) fn options(&mut self) -> Options {
        Options { several: self.several, kept: self.free.next(), ..Options::default() }
    }
}

/// Memory for so many logs.
pub(crate) fn memory_for(logs: usize) -> io::Result<SharedMemory> {
    SharedMemory::new(logs * PART)
}

pub(crate) fn parts(memory: &Arc<SharedMemory>) -> impl Iterator<Item = Kept> + use<> {
    Kept::parts(memory, PART)
}

/// The key of the log that the part is of; 0 for none.
pub(crate) fn key_of(part: &Kept) -> u64 {
    left_behind(part.words()).key()
}

/// The number of lines that are left in the part.
pub(crate) fn lines_in(part: &Kept) -> u64 {
    left_behind(part.words()).lines.len() as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use maitred_http::{RequestHead, Status};
    use maitred_io::line_writer::Target;
    use maitred_stats::Times;

    use super::*;
    use crate::{AccessLogSettings, End, Format, Level, Log, Outcome, RequestId};

    const PLENTY: Duration = Duration::from_secs(20);

    fn answer(log: &Log) {
        let head = RequestHead::default();
        log.access(&Outcome {
            head: &head,
            peer: "192.0.2.1:99".parse::<std::net::SocketAddr>().unwrap().into(),
            id: RequestId::Made(1),
            listener: 0,
            pool: Some(0),
            route: None,
            told_route: "",
            status: Status::OK,
            body_bytes: 6,
            times: Times::default(),
            end: End::Complete,
            database: None,
        });
    }

    fn open(errors: &Path, access: &[&str], kept: Option<&Arc<SharedMemory>>) -> Log {
        let log = Log::open_shared(Level::Info, Target::Path(errors.to_owned()), kept).expect("a log");
        (0..).zip(access).fold(log, |log, (host, path)| {
            let format = Format::parse("$status $worker").expect("a format");
            let settings = AccessLogSettings { format, ..AccessLogSettings::new(Target::Path(path.into())) };
            let with = match host {
                0 => log.with_access(settings),
                host => log.with_access_of_host(host, Some(settings)),
            };
            with.expect("an access log")
        })
    }

    #[test]
    fn what_a_worker_leaves_goes_to_the_log_that_it_was_for() {
        let folder = tempfile::tempdir().expect("folder");
        let (errors, access) = (folder.path().join("errors"), folder.path().join("access"));
        let access = access.to_str().expect("UTF-8");
        let logs = [access, "/dev/full"];
        let supervisor = open(&errors, &logs, None);
        let memory = Arc::new(supervisor.memory_for_worker().expect("memory"));
        // The disk is full: what it accepts stays in the memory.
        let worker = open(&errors, &["/dev/full"], Some(&memory));
        worker.set_worker(2);
        (0..3).for_each(|_| answer(&worker));
        worker.info(format_args!("three"));
        worker.flush(PLENTY.min(Duration::from_millis(100)));
        assert_eq!(supervisor.adopt(&memory), 3);
        assert_eq!(supervisor.adopt(&memory), 0, "once");
        // One that has no such log any more.
        (0..4).for_each(|_| answer(&worker));
        let heir = open(&errors, &[access], None);
        assert_eq!(heir.adopt(&memory), 0);
        heir.flush(PLENTY);
        let shown = std::fs::read_to_string(&errors).expect("the error log");
        assert!(shown.contains(" info [2] three\n"), "{shown}");
        assert!(shown.contains(" error 4 lines of a worker are lost: "), "{shown}");
    }

    #[test]
    fn a_log_without_memory_is_told_of() {
        let folder = tempfile::tempdir().expect("folder");
        let (errors, access) = (folder.path().join("errors"), folder.path().join("access"));
        let memory = Arc::new(open(&errors, &[], None).memory_for_worker().expect("memory"));
        let worker = open(&errors, &[access.to_str().expect("UTF-8")], Some(&memory));
        worker.set_worker(7);
        answer(&worker);
        worker.flush(PLENTY);
        let shown = std::fs::read_to_string(&errors).expect("the error log");
        assert!(shown.contains(" warn an access log is not kept for the supervisor"), "{shown}");
        assert_eq!(std::fs::read_to_string(&access).expect("the access log"), "200 7\n");
    }
}
