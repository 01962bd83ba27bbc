//! The cost of counting an exchange, and of adding to a counter, on a machine with nothing else to do.
//! Run with `cargo run --release -p maitred-stats --example record_cost`.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use maitred_stats::{Arena, Counter, LeafKey, LockedCounters, Recorder, Spans, memory};

const COUNT: u32 = 4_000_000;

fn main() -> std::io::Result<()> {
    for (leaves, what) in [(1, "one leaf"), (40, "40 leaves in turn"), (2000, "2,000 leaves in turn")] {
        let recorder = Arc::new(Recorder::new());
        let mut noise = 1_u64;
        let nanos = nanos(|number| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let some = noise >> 44;
            let spans = Spans([0, 2000 + some % 9000, 0, 0, 30_000 + some % 100_000, 0, 9000 + some % 5000]);
            let key = LeafKey { listener: 0, pool: 0, route: number % leaves, class: 2 };
            recorder.record(key, 1024, Some(black_box(spans)));
        });
        writeln!(std::io::stdout(), "{what}: {nanos:.1} ns a request")?;
    }
    let arena = Arena::new(memory::private(4096));
    let (own, shared) = (Counter::new(), Counter::in_arena(&arena, "x_total"));
    let locked = LockedCounters::in_arena(&arena, ["y_total"]);
    let costs = [
        ("a counter", nanos(|number| black_box(&own).add(u64::from(number) & 1))),
        ("one in an arena", nanos(|number| black_box(&shared).add(u64::from(number) & 1))),
        ("one under a lock, in an arena", nanos(|number| black_box(&locked).add(0, u64::from(number) & 1))),
    ];
    for (what, nanos) in costs {
        writeln!(std::io::stdout(), "{what}: {nanos:.1} ns")?;
    }
    Ok(())
}

/// The average cost of one call.
fn nanos(mut call: impl FnMut(u32)) -> f64 {
    let begin = Instant::now();
    (0..COUNT).for_each(&mut call);
    begin.elapsed().as_nanos() as f64 / f64::from(COUNT)
}
