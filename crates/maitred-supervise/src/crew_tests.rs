use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn settings(workers: usize) -> Settings {
    Settings {
        workers,
        start_timeout: 30 * SECOND,
        stop_timeout: 10 * SECOND,
        unavailable_after: SECOND,
        limits: Limits::default(),
        seed: 7,
        development: false,
    }
}

/// A crew with its clock and its actions.
struct Played {
    crew: Crew,
    now: Instant,
    /// Processes that are there, with their places.
    processes: BTreeMap<WorkerId, usize>,
    said: Vec<String>,
    starts: usize,
    ended: Option<u8>,
    ready: bool,
    stands_in: bool,
    stopped: Vec<WorkerId>,
    killed: Vec<WorkerId>,
}

impl Played {
    fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let mut played = Self {
            crew: Crew::new(settings, now),
            now,
            processes: BTreeMap::new(),
            said: Vec::new(),
            starts: 0,
            ended: None,
            ready: false,
            stands_in: false,
            stopped: Vec::new(),
            killed: Vec::new(),
        };
        played.act();
        played
    }

    fn act(&mut self) {
        while let Some(action) = self.crew.poll_action() {
            assert_eq!(self.ended, None, "{action:?} after the end");
            match action {
                Action::Start { worker, number } => {
                    self.starts += 1;
                    assert_eq!(self.processes.insert(worker, number), None);
                }
                Action::Stop(worker) => self.stopped.push(worker),
                Action::Kill(worker) => self.killed.push(worker),
                Action::StandIn(on) => self.stands_in = on,
                Action::Ready => self.ready = true,
                Action::Say(_, text) => self.said.push(text),
                Action::End(code) => self.ended = Some(code),
            }
        }
    }

    fn ready(&mut self, worker: u64) {
        self.crew.handle_ready(WorkerId(worker), self.now);
        self.act();
    }

    fn exit(&mut self, worker: u64, exit: Exit) {
        assert!(self.processes.remove(&WorkerId(worker)).is_some(), "{worker}");
        self.crew.handle_exit(WorkerId(worker), exit, None, self.now);
        self.act();
    }

    /// Lets time pass, and does the actions that are due at their time.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.crew.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let before = self.crew.poll_timeout();
            self.crew.handle_timeout(self.now);
            self.act();
            assert_ne!((before, self.now), (self.crew.poll_timeout(), end + SECOND), "it spins");
        }
        self.now = end;
    }

    fn numbers(&self) -> Vec<(u64, usize)> {
        self.processes.iter().map(|(id, number)| (id.0, *number)).collect()
    }
}

fn served(workers: usize) -> Played {
    let mut played = Played::new(settings(workers));
    (1..=workers as u64).for_each(|worker| played.ready(worker));
    assert!(played.ready);
    played
}

#[test]
fn a_change_replaces_workers_without_waiting_for_their_end() {
    let mut played = Played::new(Settings { development: true, ..settings(1) });
    played.ready(1);
    played.crew.replace_now(played.now);
    played.act();
    assert_eq!(played.stopped, [WorkerId(1)]);
    assert_eq!(played.starts, 2, "while the first one ends");
    // Another change before the second one serves.
    played.crew.replace_now(played.now);
    played.act();
    assert_eq!((played.stopped.len(), played.starts), (2, 3));
    played.ready(3);
    played.exit(2, Exit::Signal(15));
    played.exit(1, Exit::Code(0));
    assert_eq!(played.processes.len(), 1);
    assert_eq!(played.ended, None);
}

#[test]
fn a_developer_mends_an_application_that_cannot_start() {
    let mut played = Played::new(Settings { development: true, ..settings(1) });
    played.exit(1, Exit::Code(2));
    played.pass(2 * SECOND);
    assert!(played.stands_in, "clients are told");
    played.pass(100 * SECOND);
    assert_eq!((played.starts, played.ended), (1, None));
    assert!(
        played.said.iter().any(|line| line.ends_with("the next change starts it again")),
        "{:?}",
        played.said
    );
    played.crew.replace_now(played.now);
    played.act();
    played.ready(2);
    assert!(!played.stands_in);
}

