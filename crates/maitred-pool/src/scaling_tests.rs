//! Every sentence of the rule, under a clock that only the test moves.

use std::time::Duration;

use super::*;
use crate::settings::Overflow;

const SECOND: u64 = 1_000_000_000;

/// Marks at 100 and 800 of a queue of 1,000.
const RULE: PoolLimits = PoolLimits {
    min_threads: 2,
    max_threads: 10,
    queue: 1_000,
    low_mark: 10,
    high_mark: 80,
    thread_idle: Duration::from_secs(60),
    thread_requests: 10_000,
    request_timeout: None,
    max_lost: 0,
    interrupt: false,
    overflow: Overflow::Wait,
    bandwidth: 0,
};

fn load(queued: usize, threads: usize, starting: usize) -> Load {
    Load { queued, threads, starting }
}

#[test]
fn the_marks_say_when_a_thread_is_made() {
    for (queued, threads, starting, may, why) in [
        (0, 5, 0, false, "nothing waits"),
        (99, 5, 0, false, "below the low mark"),
        (100, 5, 0, true, "at the low mark: one"),
        (100, 6, 1, false, "one at a time"),
        (101, 6, 1, false, "one at a time"),
        (800, 6, 1, false, "at the high mark: still one at a time"),
        (801, 6, 1, true, "above the high mark: in parallel"),
        (801, 9, 7, true, "in parallel"),
        (801, 10, 7, false, "up to the most"),
        (1_000, 10, 0, false, "up to the most"),
    ] {
        assert_eq!(RULE.may_create(load(queued, threads, starting)), may, "{why}");
    }
}

#[test]
fn no_request_waits_where_there_is_no_thread() {
    let none = PoolLimits { min_threads: 0, ..RULE };
    assert!(none.may_create(load(1, 0, 0)));
    // One on its way is counted, and it will look at the queue.
    assert!(!none.may_create(load(1, 1, 1)));
    assert!(!PoolLimits { max_threads: 0, ..none }.may_create(load(1, 0, 0)), "never beyond the most");
}

#[test]
fn the_least_is_made_up_at_once() {
    assert!(RULE.may_create(load(0, 1, 0)));
    assert!(RULE.may_create(load(0, 1, 1)));
    assert!(!RULE.may_create(load(0, 2, 2)));
    assert!(
        !PoolLimits { min_threads: 20, ..RULE }.may_create(load(0, 10, 0)),
        "the most is stronger than the least"
    );
}

#[test]
fn low_zero_lets_every_waiting_request_have_one_made() {
    let eager = PoolLimits { low_mark: 0, ..RULE };
    assert!(!eager.may_create(load(0, 5, 0)), "none waits");
    assert!(eager.may_create(load(1, 5, 0)));
    assert!(!eager.may_create(load(2, 6, 1)), "one at a time up to the high mark all the same");
    assert!(PoolLimits { high_mark: 0, ..eager }.may_create(load(2, 6, 1)), "unless that is zero too");
}

#[test]
fn high_hundred_switches_parallel_creation_off() {
    let single = PoolLimits { high_mark: 100, ..RULE };
    assert!(single.may_create(load(1_000, 5, 0)));
    assert!(!single.may_create(load(1_000, 6, 1)));
    let shrunk = PoolLimits { queue: 10, ..single };
    assert!(!shrunk.may_create(load(1_000, 6, 1)), "also where the queue is longer than it may be now");
}

#[test]
fn the_marks_are_those_of_the_present_limits() {
    let waiting = load(300, 5, 1);
    assert!(!RULE.may_create(waiting));
    let smaller = PoolLimits { queue: 300, ..RULE };
    assert_eq!((smaller.low(), smaller.high()), (30, Some(240)));
    assert!(smaller.may_create(waiting), "300 are above 80 % of 300");
    assert!(!PoolLimits { max_threads: 5, ..smaller }.may_create(waiting));
    assert!(PoolLimits { min_threads: 6, ..RULE }.may_create(load(0, 5, 1)));
    assert!(!RULE.may_create(load(99, 5, 0)) && smaller.may_create(load(30, 5, 0)));
    for (capacity, low, mark) in
        [(0, 10, 0), (5, 10, 0), (19, 10, 1), (usize::MAX, 10, usize::MAX / 100 * 10 + 1)]
    {
        assert_eq!(
            PoolLimits { queue: capacity, low_mark: low, ..RULE }.low(),
            mark,
            "{low} % of {capacity}"
        );
    }
    let most = PoolLimits { queue: usize::MAX, low_mark: u8::MAX, ..RULE };
    assert!(!most.may_create(load(usize::MAX - 1, 5, 0)), "nothing overflows");
}

