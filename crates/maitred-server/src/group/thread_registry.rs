//! The registry lists the threads that serve. Each thread writes into it what it is doing.
//!
//! Promises: a thread writes with plain stores into a place of its own and waits for nobody; who reads takes what it
//! finds, and notices when it was changed meanwhile (the time of entry is the sequence number). Leaves out: threads
//! that neither poll nor run requests, which the system's list has.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maitred_io::{clock, tasks};

use super::slots::Place;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs requests, and polls for them.
    Worker,
    /// The language's event loop.
    EventLoop,
    /// It runs usual requests while all workers are in slow ones.
    Reserve,
    /// It polls while no other thread can.
    BackupPoller,
}

impl Role {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::EventLoop => "event loop",
            Self::Reserve => "reserve",
            Self::BackupPoller => "backup poller",
        }
    }
}

/// All that have begun and not ended.
#[derive(Default)]
pub(crate) struct ThreadRegistry {
    members: Mutex<Vec<Arc<Member>>>,
    ended: Mutex<Ended>,
}

/// The threads that have left.
#[derive(Clone, Default)]
pub(crate) struct Ended {
    /// What they took, by role.
    pub(crate) times: Vec<(Role, Times)>,
    /// The last of them, which the system may list for a moment more.
    last: VecDeque<Arc<Member>>,
}

impl Ended {
    /// Whether this thread, and this member if it was one when it was looked up, has left.
    pub(crate) fn has(&self, tid: i32, member: Option<&Arc<Member>>) -> bool {
        self.last.iter().any(|left| member.map_or(left.tid == tid, |member| Arc::ptr_eq(left, member)))
    }

    fn add(&mut self, member: &Arc<Member>, took: Times) {
        match self.times.iter_mut().find(|(role, _)| *role == member.role) {
            Some((_, times)) => times.add(took),
            None => self.times.push((member.role, took)),
        }
        if self.last.len() == LAST_ENDED {
            self.last.pop_front();
        }
        self.last.push_back(Arc::clone(member));
    }
}

/// More than can be between their last line and their end.
const LAST_ENDED: usize = 64;

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the program.
    pub user: Duration,
    /// In the kernel for it.
    pub system: Duration,
}

impl Times {
    pub(crate) fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// One thread.
pub struct Member {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The system's number of it.
    pub tid: i32,
    /// The number of the pool whose requests it runs, if it runs any.
    pub pool: Option<usize>,
    /// Rises with every event it serves and every request it runs.
    steps: AtomicU64,
    /// The token of the event it has served last.
    event: AtomicU64,
    /// When it entered the application, in monotonic nanoseconds; 0 while it is not there.
    entered: AtomicU64,
    /// Whose request it runs: the group and the token of the connection.
    home: AtomicU32,
    token: AtomicU64,
    stream: AtomicU32,
}

/// A request, as a thread names it that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// When it entered the application, in monotonic nanoseconds.
    pub since: u64,
    /// Where the request is.
    pub place: Place,
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

impl ThreadRegistry {
    /// Notes the calling thread until it ends.
    pub(crate) fn join(self: &Arc<Self>, name: String, role: Role) {
        // An event loop runs what the default pool gets.
        self.note(name, role, (role == Role::EventLoop).then_some(0));
    }

    /// The same for a thread of this pool.
    pub(crate) fn join_pool(self: &Arc<Self>, name: String, pool: usize) {
        self.note(name, Role::Worker, Some(pool));
    }

    fn note(self: &Arc<Self>, name: String, role: Role, pool: Option<usize>) {
        OWN.with(|own| {
            let member = Arc::new(Member {
                name,
                role,
                tid: tasks::own(),
                pool,
                steps: AtomicU64::new(0),
                event: AtomicU64::new(u64::MAX),
                entered: AtomicU64::new(0),
                home: AtomicU32::new(0),
                token: AtomicU64::new(0),
                stream: AtomicU32::new(0),
            });
            // A thread serves one server for all its life.
            if own.set(Own { registry: Arc::clone(self), member: Arc::clone(&member) }).is_ok() {
                self.lock().push(member);
            }
        });
    }

    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.lock().clone()
    }

    pub(crate) fn ended(&self) -> Ended {
        self.lock_ended().clone()
    }

