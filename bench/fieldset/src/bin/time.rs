//! Time of a round in 1 to 30 threads, each with sets of its own, on the system allocator.
//!
//! `time [--smoke]` prints a Markdown table. The kinds alternate; each row is the turn of median
//! processor time. Processor time of all threads divided by the sets they made is the steady figure,
//! also on a busy machine; wall time is that of all threads together; waits are how often a thread
//! gave up its processor of its own accord, which only allocator locks make it do here.

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

/// One turn, per set; waits per 1,000 sets.
#[derive(Clone, Copy)]
struct Turn {
    processor: Duration,
    wall: Duration,
    waits: f64,
}

/// What the kernel says of a thread.
#[derive(Clone, Copy)]
struct Usage {
    processor: Duration,
    waits: u64,
    at: Instant,
}

fn main() {
    let smoke = std::env::args().skip(1).any(|argument| argument == "--smoke");
    let plan = if smoke {
        Plan { rounds: 30, turns: 3, threads: &THREADS[..3] }
    } else {
        Plan { rounds: 240, turns: 7, threads: &THREADS }
    };
    println!(
        "| threads | kind | processor ns per set | against `String` | wall ns per set | waits per 1,000 sets |"
    );
    println!("|--:|---|--:|--:|--:|--:|");
    for &threads in plan.threads {
        let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); Kind::ALL.len()];
        for _ in 0..plan.turns {
            for (kind, turns) in Kind::ALL.into_iter().zip(&mut turns) {
                turns.push(turn(kind, threads, plan.rounds.div_ceil(threads)));
            }
        }
        let medians: Vec<_> = turns.into_iter().map(median).collect();
        let strings = medians[3].processor;
        for (kind, turn) in Kind::ALL.into_iter().zip(medians) {
            let (name, ratio) = (kind.name(), turn.processor.as_secs_f64() / strings.as_secs_f64());
            let (processor, wall) = (turn.processor.as_nanos(), turn.wall.as_nanos());
            println!("| {threads} | {name} | {processor} | {ratio:.2} | {wall} | {:.2} |", turn.waits);
        }
    }
}

fn median(mut turns: Vec<Turn>) -> Turn {
    turns.sort_by_key(|turn| turn.processor);
    turns[turns.len() / 2]
}

/// `threads` threads of `rounds` rounds each, after one round that does not count.
fn turn(kind: Kind, threads: usize, rounds: usize) -> Turn {
    let (ready, done) = (Barrier::new(threads), Barrier::new(threads));
    let usages: Vec<(Usage, Usage)> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| work(kind, rounds, &ready, &done))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a thread failed")).collect()
    });
    let sets = (threads * rounds * SETS) as f64;
    let processor: Duration = usages.iter().map(|(before, after)| after.processor - before.processor).sum();
    let waits: u64 = usages.iter().map(|(before, after)| after.waits - before.waits).sum();
    // From the first thread that started to the last that ended.
    let start = usages.iter().map(|(before, _)| before.at).min();
    let end = usages.iter().map(|(_, after)| after.at).max();
    let wall = end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start);
    Turn {
        processor: processor.div_f64(sets),
        wall: wall.div_f64(sets),
        waits: waits as f64 * 1_000.0 / sets,
    }
}

/// One thread's part; returns its usage before and after.
fn work(kind: Kind, rounds: usize, ready: &Barrier, done: &Barrier) -> (Usage, Usage) {
    let source = Source::new();
    let mut held = nothing(kind);
    build(kind, &source, &mut held);
    ready.wait();
    let before = usage();
    for _ in 0..rounds {
        build(kind, &source, &mut held);
        assert_eq!(search(&held), expected(), "{kind:?} lost a field");
    }
    let after = usage();
    // Nobody gives memory back while another still measures.
    done.wait();
    (before, after)
}

/// What this thread has used so far (Linux); nothing where the system does not say.
fn usage() -> Usage {
    // The kernel brings the figures of a running thread up to date when it yields, else once a tick.
    std::thread::yield_now();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedule.split_whitespace().next().and_then(|number| number.parse().ok());
    Usage {
        processor: Duration::from_nanos(nanoseconds.unwrap_or(0)),
        waits: waits.and_then(|count| count.trim().parse().ok()).unwrap_or(0),
        at: Instant::now(),
    }
}