#[test]
fn all_are_started_and_ready_is_said_once() {
    let mut played = Played::new(settings(3));
    assert_eq!(played.numbers(), [(1, 1), (2, 2), (3, 3)]);
    played.ready(2);
    played.ready(3);
    assert!(!played.ready);
    played.ready(1);
    assert!(played.ready);
}

#[test]
fn a_first_worker_that_cannot_start_ends_all_with_its_code() {
    let mut played = Played::new(settings(2));
    played.exit(1, Exit::Code(2));
    assert_eq!(played.stopped, [WorkerId(2)]);
    played.exit(2, Exit::Signal(15));
    assert_eq!(played.ended, Some(2));
    assert!(played.said[0].contains("no worker could start"), "{:?}", played.said);
}

#[test]
fn a_worker_that_ends_is_started_again_and_never_at_full_speed() {
    let mut played = served(1);
    played.exit(1, Exit::Code(1));
    assert_eq!(played.starts, 2, "the first time at once");
    let began = played.now;
    for _ in 0..2000 {
        let present = played.processes.keys().next().map(|WorkerId(id)| *id);
        if let Some(worker) = present {
            played.ready(worker);
            played.exit(worker, Exit::Code(1));
        }
        played.pass(SECOND / 10);
    }
    assert_eq!(played.ended, None);
    let seconds = played.now.duration_since(began).as_secs() as usize;
    assert!(played.starts <= 10 + seconds / 7, "{} in {seconds} s", played.starts);
    assert!(played.starts >= seconds / 12, "{} in {seconds} s", played.starts);
}

#[test]
fn a_healthy_minute_forgets_failures() {
    let mut played = served(1);
    for worker in 1..=3 {
        played.exit(worker, Exit::Signal(11));
        played.pass(SECOND);
        played.ready(worker + 1);
    }
    played.pass(61 * SECOND);
    let starts = played.starts;
    played.exit(4, Exit::Signal(11));
    assert_eq!(played.starts, starts + 1, "at once");
}

#[test]
fn a_replacement_of_all_goes_one_by_one_and_the_old_one_ends_when_the_new_one_is_ready() {
    let mut played = served(2);
    played.crew.replace_all(played.now);
    played.act();
    assert_eq!(played.numbers(), [(1, 1), (2, 2), (3, 1)]);
    assert!(played.stopped.is_empty());
    played.ready(3);
    assert_eq!((&played.stopped[..], played.numbers().last()), (&[WorkerId(1)][..], Some(&(4, 2))));
    played.exit(1, Exit::Code(0));
    assert!(played.crew.is_replacing());
    played.ready(4);
    assert!(!played.crew.is_replacing(), "all that serve are new");
    played.exit(2, Exit::Code(0));
    assert_eq!(played.numbers(), [(3, 1), (4, 2)]);
    assert_eq!(played.crew.failures(), 0);
    let said = |text: &str| played.said.iter().filter(|line| *line == text).count();
    assert_eq!(said("all workers are replaced"), 1, "{:?}", played.said);
}

#[test]
fn a_successor_that_cannot_start_leaves_the_old_ones_serving() {
    let mut played = served(2);
    played.crew.replace_all(played.now);
    played.act();
    assert!(played.crew.is_replacing());
    played.exit(3, Exit::Code(2));
    assert!(!played.crew.is_replacing());
    played.pass(100 * SECOND);
    assert_eq!((played.numbers(), played.stopped.len(), played.starts), (vec![(1, 1), (2, 2)], 0, 3));
    assert!(played.said.iter().any(|text| text.contains("serve on")), "{:?}", played.said);
    assert!(!played.said.iter().any(|text| text.contains("are replaced")), "{:?}", played.said);
    // And the next attempt is made.
    played.crew.replace_all(played.now);
    played.act();
    assert_eq!(played.starts, 4);
}

