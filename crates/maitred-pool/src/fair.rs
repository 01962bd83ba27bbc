//! The queue of a pool: first in, first out, and fair between routes when the queue is long.
//!
//! ```text
//! fewer than 4 wait   [ a b a ]                  in the order in which they came
//! from then on        [ a ] [ a a a .. ] [ b ]   one lane for each route; next is the lane that has had the least time
//! a lane              ( x y ) ( x z ) ( x )      rounds; a connection with streams has one request in each
//! ```
//! A burst of requests that take long would otherwise keep those of all other routes waiting until the last of them has
//! begun. A lane is charged with the expected cost of a request of its route when one of its requests is taken, and a
//! lane that begins to wait begins where the others are (start-time fair queueing). Within a route connections take
//! turns: a batch of streams is no more than one client. The order stays within a route of one connection, and between
//! connections with one request at a time.
//!
//! A request of a class that may not enter application code now is passed over.
//!
//! Leaves out: the definition of a route (a number to this queue), and the right to enter (the limiter of
//! maitred-dispatch).

use std::collections::VecDeque;

use crate::RouteClass;

/// The number of waiting requests from which they are sorted: a hash for each is saved where fewer wait. Half and
/// double: two requests more or fewer are taken in the order in which they came.
const SORT_FROM: usize = 4;

/// The most lanes. Requests of further routes wait in the last lane, so a client that invents paths gets one lane for them.
const MAX_LANES: usize = 64;

/// The waiting requests of a pool.
pub struct FairQueue<J> {
    /// Before all lanes: the requests that came while the queue was not sorted.
    first: VecDeque<Waiting<J>>,
    lanes: Vec<Lane<J>>,
    length: usize,
    /// Where the lane stood that had its turn last, in nanoseconds of a lane's own time.
    turn: u64,
}

/// A request that waits.
pub struct Waiting<J> {
    /// The request.
    pub job: J,
    /// The start of the wait, in monotonic nanoseconds.
    pub since: u64,
    /// The class of its route.
    pub class: RouteClass,
    /// A number for its connection, if that may have several requests at a time; else 0.
    pub connection: u64,
}

struct Lane<J> {
    route: u64,
    /// The first round is under way, and only that may be empty. A new request waits for the next round at least:
    /// otherwise a connection that sends one request after the other would keep that from its turn.
    rounds: VecDeque<VecDeque<Waiting<J>>>,
    /// The time it has had, on the same scale as `turn`.
    had: u64,
}

impl<J> Lane<J> {
    fn front(&self) -> Option<&Waiting<J>> {
        self.rounds.iter().find_map(VecDeque::front)
    }

    fn push(&mut self, waiting: Waiting<J>) {
        let own = |round: &VecDeque<Waiting<J>>| {
            waiting.connection > 0 && round.iter().any(|other| other.connection == waiting.connection)
        };
        let next = usize::from(!self.rounds.is_empty());
        let round = self.rounds.iter().rposition(own).map_or(next, |last| last + 1);
        if round == self.rounds.len() {
            self.rounds.push_back(VecDeque::new());
        }
        self.rounds[round].push_back(waiting);
    }

    fn pop(&mut self) -> Option<Waiting<J>> {
        if self.rounds.front()?.is_empty() {
            self.rounds.pop_front();
        }
        self.rounds.front_mut()?.pop_front()
    }
}

impl<J> Default for FairQueue<J> {
    fn default() -> Self {
        Self { first: VecDeque::new(), lanes: Vec::new(), length: 0, turn: 0 }
    }
}

