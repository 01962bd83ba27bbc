use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const START: u64 = 1_700_000_000;

/// A server that is looked at.
struct Watched {
    history: History,
    counts: Counts,
    at: u64,
}

impl Watched {
    fn new() -> Self {
        Self { history: History::default(), counts: Counts::default(), at: START }
    }

    /// A look after `seconds`, in which there were requests of so many milliseconds.
    fn look(&mut self, seconds: u64, requests: &[u64]) {
        for millis in requests {
            self.counts.requests[2] += 1;
            self.counts.counters[0] += 1;
            self.counts.bytes_out += 5_000_000_000;
            self.counts.total.record(millis * 1_000_000);
        }
        self.at += seconds;
        self.sample(seconds);
    }

    fn sample(&mut self, seconds: u64) {
        let mut gauges = Gauges::default();
        gauges.0[3] = Some(self.counts.requests[2] % 7);
        let (at, covered) = (Duration::from_secs(self.at), Duration::from_secs(seconds));
        self.history.add(&Sample { at, covered, counts: &self.counts, gauges: &gauges });
    }

    fn values(&mut self, step: u64, name: &str) -> Vec<Option<f64>> {
        let figure = Figure::find(name).expect("a figure");
        self.history.table(0, u64::MAX - 1, step, &[figure]).expect("a step").values.swap_remove(0)
    }

    fn sum(&mut self, step: u64, name: &str) -> f64 {
        self.values(step, name).into_iter().flatten().sum()
    }
}

proptest! {
    #[test]
    fn each_step_has_every_request_once(looks in vec((1..40_u64, vec(1..5000_u64, 0..4)), 1..60)) {
        let mut watched = Watched::new();
        for (seconds, requests) in &looks {
            watched.look(*seconds, requests);
        }
        let count = looks.iter().map(|(_, requests)| requests.len()).sum::<usize>() as f64;
        for (step, _) in STEPS {
            prop_assert_eq!(watched.sum(step, "requests"), count);
            prop_assert_eq!(watched.sum(step, "requests_2xx"), count);
            prop_assert_eq!(watched.sum(step, "errors"), count);
            prop_assert_eq!(watched.sum(step, "out_bytes"), count * 5e9);
            let covered: u64 = looks.iter().map(|(seconds, _)| seconds).sum();
            prop_assert!((watched.sum(step, "covered_seconds") - covered as f64).abs() < 1e-3);
            // A row for each interval that was looked at, and for no other.
            let rows = watched.values(step, "requests").into_iter().flatten().count();
            prop_assert!(rows <= looks.len());
        }
    }

    #[test]
    fn percentiles_are_of_all_requests_of_the_interval(requests in vec(1..60_000_u64, 10..100)) {
        let mut watched = Watched::new();
        for request in &requests {
            watched.look(1, &[*request]);
        }
        let mut all = Distribution::new();
        requests.iter().for_each(|millis| all.record(millis * 1_000_000));
        // All samples are in one interval of ten minutes, or in two.
        let p99 = watched.values(600, "p99_seconds").into_iter().flatten().fold(0.0, f64::max);
        let largest = all.max() as f64 / 1e9;
        prop_assert!((p99 / largest - 1.0).abs() < 0.02, "{p99} {largest}");
    }
}

#[test]
fn an_interval_without_a_look_is_not_zero() {
    let mut watched = Watched::new();
    watched.look(1, &[1]);
    watched.look(1, &[]);
    watched.at += 3;
    watched.look(1, &[2]);
    assert_eq!(watched.values(1, "requests"), [Some(1.0), Some(0.0), None, None, None, Some(1.0)]);
    assert_eq!(watched.values(1, "p50_seconds")[1..4], [None; 3]);
    assert_eq!(watched.values(1, "memory_bytes"), [None; 6]);
}

#[test]
fn a_count_that_goes_back_counts_on_later() {
    let mut watched = Watched::new();
    watched.look(1, &[1; 10]);
    let before = std::mem::take(&mut watched.counts);
    watched.look(1, &[1; 3]);
    watched.counts = before;
    watched.look(1, &[1; 2]);
    assert_eq!(watched.values(1, "requests"), [Some(10.0), Some(0.0), Some(2.0)]);
    assert_eq!(watched.values(1, "total_seconds"), [Some(0.01), Some(0.0), Some(0.002)]);
}

#[test]
fn a_clock_that_is_set_back_leaves_no_rows_of_the_future() {
    let mut watched = Watched::new();
    (0..200).for_each(|_| watched.look(1, &[1]));
    // A little: counted on in the newest second.
    watched.at -= 30;
    watched.look(1, &[1]);
    assert_eq!((watched.values(1, "requests").len(), watched.sum(1, "requests")), (200, 201.0));
    // Much.
    watched.at = START + 50;
    watched.look(1, &[1]);
    assert_eq!(watched.values(1, "requests").len(), 51);
    (0..400).for_each(|_| watched.look(1, &[]));
    let found = watched.values(1, "requests");
    assert_eq!((found.len(), found.iter().flatten().count()), (451, 451));
    assert!(found[51..].iter().all(|value| *value == Some(0.0)), "rows of the time before are not back");
    // Forward: a gap.
    watched.at += 1000;
    watched.look(1, &[1]);
    assert_eq!(watched.values(1, "requests").iter().rev().take(5).flatten().count(), 1);
}

