//! Exporters with collectors that are dead, slow or unwilling, in virtual time.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::HashSet;
use std::time::Duration;

use maitred_trace::exporter::{Settings, retry_after};
use maitred_trace::{Counts, Exporter, Format, Post, Pushed, Signal, Step};
use proptest::collection::vec;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;

/// An answer of a collector: after so many nanoseconds this status, or none.
#[derive(Clone, Debug)]
struct Answer {
    after: u64,
    status: Option<u16>,
    retry_after: Option<u64>,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self { after: SECOND / 100, status: Some(status), retry_after: None, body: Vec::new() }
    }

    fn dead() -> Self {
        Self { status: None, ..Self::of(0) }
    }
}

/// An exporter with its driver, which calls `next` only where the exporter has asked for that.
struct World {
    exporter: Exporter,
    now: u64,
    wake: Option<u64>,
    post: Option<(u64, Post, Answer)>,
    /// Numbers of the items that a collector has taken.
    taken: HashSet<u64>,
    pushed: u64,
    posted: Vec<u64>,
    finished: bool,
    largest: u64,
}

fn settings() -> Settings {
    Settings { format: Format::Json, ..Settings::default() }
}

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            exporter: Exporter::new(Signal::Traces, settings, [3, 4]),
            now: 0,
            wake: None,
            post: None,
            taken: HashSet::new(),
            pushed: 0,
            posted: Vec::new(),
            finished: false,
            largest: 0,
        }
    }

    fn push(&mut self, length: usize) -> Pushed {
        let item = format!("{{\"n\":{},\"x\":\"{}\"}}", self.pushed, "x".repeat(length));
        self.pushed += 1;
        let pushed = self.exporter.push(item.as_bytes(), self.now);
        if pushed == Pushed::Wakes {
            self.wake = Some(self.now);
        }
        self.check();
        pushed
    }

    /// Goes on until `end`, with a collector that answers each post by `answer`.
    fn run(&mut self, end: u64, answer: &mut dyn FnMut(u64) -> Answer) {
        while !self.finished {
            let arrives = self.post.as_ref().map_or(u64::MAX, |(at, ..)| *at);
            let at = self.wake.unwrap_or(u64::MAX).min(arrives);
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            if arrives == at {
                self.answer();
            }
            self.step(answer);
            self.check();
        }
        self.now = self.now.max(end);
    }

    fn answer(&mut self) {
        let Some((_, post, answer)) = self.post.take() else { return };
        let pause = answer.retry_after.map(Duration::from_secs);
        let before = self.exporter.counts();
        match answer.status {
            None => self.exporter.failed("connection refused", self.now),
            Some(status) => self.exporter.answered(status, pause, &answer.body, self.now),
        }
        let rise = |of: fn(&Counts) -> u64| of(&self.exporter.counts()) - of(&before);
        if answer.status.is_some_and(|status| (200..300).contains(&status)) {
            let items = numbers(&post.body());
            assert_eq!(rise(|counts| counts.sent) + rise(|counts| counts.refused), items.len() as u64);
            items.into_iter().for_each(|item| assert!(self.taken.insert(item), "{item} was taken twice"));
        } else {
            assert_eq!(rise(|counts| counts.sent), 0);
        }
    }

    fn step(&mut self, answer: &mut dyn FnMut(u64) -> Answer) {
        match self.exporter.next(self.now) {
            Step::Post(post) => {
                assert!(self.post.is_none(), "one post at a time");
                self.posted.push(self.now);
                let answer = answer(self.now);
                self.post = Some((self.now + answer.after, post, answer));
                self.step(&mut |_| panic!("one post at a time"));
            }
            Step::WaitUntil(at) => {
                assert!(at.is_none_or(|at| at > self.now), "no waiting for the past");
                self.wake = at;
            }
            Step::Finished => self.finished = true,
        }
    }

    fn check(&mut self) {
        let counts = self.exporter.counts();
        assert_eq!(counts.queued, self.pushed);
        assert_eq!(
            counts.queued,
            counts.sent + counts.refused + counts.dropped + counts.waiting,
            "{counts:?}"
        );
        let settings = self.exporter.settings();
        assert!(counts.waiting <= settings.queue as u64);
        assert!(counts.bytes <= settings.bytes as u64 + settings.queue as u64, "{counts:?}");
        self.largest = self.largest.max(counts.bytes);
    }

    fn news(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.exporter.news()).map(|news| news.to_string()).collect()
    }
}

