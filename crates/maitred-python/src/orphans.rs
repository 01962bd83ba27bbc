//! Orphans that process 1 of a container adopts, and for which no other code waits.
//!
//! The kernel makes them children of the first thread (`reap_others` of maitred-io). Applications start their own
//! children from other threads, and wait for them. So a child that another thread has had is left alone, also when that
//! thread has ended and the child has become the first thread's. Leaves out: a child whose thread ends within [`EVERY`]
//! of its start, and that is waited for elsewhere.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use maitred_io::child::reap_others;

/// The time between two looks.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Orphans {
    own: HashSet<u32>,
    due: Instant,
}

impl Orphans {
    /// The orphans of process 1; none in other processes. Children that exist already are the application's.
    pub(crate) fn of_first_process() -> Option<Self> {
        (std::process::id() == 1)
            .then(|| Self { own: children(|_| true).into_iter().collect(), due: Instant::now() + EVERY })
    }

    pub(crate) fn pause(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Takes the ends of orphans, if it is time.
    pub(crate) fn look(&mut self) {
        if !self.pause().is_zero() {
            return;
        }
        self.due = Instant::now() + EVERY;
        let all: HashSet<u32> = children(|_| true).into_iter().collect();
        self.own.retain(|pid| all.contains(pid));
        self.own.extend(children(|task| task != std::process::id()));
        reap_others(|pid| self.own.contains(&pid));
    }
}

/// The children of these threads (proc(5)).
fn children(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
    let texts = numbers
        .filter(|task| wanted(*task))
        .map(|task| fs::read_to_string(format!("/proc/self/task/{task}/children")));
    let children =
        |text: String| text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    texts.flatten().flat_map(children).collect()
}
