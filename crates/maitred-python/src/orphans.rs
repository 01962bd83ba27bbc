//! Orphans that process 1 of a container takes in, and that nobody else waits for.
//!
//! The kernel makes them children of the first thread (`reap_others` of maitred-io). Applications start their own from other threads, and
//! wait for them: those that another thread has had are left alone, also when that thread has ended and they have become the first one's.
//! Leaves out: a child whose thread ends within [`EVERY`] of its start, and that is waited for elsewhere.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use maitred_io::child::reap_others;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);

/// What process 1 knows of its children.
pub(crate) struct Orphans {
    /// The application's.
    own: HashSet<u32>,
    due: Instant,
}

impl Orphans {
    /// None where this is not process 1. What has been started by now is the application's.
    pub(crate) fn of_first_process() -> Option<Self> {
        (std::process::id() == 1)
            .then(|| Self { own: children(|_| true).into_iter().collect(), due: Instant::now() + EVERY })
    }

    /// How long it is until the next look.
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
