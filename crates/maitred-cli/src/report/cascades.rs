//! Which request made which wait.
//!
//! A request waits from the moment it is complete until a thread has it. Of the requests of its pool that threads had in
//! that time, the longest one is named. How many threads there were, a log does not say: as many as ever had a request at
//! once. A wait with fewer than that is told apart; there the thread was still being made, or the time was spent in the
//! socket's buffer.

use std::cmp::Reverse;

use super::read::{Log, Request};

/// All waits.
#[derive(Default)]
pub(super) struct Found {
    /// Requests that waited.
    pub(super) waits: usize,
    /// Those of them in which as many requests ran as ever did in their pool.
    pub(super) held: usize,
    /// For each pool the most that ran at once.
    pub(super) most: Vec<usize>,
    /// Those that made most wait first.
    pub(super) cascades: Vec<Cascade>,
    /// For each request the one that it waited for.
    pub(super) cause: Vec<Option<usize>>,
}

/// A request, and those that waited while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cascade {
    /// An index of [`Log::requests`].
    pub(super) request: usize,
    pub(super) waits: usize,
    /// The sum of these waits, and the longest, in microseconds.
    pub(super) waited: u64,
    pub(super) longest: u64,
}

/// Looks through requests in the order of their start; waits are longer than `least` microseconds.
pub(super) fn find(log: &Log, least: u64) -> Found {
    let mut found = Found { cause: vec![None; log.requests.len()], ..Found::default() };
    for pool in 0..log.pools.len() {
        let of_pool = |request: &Request| request.pool.is_some_and(|own| own as usize == pool);
        let own: Vec<usize> =
            (0..log.requests.len()).filter(|index| of_pool(&log.requests[*index])).collect();
        find_in_pool(log, &own, least, &mut found);
    }
    let mut cascades: Vec<Option<Cascade>> = vec![None; log.requests.len()];
    for (index, cause) in found.cause.iter().enumerate() {
        if let Some(request) = *cause {
            let queue = log.requests[index].queue();
            let cascade =
                cascades[request].get_or_insert(Cascade { request, waits: 0, waited: 0, longest: 0 });
            cascade.waits += 1;
            cascade.waited += queue;
            cascade.longest = cascade.longest.max(queue);
        }
    }
    found.cascades = cascades.into_iter().flatten().collect();
    found.cascades.sort_by_key(|cascade| (Reverse(cascade.waited), cascade.request));
    found
}

fn find_in_pool(log: &Log, own: &[usize], least: u64, found: &mut Found) {
    let mut runs: Vec<usize> = own.to_vec();
    runs.sort_by_key(|index| log.requests[*index].begun());
    let begins: Vec<u64> = runs.iter().map(|index| log.requests[*index].begun()).collect();
    let length = |index: usize| log.requests[index].done().saturating_sub(log.requests[index].begun());
    let longest = Longest::new(runs.iter().map(|index| length(*index)).collect());
    let most = most_at_once(log, &runs);
    found.most.push(most);
    let mut waits: Vec<usize> =
        own.iter().copied().filter(|index| log.requests[*index].queue() > least).collect();
    waits.sort_by_key(|index| log.requests[*index].complete());
    // Those that have begun and may not have ended, while time goes on from wait to wait.
    let mut running: Vec<usize> = Vec::new();
    let mut next = 0;
    for wait in waits {
        let (from, until) = (log.requests[wait].complete(), log.requests[wait].begun());
        while next < runs.len() && begins[next] <= from {
            running.push(runs[next]);
            next += 1;
        }
        running.retain(|index| log.requests[*index].done() > from);
        let later = longest.within(next, begins.partition_point(|begin| *begin < until)).map(|at| runs[at]);
        let others = running.iter().copied().chain(later).filter(|index| *index != wait);
        let cause = others.max_by_key(|index| (length(*index), Reverse(*index)));
        found.waits += 1;
        found.held += usize::from(cause.is_some() && running.len() >= most);
        found.cause[wait] = cause;
    }
}

/// The most requests that threads had at once.
fn most_at_once(log: &Log, runs: &[usize]) -> usize {
    let mut ends: Vec<u64> = runs.iter().map(|index| log.requests[*index].done()).collect();
    ends.sort_unstable();
    let mut ended = 0;
    let at = |(begun, index): (usize, &usize)| {
        let begin = log.requests[*index].begun();
        while ended < ends.len() && ends[ended] <= begin {
            ended += 1;
        }
        (begun + 1).saturating_sub(ended)
    };
    runs.iter().enumerate().map(at).max().unwrap_or(0)
}

/// Where the longest of neighbouring runs is, in logarithmic time: a tree in an array, the leaves behind the inner nodes.
struct Longest {
    tree: Vec<(u64, Reverse<usize>)>,
    leaves: usize,
}

impl Longest {
    fn new(lengths: Vec<u64>) -> Self {
        let leaves = lengths.len();
        let mut tree = vec![(0, Reverse(0)); leaves];
        tree.extend(lengths.into_iter().zip((0..).map(Reverse)));
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].max(tree[2 * node + 1]);
        }
        Self { tree, leaves }
    }

    /// Of those from `from` to before `until`.
    fn within(&self, from: usize, until: usize) -> Option<usize> {
        let (mut left, mut right) = (from + self.leaves, until.max(from) + self.leaves);
        let mut best = None;
        while left < right {
            if left % 2 == 1 {
                best = best.max(Some(self.tree[left]));
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                best = best.max(Some(self.tree[right]));
            }
            left /= 2;
            right /= 2;
        }
        best.map(|(_, Reverse(at))| at)
    }
}
