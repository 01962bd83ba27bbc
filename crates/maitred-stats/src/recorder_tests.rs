use super::*;
use crate::rings::{RINGS, SAMPLES};
use crate::routes::{MAX_ROUTES, OTHER};
use crate::table::{CHOSEN, CHOSEN_OTHER, SEVERAL};
use crate::times::Span;
use std::collections::BTreeMap;

fn key(listener: u16, pool: u16, route: u32, class: u8) -> LeafKey {
    LeafKey { listener, pool, route, class }
}

fn requests(recorder: &Arc<Recorder>) -> BTreeMap<LeafKey, u64> {
    let mut all = BTreeMap::new();
    recorder.leaves(|key, leaf| {
        if leaf.requests > 0 {
            assert!(all.insert(key, leaf.requests).is_none());
        }
    });
    all
}

#[test]
fn samples_are_read_at_once_and_after_their_threads_have_ended() {
    let recorder = Arc::new(Recorder::new());
    let (one, two) = (key(0, 0, 1, 2), key(0, 1, 2, 5));
    let threads = [0, 1, 2, 3].map(|thread| {
        let recorder = Arc::clone(&recorder);
        std::thread::spawn(move || {
            for number in 0..1000 + thread {
                recorder.record(one, 10, Some(Spans([0, number, 0, 0, 5000, 0, 1])));
            }
            recorder.record(two, 1, Some(Spans::default()));
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(recorder.owners().owned(), 0, "threads that have ended leave nothing behind");
    recorder.record(two, 1, Some(Spans::default()));
    assert_eq!(requests(&recorder), BTreeMap::from([(one, 4006), (two, 5)]));
    recorder.leaves(|key, leaf| {
        if key == one {
            assert_eq!((leaf.bytes, leaf.spans[Span::Run as usize].sum()), (40_060, 4006 * 5000));
            let queue = &leaf.spans[Span::Queue as usize];
            assert_eq!((queue.count(), queue.min(), queue.max()), (4006, 0, 1002));
            assert_eq!(leaf.total.max(), 1002 + 5001);
        }
    });
    assert_eq!(recorder.owners().owned(), 1);
}

#[test]
fn samples_read_while_a_thread_notes_are_counted_once() {
    let recorder = Arc::new(Recorder::new());
    let one = key(0, 0, 1, 2);
    let thread = {
        let recorder = Arc::clone(&recorder);
        std::thread::spawn(move || {
            (1..=50_000).for_each(|number| recorder.record(one, number, Some(Spans([number; 7]))))
        })
    };
    let mut before = 0;
    while !thread.is_finished() {
        let now = requests(&recorder).get(&one).copied().unwrap_or_default();
        assert!(now >= before);
        before = now;
    }
    thread.join().unwrap();
    recorder.leaves(|key, leaf| {
        if key == one {
            assert_eq!((leaf.requests, leaf.bytes), (50_000, 50_000 * 50_001 / 2));
            assert!(leaf.spans.iter().all(|span| span.sum() == leaf.bytes && span.max() == 50_000));
        }
    });
}

#[test]
fn an_exchange_without_times_is_counted_without_them() {
    let recorder = Arc::new(Recorder::new());
    let one = key(0, 0, 1, 2);
    recorder.record(one, 10, Some(Spans([7; 7])));
    recorder.record(one, 20, None);
    recorder.leaves(|key, leaf| {
        if key == one {
            assert_eq!((leaf.requests, leaf.bytes), (2, 30));
            assert!(leaf.spans.iter().all(|span| (span.count(), span.min()) == (1, 7)));
            assert_eq!((leaf.total.count(), leaf.total.max()), (1, 49));
        }
    });
}

#[test]
fn a_thread_does_not_wait_for_the_table_until_its_ring_is_full() {
    let recorder = Arc::new(Recorder::new());
    let one = key(0, 0, 1, 2);
    let table = recorder.table.lock();
    let (said, says) = std::sync::mpsc::channel();
    let thread = {
        let recorder = Arc::clone(&recorder);
        std::thread::spawn(move || {
            (1..SAMPLES).for_each(|_| recorder.record(one, 1, Some(Spans([7; 7]))));
            said.send(()).unwrap();
            recorder.record(one, 1, Some(Spans([7; 7])));
        })
    };
    let done = says.recv_timeout(std::time::Duration::from_secs(20));
    drop(table);
    assert!(done.is_ok(), "it waited");
    thread.join().unwrap();
    assert_eq!(requests(&recorder), BTreeMap::from([(one, SAMPLES as u64)]));
    assert_eq!(recorder.owners().owned(), 0);
}

#[test]
fn nothing_is_counted_while_it_is_off() {
    let recorder = Arc::new(Recorder::new());
    recorder.set_on(false);
    recorder.record(key(0, 0, 1, 2), 1, Some(Spans::default()));
    recorder.record_timing(0, 1, "db", 1);
    assert!(requests(&recorder).is_empty());
    recorder.set_on(true);
    recorder.record(key(0, 0, 1, 2), 1, Some(Spans::default()));
    assert_eq!(requests(&recorder).len(), 1);
    recorder.timings(|key, _| panic!("{key:?}"));
}

#[test]
fn a_thread_that_serves_two_servers_counts_in_both() {
    let (left, right) = (Arc::new(Recorder::new()), Arc::new(Recorder::new()));
    for _ in 0..100 {
        left.record(key(0, 0, 1, 2), 1, Some(Spans::default()));
        right.record(key(0, 0, 2, 2), 1, Some(Spans::default()));
    }
    assert_eq!(requests(&left), BTreeMap::from([(key(0, 0, 1, 2), 100)]));
    assert_eq!(requests(&right), BTreeMap::from([(key(0, 0, 2, 2), 100)]));
}

#[test]
fn timings_are_counted_by_pool_route_and_name() {
    let recorder = Arc::new(Recorder::new());
    for (pool, route, name, millis) in
        [(0, 1, "db", 20), (0, 1, "db", 40), (1, 1, "db", 1), (0, 2, "cache", 3)]
    {
        recorder.record_timing(pool, route, name, millis * 1_000_000);
    }
    let names = recorder.names();
    let mut all = Vec::new();
    recorder.timings(|key, nanos| {
        all.push((key.pool, key.route, &*names[usize::from(key.name)], nanos.count(), nanos.mean() / 1e6));
    });
    all.sort_by_key(|(pool, route, ..)| (*pool, *route));
    assert_eq!(all, [(0, 1, "db", 2, 30.0), (0, 2, "cache", 1, 3.0), (1, 1, "db", 1, 1.0)]);
}

#[test]
fn routes_that_move_count_where_they_are_moved_to_and_from_zero() {
    let recorder = Arc::new(Recorder::new());
    let record = |route, class, times| {
        for _ in 0..times {
            recorder.record(key(0, 1, route, class), 3, Some(Spans::default()));
            recorder.record_timing(1, route, "db", 1_000_000);
        }
    };
    record(5, 2, 100);
    record(5, 4, 7);
    record(6, 2, 10);
    record(8, 2, 1);
    assert_eq!(recorder.requests(), [0, 0, 0, 0, 0, 107, 10, 0, 1]);
    recorder.move_routes(&[(5, OTHER), (6, 8)]);
    record(5, 2, 2);
    let counted = requests(&recorder).into_iter().filter(|(_, requests)| *requests > 0);
    let expected =
        [(key(0, 1, OTHER, 2), 100), (key(0, 1, OTHER, 4), 7), (key(0, 1, 5, 2), 2), (key(0, 1, 8, 2), 11)];
    assert_eq!(counted.collect::<BTreeMap<_, _>>(), BTreeMap::from(expected));
    let mut timings = BTreeMap::new();
    recorder.timings(|key, nanos| _ = timings.insert(key.route, nanos.count()));
    assert_eq!(timings, BTreeMap::from([(OTHER, 107), (5, 2), (6, 0), (8, 11)]));
}

#[test]
fn whatever_is_counted_the_memory_is_bounded_and_nothing_is_lost() {
    let recorder = Arc::new(Recorder::new());
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let count = 300_000;
    for _ in 0..count {
        let listener = if next(10) == 0 { next(50) as u16 } else { 0 };
        let key = key(listener, next(2) as u16, next(MAX_ROUTES as u64 + 1) as u32, next(6) as u8);
        // Of all magnitudes: the worst for the memory.
        let spans = Spans(std::array::from_fn(|_| next(1 << 31) << next(32) >> next(32)));
        recorder.record(key, 1, Some(spans));
        recorder.record_timing(key.pool, key.route, &format!("n{}", next(100)), next(1 << 31) << next(32));
    }
    let mut seen = Leaf::default();
    let mut several = 0;
    recorder.leaves(|key, leaf| {
        seen.merge(&leaf);
        several += u64::from(key.listener == SEVERAL) * leaf.requests;
        if key.listener == SEVERAL {
            assert_eq!(key.route, OTHER);
        }
    });
    assert_eq!((seen.requests, seen.bytes, seen.total.count()), (count, count, count));
    assert!(several > 0, "there were more leaves than places");
    assert!(seen.total.is_coarse(), "there were more values than memory");
    let mut timings = recorder.lost_timings();
    recorder.timings(|_, nanos| timings += nanos.count());
    assert_eq!(timings, count);
    let bytes = recorder.bytes() + ROUTES_BYTES;
    // All but the rings of threads that are not there.
    assert!((MAX_BYTES * 87 / 100..=MAX_BYTES).contains(&bytes), "{bytes}");
}

#[test]
fn what_clients_choose_takes_no_room_from_others() {
    let recorder = Arc::new(Recorder::new());
    let name = recorder.number_of("n");
    let chosen: Vec<TimingKey> =
        (CHOSEN.start..CHOSEN.start + 20_000).map(|pool| TimingKey { pool, route: 1, name }).collect();
    chosen.iter().for_each(|key| recorder.record_numbered(*key, 1));
    recorder.record(key(0, 0, 1, 2), 0, None);
    recorder.record_timing(0, 2, "own", 1);
    let mut counts = BTreeMap::new();
    recorder.timings(|key, values| _ = counts.insert((key.pool, key.route), values.count()));
    assert_eq!((counts.get(&(0, 2)), requests(&recorder).get(&key(0, 0, 1, 2))), (Some(&1), Some(&1)));
    let other = counts.get(&(CHOSEN_OTHER, OTHER)).copied().unwrap_or_default();
    assert!(other > 15_000, "{other}");
    assert_eq!((counts.values().sum::<u64>(), recorder.lost_timings()), (20_001, 0));
}

#[test]
fn the_rings_of_threads_are_bounded_too() {
    let recorder = Arc::new(Recorder::new());
    let threads = RINGS + 20;
    let barrier = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                recorder.record(key(0, 0, 1, 2), 1, Some(Spans::default()));
                barrier.wait();
                assert_eq!(recorder.owners().owned(), RINGS);
                barrier.wait();
            });
        }
    });
    assert_eq!(requests(&recorder), BTreeMap::from([(key(0, 0, 1, 2), threads as u64)]));
}