#[test]
fn a_month_stays_in_the_memory_that_is_stated() {
    let mut watched = Watched::new();
    // Times from microseconds to minutes, so that each distribution is as long as it gets.
    let all: Vec<u64> = (0..17).map(|power| 1 << power).collect();
    // By seconds 30 days would take long: by ten minutes, then a day by ten seconds and an hour by one.
    for _ in 0..4400 {
        watched.look(600, &[5]);
    }
    for _ in 0..8700 {
        watched.look(10, &[5]);
    }
    for _ in 0..4000 {
        watched.look(1, &all);
    }
    let lengths = STEPS.map(|(step, _)| watched.values(step, "requests").len());
    assert_eq!(lengths, [3600, 8640, 4320]);
    let rows: usize = watched.history.levels.iter().map(|level| level.ring.bytes()).sum();
    assert!(rows <= MAX_BYTES, "{rows} of {MAX_BYTES}");
    assert_eq!(rows, STEPS.iter().map(|(_, room)| room * ROW_BYTES).sum::<usize>());
    let saved = watched.history.to_bytes();
    // Behind the rows stand the routes of two days.
    assert!(saved.len() <= rows + 1_000_000, "{}", saved.len());
    let newest = watched.history.newest().expect("rows");
    assert_eq!(watched.history.step_from(newest - 3600), 1);
    assert_eq!(watched.history.step_from(newest - 3601), 10);
    assert_eq!(watched.history.step_from(newest - 86_401), 600);
    assert_eq!(watched.history.step_from(0), 600);
}

/// Hand-made: seconds of a month are many.
fn counted_alone(requests: &[u64]) -> Distribution {
    let mut all = Distribution::new();
    requests.iter().for_each(|millis| all.record(millis * 1_000_000));
    all
}

#[test]
fn buckets_of_fine_steps_add_up_to_those_of_coarse_ones() {
    let mut watched = Watched::new();
    let requests = |second: u64| [1 + second % 50, 2 + second % 999];
    (0..3000).for_each(|second| watched.look(1, &requests(second)));
    let mut add = |step: u64| {
        let rows = watched.history.latency(0, u64::MAX - 1, step).expect("a step");
        let mut sum = [0_u32; BUCKETS];
        rows.iter().flatten().for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count));
        sum
    };
    let all = counted_alone(&(0..3000).flat_map(requests).collect::<Vec<_>>());
    for (step, _) in STEPS {
        assert_eq!(add(step), latency::counted(&all), "{step}");
    }
}

#[test]
fn a_history_goes_on_where_a_file_has_left_it() {
    let mut watched = Watched::new();
    // A part of an interval of ten minutes.
    watched.at -= watched.at % 600;
    (0..700).for_each(|second| watched.look(1, &[1 + second % 9, 40]));
    let bytes = watched.history.to_bytes();
    let before = ["requests", "queue", "p99_seconds"].map(|name| watched.values(1, name));
    watched.history = History::from_bytes(&bytes).expect("a history");
    watched.counts = Counts::default();
    assert_eq!(["requests", "queue", "p99_seconds"].map(|name| watched.values(1, name)), before);
    (0..50).for_each(|_| watched.look(1, &[300]));
    for (step, _) in STEPS {
        assert_eq!(watched.sum(step, "requests"), 1450.0, "{step}");
        assert_eq!(watched.sum(step, "covered_seconds"), 750.0, "{step}");
    }
    // The rows that both have written to.
    let mut last = |name: &str| watched.values(600, name).pop().flatten().expect("a value");
    assert_eq!((last("requests"), last("max_seconds")), (250.0, 0.3));
    let (p50, p99) = (last("p50_seconds"), last("p99_seconds"));
    assert!((0.0253..=0.0504).contains(&p50) && (0.2684..=0.3).contains(&p99), "{p50} {p99}");
}

#[test]
fn a_damaged_file_is_no_history() {
    let mut watched = Watched::new();
    (0..20).for_each(|_| watched.look(1, &[1]));
    let bytes = watched.history.to_bytes();
    let read = |bytes: &[u8]| History::from_bytes(bytes).err();
    assert_eq!(read(&bytes), None);
    assert_eq!((read(b""), read(b"something else")), (Some(Damage::NotOne), Some(Damage::NotOne)));
    for cut in [17, 24, 40, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(read(&bytes[..cut]), Some(Damage::Changed), "{cut}");
    }
    for at in [24, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        assert_eq!(read(&changed), Some(Damage::Changed), "{at}");
    }
    let mut other = bytes.clone();
    other[16] ^= 1;
    assert_eq!(read(&other), Some(Damage::OtherVersion));
}

#[test]
fn counts_of_a_time_without_looks_are_in_no_interval() {
    let mut watched = Watched::new();
    watched.look(1, &[1]);
    watched.counts.requests[2] += 50;
    watched.history.skip(&watched.counts);
    watched.look(1, &[1]);
    assert_eq!(watched.sum(1, "requests"), 2.0);
}

#[test]
fn a_wait_for_the_interpreter_is_a_number_of_threads() {
    let mut watched = Watched::new();
    for _ in 0..4 {
        watched.counts.spans[Span::Gate as usize].record(500_000_000);
    }
    watched.look(1, &[1]);
    assert_eq!(watched.values(1, "threads_gate"), [Some(2.0)]);
    assert_eq!(watched.values(1, "queue"), [Some(1.0)]);
    assert_eq!(watched.values(1, "queue_max"), [Some(1.0)]);
}
