//! The interpreters of a program's languages: one for each host that makes threads.
//!
//! A pool names its host by number. Pools of one host share an interpreter, with its samples and its permit of long computations; pools
//! of different hosts have nothing in common but the poller.

use std::io;
use std::sync::Arc;

use maitred_pool::PoolSettings;
use maitred_runtime::InterpreterLock;

use crate::interpreter::Interpreter;

/// The locks of the hosts' interpreters, by [number](PoolSettings::thread_host). Threads of a host without one run side by side.
pub type Locks = [Option<Arc<dyn InterpreterLock>>];

/// The interpreters of all hosts, by number.
pub(super) struct Interpreters(Vec<Arc<Interpreter>>);

impl Interpreters {
    pub(super) fn new(locks: &Locks) -> Self {
        Self(locks.iter().map(|lock| Arc::new(Interpreter::new(lock.clone()))).collect())
    }

    /// Fails if the pool names a host that does not exist.
    pub(super) fn of(&self, pool: &PoolSettings) -> io::Result<&Arc<Interpreter>> {
        self.0.get(pool.thread_host).ok_or_else(|| {
            let PoolSettings { name, thread_host, .. } = pool;
            let text = format!("pool {name}: no host of threads has the number {thread_host}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use maitred_pool::{RouteClass, Strategy};

    use super::*;
    use crate::Scheduler;
    use crate::app_thread::Permit;
    use crate::pool::Pool;

    /// A lock that no thread holds.
    struct Free;

    impl InterpreterLock for Free {
        fn holder(&self) -> u64 {
            0
        }

        fn own(&self) -> u64 {
            1
        }

        fn is_waited_for(&self, _: i64, _: u64) -> bool {
            false
        }
    }

    fn lock() -> Option<Arc<dyn InterpreterLock>> {
        Some(Arc::new(Free))
    }

    /// The default pool of host 0, `beside` of the same one, `second` of host 1, and `free` of host 2, which has no lock.
    fn scheduler(strategy: Strategy) -> Scheduler<u32> {
        let named = |name, thread_host| PoolSettings { thread_host, ..PoolSettings::named(name) };
        let first = PoolSettings { strategy, ..PoolSettings::default() };
        let others = [named("beside", 0), named("second", 1), named("free", 2)];
        Scheduler::new(&first, &others, 1, &[lock(), lock(), None]).unwrap()
    }

    #[test]
    fn a_permit_of_long_computations_belongs_to_all_pools_of_one_host_and_to_no_other() {
        let scheduler = scheduler(Strategy::Adaptive);
        let [own, beside, second, free] = [0, 1, 2, 3].map(|index| scheduler.pool_at(index));
        assert_eq!([own, beside, second, free].map(|pool| pool.exclusive), [true, true, true, false]);
        let thread = own.limiter.add();
        assert!(own.limiter.admit(&thread, RouteClass::CpuBound));
        for (pool, enters) in [(beside, false), (second, true)] {
            let other = pool.limiter.add();
            assert_eq!(pool.limiter.admit(&other, RouteClass::CpuBound), enters, "{}", pool.name);
            pool.limiter.remove(&other);
        }
        own.limiter.remove(&thread);
    }

    #[test]
    fn a_thread_is_sampled_by_the_interpreter_of_its_host_only() {
        let scheduler = scheduler(Strategy::Adaptive);
        let [own, second] = [0, 2].map(|index| scheduler.pool_at(index));
        let thread = second.limiter.add();
        second.limiter.force(&thread);
        thread.enter(1, 0, RouteClass::Normal);
        let count = |pool: &Pool<u32>| pool.limiter.interpreter.ask_inside(|threads| threads.count());
        assert_eq!((count(own), count(second)), (0, 1));
        assert!(!own.limiter.is_taken() && second.limiter.is_taken());
        thread.leave();
        second.limiter.give_back(&thread);
        assert_eq!(thread.permit(), Permit::None);
        second.limiter.remove(&thread);
    }

    #[test]
    fn another_strategy_has_no_limiter_for_its_own_host() {
        let scheduler = scheduler(Strategy::Epc);
        let limited = [0, 1, 2, 3].map(|index| scheduler.pool_at(index).exclusive);
        assert_eq!(limited, [false, false, true, false]);
    }

    #[test]
    fn a_pool_of_a_host_that_is_missing_is_named() {
        let other = PoolSettings { thread_host: 1, ..PoolSettings::named("second") };
        let error = Scheduler::<u32>::new(&PoolSettings::default(), &[other], 1, &[None]).err().unwrap();
        assert_eq!(error.to_string(), "pool second: no host of threads has the number 1");
    }
}
