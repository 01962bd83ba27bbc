//! The threads of the process by role: facts of the system, and of the threads that serve.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use maitred_io::tasks;
use maitred_io::tasks::Task;

use crate::group::thread_registry::{Member, ThreadRegistry, Times};

/// Name of the thread that answers the control.
pub const CONTROL: &str = "maitred-ctl";

/// One thread of the process.
pub struct ProcessThread {
    /// Facts of the system.
    pub task: Task,
    /// The whole name, where the system has only the beginning or no name.
    pub name: String,
    /// Role of the thread.
    pub role: &'static str,
    /// Facts of the thread itself, if it serves or runs requests.
    pub member: Option<Arc<Member>>,
}

/// The threads of the process, and their sums.
pub struct ThreadList {
    /// The threads.
    pub threads: Vec<ProcessThread>,
    /// Sums by role, including the times of ended threads.
    pub roles: BTreeMap<&'static str, OfRole>,
}

/// Beginnings of the names of threads that are in no registry, with their roles; the system keeps 15 bytes.
const ROLES: &[(&str, &str)] = &[
    (CONTROL, "control"),
    ("maitred-log", "logger"),
    ("maitred-spool", "spooler"),
    ("maitred-hash", "password checker"),
    ("maitred-release", "releaser"),
    ("maitred-", "watch"),
    ("signals", "signals"),
];

/// Lists all threads; none where the system does not list them.
pub(crate) fn list(thread_registry: &ThreadRegistry) -> ThreadList {
    let threads = all(thread_registry);
    let roles = sums(&threads, thread_registry);
    ThreadList { threads, roles }
}

fn all(thread_registry: &ThreadRegistry) -> Vec<ProcessThread> {
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
        ProcessThread { task, name, role, member }
    };
    tasks::list().unwrap_or_default().into_iter().map(known).collect()
}

/// Number of threads of one role, and the processor time of present and ended ones.
#[derive(Clone, Copy, Default)]
pub struct OfRole {
    /// Number of threads.
    pub threads: u64,
    /// Their processor time.
    pub times: Times,
}

fn sums(threads: &[ProcessThread], thread_registry: &ThreadRegistry) -> BTreeMap<&'static str, OfRole> {
    let mut roles: BTreeMap<&str, OfRole> = BTreeMap::new();
    // Read after the list was made, so that no thread is missing in both.
    let ended = thread_registry.ended();
    for ProcessThread { task, role, member, .. } in threads {
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
