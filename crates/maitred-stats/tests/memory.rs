//! The memory of the figures of four processes with a thousand routes each, by their own account and really. Alone in
//! its file, so that nothing else takes memory meanwhile.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use maitred_stats::{ARENA_BYTES, Arena, LeafKey, MAX_BYTES, MAX_ROUTES, OTHER, Recorder, Routes, Spans};

const PROCESSES: usize = 4;

/// Memory whose pages are there when they are first written, as that of a server is.
static MEMORY: [[AtomicU64; ARENA_BYTES / 8]; PROCESSES] =
    [const { [const { AtomicU64::new(0) }; ARENA_BYTES / 8] }; PROCESSES];

struct OfProcess(usize);

impl AsRef<[AtomicU64]> for OfProcess {
    fn as_ref(&self) -> &[AtomicU64] {
        &MEMORY[self.0]
    }
}
const MIB: usize = 1 << 20;

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("proc is there");
    let pages: usize = statm.split(' ').nth(1).expect("a field").parse().expect("a number");
    pages * 4096
}

/// The same numbers each time.
struct Chance(u64);

impl Chance {
    /// Below one.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around `middle` nanoseconds: half of them within a factor of about `spread` below it, and half above.
    fn around(&mut self, middle: f64, spread: f64) -> u64 {
        // Three sums: the tails of a real latency.
        let sum = self.next() + self.next() + self.next() - 1.5;
        (middle * spread.powf(sum * 2.0)) as u64
    }
}

/// An exchange of the route with this number, from the fastest to the slowest ones.
fn spans(route: usize, chance: &mut Chance) -> Spans {
    let middle = 100_000.0 * 10_000_f64.powf(route as f64 / MAX_ROUTES as f64);
    let waits = chance.next() < 0.2;
    Spans([
        if chance.next() < 0.1 { chance.around(2e6, 4.0) } else { 0 },
        if waits { chance.around(2e6, 4.0) } else { chance.around(15_000.0, 2.0) },
        if waits { chance.around(3e5, 4.0) } else { 0 },
        0,
        chance.around(middle, 2.0),
        // Few bodies are read as they come.
        if route.is_multiple_of(50) { chance.around(2e6, 4.0) } else { 0 },
        chance.around(20_000.0, 2.0),
    ])
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for who asks with --nocapture")]
fn a_thousand_routes_of_four_processes_fit_into_32_mib() {
    let before = resident();
    let processes: Vec<(Arc<Recorder>, Routes)> = (0..PROCESSES)
        .map(|number| {
            let arena = Arena::new(Arc::new(OfProcess(number)));
            (Arc::new(Recorder::in_arena(&arena)), Routes::in_arena(&arena))
        })
        .collect();
    let hash = |number: usize| (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (number, (recorder, routes)) in processes.iter().enumerate() {
        let mut chance = Chance(number as u64);
        for route in 0..MAX_ROUTES {
            // A path that comes for the first time, in a full table, has to come again.
            while routes.add(hash(route), || format!("GET /api/v1/{route:x}/{}", "part/".repeat(10))) == OTHER
            {
            }
        }
        for _ in 0..150 {
            for route in 0..MAX_ROUTES {
                let number = routes.find(hash(route)).expect("known");
                let class = if chance.next() < 0.9 { 2 } else { 4 };
                let key = LeafKey { listener: 0, pool: 0, route: number, class };
                recorder.record(key, 1000, Some(spans(route, &mut chance)));
            }
        }
    }
    let account = |processes: &[(Arc<Recorder>, Routes)]| -> usize {
        processes.iter().map(|(recorder, routes)| recorder.bytes() + routes.bytes()).sum()
    };
    let accounted = account(&processes);
    let real = resident().saturating_sub(before);
    let (mut leaves, mut coarse) = (0, 0);
    for (recorder, _) in &processes {
        recorder.leaves(|_, leaf| {
            leaves += usize::from(leaf.requests > 0);
            coarse += usize::from(leaf.spans.iter().chain([&leaf.total]).any(|span| span.is_coarse()));
        });
    }
    println!(
        "{leaves} leaves, {coarse} of them coarse; {:.1} MiB by account, {:.1} MiB really",
        accounted as f64 / MIB as f64,
        real as f64 / MIB as f64
    );
    assert_eq!(leaves, PROCESSES * MAX_ROUTES * 2);
    assert!(accounted <= PROCESSES * MAX_BYTES && PROCESSES * MAX_BYTES <= 32 * MIB);
    assert!(real <= 32 * MIB, "{real}");
    // The account is the truth, but for the memory that threads and the allocator keep beside it.
    assert!(real.abs_diff(accounted) < 2 * MIB, "{real} and {accounted}");
    assert_eq!(coarse, 0, "there is memory for all of them");

    let full = resident();
    for number in 0..100_000 {
        let (recorder, routes) = &processes[number % PROCESSES];
        let route = routes.add(hash(MAX_ROUTES + number), || format!("GET /{number}"));
        assert_eq!(route, OTHER);
        recorder.record(LeafKey { listener: 0, pool: 0, route, class: 2 }, 1, Some(Spans([1; 7])));
    }
    let grown = account(&processes) - accounted;
    assert!(grown < PROCESSES * 16 * 1024, "one route more for each process: {grown}");
    assert!(resident().saturating_sub(full) < MIB);
}
