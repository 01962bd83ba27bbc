//! The cost of a timer: CPU nanoseconds per operation with 100,000 timers.
//! Run with `cargo run --release -p maitred-io --example timer_cost`.

use maitred_io::timers::Timers;
use std::hint::black_box;
use std::io::Write;

const TIMERS: u32 = 100_000;
const ROUNDS: usize = 9;
const SECOND: u64 = 1_000_000_000;

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

struct Bench {
    timers: Timers,
    ids: Vec<u32>,
    phases: Phases,
    watched: bool,
    longest: u64,
}

impl Bench {
    /// Runs `step` for each id and returns how often it answered true.
    fn phase(&mut self, name: &'static str, mut step: impl FnMut(&Timers, u32, u64) -> bool) -> usize {
        let mut moved = 0;
        let begin = cpu();
        for (nth, id) in (0..).zip(&self.ids) {
            moved += usize::from(step(&self.timers, *id, nth));
        }
        self.phases.push((name, (cpu() - begin) as f64 / f64::from(TIMERS)));
        moved
    }

    /// Expires every millisecond of virtual time and returns how many were due. The watched life finds the
    /// longest call, the others are free of its clock readings.
    fn pass(&mut self, name: &'static str, from: u64, to: u64) -> usize {
        let mut due = Vec::with_capacity(TIMERS as usize);
        let begin = cpu();
        for now in (from..to).step_by(1_000_000) {
            let before = if self.watched { cpu() } else { 0 };
            self.timers.expire(now, &mut due);
            if self.watched {
                self.longest = self.longest.max(cpu() - before);
            }
        }
        self.phases.push((name, (cpu() - begin) as f64 / f64::from(TIMERS)));
        black_box(&due).len()
    }
}

/// One life of 100,000 connections; deadlines are spread as if requests came every 100 µs.
fn life(out: &mut impl Write, watched: bool) -> Phases {
    const APART: u64 = 100_000;
    let start = 1_000_000 * SECOND;
    let mut bench =
        Bench { timers: Timers::new(), ids: shuffled(), phases: Phases::new(), watched, longest: 0 };
    let mut due = Vec::new();
    for id in 0..TIMERS {
        bench.timers.set(id, start);
    }
    bench.timers.expire(start, &mut due);
    assert_eq!(due.len(), TIMERS as usize);

    let armed = bench.phase("arm", |timers, id, nth| timers.set(id, start + 75 * SECOND + nth * APART));
    let extended = bench.phase("extend", |timers, id, nth| timers.set(id, start + 85 * SECOND + nth * APART));
    let shortened =
        bench.phase("shorten", |timers, id, nth| timers.set(id, start + 10 * SECOND + nth * APART));
    bench.phase("extend again", |timers, id, nth| timers.set(id, start + 30 * SECOND + nth * APART));
    let early = bench.pass("move extended, each ms", start, start + 25 * SECOND);
    bench.phase("cancel half", |timers, id, _| {
        if id % 2 == 0 {
            timers.cancel(id);
        }
        false
    });
    let reported = bench.pass("expire half, drop half", start + 25 * SECOND, start + 90 * SECOND);
    assert_eq!(early, 0, "nothing fires early");
    assert_eq!(reported, TIMERS as usize / 2);
    if watched {
        writeln!(
            out,
            "earliest moved: arming {armed}, extending {extended}, shortening {shortened}; longest expire call {} µs",
            bench.longest / 1000
        )
        .expect("stdout");
    }
    bench.phases
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut out = std::io::stdout().lock();
    life(&mut out, true);
    let lives: Vec<Phases> = (0..ROUNDS).map(|_| life(&mut out, false)).collect();
    writeln!(out, "{TIMERS} timers, median of {ROUNDS} rounds, CPU ns per timer").expect("stdout");
    for (phase, (name, _)) in lives[0].iter().enumerate() {
        let nanoseconds = median(lives.iter().map(|life| life[phase].1).collect());
        writeln!(out, "{name:>24} {nanoseconds:>8.1}").expect("stdout");
    }
}
