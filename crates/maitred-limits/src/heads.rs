//! The memory of request heads, of all connections together, and the connections that give theirs up.
//!
//! ```text
//!   of those that wait for their peers:                         of the others, which handlers have or are to get:
//!   0 ............ 3/4 .......... 7/8 .... budget               0 ............. budget ............. twice the budget
//!   all stay          <-----------'                             all are let in  only where a         only where a
//!                     the connections that hold most                            connection holds     connection's heads
//!                     give them up, until so much is held                       little               are usual ones
//! ```
//! Promises: a connection is asked only for heads that it can give up, and the largest holder first; usual heads are
//! not counted at all, so that a request that comes and leaves within a turn costs nothing here. Leaves out: the
//! reaction of the connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Bytes that a connection may hold without being counted.
///
/// Reason: most requests would be an addition and a lock. Source: heads of browsers have 500 to 1,500 bytes.
const FREE: u64 = 2048;

/// Bytes that a connection may hold beyond the budget, so that requests of others are served while some hold all: one
/// head with a large cookie.
const IN_ANY_CASE: u64 = 16 * 1024;

/// Bytes of heads that a connection holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldHeads {
    /// Bytes of requests whose peers have not completed them, or do not take the answer: they can be given up.
    pub waiting: u64,
    /// Bytes of requests that handlers have, or are to get.
    pub running: u64,
}

impl HeldHeads {
    /// Both.
    pub fn sum(self) -> u64 {
        self.waiting + self.running
    }

    /// The part that counts against the budget.
    #[must_use]
    pub fn counted(self) -> Self {
        let waiting = self.waiting.saturating_sub(FREE);
        let free = FREE.saturating_sub(self.waiting);
        Self { waiting, running: self.running.saturating_sub(free) }
    }
}

/// The holder of heads: the connection's group, and its place there.
pub type Holder = (usize, u64);

/// The budget, and the connections that hold parts of it.
#[derive(Default)]
pub struct Heads {
    /// 0: any number.
    most: AtomicU64,
    waiting: AtomicU64,
    running: AtomicU64,
    holding: Mutex<Vec<Arc<Holding>>>,
}

/// One connection.
struct Holding {
    holder: Holder,
    waiting: AtomicU64,
    /// The connection is asked to give up its heads where it can.
    asked: AtomicBool,
    /// The connection's place in the list; only changed under the lock.
    place: AtomicUsize,
}

/// The part of the budget that one connection holds, as long as it is more than a usual head.
pub struct HeadShare {
    holding: Arc<Holding>,
    counted: HeldHeads,
}

impl HeadShare {
    /// Whether it is asked to give up its heads; true once for each time.
    pub fn take_asked(&self) -> bool {
        let asked = &self.holding.asked;
        asked.load(Ordering::Acquire) && asked.swap(false, Ordering::AcqRel)
    }
}