#[test]
fn idle_threads_above_the_least_end_each_at_its_own_time() {
    let mut threads = 5;
    let idle_since: Vec<u64> = (0..5).map(|number| number * SECOND).collect();
    let mut ends = Vec::new();
    for second in 0..200 {
        for since in &idle_since {
            let now = second * SECOND;
            if !ends.iter().any(|(other, _)| other == since)
                && RULE.ends_idle(load(0, threads, 0), *since, now)
            {
                threads -= 1;
                ends.push((*since, now));
            }
        }
    }
    let expected = [(0, 60 * SECOND), (SECOND, 61 * SECOND), (2 * SECOND, 62 * SECOND)];
    assert_eq!((ends.as_slice(), threads), (&expected[..], RULE.min_threads));
    assert!(!RULE.ends_idle(load(1, 5, 0), 0, 100 * SECOND), "something waits for it");
}

#[test]
fn a_change_of_the_limits_is_obeyed_at_once() {
    let resting = load(0, 8, 0);
    assert!(!RULE.ends_idle(resting, 0, SECOND));
    assert!(PoolLimits { thread_idle: Duration::from_nanos(SECOND), ..RULE }.ends_idle(resting, 0, SECOND));
    assert!(
        !PoolLimits { thread_idle: Duration::from_nanos(SECOND), min_threads: 8, ..RULE }
            .ends_idle(resting, 0, SECOND)
    );
    let fewer = PoolLimits { max_threads: 7, ..RULE };
    assert!(fewer.ends_idle(resting, SECOND, SECOND), "more than the most: without its idle time");
    let mut ends = Ends::default();
    assert_eq!(ends.after_request(&RULE, resting, 1, 0), After::GoOn);
    assert_eq!(ends.after_request(&fewer, load(999, 8, 0), 1, 0), After::End { replace: false });
    assert_eq!(ends.after_request(&fewer, load(999, 7, 0), 1, 0), After::GoOn);
    // That was no end for a budget: one may follow at once.
    let tight = PoolLimits { thread_requests: 1, ..RULE };
    assert_eq!(ends.after_request(&tight, load(0, 7, 0), 1, 0), After::End { replace: false });
}

#[test]
fn a_spent_budget_ends_a_thread_unless_requests_wait() {
    let after = |rule: &PoolLimits, load, served| Ends::default().after_request(rule, load, served, 5);
    assert_eq!(after(&RULE, load(0, 5, 0), 9_999), After::GoOn);
    assert_eq!(after(&RULE, load(0, 5, 0), 10_000), After::End { replace: false });
    assert_eq!(after(&RULE, load(100, 5, 0), 10_000), After::End { replace: false }, "at the low mark");
    assert_eq!(after(&RULE, load(101, 5, 0), 20_000), After::GoOn, "above it");
    assert_eq!(
        after(&PoolLimits { thread_requests: 0, ..RULE }, load(0, 5, 0), u64::MAX),
        After::GoOn,
        "0: never"
    );
    assert_eq!(after(&RULE, load(0, 2, 0), 10_000), After::End { replace: true }, "below the least");
    assert_eq!(
        after(&PoolLimits { min_threads: 0, ..RULE }, load(0, 1, 0), 10_000),
        After::End { replace: false }
    );
    assert_eq!(
        after(&PoolLimits { min_threads: 0, ..RULE }, load(1, 1, 0), 10_000),
        After::End { replace: true },
        "one waits"
    );
}

#[test]
fn threads_stay_while_one_that_was_asked_for_has_not_begun() {
    let after = |rule: &PoolLimits, load, served| Ends::default().after_request(rule, load, served, 5);
    assert_eq!(after(&RULE, load(0, 5, 1), 10_000), After::GoOn, "whatever the budget");
    assert_eq!(
        after(&PoolLimits { max_threads: 3, ..RULE }, load(0, 5, 2), 1),
        After::GoOn,
        "three have begun"
    );
    assert_eq!(
        after(&PoolLimits { max_threads: 3, ..RULE }, load(0, 5, 1), 1),
        After::End { replace: false }
    );
    let idle = |rule: &PoolLimits, load| rule.ends_idle(load, 0, 100 * SECOND);
    assert!(!idle(&RULE, load(0, 3, 1)) && idle(&RULE, load(0, 4, 1)), "the least have begun");
    assert!(!idle(&PoolLimits { min_threads: 9, max_threads: 3, ..RULE }, load(0, 5, 2)));
}