    fn lock_ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic elsewhere cannot leave the list half-changed.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calling thread as the system numbers it; 0 if it is in no registry.
pub(crate) fn own_tid() -> i32 {
    OWN.with(|own| own.get().map_or(0, |own| own.member.tid))
}

/// What the calling thread is called; none if it is in no registry.
pub(crate) fn own_name() -> Option<String> {
    OWN.with(|own| own.get().map(|own| own.member.name.clone()))
}

/// The calling thread serves an event. False if it is in no registry.
pub(crate) fn note_event(token: u64) -> bool {
    OWN.with(|own| {
        let Some(Own { member, .. }) = own.get() else { return false };
        member.event.store(token, Ordering::Relaxed);
        member.step();
        true
    })
}

/// The calling thread runs a request from `now` on, in monotonic nanoseconds or 0 for the present time, until the result
/// is dropped.
#[must_use]
pub(crate) fn enter(place: Place, now: u64) -> Entered {
    OWN.with(|own| {
        if let Some(Own { member, .. }) = own.get() {
            member.step();
            // A reader that sees any of the two also sees that the earlier request has ended.
            fence(Ordering::Release);
            member.home.store(place.group as u32, Ordering::Relaxed);
            member.token.store(place.token, Ordering::Relaxed);
            member.stream.store(place.stream, Ordering::Relaxed);
            let since = if now == 0 { clock::monotonic_coarse() } else { now };
            member.entered.store(since.max(1), Ordering::Release);
        }
    });
    Entered { not_send: PhantomData }
}

/// The calling thread runs a request.
pub(crate) struct Entered {
    // It must end on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        OWN.with(|own| {
            if let Some(Own { member, .. }) = own.get() {
                member.entered.store(0, Ordering::Relaxed);
            }
        });
    }
}

impl Member {
    /// Only the thread itself counts: no other store can come between.
    fn step(&self) {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// What rises as long as it gets on.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The event it has served last.
    pub fn event(&self) -> Option<u64> {
        Some(self.event.load(Ordering::Relaxed)).filter(|token| *token != u64::MAX)
    }

    /// The request it runs, if it runs one.
    pub fn inside(&self) -> Option<Inside> {
        let since = self.entered.load(Ordering::Acquire);
        let place = Place {
            group: self.home.load(Ordering::Relaxed) as usize,
            token: self.token.load(Ordering::Relaxed),
            stream: self.stream.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        let same = since != 0 && self.entered.load(Ordering::Relaxed) == since;
        same.then_some(Inside { since, place })
    }
}

/// The place of a thread, in the list as long as the thread lives.
struct Own {
    registry: Arc<ThreadRegistry>,
    member: Arc<Member>,
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(task) = tasks::read(self.member.tid) {
            let took = Times { user: task.user, system: task.system };
            self.registry.lock_ended().add(&self.member, took);
        }
        self.registry.lock().retain(|member| !Arc::ptr_eq(member, &self.member));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_while_it_lives_and_so_is_its_request() {
        let thread_registry = Arc::new(ThreadRegistry::default());
        let own = Arc::clone(&thread_registry);
        let seen = std::thread::spawn(move || {
            assert!(!note_event(1), "not yet");
            own.join("one".to_owned(), Role::Worker);
            assert!(note_event(7));
            let member = own.members().pop().expect("listed");
            assert_eq!((member.tid, member.event(), member.inside()), (tasks::own(), Some(7), None));
            let place = Place { group: 3, token: 9, stream: 1 };
            let entered = enter(place, 5);
            let inside = member.inside().expect("inside");
            assert_eq!(inside, Inside { since: 5, place });
            drop(entered);
            (member.inside(), member.steps(), own.members().len())
        });
        assert_eq!(seen.join().expect("no panic"), (None, 2, 1));
        assert!(thread_registry.members().is_empty());
    }

    #[test]
    fn the_time_of_a_thread_that_has_ended_is_kept() {
        let thread_registry = Arc::new(ThreadRegistry::default());
        for _ in 0..2 {
            let own = Arc::clone(&thread_registry);
            let burner = std::thread::spawn(move || {
                own.join("burner".to_owned(), Role::Worker);
                // The system counts in steps of 10 ms.
                let mut work = 0_u64;
                while tasks::read(tasks::own()).is_some_and(|task| (task.user + task.system).as_millis() < 20)
                {
                    work = std::hint::black_box(work + 1);
                }
            });
            burner.join().expect("no panic");
        }
        let ended = thread_registry.ended();
        assert_eq!((ended.times.len(), ended.last.len()), (1, 2));
        assert!(
            ended
                .times
                .iter()
                .all(|(role, took)| *role == Role::Worker && (took.user + took.system).as_millis() >= 40)
        );
    }
}
