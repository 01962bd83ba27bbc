//! A process that counts as fast as it can, killed in the midst of it (SIGKILL): what it leaves is what it has counted.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::harness::wait_until;
use maitred_io::shared_memory::SharedMemory;
use maitred_server::figures::{MEMORY_BYTES, Owner, read_counters};
use maitred_stats::{Arena, Counter, Foreign, Leaf, LeafKey, Recorder, Spans};

const THREADS: usize = 3;

/// Behind the figures each thread says what it has counted.
fn said(memory: &SharedMemory) -> &[AtomicU64] {
    &memory.words()[MEMORY_BYTES / 8..]
}

fn key(thread: usize) -> LeafKey {
    LeafKey { listener: 0, pool: 0, route: thread as u32, class: 2 }
}

#[test]
#[ignore = "the process that is killed by the test below, with the memory as its standard input"]
fn counts_until_it_is_killed() {
    let file = std::io::stdin().as_fd().try_clone_to_owned().expect("a descriptor");
    let memory = Arc::new(SharedMemory::open(file).expect("memory"));
    let arena = Arena::new(memory.clone());
    let (recorder, counter) = (Arc::new(Recorder::in_arena(&arena)), Counter::in_arena(&arena, "x_total"));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (recorder, counter, memory) = (&recorder, &counter, &memory);
            scope.spawn(move || {
                for number in 1.. {
                    let nanos = number << (number % 30);
                    recorder.record(key(thread), 1, Some(Spans([nanos; 7])));
                    counter.add(1);
                    said(memory)[thread].store(number, Release);
                }
            });
        }
    });
}

#[test]
fn what_a_killed_process_leaves_is_what_it_has_counted() {
    for round in 1..=10 {
        let memory = SharedMemory::new(MEMORY_BYTES + THREADS * 8).expect("memory");
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "--ignored", "killed::counts_until_it_is_killed"])
            .stdin(memory.as_fd().try_clone_to_owned().expect("a copy"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // Each time at another place in the rings.
        let enough = |thread: &AtomicU64| thread.load(Acquire) > 7_001 * round;
        wait_until("all threads count", || said(&memory).iter().all(enough));
        process.kill().expect("killed");
        process.wait().expect("ended");

        let foreign = Foreign::find(memory.words(), Owner::Ended).expect("figures");
        let mut leaves = [(); THREADS].map(|()| Leaf::default());
        foreign.leaves(|key, leaf| leaves[key.route as usize % THREADS].merge(&leaf));
        let mut sum = 0;
        for (thread, leaf) in leaves.iter().enumerate() {
            let said = said(&memory)[thread].load(Acquire);
            assert!((said..=said + 1).contains(&leaf.requests), "{} of {said}, round {round}", leaf.requests);
            for span in leaf.spans.iter().chain([&leaf.total]) {
                assert!(leaf.requests.abs_diff(span.count()) <= 1);
                assert!(span.count().abs_diff(span.count_up_to(u64::MAX)) <= 1);
            }
            sum += said;
        }
        let counted = read_counters(memory.words())["x_total"];
        assert!((sum..=sum + THREADS as u64).contains(&counted), "{counted} of {sum}");
    }
}
