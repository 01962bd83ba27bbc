//! Tests of the counts of calls to other servers.

use super::*;
use crate::memory;
use proptest::prelude::*;

fn call(end: CallEnd) -> EndedCall {
    EndedCall {
        end,
        reused: false,
        retried: false,
        sent: 100,
        received: 1000,
        total: Duration::from_micros(13),
        parts: [None; Part::ALL.len()],
    }
}

/// Far from each other, as a keyed hash has them.
fn hash(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn counted(ends: &[(CallEnd, u64)]) -> Upstream {
    let upstreams = Upstreams::new();
    let number = upstreams.number(hash(0), || "https://api.example:443".to_owned());
    for (end, times) in ends {
        for _ in 0..*times {
            upstreams.begin(number);
            upstreams.end(number, &call(*end));
        }
    }
    upstreams.read().swap_remove(1)
}

fn status(code: u16, times: u64) -> (CallEnd, u64) {
    (CallEnd::Status(code), times)
}

/// Published tables of outgoing calls: the columns of statuses add up to the requests; a time-out stood there as 408.
#[test]
fn published_rows_add_up() {
    let rows: [(u64, &[(CallEnd, u64)]); 6] = [
        (3974, &[status(200, 2532), status(400, 7), status(429, 1435)]),
        (8275, &[status(200, 8274), (CallEnd::TimedOut("first-byte"), 1)]),
        (136, &[status(200, 67), status(201, 23), status(202, 46)]),
        (483, &[status(200, 482), status(403, 1)]),
        (5, &[status(200, 4), status(201, 1)]),
        (3, &[status(200, 1), status(204, 1), status(404, 1)]),
    ];
    for (requests, ends) in rows {
        let row = counted(ends);
        assert_eq!((row.calls(), row.running), (requests, 0), "{row:?}");
        for (end, times) in ends {
            let count = match end {
                CallEnd::Status(code) => row.statuses.get(&code.to_string()),
                CallEnd::TimedOut(phase) => row.timeouts.get(*phase),
                CallEnd::Failed(kind) => row.failures.get(*kind),
                CallEnd::Dropped => Some(&row.dropped),
            };
            assert_eq!(count, Some(times), "{end:?}");
        }
        assert_eq!((row.sent, row.received, row.mean()), (requests * 100, requests * 1000, 13_000.0));
    }
}

fn ends() -> impl Strategy<Value = CallEnd> {
    prop_oneof![
        (0..1000_u16).prop_map(CallEnd::Status),
        prop::sample::select(vec!["slot", "connect", "first-byte"]).prop_map(CallEnd::TimedOut),
        prop::sample::select(vec!["refused", "reset", "connect"]).prop_map(CallEnd::Failed),
        Just(CallEnd::Dropped),
    ]
}

proptest! {
    #[test]
    fn each_call_has_exactly_one_end(ends in prop::collection::vec(ends(), 0..300), open in 0..3_u64) {
        let counts: Vec<_> = ends.iter().map(|end| (*end, 1)).collect();
        let upstreams = Upstreams::new();
        for (end, _) in &counts {
            upstreams.begin(OTHER_UPSTREAM);
            upstreams.end(OTHER_UPSTREAM, &call(*end));
        }
        (0..open).for_each(|_| upstreams.begin(OTHER_UPSTREAM));
        let row = upstreams.read().swap_remove(0);
        prop_assert_eq!((row.calls(), row.running), (ends.len() as u64, open));
        let answered = ends.iter().filter(|end| matches!(end, CallEnd::Status(_))).count() as u64;
        prop_assert_eq!(row.statuses.values().sum::<u64>(), answered);
    }
}

#[test]
fn servers_beyond_the_limit_are_one() {
    let upstreams = Upstreams::new();
    for server in 0..1000_u64 {
        let number = upstreams.number(hash(server), || format!("http://{server}:80"));
        assert_eq!(number == OTHER_UPSTREAM, server >= MAX_UPSTREAMS as u64, "{server}");
        upstreams.begin(number);
        upstreams.end(number, &call(CallEnd::Status(200)));
    }
    let rows = upstreams.read();
    assert_eq!((rows.len(), &*rows[0].name, rows[0].calls()), (MAX_UPSTREAMS + 1, "other", 744));
    assert!(rows[1..].iter().all(|row| row.calls() == 1));
    assert_eq!(upstreams.name(7), "http://6:80");
    assert_eq!(upstreams.number(hash(6), || panic!("the server is known")), 7);
}

#[test]
fn kinds_of_ends_and_statuses_without_a_place_still_count() {
    const NAMES: [&str; 30] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t",
        "u", "v", "w", "x", "y", "z", "aa", "bb", "cc", "dd",
    ];
    let failed = NAMES.map(|name| (CallEnd::Failed(name), 2));
    let row = counted(&failed);
    assert_eq!((row.calls(), row.failures.len(), row.failures["other"]), (60, MAX_ENDS, 14));
    let statuses: Vec<_> = (400..430).map(|code| status(code, 3)).collect();
    let row = counted(&statuses);
    assert_eq!((row.calls(), row.statuses.len(), row.statuses["4xx"]), (90, CODES + 1, 42));
}

#[test]
fn another_process_reads_them_and_a_killed_one_runs_no_call() {
    let memory = memory::private(UPSTREAMS_BYTES / 8 + ALIGN);
    let arena = Arena::new(memory.clone());
    let upstreams = Upstreams::in_arena(&arena);
    let number = upstreams.number(hash(1), || "http+unix:///run/x".to_owned());
    upstreams.begin(number);
    upstreams.begin(number);
    let mut ended = call(CallEnd::Status(503));
    ended.parts[Part::Connect as usize] = Some(Duration::from_nanos(70));
    ended.reused = true;
    upstreams.end(number, &ended);
    let words: &[AtomicU64] = (*memory).as_ref();
    let running = read_upstreams(words, Owner::Runs);
    assert_eq!(running, upstreams.read());
    assert_eq!((running[1].running, running[1].reused, running[1].parts[2]), (1, 1, (70, 1)));
    let killed = read_upstreams(words, Owner::Ended);
    assert_eq!((killed[1].running, killed[1].calls()), (0, 1));
    let mut both = killed[1].clone();
    both.merge(&running[1]);
    assert_eq!((both.calls(), both.running, both.statuses["503"], both.parts[2]), (2, 1, 2, (140, 2)));
    assert!(read_upstreams(&[], Owner::Runs).is_empty());
}

#[test]
fn calls_of_several_threads_are_all_counted() {
    let upstreams = Upstreams::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let upstreams = &upstreams;
            scope.spawn(move || {
                for round in 0..1000_u64 {
                    let number = upstreams.number(hash(round % 3), || format!("http://{}:1", round % 3));
                    upstreams.begin(number);
                    upstreams.end(number, &call(CallEnd::Status(200 + thread)));
                }
            });
        }
    });
    let rows = upstreams.read();
    assert_eq!((rows.len(), rows.iter().map(Upstream::calls).sum::<u64>()), (4, 4000));
    assert!(rows[1..].iter().all(|row| row.statuses.len() == 4 && row.running == 0));
}