#[test]
fn twenty_threads_past_their_budget_never_end_in_the_same_second() {
    let rule = PoolLimits { min_threads: 20, max_threads: 20, thread_requests: 100, ..RULE };
    let mut ends = Ends::default();
    let mut served = [99_u64; 20];
    let mut ended = Vec::new();
    // Each finishes a request every 10 ms, all in the same moment.
    for step in 0..3_000 {
        let now = step * 10_000_000;
        for requests in &mut served {
            *requests += 1;
            match ends.after_request(&rule, load(0, 20, 0), *requests, now) {
                After::GoOn => {}
                After::End { replace } => {
                    assert!(replace);
                    ended.push(now);
                    *requests = 0;
                }
            }
        }
    }
    assert!(ended.len() >= 25, "they do end: {}", ended.len());
    assert!(ended.windows(2).all(|pair| pair[1] - pair[0] >= ENDS_APART), "{ended:?}");
}

/// A number without a pattern from the one before it (xorshift64).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A pool that follows the rules. The least and the most stay as they are during a run, all else changes.
#[derive(Default)]
struct Model {
    queued: usize,
    starting: usize,
    /// The requests that each thread has served, and since when it is idle.
    threads: Vec<(u64, Option<u64>)>,
    ends: Ends,
    ended: Vec<u64>,
    now: u64,
}

impl Model {
    fn load(&self) -> Load {
        load(self.queued, self.threads.len() + self.starting, self.starting)
    }

    fn step(&mut self, rule: &PoolLimits, choice: u64) {
        let chosen = (choice >> 8) as usize % self.threads.len().max(1);
        match choice % 6 {
            0 => self.queued += (choice >> 8) as usize % (rule.queue / 4 + 1),
            1 => self.now += (choice >> 8) % (SECOND / 2),
            2 if self.starting > 0 => {
                self.starting -= 1;
                self.threads.push((0, Some(self.now)));
            }
            3 | 4 if !self.threads.is_empty() && self.queued > 0 => {
                self.queued -= 1;
                let served = self.threads[chosen].0 + 1;
                self.threads[chosen] = (served, Some(self.now));
                if let After::End { replace } = self.ends.after_request(rule, self.load(), served, self.now) {
                    self.threads.swap_remove(chosen);
                    self.starting += usize::from(replace);
                    self.ended.push(self.now);
                }
            }
            5 if !self.threads.is_empty() => {
                let since = self.threads[chosen].1.unwrap_or(self.now);
                if rule.ends_idle(self.load(), since, self.now) {
                    self.threads.swap_remove(chosen);
                }
            }
            _ => {}
        }
        if (self.queued > 0 || self.load().threads < rule.min_threads) && rule.may_create(self.load()) {
            self.starting += 1;
        }
    }
}

#[test]
fn any_schedule_keeps_the_promises() {
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..200 {
        let max = 1 + random(&mut seed) as usize % 30;
        let min = random(&mut seed) as usize % (max + 1);
        let mut rule = PoolLimits {
            min_threads: min,
            max_threads: max,
            thread_requests: 3,
            thread_idle: Duration::from_nanos(SECOND),
            ..RULE
        };
        let mut model = Model::default();
        while model.load().threads < min {
            model.starting += 1;
        }
        for _ in 0..2_000 {
            if random(&mut seed).is_multiple_of(50) {
                rule.queue = random(&mut seed) as usize % 200;
                rule.low_mark = (random(&mut seed) % 101) as u8;
                rule.high_mark = (random(&mut seed) % 101) as u8;
                rule.thread_idle = Duration::from_nanos(random(&mut seed) % (5 * SECOND));
                rule.thread_requests = random(&mut seed) % 5;
            }
            model.step(&rule, random(&mut seed));
            let threads = model.load().threads;
            assert!(threads <= max, "{threads} of {max}");
            assert!(threads >= min, "{threads} of {min}");
            assert!(model.queued == 0 || threads > 0, "a request waits and nobody comes");
        }
        let apart = model.ended.windows(2).all(|pair| pair[1] - pair[0] >= ENDS_APART);
        assert!(apart, "{:?}", model.ended);
    }
}

#[test]
fn threads_that_are_idle_equally_long_end_one_by_one() {
    let mut ends = Ends::default();
    let mut ended = Vec::new();
    // Eight threads of one burst; each comes again when it was told to.
    let mut due = [5 * SECOND; 8];
    while let Some(next) = due.iter().copied().filter(|time| *time < u64::MAX).min() {
        for time in due.iter_mut().filter(|time| **time == next) {
            match ends.end(next) {
                Ok(()) => {
                    ended.push(next);
                    *time = u64::MAX;
                }
                Err(wait) => *time += wait,
            }
        }
    }
    let apart: Vec<_> = ended.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(apart, [ENDS_APART; 7]);
}