#[test]
fn a_second_replacement_gives_up_a_successor_that_is_not_ready() {
    let mut played = served(2);
    played.crew.replace_all(played.now);
    played.act();
    played.crew.replace_all(played.now);
    played.act();
    // Worker 1 has the successor 4 instead of 3, whose end is no failure, however it comes.
    assert_eq!((&*played.stopped, played.starts), (&[WorkerId(3)][..], 4));
    played.exit(3, Exit::Code(2));
    assert!(played.crew.is_replacing());
    played.ready(4);
    played.ready(5);
    for old in [1, 2] {
        played.exit(old, Exit::Code(0));
    }
    assert_eq!(played.numbers(), [(4, 1), (5, 2)]);
    assert!(played.said.iter().any(|text| text.contains("all workers are replaced")), "{:?}", played.said);
    assert_eq!(played.crew.failures(), 0);
}

#[test]
fn a_worker_that_is_not_ready_in_time_is_killed() {
    let mut played = served(1);
    played.crew.replace_all(played.now);
    played.act();
    played.pass(31 * SECOND);
    assert_eq!(played.killed, [WorkerId(2)]);
    played.exit(2, Exit::Signal(9));
    assert!(played.said.iter().any(|text| text.contains("start-timeout")), "{:?}", played.said);
    assert_eq!(played.numbers(), [(1, 1)]);
}

#[test]
fn several_workers_that_are_not_ready_in_time_are_reported_with_their_limit() {
    let mut played = Played::new(settings(2));
    played.pass(31 * SECOND);
    assert_eq!(played.killed, [WorkerId(1), WorkerId(2)]);
    played.exit(1, Exit::Signal(9));
    played.exit(2, Exit::Signal(9));
    assert_eq!(played.ended, Some(1));
    let late = "was not ready within 30 s (start-timeout) and was killed";
    let first = format!("worker 1 {late}; no worker could start, so the server ends");
    assert_eq!(played.said, [first, format!("worker 2 {late}")]);
}

#[test]
fn a_worker_that_does_not_end_in_time_is_killed() {
    let mut played = served(2);
    played.crew.stop(0, played.now);
    played.act();
    played.exit(1, Exit::Code(0));
    played.pass(11 * SECOND);
    assert_eq!(played.killed, [WorkerId(2)]);
    played.exit(2, Exit::Signal(9));
    assert_eq!(played.ended, Some(1));
}

#[test]
fn a_second_request_ends_at_once() {
    let mut played = served(1);
    played.crew.stop(0, played.now);
    played.crew.stop_at_once(143, 2 * SECOND, played.now);
    played.act();
    assert_eq!(played.stopped, [WorkerId(1), WorkerId(1)]);
    played.pass(3 * SECOND);
    assert_eq!(played.killed, [WorkerId(1)]);
    played.exit(1, Exit::Signal(9));
    assert_eq!(played.ended, Some(143));
}

#[test]
fn more_and_fewer() {
    let mut played = served(2);
    played.crew.set_count(4, played.now);
    played.act();
    assert_eq!(played.numbers().len(), 4);
    played.ready(3);
    played.crew.set_count(1, played.now);
    played.act();
    assert_eq!(played.stopped, [WorkerId(2), WorkerId(3), WorkerId(4)]);
    for (worker, exit) in [(2, Exit::Code(0)), (3, Exit::Code(0)), (4, Exit::Signal(15))] {
        played.exit(worker, exit);
    }
    assert_eq!((played.numbers(), played.crew.wanted()), (vec![(1, 1)], 1));
    played.crew.set_count(0, played.now);
    assert_eq!(played.crew.wanted(), 1, "there is always one");
}

