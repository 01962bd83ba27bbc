//! What it costs to count an exchange, on a machine with nothing else to do.
//! Run with `cargo run --release -p maitred-stats --example record_cost`.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use maitred_stats::{LeafKey, Recorder, Spans};

const COUNT: u32 = 4_000_000;

fn main() -> std::io::Result<()> {
    for (leaves, what) in [(1, "one leaf"), (40, "40 leaves in turn"), (2000, "2,000 leaves in turn")] {
        let recorder = Arc::new(Recorder::new());
        let begin = Instant::now();
        let mut noise = 1_u64;
        for number in 0..COUNT {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let some = noise >> 44;
            let spans = Spans([0, 2000 + some % 9000, 0, 0, 30_000 + some % 100_000, 9000 + some % 5000]);
            let key = LeafKey { listener: 0, pool: 0, route: number % leaves, class: 2 };
            recorder.record(key, 1024, Some(black_box(spans)));
        }
        let nanos = begin.elapsed().as_nanos() / u128::from(COUNT);
        writeln!(std::io::stdout(), "{what}: {nanos} ns a request")?;
    }
    Ok(())
}
