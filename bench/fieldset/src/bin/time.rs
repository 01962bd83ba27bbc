//! Time of a round in 1 to 30 threads, each with sets of its own, on the system allocator.
//!
//! `time [--smoke]` prints a Markdown table. Each cell is the median of several turns, in which the
//! kinds alternate: wall time of all threads together divided by the sets they made, and how often a
//! thread gave up its processor to wait (allocator locks; the kernel's count per thread).

use std::sync::Barrier;
use std::time::{Duration, Instant};

use fieldset::{Kind, SETS, Source, build, expected, nothing, search};

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 30];

struct Plan {
    /// Rounds of all threads together in a turn.
    rounds: usize,
    turns: usize,
    threads: &'static [usize],
}

/// One turn: time per set and waits per 1,000 sets.
#[derive(Clone, Copy)]
struct Turn {
    per_set: Duration,
    waits: f64,
}

fn main() {
    let smoke = std::env::args().skip(1).any(|argument| argument == "--smoke");
    let plan = if smoke {
        Plan { rounds: 30, turns: 3, threads: &THREADS[..3] }
    } else {
        Plan { rounds: 480, turns: 9, threads: &THREADS }
    };
    println!("| threads | kind | ns per set | against `String` | waits per 1,000 sets |");
    println!("|--:|---|--:|--:|--:|");
    for &threads in plan.threads {
        let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); Kind::ALL.len()];
        for _ in 0..plan.turns {
            for (kind, turns) in Kind::ALL.into_iter().zip(&mut turns) {
                turns.push(turn(kind, threads, plan.rounds.div_ceil(threads)));
            }
        }
        let medians: Vec<_> = turns.into_iter().map(median).collect();
        let strings = medians[3].per_set;
        for (kind, turn) in Kind::ALL.into_iter().zip(medians) {
            let ratio = turn.per_set.as_secs_f64() / strings.as_secs_f64();
            let per_set = turn.per_set.as_nanos();
            println!("| {threads} | {} | {per_set} | {ratio:.2} | {:.2} |", kind.name(), turn.waits);
        }
    }
}

fn median(mut turns: Vec<Turn>) -> Turn {
    turns.sort_by_key(|turn| turn.per_set);
    turns[turns.len() / 2]
}

/// `threads` threads of `rounds` rounds each, after one round that does not count.
fn turn(kind: Kind, threads: usize, rounds: usize) -> Turn {
    let (ready, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| work(kind, rounds, &ready, &done))).collect();
        ready.wait();
        let start = Instant::now();
        done.wait();
        let elapsed = start.elapsed();
        let waits: u64 = workers.into_iter().map(|worker| worker.join().unwrap_or_default()).sum();
        let sets = (threads * rounds * SETS) as f64;
        Turn { per_set: elapsed.div_f64(sets), waits: waits as f64 * 1_000.0 / sets }
    })
}

/// One thread's part; returns how often it waited.
fn work(kind: Kind, rounds: usize, ready: &Barrier, done: &Barrier) -> u64 {
    let source = Source::new();
    let mut held = nothing(kind);
    build(kind, &source, &mut held);
    ready.wait();
    let before = waits();
    for _ in 0..rounds {
        build(kind, &source, &mut held);
        assert_eq!(search(&held), expected(), "{kind:?} lost a field");
    }
    let waited = waits().saturating_sub(before);
    done.wait();
    waited
}

/// The voluntary context switches of this thread; 0 where the system does not say.
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