#[test]
fn the_supervisor_stands_in_while_no_worker_serves() {
    let mut played = served(1);
    for worker in 1..=2 {
        played.exit(worker, Exit::Code(1));
        played.pass(SECOND / 4);
    }
    assert!(!played.stands_in);
    played.pass(SECOND);
    assert!(played.stands_in);
    played.ready(3);
    assert!(!played.stands_in);
}

#[test]
fn a_worker_that_has_had_enough_is_replaced_and_one_at_a_time() {
    let limits = Limits { lifetime: 100 * SECOND, ..Limits::default() };
    let mut played = Played::new(Settings { limits, ..settings(2) });
    played.ready(1);
    played.ready(2);
    played.pass(101 * SECOND);
    assert_eq!(played.processes.len(), 3, "one successor");
    played.ready(3);
    assert_eq!(played.processes.len(), 4);
    played.exit(4, Exit::Code(2));
    assert_eq!(played.processes.len(), 3, "not at full speed");
    played.pass(2 * SECOND);
    assert_eq!(played.processes.len(), 4, "tried again");
    let beat = Beat { requests: 10, ..Beat::default() };
    played.crew.handle_beat(WorkerId(3), beat, played.now);
    played.act();
}

#[test]
fn one_that_says_nothing_is_replaced_and_one_that_starts_may_be_silent() {
    let limits = Limits { stuck: 6 * SECOND, ..Limits::default() };
    let mut played = Played::new(Settings { limits, ..settings(2) });
    played.pass(20 * SECOND);
    played.ready(1);
    played.ready(2);
    for _ in 0..10 {
        played.pass(SECOND);
        played.crew.handle_beat(WorkerId(1), Beat::default(), played.now);
        played.act();
    }
    assert_eq!(played.numbers(), [(1, 1), (2, 2), (3, 2)]);
    let line = "worker 2 has said nothing for 8 s (worker-timeout): it is replaced";
    assert!(played.said.iter().any(|text| text == line), "{:?}", played.said);
    played.ready(3);
    assert_eq!(played.stopped, [WorkerId(2)]);
    played.pass(11 * SECOND);
    assert_eq!(played.killed, [WorkerId(2)]);
}

#[test]
fn requests_wear_a_worker_out() {
    let limits = Limits { requests: 5, ..Limits::default() };
    let mut played = Played::new(Settings { limits, ..settings(1) });
    played.ready(1);
    for requests in [4, 5, 6] {
        played.crew.handle_beat(WorkerId(1), Beat { requests, ..Beat::default() }, played.now);
        played.act();
    }
    assert_eq!(played.numbers(), [(1, 1), (2, 1)]);
    played.ready(2);
    assert_eq!(played.stopped, [WorkerId(1)]);
}

#[derive(Clone, Debug)]
enum Step {
    Ready(usize),
    Exit(usize, bool),
    Pass(u64),
    Replace,
    Count(usize),
    Beat(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<usize>().prop_map(Step::Ready),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, well)| Step::Exit(which, well)),
        3 => (0u64..20_000).prop_map(Step::Pass),
        1 => Just(Step::Replace),
        1 => (0usize..6).prop_map(Step::Count),
        2 => (any::<usize>(), 0u64..50).prop_map(|(which, requests)| Step::Beat(which, requests)),
    ]
}