impl<J> FairQueue<J> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether a new request is sorted into a lane.
    pub fn is_sorted(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// All of them, in no order that means anything where they are sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<J>> {
        self.first.iter().chain(self.lanes.iter().flat_map(|lane| lane.rounds.iter().flatten()))
    }

    /// The start of the wait of the request that has come first, in monotonic nanoseconds.
    pub fn oldest(&self) -> Option<u64> {
        match self.first.front() {
            Some(waiting) => Some(waiting.since),
            None => {
                let rounds = self.lanes.iter().flat_map(|lane| &lane.rounds);
                rounds.filter_map(|round| Some(round.front()?.since)).min()
            }
        }
    }

    /// Appends a request; `route` is asked for its route if it matters.
    pub fn push(&mut self, waiting: Waiting<J>, route: impl FnOnce(&J) -> u64) {
        self.length += 1;
        // Once sorted it stays so until it is empty: the order within a route would not stay otherwise.
        if !self.is_sorted() && self.length <= SORT_FROM {
            self.first.push_back(waiting);
            return;
        }
        let route = route(&waiting.job);
        let index = match self.lanes.iter().position(|lane| lane.route == route) {
            Some(index) => index,
            None if self.lanes.len() == MAX_LANES => MAX_LANES - 1,
            None => {
                self.lanes.push(Lane { route, rounds: VecDeque::new(), had: 0 });
                self.lanes.len() - 1
            }
        };
        let lane = &mut self.lanes[index];
        if lane.front().is_none() {
            lane.had = lane.had.max(self.turn);
        }
        lane.push(waiting);
    }

    /// The classes that wait, in the order in which their next requests have their turn.
    pub fn classes(&self) -> impl Iterator<Item = RouteClass> + use<J> {
        let mut classes =
            [RouteClass::Normal, RouteClass::Blocking, RouteClass::CpuBound, RouteClass::Parallel]
                .map(|class| (self.turn_of(class), class));
        classes.sort_unstable_by_key(|(turn, _)| *turn);
        classes.into_iter().filter_map(|(turn, class)| turn.map(|_| class))
    }

    /// When the next request of a class has its turn, on a scale of its own.
    fn turn_of(&self, class: RouteClass) -> Option<(bool, u64, u64)> {
        let mut first = self.first.iter().filter(|waiting| waiting.class == class);
        if let Some(waiting) = first.next() {
            return Some((false, 0, waiting.since));
        }
        let fronts = self.lanes.iter().filter_map(|lane| Some((lane.had, lane.front()?)));
        let own = fronts.filter(|(_, waiting)| waiting.class == class);
        own.map(|(had, waiting)| (true, had, waiting.since)).min()
    }

    /// Takes the next request for which `may` returns true. `charge` returns the expected cost of a request of a route,
    /// in nanoseconds; never 0.
    pub fn pop(
        &mut self,
        charge: impl Fn(u64) -> u64,
        may: impl Fn(&Waiting<J>) -> bool,
    ) -> Option<Waiting<J>> {
        let waiting = match self.first.iter().position(&may) {
            Some(index) => self.first.remove(index)?,
            None => self.pop_sorted(charge, may)?,
        };
        self.length -= 1;
        if self.length == 0 {
            self.lanes.clear();
        }
        Some(waiting)
    }

    fn pop_sorted(
        &mut self,
        charge: impl Fn(u64) -> u64,
        may: impl Fn(&Waiting<J>) -> bool,
    ) -> Option<Waiting<J>> {
        let turn = |lane: &Lane<J>| {
            let next = lane.front().filter(|waiting| may(waiting))?;
            Some((lane.had, next.since))
        };
        let lanes = self.lanes.iter().enumerate();
        let (_, index) = lanes.filter_map(|(index, lane)| Some((turn(lane)?, index))).min()?;
        let lane = &mut self.lanes[index];
        self.turn = lane.had;
        lane.had += charge(lane.route);
        let waiting = lane.pop();
        let turn = self.turn;
        // One that has had more than the others keeps its place for as long as that matters.
        self.lanes.retain(|lane| lane.front().is_some() || lane.had > turn);
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAVY: u64 = 1;
    const LIGHT: u64 = 2;

    fn push(queue: &mut FairQueue<(u64, u64)>, route: u64, number: u64) {
        push_from(queue, 0, route, number);
    }

    fn push_from(queue: &mut FairQueue<(u64, u64)>, connection: u64, route: u64, number: u64) {
        let class = RouteClass::Normal;
        queue.push(Waiting { job: (route, number), since: number, class, connection }, |job| job.0);
    }

    fn pop(queue: &mut FairQueue<(u64, u64)>) -> Option<(u64, u64)> {
        queue.pop(charge, |_| true).map(|waiting| waiting.job)
    }

    fn charge(route: u64) -> u64 {
        if route == HEAVY { 16_000_000 } else { 100_000 }
    }

    #[test]
    fn few_keep_their_order_whatever_they_take() {
        let mut queue = FairQueue::default();
        for number in 0..4 {
            push(&mut queue, if number % 2 == 0 { HEAVY } else { LIGHT }, number);
        }
        assert_eq!(queue.oldest(), Some(0));
        let numbers: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).map(|job| job.1).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert!(queue.is_empty() && queue.oldest().is_none());
    }

    #[test]
    fn one_of_another_route_does_not_wait_for_a_burst() {
        let mut queue = FairQueue::default();
        (0..200).for_each(|number| push(&mut queue, HEAVY, number));
        // The unsorted requests, and one of the sorted ones.
        let begun: Vec<_> = (0..5).filter_map(|_| pop(&mut queue)).collect();
        assert_eq!(begun, (0..5).map(|number| (HEAVY, number)).collect::<Vec<_>>());
        push(&mut queue, LIGHT, 200);
        assert_eq!(pop(&mut queue), Some((LIGHT, 200)));
        assert_eq!(pop(&mut queue), Some((HEAVY, 5)));
        assert_eq!(queue.len(), 194);
    }

    #[test]
    fn connections_take_turns_within_a_route_and_keep_their_order() {
        let mut queue = FairQueue::default();
        // One connection with a batch, then one with a smaller one.
        (0..100).for_each(|number| push_from(&mut queue, 1, HEAVY, number));
        (200..210).for_each(|number| push_from(&mut queue, 2, HEAVY, number));
        let unsorted: Vec<_> = (0..4).filter_map(|_| pop(&mut queue)).map(|job| job.1).collect();
        assert_eq!(unsorted, [0, 1, 2, 3]);
        // Connections with one request at a time ask again when they are answered.
        push(&mut queue, HEAVY, 300);
        push(&mut queue, HEAVY, 301);
        let mut order = Vec::new();
        while let Some((_, number)) = pop(&mut queue) {
            order.push(number);
            if (300..340).contains(&number) {
                push(&mut queue, HEAVY, number + 2);
            }
            assert_eq!(queue.oldest().is_none(), queue.is_empty());
        }
        assert_eq!(order[..9], [4, 5, 200, 300, 301, 6, 201, 302, 303]);
        let of = |numbers: std::ops::Range<u64>| order.iter().filter(move |number| numbers.contains(number));
        assert!(of(0..100).is_sorted() && of(200..210).is_sorted());
        assert_eq!(order.len(), 96 + 10 + 42);
        // No other request has had to wait for the batch, and the batch has had its turns.
        let place = |number| order.iter().position(|each| *each == number).unwrap();
        assert!(place(209) < 50 && place(340) < 90 && place(20) < 70, "{order:?}");
    }

    #[test]
    fn lanes_get_the_same_time_and_keep_their_order() {
        let mut queue = FairQueue::default();
        (0..4).for_each(|number| push(&mut queue, LIGHT, number));
        for number in 4..1004 {
            push(&mut queue, HEAVY, number);
            push(&mut queue, LIGHT, number);
        }
        (0..4).for_each(|_| _ = pop(&mut queue));
        let order: Vec<_> = (0..644).filter_map(|_| pop(&mut queue)).collect();
        let heavy = order.iter().filter(|job| job.0 == HEAVY).count();
        // 640 light ones take as long as 4 heavy ones.
        assert!((4..=5).contains(&heavy), "{heavy}");
        for route in [HEAVY, LIGHT] {
            let numbers: Vec<_> = order.iter().filter(|job| job.0 == route).map(|job| job.1).collect();
            assert!(numbers.is_sorted(), "{numbers:?}");
        }
    }

    #[test]
    fn time_not_used_is_not_saved_up() {
        let mut queue = FairQueue::default();
        (0..300).for_each(|number| push(&mut queue, HEAVY, number));
        (0..200).for_each(|_| _ = pop(&mut queue));
        // It has had nothing for 200 turns of the other, and is owed none of it.
        (0..600).for_each(|number| push(&mut queue, LIGHT, 1000 + number));
        let light = (0..400).filter_map(|_| pop(&mut queue)).filter(|job| job.0 == LIGHT).count();
        assert!((300..400).contains(&light), "{light}");
    }

    #[test]
    fn requests_that_write_to_a_disk_can_be_passed_over() {
        let mut queue = FairQueue::default();
        (0..3).for_each(|number| push(&mut queue, HEAVY, number));
        (3..5).for_each(|number| push(&mut queue, LIGHT, number));
        let light = |waiting: &Waiting<(u64, u64)>| waiting.job.0 == LIGHT;
        let mut light = || queue.pop(charge, light).map(|waiting| waiting.job);
        assert_eq!([light(), light(), light()], [Some((LIGHT, 3)), Some((LIGHT, 4)), None]);
        let rest: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
        assert_eq!(rest, (0..3).map(|number| (HEAVY, number)).collect::<Vec<_>>());
    }

    #[test]
    fn no_request_is_lost_when_there_are_more_routes_than_lanes() {
        let mut queue = FairQueue::default();
        (0..1000).for_each(|number| push(&mut queue, number * 7919, number));
        let mut numbers: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).map(|job| job.1).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        assert!(queue.lanes.is_empty());
    }
}
