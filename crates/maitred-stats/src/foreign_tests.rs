use super::*;
use crate::memory::{self, Memory};
use crate::recorder::ARENA_BYTES;
use crate::rings::{exchange, timing};
use crate::table::Table;
use crate::{Arena, Counter, Recorder, Routes, Spans, read_counters, read_texts};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};

/// A process with its recorder, and the memory from which another process reads.
struct Process {
    memory: Memory,
    recorder: Arc<Recorder>,
}

impl Process {
    fn new() -> Self {
        let memory = memory::private(ARENA_BYTES / 8 + 4096);
        let arena = Arena::new(Memory::clone(&memory));
        Self { recorder: Arc::new(Recorder::in_arena(&arena)), memory }
    }

    fn words(&self) -> &[AtomicU64] {
        (*self.memory).as_ref()
    }

    fn read(&self, owner: Owner) -> Figures {
        read(self.words(), owner)
    }
}

type Figures = (BTreeMap<LeafKey, Leaf>, BTreeMap<TimingKey, Distribution>);

/// The figures in this memory, those of several processes as one.
fn add(words: &[AtomicU64], owner: Owner, (leaves, timings): &mut Figures) {
    let foreign = Foreign::find(words, owner).expect("a recorder");
    foreign.leaves(|key, leaf| leaves.entry(key).or_default().merge(&leaf));
    foreign.timings(|key, nanos| timings.entry(key).or_default().merge(&nanos));
    leaves.retain(|_, leaf| leaf.requests > 0);
}

fn read(words: &[AtomicU64], owner: Owner) -> Figures {
    let mut figures = Figures::default();
    add(words, owner, &mut figures);
    figures
}

fn key(route: u32) -> LeafKey {
    LeafKey { listener: 0, pool: 1, route, class: 2 }
}

/// All that is said of values, but for the squares, whose sum depends a little on the order.
fn said(of: &Distribution) -> Vec<u64> {
    let percentiles = [0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0].map(|percent| of.percentile(percent));
    [of.count(), of.sum(), of.min(), of.max()].into_iter().chain(percentiles).collect()
}

fn all_said((leaves, timings): &Figures) -> Vec<(u64, Vec<u64>)> {
    let mut all = Vec::new();
    for (key, leaf) in leaves {
        all.push((key.pack(), vec![leaf.requests, leaf.bytes]));
        all.extend(leaf.spans.iter().chain([&leaf.total]).map(|of| (key.pack(), said(of))));
    }
    all.extend(timings.iter().map(|(key, nanos)| (key.pack(), said(nanos))));
    all
}

#[derive(Clone, Debug)]
enum Record {
    Exchange(u32, u64, Option<[u64; 7]>),
    Timing(u32, u64),
}

impl Record {
    fn note(&self, recorder: &Arc<Recorder>) {
        match *self {
            Self::Exchange(route, bytes, spans) => recorder.record(key(route), bytes, spans.map(Spans)),
            Self::Timing(route, nanos) => recorder.record_timing(0, route, "db", nanos),
        }
    }
}

