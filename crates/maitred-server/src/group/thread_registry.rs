//! The registry of the threads that serve. Each thread writes its activity into it.
//!
//! Promises: a thread writes with plain stores into a place of its own and waits for no other thread; a reader
//! notices a change during its read (the time of entry is the sequence number). Leaves out: threads that neither poll
//! nor run requests, which the system's list has.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maitred_io::{clock, tasks};

use super::slots::Place;

/// Role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A thread that runs requests, and polls for events.
    Worker,
    /// The language's event loop.
    EventLoop,
    /// A thread that runs usual requests while all workers are in slow ones.
    Reserve,
    /// A thread that polls while no other thread can.
    BackupPoller,
}

impl Role {
    /// The name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::EventLoop => "event loop",
            Self::Reserve => "reserve",
            Self::BackupPoller => "backup poller",
        }
    }
}

/// Members that have begun and not ended.
#[derive(Default)]
pub(crate) struct ThreadRegistry {
    members: Mutex<Vec<Arc<Member>>>,
    ended: Mutex<Ended>,
}

/// Threads that have left.
#[derive(Clone, Default)]
pub(crate) struct Ended {
    /// Processor time of these threads, by role.
    pub(crate) times: Vec<(Role, Times)>,
    /// The last of these threads; the system may list them for a moment more.
    last: VecDeque<Arc<Member>>,
}

impl Ended {
    /// Whether a thread has left: `member` if an earlier look-up has found one, otherwise a thread numbered `tid`.
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

/// More threads than can be between their last line and their end.
const LAST_ENDED: usize = 64;

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in the program.
    pub user: Duration,
    /// Time in the kernel for the program.
    pub system: Duration,
}

impl Times {
    pub(crate) fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// A thread of the registry.
pub struct Member {
    /// Name of the thread.
    pub name: String,
    /// Role of the thread.
    pub role: Role,
    /// System number of the thread.
    pub tid: i32,
    /// Number of the pool whose requests the thread runs, if any.
    pub pool: Option<usize>,
    /// Count of served events and run requests.
    steps: AtomicU64,
    /// Token of the last event.
    event: AtomicU64,
    /// Time at which the thread entered the application, in monotonic nanoseconds; 0 outside.
    entered: AtomicU64,
    /// Group and token of the connection whose request the thread runs.
    home: AtomicU32,
    token: AtomicU64,
    stream: AtomicU32,
}

/// A request in the hands of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Time at which the thread entered the application, in monotonic nanoseconds.
    pub since: u64,
    /// Place of the request.
    pub place: Place,
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

impl ThreadRegistry {
    /// Adds the calling thread, until it ends.
    pub(crate) fn join(self: &Arc<Self>, name: String, role: Role) {
        // An event loop runs the requests of the default pool.
        self.note(name, role, (role == Role::EventLoop).then_some(0));
    }

    /// Adds the calling thread as one of this pool, until it ends.
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

/// System number of the calling thread; 0 if the thread is in no registry.
pub(crate) fn own_tid() -> i32 {
    OWN.with(|own| own.get().map_or(0, |own| own.member.tid))
}

/// Name of the calling thread; none if the thread is in no registry.
pub(crate) fn own_name() -> Option<String> {
    OWN.with(|own| own.get().map(|own| own.member.name.clone()))
}

/// The group of the request that the calling thread runs, if it runs one.
pub(crate) fn own_group() -> Option<usize> {
    OWN.with(|own| own.get()?.member.inside().map(|inside| inside.place.group))
}

/// Notes that the calling thread serves an event. Returns false if the thread is in no registry.
pub(crate) fn note_event(token: u64) -> bool {
    OWN.with(|own| {
        let Some(Own { member, .. }) = own.get() else { return false };
        member.event.store(token, Ordering::Relaxed);
        member.step();
        true
    })
}

/// Notes that the calling thread runs a request from `now` on, in monotonic nanoseconds or 0 for the present time,
/// until the result is dropped.
#[must_use]
pub(crate) fn enter(place: Place, now: u64) -> Entered {
    OWN.with(|own| {
        if let Some(Own { member, .. }) = own.get() {
            member.step();
            // A reader that sees either store also sees that the earlier request has ended.
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

/// The run of a request by the calling thread.
pub(crate) struct Entered {
    // The run must end on the thread on which it began.
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
    /// Only the thread itself writes the count, so no store can come between.
    fn step(&self) {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// A number that rises as long as the thread makes progress.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Token of the last event.
    pub fn event(&self) -> Option<u64> {
        Some(self.event.load(Ordering::Relaxed)).filter(|token| *token != u64::MAX)
    }

    /// The request that the thread runs, if any.
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

/// The member of a thread, in the list as long as the thread lives.
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