impl Heads {
    pub(crate) fn set(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Bytes held, and how many of each kind may be; 0 for any number.
    pub fn figures(&self) -> (HeldHeads, u64) {
        let waiting = self.waiting.load(Ordering::Relaxed);
        (
            HeldHeads { waiting, running: self.running.load(Ordering::Relaxed) },
            self.most.load(Ordering::Relaxed),
        )
    }

    /// How many bytes a connection may hold together with a further head; none while there is room. Three loads.
    pub fn most_of_one(&self) -> Option<u64> {
        let (held, most) = self.figures();
        let held = held.waiting.max(held.running);
        match most {
            0 => None,
            _ if held > 2 * most => Some(FREE),
            _ => (held > most).then_some(FREE + IN_ANY_CASE),
        }
    }

    /// Whether little is left: from five eighths on, until three are held.
    pub(crate) fn is_low(&self, was: bool) -> bool {
        let (held, most) = self.figures();
        let mark = if was { most / 8 * 3 } else { most / 8 * 5 };
        most > 0 && held.waiting.max(held.running) > mark
    }

    /// Sets the bytes of a connection to `now`, of which all [counts](HeldHeads::counted). Returns the connections that
    /// are asked to give up their heads; they have to be woken.
    #[must_use]
    pub fn change(&self, share: &mut Option<HeadShare>, holder: Holder, now: HeldHeads) -> Vec<Holder> {
        let before = share.as_ref().map_or(HeldHeads::default(), |share| share.counted);
        if now == before {
            return Vec::new();
        }
        add(&self.running, before.running, now.running);
        let waiting = add(&self.waiting, before.waiting, now.waiting);
        match share {
            Some(_) if now.sum() == 0 => self.forget(share.take()),
            Some(share) => {
                share.counted = now;
                share.holding.waiting.store(now.waiting, Ordering::Relaxed);
            }
            None => *share = Some(self.begin(holder, now)),
        }
        let most = self.most.load(Ordering::Relaxed);
        if most > 0 && now.waiting > before.waiting && waiting > most - most / 8 {
            self.ask_largest(most - most / 4)
        } else {
            Vec::new()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Holding>>> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, holder: Holder, counted: HeldHeads) -> HeadShare {
        let mut all = self.lock();
        let holding = Arc::new(Holding {
            holder,
            waiting: counted.waiting.into(),
            asked: false.into(),
            place: all.len().into(),
        });
        all.push(Arc::clone(&holding));
        HeadShare { holding, counted }
    }

    fn forget(&self, share: Option<HeadShare>) {
        let Some(share) = share else { return };
        let mut all = self.lock();
        let place = share.holding.place.load(Ordering::Relaxed);
        all.swap_remove(place);
        if let Some(moved) = all.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }

    /// Asks those that hold most, until the others hold at most `rest`.
    fn ask_largest(&self, rest: u64) -> Vec<Holder> {
        let all = self.lock();
        let mut stays = 0;
        let mut candidates: Vec<(u64, &Arc<Holding>)> = Vec::new();
        for holding in all.iter().filter(|holding| !holding.asked.load(Ordering::Relaxed)) {
            let bytes = holding.waiting.load(Ordering::Relaxed);
            stays += bytes;
            candidates.push((bytes, holding));
        }
        candidates.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut asked = Vec::new();
        for (bytes, holding) in candidates {
            if stays <= rest {
                break;
            }
            stays -= bytes;
            holding.asked.store(true, Ordering::Release);
            asked.push(holding.holder);
        }
        asked
    }
}

/// Makes the part `before` of a sum `now`; the sum.
fn add(sum: &AtomicU64, before: u64, now: u64) -> u64 {
    let difference = now.wrapping_sub(before);
    sum.fetch_add(difference, Ordering::Relaxed).wrapping_add(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(most: u64) -> Heads {
        let heads = Heads::default();
        heads.set(most);
        heads
    }

    fn waiting(waiting: u64) -> HeldHeads {
        HeldHeads { waiting, running: 0 }
    }

    fn running(running: u64) -> HeldHeads {
        HeldHeads { waiting: 0, running }
    }

    /// Connections that hold so much, by their numbers.
    fn holders(heads: &Heads, held: &[HeldHeads]) -> Vec<Option<HeadShare>> {
        let mut all = Vec::new();
        for (number, held) in (0..).zip(held) {
            let mut share = None;
            assert!(heads.change(&mut share, (0, number), *held).is_empty(), "{number}");
            all.push(share);
        }
        all
    }

    #[test]
    fn usual_heads_do_not_count() {
        let counted = |waiting, running| {
            let HeldHeads { waiting, running } = HeldHeads { waiting, running }.counted();
            (waiting, running)
        };
        assert_eq!(
            (counted(FREE, 0), counted(0, FREE), counted(FREE / 2, FREE / 2)),
            ((0, 0), (0, 0), (0, 0))
        );
        assert_eq!(
            (counted(FREE - 10, 30), counted(FREE + 7, 30), counted(0, FREE + 1)),
            ((0, 20), (7, 30), (0, 1))
        );
    }

    #[test]
    fn held_heads_are_given_back() {
        let (heads, mut share) = (budget(1000), None);
        let _ = heads.change(&mut share, (0, 1), HeldHeads { waiting: 7, running: 30 });
        assert_eq!(heads.figures(), (HeldHeads { waiting: 7, running: 30 }, 1000));
        let _ = heads.change(&mut share, (0, 1), HeldHeads::default());
        assert_eq!(heads.figures().0, HeldHeads::default());
        assert!(share.is_none() && heads.lock().is_empty());
    }

    #[test]
    fn those_that_hold_most_are_asked_and_only_as_many_as_have_to() {
        let heads = budget(1000);
        let mut all =
            holders(&heads, &[waiting(100), waiting(300), waiting(200), waiting(250), running(900)]);
        assert_eq!(heads.change(&mut all[0], (0, 0), waiting(126)), [(0, 1)]);
        let asked: Vec<bool> = all.iter().flatten().map(HeadShare::take_asked).collect();
        assert_eq!(asked, [false, true, false, false, false]);
        assert!(!all[1].as_ref().is_some_and(HeadShare::take_asked), "once");
        assert!(heads.change(&mut all[1], (0, 1), HeldHeads::default()).is_empty());
        assert!(heads.change(&mut all[0], (0, 0), waiting(130)).is_empty());
        assert_eq!(heads.figures().0, HeldHeads { waiting: 580, running: 900 });
    }

    #[test]
    fn a_connection_that_was_asked_counts_as_gone() {
        let heads = budget(1000);
        let mut all = holders(&heads, &[waiting(400), waiting(400), waiting(70)]);
        assert_eq!(heads.change(&mut all[2], (0, 2), waiting(80)).len(), 1);
        assert!(heads.change(&mut all[2], (0, 2), waiting(90)).is_empty(), "the first is on its way");
        let mut further = None;
        assert_eq!(heads.change(&mut further, (0, 3), waiting(600)), [(0, 3)], "it holds most now");
    }

    #[test]
    fn places_in_the_list_follow_when_others_leave() {
        let heads = budget(0);
        let mut all = holders(&heads, &[waiting(1), waiting(2), waiting(3), waiting(4)]);
        for number in [1, 0, 3, 2] {
            let _ = heads.change(&mut all[number], (0, number as u64), HeldHeads::default());
            let numbers = heads.lock().iter().map(|holding| holding.holder.1).collect::<Vec<_>>();
            let left = all.iter().flatten().map(|share| share.holding.holder.1).collect::<Vec<_>>();
            assert!(left.iter().all(|number| numbers.contains(number)) && left.len() == numbers.len());
        }
    }

    #[test]
    fn little_is_left_until_three_eighths_are_held() {
        let heads = budget(8000);
        let mut all = holders(&heads, &[waiting(5000), running(3000)]);
        assert!(!heads.is_low(false) && heads.is_low(true));
        let _ = heads.change(&mut all[0], (0, 0), waiting(5001));
        assert!(heads.is_low(false));
        let _ = heads.change(&mut all[0], (0, 0), waiting(3000));
        assert!(!heads.is_low(true), "each kind for itself");
        heads.set(0);
        assert!(!heads.is_low(true) && !heads.is_low(false));
    }

    #[test]
    fn beyond_the_budget_only_connections_that_hold_little_get_in() {
        let heads = budget(100_000);
        let mut all = holders(&heads, &[running(100_000), running(0)]);
        assert_eq!(heads.most_of_one(), None);
        let _ = heads.change(&mut all[1], (0, 1), running(1));
        assert_eq!(heads.most_of_one(), Some(FREE + IN_ANY_CASE));
        heads.set(50_000);
        assert_eq!(heads.most_of_one(), Some(FREE), "twice as much");
        heads.set(0);
        assert_eq!(heads.most_of_one(), None);
        heads.set(200_000);
        assert_eq!(heads.most_of_one(), None, "changed while it runs");
        let _ = heads.change(&mut all[0], (0, 0), waiting(200_001));
        assert_eq!(
            heads.most_of_one(),
            Some(FREE + IN_ANY_CASE),
            "those that are asked have not given theirs up yet"
        );
    }
}
