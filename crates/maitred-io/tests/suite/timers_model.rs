//! Timers against a naive model, with a virtual clock.

use maitred_io::timers::Timers;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Set {
        id: u32,
        after: u64,
    },
    Past {
        id: u32,
        before: u64,
    },
    Cancel {
        id: u32,
    },
    /// Time passes.
    Advance {
        by: u64,
    },
    /// Time passes until the earliest queued position, as a timerfd would have it.
    Sleep,
    /// `Set` for each id that falls due at the next expiry, from within the timer action.
    Again {
        after: u64,
    },
}

/// Durations of all magnitudes, from nanoseconds to days.
fn duration() -> impl Strategy<Value = u64> {
    (0_u32..48, any::<u64>()).prop_map(|(bits, raw)| raw & ((1 << bits) - 1))
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..12, 1 => 1000_u32..1040, 1 => 60_000_u32..60_004]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (id(), duration()).prop_map(|(id, after)| Step::Set { id, after }),
        1 => (id(), duration()).prop_map(|(id, before)| Step::Past { id, before }),
        2 => id().prop_map(|id| Step::Cancel { id }),
        2 => duration().prop_map(|by| Step::Advance { by }),
        3 => Just(Step::Sleep),
        1 => duration().prop_map(|after| Step::Again { after }),
    ]
}

/// The model: a map and a scan.
struct World {
    timers: Timers,
    model: BTreeMap<u32, u64>,
    now: u64,
    again: Option<u64>,
}

impl World {
    fn set(&mut self, id: u32, deadline: u64) {
        let before = self.timers.earliest();
        let moved = self.timers.set(id, deadline);
        self.model.insert(id, deadline);
        let after = self.timers.earliest();
        assert_eq!(moved, before.unwrap_or(u64::MAX) > after.unwrap_or(u64::MAX));
    }

    fn expire(&mut self) {
        let mut due = Vec::new();
        self.timers.expire(self.now, &mut due);
        due.sort_unstable();
        let expected: Vec<u32> =
            self.model.iter().filter(|(_, deadline)| **deadline <= self.now).map(|(id, _)| *id).collect();
        assert_eq!(due, expected, "due at {}", self.now);
        self.model.retain(|_, deadline| *deadline > self.now);
        assert!(self.timers.earliest().is_none_or(|next| next > self.now), "an expiry makes progress");
        if let Some(after) = self.again.take() {
            for id in due {
                self.set(id, self.now + after);
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Set { id, after } => self.set(id, self.now + after),
            Step::Past { id, before } => self.set(id, self.now.saturating_sub(before)),
            Step::Cancel { id } => {
                self.timers.cancel(id);
                self.model.remove(&id);
            }
            Step::Advance { by } => {
                self.now += by;
                self.expire();
            }
            Step::Sleep => {
                if let Some(position) = self.timers.earliest() {
                    self.now = self.now.max(position);
                    self.expire();
                }
            }
            Step::Again { after } => self.again = Some(after),
        }
    }

    fn check(&self) {
        for id in (0..12).chain([1000, 60_000, 70_000]) {
            assert_eq!(self.timers.deadline(id), self.model.get(&id).copied());
        }
        if let Some(first) = self.model.values().min() {
            let earliest = self.timers.earliest().expect("an armed deadline is queued");
            assert!(earliest <= (*first).max(self.now), "{earliest} is after the first deadline {first}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn reports_exactly_as_a_naive_model(
        start in duration(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = World { timers: Timers::new(), model: BTreeMap::new(), now: start, again: None };
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.now += 1 << 50;
        world.again = None;
        world.expire();
        prop_assert_eq!(world.timers.earliest(), None);
        prop_assert_eq!(world.timers.queue_entries(), 0);
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn fires_at_the_deadline_and_not_a_nanosecond_earlier() {
    let timers = Timers::new();
    let mut due = Vec::new();
    assert!(timers.set(7, 75 * SECOND));
    timers.expire(75 * SECOND - 1, &mut due);
    assert!(due.is_empty());
    timers.expire(75 * SECOND, &mut due);
    assert_eq!(due, [7]);
    assert_eq!(timers.deadline(7), None);
    timers.expire(76 * SECOND, &mut due);
    assert_eq!(due, [7], "each once");
}

#[test]
fn extending_moves_nothing_until_the_old_position_comes() {
    let timers = Timers::new();
    let mut due = Vec::new();
    timers.set(1, 10 * SECOND);
    for tenth in 1..=50 {
        assert!(!timers.set(1, 10 * SECOND + tenth * SECOND / 10));
    }
    assert_eq!(timers.earliest(), Some(10 * SECOND));
    timers.expire(10 * SECOND, &mut due);
    assert!(due.is_empty());
    assert_eq!(timers.earliest(), Some(15 * SECOND));
    timers.expire(15 * SECOND, &mut due);
    assert_eq!(due, [1]);
}

/// Head timeout and keep-alive timeout alternate on one connection; a minute at 10,000 requests/s.
#[test]
fn alternating_deadlines_leave_one_entry() {
    let timers = Timers::new();
    let mut due = Vec::new();
    let mut most = 0;
    for request in 0..600_000 {
        let now = request * SECOND / 10_000;
        timers.set(1, now + 75 * SECOND);
        timers.set(1, now + 10 * SECOND);
        timers.expire(now, &mut due);
        if request % 1000 == 0 {
            most = most.max(timers.queue_entries());
        }
    }
    assert!(due.is_empty());
    assert!(most <= 2, "{most} entries");
}

/// The worst case: every change shortens below the queued position.
#[test]
fn stale_entries_are_bounded() {
    const IDS: u32 = 5000;
    let timers = Timers::new();
    let mut most = 0;
    for round in (1..200).rev() {
        for id in 0..IDS {
            timers.set(id, round * SECOND + u64::from(id));
        }
        most = most.max(timers.queue_entries());
    }
    assert!(most <= 2 * IDS as usize + 1, "{most} entries for {IDS} ids");
    let mut due = Vec::new();
    timers.expire(SECOND + u64::from(IDS), &mut due);
    due.sort_unstable();
    assert!(due.into_iter().eq(0..IDS));
}

#[test]
fn a_cancelled_deadline_is_not_reported_and_can_be_armed_again() {
    let timers = Timers::new();
    let mut due = Vec::new();
    timers.set(3, 10);
    timers.cancel(3);
    timers.cancel(4_000_000_000);
    timers.expire(20, &mut due);
    assert!(due.is_empty());
    assert_eq!(timers.earliest(), None);
    assert!(timers.set(3, 30));
    timers.expire(30, &mut due);
    assert_eq!(due, [3]);
}

#[test]
fn arming_sets_the_timer_again_when_the_earliest_moved_meanwhile() {
    let timers = Timers::new();
    timers.set(1, 100);
    let mut calls = Vec::new();
    timers.arm_with(|position| {
        calls.push(position);
        if calls.len() == 1 {
            timers.set(2, 50);
        }
    });
    assert_eq!(calls, [Some(100), Some(50)]);
}
