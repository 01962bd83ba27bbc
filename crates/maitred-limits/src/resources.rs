//! The memory of all connections together, and the mode for scarce resources.
//!
//! Each connection reports the bytes that it holds when they have changed: one addition, and none for a request that
//! came and left within a turn. Beyond the budget new requests are refused, which costs one load each. Pure but for its
//! counters: the looks and their consequences are elsewhere (`listener.rs`, `group/`).

use maitred_io::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::heads::Heads;

/// Bytes that connections hold in buffers: received bytes that are not handled, bodies in memory that a handler has or
/// waits for, and bytes that wait to be sent.
#[derive(Default)]
pub struct Budget {
    /// 0: any number.
    most: AtomicU64,
    held: AtomicU64,
    over: AtomicBool,
}

impl Budget {
    pub(crate) fn set(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
        if most == 0 {
            self.over.store(false, Ordering::Relaxed);
        }
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    /// Bytes held, and how many may be.
    pub fn figures(&self) -> (u64, u64) {
        (self.held.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }

    /// Whether more is held than may be. It stays so until an eighth is free, so that it does not change all the time.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Changes the bytes of one holder from `before` to `now`; whether the budget is used up by that.
    pub fn change(&self, before: u64, now: u64) -> bool {
        let difference = now.wrapping_sub(before);
        let held = self.held.fetch_add(difference, Ordering::Relaxed).wrapping_add(difference);
        let most = self.most.load(Ordering::Relaxed);
        if most > 0 && held > most {
            return !self.over.swap(true, Ordering::Relaxed);
        }
        if held <= most - most / 8 && self.is_over() {
            self.over.store(false, Ordering::Relaxed);
        }
        false
    }
}

/// A scarce resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scarce {
    /// Places for connections.
    Connections = 1,
    /// Memory for buffers.
    Buffers = 2,
    /// Memory for heads of requests.
    Heads = 3,
}

impl Scarce {
    /// The name as it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Buffers => "buffers",
            Self::Heads => "heads",
        }
    }

    /// Whether it helps that idle connections end.
    pub fn is_held_by_idle(self) -> bool {
        self != Self::Heads
    }
}

/// The scarce resource. From nine tenths of the connections on there are few left, until there are less than eight
/// tenths.
fn scarce(open: usize, most: usize, over: bool, heads: &Heads, was: Option<Scarce>) -> Option<Scarce> {
    let mark = if was == Some(Scarce::Connections) { most / 10 * 8 } else { most - most / 10 };
    match (over, open >= mark.max(1)) {
        (true, _) => Some(Scarce::Buffers),
        (false, true) => Some(Scarce::Connections),
        (false, false) => heads.is_low(was == Some(Scarce::Heads)).then_some(Scarce::Heads),
    }
}

/// The low-resource mode: while there is little of something, connections are idle for a moment only if they hold some of it.
#[derive(Default)]
pub struct Resources(AtomicU8);

impl Resources {
    /// Looks at the resources; the mode before and now, if it has changed.
    pub fn look(
        &self,
        open: usize,
        most: usize,
        over: bool,
        heads: &Heads,
    ) -> Option<(Option<Scarce>, Option<Scarce>)> {
        let before = self.low();
        let now = scarce(open, most, over, heads, before);
        let number = now.map_or(0, |scarce| scarce as u8);
        let changed = before != now && self.0.swap(number, Ordering::Relaxed) != number;
        changed.then_some((before, now))
    }

    /// The scarce resource now. One load.
    pub fn low(&self) -> Option<Scarce> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(Scarce::Connections),
            2 => Some(Scarce::Buffers),
            3 => Some(Scarce::Heads),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::HeldHeads;

    #[test]
    fn a_budget_is_used_up_once_and_free_again_with_an_eighth() {
        let budget = Budget::default();
        assert!(!budget.is_on() && !budget.change(0, 1_000_000) && !budget.is_over());
        budget.set(8_000);
        assert!(!budget.change(1_000_000, 8_000) && !budget.is_over());
        assert!(budget.change(0, 1), "by this one");
        assert!(!budget.change(0, 1) && budget.is_over(), "not again");
        budget.change(8_000, 7_500);
        assert!(budget.is_over());
        budget.change(7_500, 6_000);
        assert!(!budget.is_over());
        assert_eq!(budget.figures(), (6_002, 8_000));
        assert!(budget.change(0, 2_000));
        budget.set(0);
        assert!(!budget.is_over());
    }

    #[test]
    fn the_low_mode_is_entered_and_left_at_different_marks() {
        let (resources, heads) = (Resources::default(), Heads::default());
        let look = |open, most, over| resources.look(open, most, over, &heads);
        assert_eq!(look(89, 100, false), None);
        assert_eq!(look(90, 100, false), Some((None, Some(Scarce::Connections))));
        assert_eq!((look(80, 100, false), resources.low()), (None, Some(Scarce::Connections)));
        assert_eq!(look(79, 100, false), Some((Some(Scarce::Connections), None)));
        assert_eq!(look(1, 100, true), Some((None, Some(Scarce::Buffers))));
        assert_eq!(look(1, 100, false), Some((Some(Scarce::Buffers), None)));
        // A server for one connection is always full with it.
        assert_eq!(look(1, 1, false), Some((None, Some(Scarce::Connections))));
        assert_eq!(look(0, 1, false), Some((Some(Scarce::Connections), None)));
        heads.set(80_000);
        let mut share = None;
        let _ = heads.change(&mut share, (0, 0), HeldHeads { waiting: 60_000, running: 0 });
        assert_eq!(look(1, 100, false), Some((None, Some(Scarce::Heads))));
        assert_eq!(look(1, 100, true), Some((Some(Scarce::Heads), Some(Scarce::Buffers))));
        let _ = heads.change(&mut share, (0, 0), HeldHeads::default());
        assert_eq!((look(1, 100, false), resources.low()), (Some((Some(Scarce::Buffers), None)), None));
    }
}