fn numbers(body: &[u8]) -> Vec<u64> {
    let value: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    let items = value.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(|items| items.as_array());
    items
        .expect("items")
        .iter()
        .map(|item| item.get("n").and_then(|n| n.as_u64()).expect("a number"))
        .collect()
}

#[test]
fn items_wait_five_seconds_or_for_a_full_batch() {
    let mut world = World::new(settings());
    assert_eq!(world.push(10), Pushed::Wakes);
    assert_eq!(world.push(10), Pushed::Waits);
    world.run(HOUR, &mut |_| Answer::of(200));
    assert_eq!((world.posted.clone(), world.taken.len()), (vec![5 * SECOND], 2));
    world.push(10);
    world.run(HOUR, &mut |_| Answer::of(200));
    for _ in 1..512 {
        world.push(10);
    }
    world.run(HOUR + SECOND, &mut |_| Answer::of(200));
    assert_eq!((world.posted.get(1), world.taken.len()), (Some(&HOUR), 514));
    // A batch is full of bytes, too.
    for _ in 0..10 {
        world.push(100_000);
    }
    world.run(HOUR + 2 * SECOND, &mut |_| Answer::of(200));
    assert_eq!(world.taken.len(), 519);
}

#[test]
fn a_dead_collector_costs_a_queue_and_two_posts_a_minute() {
    let mut world = World::new(settings());
    for _ in 0..6 * 3600 {
        world.push(500);
        world.push(500);
        let end = world.now + SECOND;
        world.run(end, &mut |_| Answer::dead());
    }
    let counts = world.exporter.counts();
    assert!(world.posted.len() < 6 * 60 * 3, "{} posts in six hours", world.posted.len());
    assert!(counts.waiting <= 2048 && counts.sent == 0 && counts.dropped > 40_000, "{counts:?}");
    assert!(world.largest < 2048 * 600);
    let news = world.news();
    let kinds = |word: &str| news.iter().filter(|news| news.contains(word)).count();
    assert!(news.len() <= 2 * 36 + 2, "once in ten minutes: {}", news.len());
    assert_eq!(
        news.first().map(String::as_str),
        Some("the OpenTelemetry collector does not take traces: connection refused; they wait")
    );
    assert!(kinds("is full") > 0);
    // It comes back: what waits arrives, newer than a queue of items that were given up.
    let end = world.now + HOUR;
    world.run(end, &mut |_| Answer::of(200));
    assert_eq!(world.exporter.counts().waiting, 0);
    assert!(world.news().iter().any(|news| news.contains("takes traces again")));
}

#[test]
fn a_batch_is_given_up_after_five_minutes() {
    let mut world = World::new(settings());
    world.push(1);
    world.run(HOUR, &mut |_| Answer::dead());
    let [first, .., last] = world.posted[..] else { panic!("several posts") };
    assert!((300..360).contains(&((last - first) / SECOND)), "{:?}", world.posted);
    assert_eq!(world.exporter.counts().dropped, 1);
}

#[test]
fn retry_after_is_kept_within_ten_minutes() {
    for (seconds, expected) in [(0, 0), (7, 7), (120, 120), (86_400, 600), (u64::MAX, 600)] {
        let mut world = World::new(settings());
        world.push(1);
        let mut answers = vec![Answer::of(200), Answer { retry_after: Some(seconds), ..Answer::of(429) }];
        world.run(HOUR, &mut |_| answers.pop().expect("an answer"));
        let [first, second] = world.posted[..] else { panic!("two posts") };
        let pause = (second - first) as f64 / SECOND as f64;
        assert!(pause >= f64::from(expected) && pause < f64::from(expected) + 2.0, "{pause} for {seconds}");
    }
}

#[test]
fn refusals_are_final_and_told_once() {
    for status in [301, 400, 401, 403, 404, 413, 415, 500, 501] {
        let mut world = World::new(settings());
        for _ in 0..10 {
            world.push(1);
            let end = world.now + 10 * SECOND;
            let body = b"{\"message\":\"no\\nsuch thing\"}".to_vec();
            world.run(end, &mut |_| Answer { body: body.clone(), ..Answer::of(status) });
        }
        let counts = world.exporter.counts();
        assert_eq!((counts.refused, counts.posts, counts.failed), (10, 10, 0), "{status}");
        let [news] = &world.news()[..] else { panic!("once") };
        let told = format!("the OpenTelemetry collector refuses traces with {status}: no such thing");
        assert!(news.starts_with(&told), "{news}");
    }
}

