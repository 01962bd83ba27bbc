//! Threads with their roles and their stacks.

use std::sync::Arc;

use maitred_io::machine;
use maitred_runtime::{ThreadHost, ThreadStack};

use super::{Member, Role, ThreadList};
use crate::connection::Group;
use crate::roles;

/// The threads of a server, and of the process around it.
#[derive(Clone, Copy)]
pub struct Threads<'s>(pub(crate) &'s Group);

impl Threads<'_> {
    /// The threads that serve, or run requests.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.0.groups.thread_registry.members()
    }

    /// All threads of the process. Empty where the system does not list them. Takes about 10 µs for each.
    pub fn of_process(&self) -> ThreadList {
        roles::list(&self.0.groups.thread_registry)
    }

    /// Whether an event loop runs the pool with this number.
    pub fn is_loop(&self, pool: usize) -> bool {
        pool == 0 && self.members().iter().any(|member| member.role == Role::EventLoop)
    }

    /// Number of threads that can run the application's code at once: one where the language has one lock for all, or
    /// one thread.
    pub fn parallel(&self) -> usize {
        let hosts = &self.0.groups.thread_hosts;
        let of_host = |host: &Arc<dyn ThreadHost>| match host.is_exclusive() || self.is_loop(0) {
            true => 1,
            false => machine::processors(),
        };
        hosts.all().iter().map(of_host).sum::<usize>().min(machine::processors())
    }

    /// Whether a thread that sleeps in the system call of this number, with this first argument, waits for the interpreter of a
    /// language that shows its lock.
    pub fn is_interpreter_waited_for(&self, call: i64, argument: u64) -> bool {
        self.0.groups.thread_hosts.is_interpreter_waited_for(call, argument)
    }

    /// Stacks of threads of the applications' languages: of one thread, or of all. `serving` lists the system numbers
    /// of the threads that run requests. None if no language has stacks to show.
    pub fn stacks(&self, wanted: Option<i32>, serving: &[i32]) -> Option<Vec<ThreadStack>> {
        let (members, hosts) = (self.members(), &self.0.groups.thread_hosts);
        let host_of = |tid: i32| {
            let member = members.iter().find(|member| member.tid == tid)?;
            Some(hosts.number_of(member.pool.unwrap_or_default()))
        };
        let mut found = None;
        for (number, host) in hosts.all().iter().enumerate() {
            // Any language may know a thread that an application has made.
            if wanted.and_then(host_of).is_some_and(|own| own != number) {
                continue;
            }
            let own: Vec<i32> =
                serving.iter().copied().filter(|tid| host_of(*tid).is_none_or(|own| own == number)).collect();
            if let Some(stacks) = host.stacks(wanted, &own) {
                found.get_or_insert_with(Vec::new).extend(stacks);
            }
        }
        found
    }
}
