//! The races of the timers, under every interleaving shuttle finds. Run with `RUSTFLAGS="--cfg shuttle"`.
#![cfg(shuttle)]

use maitred_io::sync::{Arc, Mutex, thread};
use maitred_io::timers::Timers;

const SCHEDULES: usize = 4_000;

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    shuttle::check_pct(scenario, SCHEDULES, 3);
}

fn expired(timers: &Timers, now: u64) -> Vec<u32> {
    let mut due = Vec::new();
    timers.expire(now, &mut due);
    due.sort_unstable();
    due
}

/// Extends while the old position is being expired: the new deadline is reported then, or queued.
#[test]
fn an_extension_racing_with_expiry_is_not_lost() {
    check(|| {
        let timers = Arc::new(Timers::new());
        timers.set(1, 10);
        let other = Arc::clone(&timers);
        let setter = thread::spawn(move || {
            other.set(1, 20);
        });
        let first = expired(&timers, 15);
        setter.join().expect("setter");
        assert!(timers.earliest().is_some_and(|position| position <= 20), "queued");
        assert_eq!(timers.deadline(1), Some(20));
        assert!(first.is_empty() || first == [1], "{first:?}: the first deadline at most");
        assert!(expired(&timers, 19).is_empty(), "never early");
        assert_eq!(expired(&timers, 20), [1]);
        assert_eq!(timers.queue_entries(), 0);
    });
}

/// A deadline that is due at once, armed while another thread expires.
#[test]
fn a_due_deadline_racing_with_expiry_is_reported_once() {
    check(|| {
        let timers = Arc::new(Timers::new());
        timers.set(1, 5);
        timers.set(2, 5);
        timers.cancel(1);
        let other = Arc::clone(&timers);
        let setter = thread::spawn(move || {
            other.set(1, 8);
        });
        let other = Arc::clone(&timers);
        let expirer = thread::spawn(move || expired(&other, 10));
        let mut all = expired(&timers, 10);
        setter.join().expect("setter");
        all.extend(expirer.join().expect("expirer"));
        all.extend(expired(&timers, 10));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Shortening and extending one id from two threads while a third expires: the last deadline is reported.
#[test]
fn competing_changes_leave_the_last_deadline_queued() {
    check(|| {
        let timers = Arc::new(Timers::new());
        timers.set(1, 10);
        let change = |deadline: u64| {
            let timers = Arc::clone(&timers);
            thread::spawn(move || timers.set(1, deadline))
        };
        let (shorter, longer) = (change(7), change(30));
        let early = expired(&timers, 10);
        shorter.join().expect("shorter");
        longer.join().expect("longer");
        let left = timers.deadline(1);
        match left {
            None => assert_eq!(early, [1]),
            Some(deadline) => {
                assert!(timers.earliest().is_some_and(|position| position <= deadline.max(10)));
                assert_eq!(expired(&timers, deadline.max(10)), [1]);
            }
        }
        assert!(expired(&timers, 100).is_empty());
    });
}

/// A cancellation is either before the report or after it.
#[test]
fn a_cancellation_racing_with_expiry_leaves_no_deadline() {
    check(|| {
        let timers = Arc::new(Timers::new());
        timers.set(1, 10);
        let other = Arc::clone(&timers);
        let canceller = thread::spawn(move || other.cancel(1));
        let due = expired(&timers, 10);
        canceller.join().expect("canceller");
        assert!(due.len() <= 1);
        assert_eq!(timers.deadline(1), None);
        assert!(expired(&timers, 100).is_empty());
        assert_eq!(timers.earliest(), None);
    });
}

/// Threads that arm and expire share one timerfd: it is never left later than the earliest position.
#[test]
fn the_timer_is_never_left_too_late() {
    check(|| {
        let timers = Arc::new(Timers::new());
        let timer_fd = Arc::new(Mutex::new(None));
        let arm = |timers: &Timers, timer_fd: &Mutex<Option<u64>>| {
            timers.arm_with(|position| *timer_fd.lock().expect("timer") = position);
        };
        timers.set(9, 10);
        let setters: Vec<_> = [(1, 40), (2, 30)]
            .into_iter()
            .map(|(id, deadline)| {
                let (timers, timer_fd) = (Arc::clone(&timers), Arc::clone(&timer_fd));
                thread::spawn(move || {
                    if timers.set(id, deadline) {
                        arm(&timers, &timer_fd);
                    }
                })
            })
            .collect();
        assert_eq!(expired(&timers, 10), [9]);
        arm(&timers, &timer_fd);
        for setter in setters {
            setter.join().expect("setter");
        }
        assert_eq!(timers.earliest(), Some(30));
        assert_eq!(*timer_fd.lock().expect("timer"), Some(30));
    });
}
