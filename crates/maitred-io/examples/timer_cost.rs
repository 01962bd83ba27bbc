//! What a timer costs: CPU nanoseconds per operation with 100,000 timers, beside a binary heap with the same
//! lazy deletion under the same lock. Run with `cargo run --release -p maitred-io --example timer_cost`.

use maitred_io::timers::Timers;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

const TIMERS: u32 = 100_000;
const ROUNDS: usize = 9;
const SECOND: u64 = 1_000_000_000;
const NEVER: u64 = u64::MAX;

trait Queue {
    const NAME: &str;
    fn empty() -> Self;
    fn set(&self, id: u32, deadline: u64) -> bool;
    fn cancel(&self, id: u32);
    fn expire(&self, now: u64, due: &mut Vec<u32>);
}

impl Queue for Timers {
    const NAME: &str = "wheel (Timers)";
    fn empty() -> Self {
        Self::new()
    }
    fn set(&self, id: u32, deadline: u64) -> bool {
        self.set(id, deadline)
    }
    fn cancel(&self, id: u32) {
        self.cancel(id);
    }
    fn expire(&self, now: u64, due: &mut Vec<u32>) {
        self.expire(now, due);
    }
}

/// The alternative: the same two words for each slot, a binary heap instead of the wheel.
struct Heap {
    slots: Vec<(AtomicU64, AtomicU64)>,
    heap: Mutex<BinaryHeap<Reverse<(u64, u32)>>>,
}

impl Queue for Heap {
    const NAME: &str = "binary heap";
    fn empty() -> Self {
        let slots = (0..TIMERS).map(|_| (AtomicU64::new(NEVER), AtomicU64::new(NEVER))).collect();
        Self { slots, heap: Mutex::default() }
    }
    fn set(&self, id: u32, deadline: u64) -> bool {
        let (word, queued) = &self.slots[id as usize];
        word.store(deadline, SeqCst);
        if queued.load(SeqCst) <= deadline {
            return false;
        }
        let mut heap = self.heap.lock().expect("heap");
        let before = heap.peek().map_or(NEVER, |entry| entry.0.0);
        heap.push(Reverse((deadline, id)));
        queued.store(deadline, SeqCst);
        if heap.len() > 2 * self.slots.len() {
            heap.retain(|Reverse((position, id))| self.slots[*id as usize].1.load(SeqCst) == *position);
        }
        deadline < before
    }
    fn cancel(&self, id: u32) {
        self.slots[id as usize].0.store(NEVER, SeqCst);
    }
    fn expire(&self, now: u64, due: &mut Vec<u32>) {
        let mut heap = self.heap.lock().expect("heap");
        while let Some(Reverse((position, id))) = heap.peek().copied() {
            if position > now {
                return;
            }
            heap.pop();
            let (word, queued) = &self.slots[id as usize];
            if queued.load(SeqCst) != position {
                continue;
            }
            queued.store(NEVER, SeqCst);
            match word.load(SeqCst) {
                NEVER => {}
                deadline if deadline <= now => {
                    word.store(NEVER, SeqCst);
                    due.push(id);
                }
                deadline => {
                    heap.push(Reverse((deadline, id)));
                    queued.store(deadline, SeqCst);
                }
            }
        }
    }
}

/// CPU time of this thread, ns.
fn cpu() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * SECOND + time.tv_nsec.unsigned_abs()
}

/// Ids in an order without pattern, the same in every run.
fn shuffled() -> Vec<u32> {
    let mut ids: Vec<u32> = (0..TIMERS).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..ids.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ids.swap(last, (state >> 33) as usize % (last + 1));
    }
    ids
}

/// Each phase: name and CPU ns per timer.
type Phases = Vec<(&'static str, f64)>;

struct Bench<Q> {
    queue: Q,
    ids: Vec<u32>,
    phases: Phases,
}

impl<Q: Queue> Bench<Q> {
    /// Runs `step` for each id and returns how often it answered true.
    fn phase(&mut self, name: &'static str, mut step: impl FnMut(&Q, u32, u64) -> bool) -> usize {
        let mut moved = 0;
        let begin = cpu();
        for (nth, id) in (0..).zip(&self.ids) {
            moved += usize::from(step(&self.queue, *id, nth));
        }
        self.phases.push((name, (cpu() - begin) as f64 / f64::from(TIMERS)));
        moved
    }

    /// Expires every millisecond of virtual time; two clock readings a step (some 60 ns) are in the figure.
    fn pass(&mut self, name: &'static str, from: u64, to: u64) -> usize {
        let mut due = Vec::with_capacity(TIMERS as usize);
        let mut longest = 0;
        let begin = cpu();
        for now in (from..to).step_by(1_000_000) {
            let start = Instant::now();
            self.queue.expire(now, &mut due);
            longest = longest.max(start.elapsed().as_nanos());
        }
        let spent = (cpu() - begin) as f64 / f64::from(TIMERS);
        self.phases.push((name, spent));
        self.phases.push(("(longest call, ns)", longest as f64));
        black_box(&due).len()
    }
}

/// One life of 100,000 connections; deadlines are spread as if requests came every 100 µs.
fn life<Q: Queue>(out: &mut impl Write, report: bool) -> Phases {
    const APART: u64 = 100_000;
    let start = 1_000_000 * SECOND;
    let mut bench = Bench { queue: Q::empty(), ids: shuffled(), phases: Phases::new() };
    let mut due = Vec::new();
    for id in 0..TIMERS {
        bench.queue.set(id, start);
    }
    bench.queue.expire(start, &mut due);
    assert_eq!(due.len(), TIMERS as usize);

    let armed = bench.phase("arm", |queue, id, nth| queue.set(id, start + 75 * SECOND + nth * APART));
    let extended = bench.phase("extend", |queue, id, nth| queue.set(id, start + 85 * SECOND + nth * APART));
    let shortened = bench.phase("shorten", |queue, id, nth| queue.set(id, start + 10 * SECOND + nth * APART));
    bench.phase("extend again", |queue, id, nth| queue.set(id, start + 30 * SECOND + nth * APART));
    let early = bench.pass("move extended, each ms", start, start + 25 * SECOND);
    bench.phase("cancel half", |queue, id, _| {
        if id % 2 == 0 {
            queue.cancel(id);
        }
        false
    });
    let reported = bench.pass("expire half, drop half", start + 25 * SECOND, start + 90 * SECOND);
    assert_eq!(early, 0, "nothing fires early");
    assert_eq!(reported, TIMERS as usize / 2);
    if report {
        writeln!(
            out,
            "{}: earliest moved: arming {armed}, extending {extended}, shortening {shortened}",
            Q::NAME
        )
        .expect("stdout");
    }
    bench.phases
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run<Q: Queue>(out: &mut impl Write) -> Phases {
    let lives: Vec<Phases> = (0..ROUNDS).map(|round| life::<Q>(out, round + 1 == ROUNDS)).collect();
    let nth = |phase: usize| median(lives.iter().map(|life| life[phase].1).collect());
    (0..lives[0].len()).map(|phase| (lives[0][phase].0, nth(phase))).collect()
}

fn main() {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{TIMERS} timers, median of {ROUNDS} rounds, CPU ns per timer").expect("stdout");
    let (wheel, heap) = (run::<Timers>(&mut out), run::<Heap>(&mut out));
    writeln!(out, "{:>24} {:>10} {:>12}", "", "wheel", "binary heap").expect("stdout");
    for ((name, wheel), (_, heap)) in wheel.iter().zip(&heap) {
        writeln!(out, "{name:>24} {wheel:>10.1} {heap:>12.1}").expect("stdout");
    }
}
