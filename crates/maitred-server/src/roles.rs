//! The threads of the process by what they do: what the system says of each, and what those that serve say themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use maitred_io::tasks::{self, Task};

use crate::thread_registry::{Member, ThreadRegistry, Times};

/// What the thread is called that answers the control.
pub(crate) const CONTROL: &str = "maitred-ctl";

/// One thread of the process.
pub(crate) struct Thread {
    pub(crate) task: Task,
    /// The whole one, where the system has its beginning only, or none of its own.
    pub(crate) name: String,
    pub(crate) role: &'static str,
    pub(crate) member: Option<Arc<Member>>,
}

/// What the names of threads that are in no thread_registry begin with; the system keeps 15 bytes.
const ROLES: &[(&str, &str)] = &[
    (CONTROL, "control"),
    ("maitred-log", "logger"),
    ("maitred-spool", "spooler"),
    ("maitred-hash", "password checker"),
    ("maitred-release", "releaser"),
    ("maitred-", "watch"),
    ("signals", "signals"),
];

/// All of them; none where the system does not say.
pub(crate) fn all(thread_registry: &ThreadRegistry) -> Vec<Thread> {
    let members = thread_registry.members();
    let mut members: HashMap<i32, Arc<Member>> =
        members.into_iter().map(|member| (member.tid, member)).collect();
    let main = i32::try_from(std::process::id()).unwrap_or(0);
    let known = |task: Task| {
        let member = members.remove(&task.tid);
        let role = match &member {
            Some(member) => member.role.name(),
            None if task.tid == main => "main",
            None => {
                ROLES.iter().find(|(start, _)| task.name.starts_with(start)).map_or("other", |(_, role)| role)
            }
        };
        let name = member.as_ref().map_or_else(|| task.name.clone(), |member| member.name.clone());
        Thread { task, name, role, member }
    };
    tasks::list().unwrap_or_default().into_iter().map(known).collect()
}

/// Threads of one role, and the processor time of these and of all that were there before.
#[derive(Clone, Copy, Default)]
pub(crate) struct OfRole {
    pub(crate) threads: u64,
    pub(crate) times: Times,
}

/// Takes about 10 µs for each thread; empty where the system does not list them.
pub(crate) fn by_role(thread_registry: &ThreadRegistry) -> BTreeMap<&'static str, OfRole> {
    sums(&all(thread_registry), thread_registry)
}

pub(crate) fn sums(threads: &[Thread], thread_registry: &ThreadRegistry) -> BTreeMap<&'static str, OfRole> {
    let mut roles: BTreeMap<&str, OfRole> = BTreeMap::new();
    // RequestSummary for after the list was made, so that nobody is missing in both.
    let ended = thread_registry.ended();
    for Thread { task, role, member, .. } in threads {
        if !ended.has(task.tid, member.as_ref()) {
            let sum = roles.entry(role).or_default();
            sum.threads += 1;
            sum.times.add(Times { user: task.user, system: task.system });
        }
    }
    if !threads.is_empty() {
        for (role, times) in ended.times {
            roles.entry(role.name()).or_default().times.add(times);
        }
    }
    roles
}