proptest! {
    /// Property for all steps: the wanted workers come back, and an end leaves none.
    #[test]
    fn in_the_end_all_wanted_serve_and_a_stop_leaves_none(
        steps in prop::collection::vec(step(), 0..60),
        workers in 1usize..4,
    ) {
        let limits = Limits { requests: 30, lifetime: 60 * SECOND, ..Limits::default() };
        let mut played = Played::new(Settings { limits, ..settings(workers) });
        played.ready(1);
        for step in steps {
            let pick = |which: usize, played: &Played| {
                played.processes.keys().nth(which % played.processes.len().max(1)).map(|WorkerId(id)| *id)
            };
            match step {
                Step::Ready(which) => if let Some(id) = pick(which, &played) { played.ready(id) },
                Step::Exit(which, well) => if let Some(id) = pick(which, &played) {
                    played.exit(id, if well { Exit::Code(0) } else { Exit::Signal(9) });
                },
                Step::Pass(millis) => played.pass(Duration::from_millis(millis)),
                Step::Replace => played.crew.replace_all(played.now),
                Step::Count(count) => played.crew.set_count(count, played.now),
                Step::Beat(which, requests) => if let Some(id) = pick(which, &played) {
                    played.crew.handle_beat(WorkerId(id), Beat { requests, ..Beat::default() }, played.now);
                },
            }
            played.act();
            let leaving: Vec<_> = played.crew.workers().filter(|view| view.phase == Phase::Stopping).collect();
            prop_assert!(leaving.iter().all(|view| played.stopped.contains(&view.id)));
            prop_assert_eq!(played.crew.workers().count(), played.processes.len());
        }
        // From here on every process does as it is told.
        for _ in 0..200 {
            let views: Vec<_> = played.crew.workers().collect();
            for view in views {
                match view.phase {
                    Phase::Starting => played.ready(view.id.0),
                    Phase::Stopping => if played.processes.contains_key(&view.id) {
                        played.exit(view.id.0, Exit::Code(0));
                    },
                    Phase::Serving => {}
                }
            }
            played.pass(SECOND / 5);
        }
        let serving = played.crew.workers().filter(|view| view.phase == Phase::Serving).count();
        prop_assert_eq!(serving, played.crew.wanted());
        played.crew.stop(0, played.now);
        played.act();
        let left: Vec<u64> = played.processes.keys().map(|WorkerId(id)| *id).collect();
        left.into_iter().for_each(|id| played.exit(id, Exit::Code(0)));
        prop_assert_eq!(played.ended, Some(0));
    }
}

#[test]
fn a_worker_that_is_stopped_while_it_starts_may_end_in_any_way() {
    let mut played = served(2);
    played.crew.replace_all(played.now);
    played.act();
    assert_eq!(played.numbers(), [(1, 1), (2, 2), (3, 1)]);
    played.crew.stop(0, played.now);
    played.act();
    played.exit(3, Exit::Signal(15));
    played.exit(1, Exit::Code(0));
    played.exit(2, Exit::Code(0));
    assert_eq!(played.ended, Some(0));
    assert!(!played.said.iter().any(|line| line.contains("asked to end")), "{:?}", played.said);
}

#[test]
fn restarts_are_counted_by_their_reason() {
    let count = |played: &Played| -> Vec<(&str, u64)> {
        played.crew.restarts().filter(|(_, count)| *count > 0).collect()
    };
    let mut played = served(2);
    assert_eq!((played.crew.restarts().count(), count(&played)), (7, vec![]), "each reason is there");
    played.exit(1, Exit::Signal(9));
    assert_eq!(count(&played), [("exit", 1)]);
    played.exit(3, Exit::Code(1));
    assert_eq!(count(&played), [("exit", 1), ("start", 1)]);
    played.pass(60 * SECOND);
    let started = played.numbers().into_iter().map(|(id, _)| id).find(|id| *id > 3).expect("tried again");
    played.ready(started);
    let mut played = served(2);
    played.crew.replace_all(played.now);
    played.act();
    assert_eq!(count(&played), [], "no successor is ready");
    played.ready(3);
    played.ready(4);
    assert_eq!(count(&played), [("reload", 2)]);
    let limits = Limits { requests: 5, ..Limits::default() };
    let mut played = Played::new(Settings { limits, ..settings(1) });
    played.ready(1);
    played.crew.handle_beat(WorkerId(1), Beat { requests: 7, ..Beat::default() }, played.now);
    played.act();
    played.exit(2, Exit::Code(1));
    played.pass(60 * SECOND);
    played.ready(played.processes.keys().map(|id| id.0).max().expect("another try"));
    assert_eq!(count(&played), [("requests", 1)]);
}