fn records() -> impl Strategy<Value = Vec<(usize, Record)>> {
    let nanos = || (20..64_u32, any::<u64>()).prop_map(|(shift, value)| value >> shift);
    let spans =
        proptest::option::weighted(0.9, [nanos(), nanos(), nanos(), nanos(), nanos(), nanos(), nanos()]);
    let record = prop_oneof![
        4 => (0..5_u32, 0..9999_u64, spans).prop_map(|(route, bytes, spans)| Record::Exchange(route, bytes, spans)),
        1 => (0..5_u32, nanos()).prop_map(|(route, nanos)| Record::Timing(route, nanos)),
    ];
    vec((0..3_usize, record), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A thread has a ring of one recorder at a time, so going from one to the other also folds.
    #[test]
    fn several_processes_are_as_one(records in records(), ended in any::<bool>()) {
        let one = Process::new();
        let several = [Process::new(), Process::new(), Process::new()];
        records.iter().for_each(|(_, record)| record.note(&one.recorder));
        let mut sum = Figures::default();
        for (number, process) in several.iter().enumerate() {
            records.iter().filter(|(to, _)| *to == number).for_each(|(_, record)| record.note(&process.recorder));
            if !ended {
                process.recorder.fold_all();
            }
            add(process.words(), if ended { Owner::Ended } else { Owner::Runs }, &mut sum);
        }
        one.recorder.fold_all();
        prop_assert_eq!(all_said(&sum), all_said(&one.read(Owner::Runs)));
    }
}

#[test]
fn a_killed_process_loses_nothing_and_nothing_is_counted_twice() {
    let process = Process::new();
    let (said, hears) = mpsc::channel();
    let (keep, kept) = (Arc::new(std::sync::Barrier::new(3)), process.recorder.clone());
    let threads = [300, 5].map(|count| {
        let (recorder, said, keep) = (Arc::clone(&kept), said.clone(), Arc::clone(&keep));
        std::thread::spawn(move || {
            (1..=count).for_each(|number| recorder.record(key(1), number, Some(Spans([number; 7]))));
            recorder.record_timing(1, 1, "db", 7_000);
            said.send(()).expect("heard");
            keep.wait();
        })
    });
    threads.iter().for_each(|_| hears.recv().expect("said"));
    let (leaves, timings) = process.read(Owner::Ended);
    let leaf = &leaves[&key(1)];
    let sum = (1..=300).sum::<u64>() + (1..=5).sum::<u64>();
    assert_eq!((leaf.requests, leaf.bytes), (305, sum));
    assert!(leaf.spans.iter().all(|span| (span.count(), span.sum(), span.max()) == (305, sum, 300)));
    assert_eq!(leaf.total.sum(), 7 * sum);
    assert_eq!(timings.values().map(Distribution::count).collect::<Vec<_>>(), [2]);
    // Of a running process only counted samples are read: the rings have the rest.
    assert_eq!(process.read(Owner::Runs).0[&key(1)].requests, 256);
    keep.wait();
    threads.into_iter().for_each(|thread| thread.join().expect("ended"));
    assert_eq!(process.read(Owner::Ended).0[&key(1)].requests, 305);
    assert_eq!(process.read(Owner::Runs).0[&key(1)].requests, 305);
}

#[test]
fn a_sample_that_was_being_counted_is_counted_once_or_lost() {
    // A process as it is left at each of these points.
    let of = |kill: &dyn Fn(&mut Table, &Area<'_>)| {
        let memory = memory::private(ARENA_BYTES / 8);
        let arena = Arena::new(Memory::clone(&memory));
        let run = arena.take(Kind::Recorder, 0, "exchanges", WORDS);
        let area = Area::new(run.words(), LEAVES_BYTES).expect("room");
        let mut table = Table::new(LEAVES_BYTES);
        table.keep_those_of_several(&area);
        area.head[crate::area::RINGS_USED].store(2, Relaxed);
        for route in [1, 1, 1, 2] {
            for ring in area.rings() {
                ring.push(exchange(key(route), 10, Some(Spans([5; 7]))));
            }
        }
        let name = TimingKey { pool: 0, route: 1, name: 0 };
        for nanos in [0, 9] {
            area.rings().last().expect("a ring").push(timing(name, nanos));
        }
        kill(&mut table, &area);
        let (leaves, timings) = read((*memory).as_ref(), Owner::Ended);
        let spans = leaves[&key(1)].spans[0].count();
        (leaves[&key(1)].requests, spans, leaves[&key(2)].requests, timings[&name].count())
    };
    fn first<'a>(area: &Area<'a>) -> crate::rings::Ring<'a> {
        area.rings().next().expect("a ring")
    }
    assert_eq!(of(&|_, _| {}), (6, 6, 2, 2));
    assert_eq!(of(&|table, area| area.rings().for_each(|ring| table.fold(area, ring))), (6, 6, 2, 2));
    let counted = of(&|table, area| {
        let (number, sample) = first(area).samples().next().expect("a sample");
        first(area).note_taken(number);
        table.count(area, sample);
    });
    assert_eq!(counted, (6, 6, 2, 2), "one of a ring");
    let taken = of(&|_, area| {
        let (number, _) = first(area).samples().next().expect("a sample");
        first(area).note_taken(number);
    });
    assert_eq!(taken, (5, 5, 2, 2), "taken and not counted");
}

#[test]
fn a_running_process_is_never_read_half_counted() {
    let process = Process::new();
    let recorder = Arc::clone(&process.recorder);
    let count = 200_000;
    let thread = std::thread::spawn(move || {
        (1..=count).for_each(|number| recorder.record(key(1), number, Some(Spans([number; 7]))));
    });
    let mut before = 0;
    loop {
        let last = thread.is_finished();
        if let Some(leaf) = process.read(Owner::Runs).0.get(&key(1)) {
            for span in &leaf.spans {
                assert_eq!((span.count(), span.sum()), (leaf.requests, leaf.bytes));
                assert_eq!(span.count_up_to(u64::MAX), span.count());
            }
            assert!(leaf.requests >= before);
            before = leaf.requests;
        }
        if last {
            break;
        }
    }
    thread.join().expect("ended");
    assert_eq!(before, count);
}