#[test]
fn part_of_a_batch_can_be_refused() {
    // ExportTraceServiceResponse { partial_success { rejected_spans: 3, error_message: "why" } } and its kin.
    let protobuf = b"\x0a\x07\x08\x03\x12\x03why".to_vec();
    let json = |text: &str| text.as_bytes().to_vec();
    for (body, sent, refused, told) in [
        (protobuf, 7, 3, "refuses 3 of the traces of a batch: why"),
        (json(r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"why"}}"#), 7, 3, "refuses 3 of"),
        (json(r#"{"partialSuccess":{"rejectedLogRecords":99}}"#), 0, 10, "refuses 10 of"),
        (json(r#"{"partialSuccess":{"errorMessage":"soon"}}"#), 10, 0, "warns about traces: soon"),
        (json(r#"{"partialSuccess":{"rejectedSpans":"-5"}}"#), 10, 0, ""),
        (json(r#"{"partialSuccess":{}}"#), 10, 0, ""),
        (json("{}"), 10, 0, ""),
        (json("[1]"), 10, 0, ""),
        (vec![], 10, 0, ""),
        (vec![0x0a, 0xff], 10, 0, ""),
        (vec![0x0a, 0x0b, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 10, 0, ""),
        (vec![0x0a; 1000], 10, 0, ""),
    ] {
        let mut world = World::new(settings());
        (0..10).for_each(|_| assert!(world.push(1) != Pushed::Dropped));
        world.run(HOUR, &mut |_| Answer { body: body.clone(), ..Answer::of(200) });
        let counts = world.exporter.counts();
        assert_eq!((counts.sent, counts.refused), (sent, refused), "{body:02x?}");
        let news = world.news();
        assert_eq!(news.is_empty(), told.is_empty(), "{body:02x?}: {news:?}");
        assert!(news.iter().all(|news| news.contains(told)), "{news:?}");
    }
}

#[test]
fn the_end_sends_what_waits_or_drops_it_in_time() {
    let mut world = World::new(settings());
    for _ in 0..1000 {
        world.push(10);
    }
    world.exporter.finish(world.now + 5 * SECOND);
    world.wake = Some(world.now);
    world.run(HOUR, &mut |_| Answer::of(200));
    assert!(world.finished && world.taken.len() == 1000);
    assert_eq!(world.push(1), Pushed::Dropped);

    // Once refused, it is tried again at once; a collector that wants more time than there is ends the wait.
    for (pause, tries) in [(None, 10..40), (Some(3), 2..3), (Some(60), 1..2)] {
        let mut world = World::new(settings());
        world.push(1);
        world.exporter.finish(5 * SECOND);
        let mut ended = 0;
        while !world.finished {
            ended += SECOND / 10;
            world.run(ended, &mut |_| Answer { retry_after: pause, ..Answer::of(503) });
        }
        assert!(world.now <= 5 * SECOND + SECOND / 10, "{}", world.now);
        assert!(tries.contains(&world.posted.len()), "{pause:?}: {}", world.posted.len());
        assert_eq!(world.exporter.counts().dropped, 1);
    }

    // No answer at all.
    let mut world = World::new(settings());
    world.push(1);
    world.exporter.finish(5 * SECOND);
    world.run(HOUR, &mut |_| Answer { after: HOUR, ..Answer::dead() });
    assert!(world.finished && world.exporter.counts().dropped == 1);
    // Without items there is nothing to wait for.
    let mut world = World::new(settings());
    world.exporter.finish(5 * SECOND);
    assert!(matches!(world.exporter.next(0), Step::Finished));
}

#[test]
fn the_end_tries_a_dead_collector_once() {
    let mut world = World::new(settings());
    world.push(1);
    world.run(60 * SECOND, &mut |_| Answer::dead());
    let before = world.exporter.counts().posts;
    assert!(before > 3);
    world.exporter.finish(world.now + 5 * SECOND);
    world.wake = Some(world.now);
    let ended = world.now + SECOND;
    world.run(ended, &mut |_| Answer::dead());
    assert!(world.finished && world.exporter.counts().posts == before + 1);
}

#[test]
fn newer_metrics_replace_those_that_wait() {
    let mut world = World::new(settings());
    for _ in 0..100 {
        world.exporter.replace();
        (0..5).for_each(|_| assert!(world.push(10) != Pushed::Dropped));
        world.exporter.flush();
        world.wake = Some(world.now);
        let end = world.now + 60 * SECOND;
        world.run(end, &mut |_| Answer::dead());
    }
    assert!(world.exporter.counts().waiting <= 10);
    let end = world.now + 60 * SECOND;
    world.run(end, &mut |_| Answer::of(200));
    assert!(world.taken.contains(&499));
}

#[test]
fn a_compressed_post_says_so_and_is_repeated_as_it_is() {
    let mut exporter = Exporter::new(Signal::Logs, Settings { gzip: true, ..settings() }, [1, 1]);
    let _ = exporter.push(&[b' '; 100_000], 0);
    exporter.flush();
    let Step::Post(first) = exporter.next(0) else { panic!("it is due") };
    assert_eq!((first.content_type(), first.content_encoding()), ("application/json", Some("gzip")));
    let body = first.body();
    assert!(body.starts_with(&[0x1f, 0x8b]) && body.len() < 2000, "{}", body.len());
    exporter.failed("reset", 0);
    let Step::Post(second) = exporter.next(10 * SECOND) else { panic!("again") };
    assert_eq!(body, second.body());
}

#[test]
fn pauses_are_seconds_or_dates() {
    let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(retry_after(b" 120 ", 0), Some(Duration::from_secs(120)));
    assert_eq!(retry_after(date, 784_111_700), Some(Duration::from_secs(77)));
    assert_eq!(retry_after(date, u64::MAX), Some(Duration::ZERO));
    assert_eq!(retry_after(&[b'9'; 40], 0), Some(Duration::from_secs(u64::MAX)));
    for bad in [&b""[..], b"soon", b"-1", b"1.5", b"\xff"] {
        assert_eq!(retry_after(bad, 0), None);
    }
}

fn answers() -> impl Strategy<Value = Answer> {
    let status = prop_oneof![
        4 => Just(Some(200)),
        2 => Just(None),
        2 => prop_oneof![Just(429), Just(502), Just(503), Just(504)].prop_map(Some),
        1 => prop_oneof![Just(400), Just(404), Just(500), Just(302)].prop_map(Some),
    ];
    let after = prop_oneof![Just(0), 0..10 * SECOND];
    let body = prop_oneof![Just(vec![]), Just(b"\x0a\x02\x08\x03".to_vec()), vec(any::<u8>(), 0..20)];
    (after, status, proptest::option::of(0_u64..1000), body)
        .prop_map(|(after, status, retry_after, body)| Answer { after, status, retry_after, body })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The checks of `World` hold at each step; with a collector that has come to its senses nothing is left.
    #[test]
    fn counts_add_up_and_memory_is_bounded(
        pushes in vec((0..20_usize, 0..4000_usize, 0..8 * SECOND), 1..60),
        answers in vec(answers(), 1..40),
        (batch, queue, bytes) in (1..20_usize, 1..100_usize, 1000..50_000_usize),
        end in proptest::option::of(0..5 * SECOND),
    ) {
        let mut world = World::new(Settings { batch, queue, bytes, ..settings() });
        let mut next = answers.into_iter().cycle();
        for (count, length, pause) in pushes {
            for _ in 0..count {
 world.push(length);
 }
            let end = world.now + pause;
            world.run(end, &mut |_| next.next().expect("without end"));
        }
        match end {
            Some(limit) => {
                world.exporter.finish(world.now + limit);
                world.wake = Some(world.now);
                let end = world.now + limit;
                world.run(end, &mut |_| next.next().expect("without end"));
                prop_assert!(world.finished);
            }
            None => {
                let end = world.now + HOUR;
                world.run(end, &mut |_| Answer::of(200));
            }
        }
        let counts = world.exporter.counts();
        prop_assert_eq!((counts.waiting, counts.bytes), (0, 0));
        prop_assert!(counts.sent <= world.taken.len() as u64);
    }
}
