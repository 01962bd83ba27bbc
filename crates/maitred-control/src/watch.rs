//! Threads that compute and get nowhere: logged once, with their request or their last event.
//!
//! A thread that has run, or waited for a processor, for nine tenths of five seconds, and has neither served an event
//! nor entered or left a request meanwhile, is in one request that computes, or in a loop of ours. Its counters are
//! plain stores of its own; they and the system's account of its processor time are looked at once a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use maitred_io::tasks;
use maitred_server::Server;
use maitred_server::inspect::{Inside, Member};

use super::threads::doing;

const EVERY: Duration = Duration::from_secs(1);

/// A look that is due so soon is made at once, so that its thread need not wake again.
const SLACK: Duration = Duration::from_millis(50);

/// How long a thread has to compute without getting on.
const SPINS: Duration = Duration::from_secs(5);

/// A look takes at most this part of a processor, however many threads there are.
const SHARE: u32 = 200;

#[derive(Default)]
pub(super) struct SpinWatch {
    seen: HashMap<i32, Seen>,
    due: Option<Instant>,
}

/// A thread as it was when it last got on.
#[derive(Clone, Copy)]
struct Seen {
    steps: u64,
    inside: Option<Inside>,
    /// When that was, and how long it had run or waited for a processor until then.
    at: Instant,
    used: Duration,
    told: bool,
}

impl SpinWatch {
    /// Looks, if it is time to; how long it is not.
    pub(super) fn look(&mut self, server: &Server, now: Instant) -> Duration {
        if let Some(left) = self.due.map(|due| due.saturating_duration_since(now))
            && left > SLACK
        {
            return left;
        }
        let members = server.threads().members();
        self.seen.retain(|tid, _| members.iter().any(|member| member.tid == *tid));
        for member in &members {
            let Some(used) = tasks::busy(member.tid) else { continue };
            let present = Seen { steps: member.steps(), inside: member.inside(), at: now, used, told: false };
            let seen = self.seen.entry(member.tid).or_insert(present);
            if seen.advance(present) {
                server.log().warn(format_args!("{}", told(server, member, &present)));
            }
        }
        let next = EVERY.max(now.elapsed() * SHARE);
        self.due = Some(now + next);
        next
    }
}

impl Seen {
    /// Updates the thread's state. Returns whether it is to be logged, which is so once.
    fn advance(&mut self, now: Self) -> bool {
        let elapsed = now.at.saturating_duration_since(self.at);
        let used = now.used.saturating_sub(self.used);
        let gets_on = now.steps != self.steps || now.inside != self.inside;
        // Where the system counts in steps of 10 ms, so may two of its counts be wrong.
        if gets_on || used + Duration::from_millis(20) < elapsed * 9 / 10 {
            *self = now;
            return false;
        }
        let spins = elapsed >= SPINS && !self.told;
        self.told |= spins;
        spins
    }
}

fn told(server: &Server, member: &Member, seen: &Seen) -> String {
    let Member { name, tid, .. } = member;
    let seconds = SPINS.as_secs();
    let what = match (seen.inside, member.event()) {
        (Some(_), _) => format!("in the application: {}", doing(server, member)),
        (None, Some(token)) => {
            format!("outside of the application; its last event was {}", event(server, token))
        }
        (None, None) => "outside of the application, before its first event".to_owned(),
    };
    format!("thread {name} (tid {tid}) has computed for {seconds} s without getting on, {what}")
}

fn event(server: &Server, token: u64) -> String {
    match server.connections().of_event(token) {
        Some((place, shown)) => {
            format!("of the connection {place} of {}, {}", shown.peer, shown.state.name())
        }
        None => format!("{token:#x}, of a listener, a timer or a connection that has ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that is looked at each second: seconds of processor time, steps, in a request since.
    fn told(looks: &[(u64, u64, Option<u64>)]) -> Vec<usize> {
        let begin = Instant::now();
        let seen = |second: usize, (used, steps, since): (u64, u64, Option<u64>)| Seen {
            steps,
            inside: since.map(|since| Inside { since, place: "0.1.0".parse().expect("a place") }),
            at: begin + Duration::from_secs(second as u64),
            used: Duration::from_millis(used),
            told: false,
        };
        let mut state = seen(0, looks[0]);
        let told = looks.iter().enumerate().filter(|(second, look)| state.advance(seen(*second, **look)));
        told.map(|(second, _)| second).collect()
    }

    #[test]
    fn one_that_computes_on_the_same_request_is_told_of_once() {
        let looks: Vec<_> = (0..12).map(|second| (second * 1000, 7, Some(1))).collect();
        assert_eq!(told(&looks), [5]);
        let again: Vec<_> = (0..12).map(|second| (second * 1000, 7, Some(1 + second / 6))).collect();
        assert_eq!(told(&again), [5, 11]);
    }

    #[test]
    fn one_that_gets_on_or_waits_is_not() {
        let busy: Vec<_> = (0..12).map(|second| (second * 1000, second / 4, Some(1))).collect();
        assert!(told(&busy).is_empty());
        let other_requests: Vec<_> = (0..12).map(|second| (second * 1000, 7, Some(second / 4))).collect();
        assert!(told(&other_requests).is_empty());
        let waits: Vec<_> = (0..12).map(|second| (second * 800, 7, None)).collect();
        assert!(told(&waits).is_empty());
        let spins: Vec<_> = (0..12).map(|second| (second * 950, 7, None)).collect();
        assert_eq!(told(&spins), [5]);
    }
}