/// Reads all there is, and everything of it.
fn read_all(words: &[AtomicU64]) {
    for owner in [Owner::Ended, Owner::Runs] {
        let Some(foreign) = Foreign::find(words, owner) else { continue };
        let (mut sum, mut nanos) = (Leaf::default(), Distribution::new());
        foreign.leaves(|_, leaf| {
            leaf.spans.iter().chain([&leaf.total]).for_each(say);
            sum.merge(&leaf);
        });
        foreign.timings(|_, each| {
            say(&each);
            nanos.merge(&each);
        });
        sum.spans.iter().chain([&sum.total, &nanos]).for_each(say);
        assert!(foreign.routes().len() + foreign.names().len() < 2000);
        let _ = (foreign.lost_timings(), foreign.is_on(), foreign.bytes());
    }
    let _ = (read_counters(words), read_texts(words, "pools"));
}

fn say(of: &Distribution) {
    assert!((of.min()..=of.max()).contains(&of.percentile(50.0)) || of.count() == 0);
    assert!(of.deviation().is_finite() && of.mean().is_finite());
}

/// The words of a process that has counted much.
fn busy() -> &'static (Vec<u64>, Vec<usize>) {
    static BUSY: OnceLock<(Vec<u64>, Vec<usize>)> = OnceLock::new();
    BUSY.get_or_init(|| {
        let memory = memory::private(ARENA_BYTES / 8 + 4096);
        let arena = Arena::new(Memory::clone(&memory));
        Counter::in_arena(&arena, "requests_total").add(7);
        arena.texts("pools", &["default".to_owned(), "reports".to_owned()]);
        let (recorder, routes) = (Arc::new(Recorder::in_arena(&arena)), Routes::in_arena(&arena));
        for number in 0..1000_u64 {
            let route =
                routes.add((number % 20).wrapping_mul(0x9e37_79b9_7f4a_7c15), || format!("GET /{number}"));
            let spans = std::array::from_fn(|span| ((number * 77) << (number % 30)) >> span);
            recorder.record(key(route), number, Some(Spans(spans)));
            recorder.record_timing(0, route, "db", number);
        }
        let words: &[AtomicU64] = (*memory).as_ref();
        let words: Vec<u64> = words.iter().map(|word| word.load(Relaxed)).collect();
        let used = (0..words.len()).filter(|at| words[*at] != 0).collect();
        (words, used)
    })
}

proptest! {
    // To read all of the memory is what takes time, so each case has many changes.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_content_is_survived(
        changes in vec((any::<prop::sample::Index>(), 0..64_u32, any::<u64>(), any::<bool>()), 1..100)
    ) {
        let (words, used) = busy();
        let memory = memory::private(words.len());
        let written: &[AtomicU64] = (*memory).as_ref();
        written.iter().zip(words).for_each(|(word, value)| word.store(*value, Relaxed));
        for (which, shift, value, near) in changes {
            // One that is used, most of all one of the first, whose meaning is more than a count.
            let at = used[if near { which.index(used.len().min(200)) } else { which.index(used.len()) }];
            written[at].store(value >> shift, Relaxed);
        }
        read_all(written);
    }

    #[test]
    fn noise_is_survived(noise in vec((0..64_u32, any::<u64>()).prop_map(|(shift, word)| word >> shift), 0..2000)) {
        let words: Box<[AtomicU64]> = noise.into_iter().map(AtomicU64::new).collect();
        read_all(&words);
        if let Some(first) = words.first() {
            first.store(busy().0[0], Relaxed);
        }
        read_all(&words);
    }
}

#[test]
fn memory_full_of_ones_or_noise_is_survived() {
    let (words, _) = busy();
    let memory = memory::private(words.len());
    let written: &[AtomicU64] = (*memory).as_ref();
    let mut state = 1_u64;
    let run = runs_of(words);
    for fill in [0, 1, u64::MAX] {
        for (at, word) in written.iter().enumerate() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = if fill == 0 { state >> (state % 64) } else { fill };
            // The heads of the runs stay intact, so that the reader goes on to their contents.
            word.store(if run.contains(&at) { words[at] } else { noise }, Relaxed);
        }
        assert!(Foreign::find(written, Owner::Ended).is_some());
        read_all(written);
    }
}

/// Where the heads of runs are.
fn runs_of(words: &[u64]) -> BTreeSet<usize> {
    let mut heads: BTreeSet<usize> = (0..16).collect();
    let mut at = 16;
    while words.get(at).is_some_and(|first| *first != 0) {
        heads.extend(at..at + 16);
        at += words[at] as u32 as usize;
    }
    heads
}
