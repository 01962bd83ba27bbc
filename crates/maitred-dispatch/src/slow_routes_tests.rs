//! What is learnt, what is forgotten, and who can disturb it.

use std::hash::BuildHasher;
use std::sync::Barrier;

use super::*;

const FAST: Outcome = Outcome::Usual;
const SLOW: Outcome = Outcome::Slow;

impl LearntRoutes {
    fn key_of(&self, route: &str) -> Key {
        self.key(|state| state.hash_one(route))
    }

    fn is_learnt(&self, key: Key) -> bool {
        self.learnt(key).is_some()
    }
}

/// Notes results, `s` for a slow one, in one second; the changes in the order they came.
fn note_all(routes: &LearntRoutes, key: Key, results: &str, now: u64) -> Vec<Change> {
    let result = |letter| if letter == 's' { SLOW } else { FAST };
    results.chars().filter_map(|letter| routes.note(key, result(letter), now)).collect()
}

/// Keys of one bucket.
fn neighbours(count: u64) -> Vec<Key> {
    (1..=count).map(|tag| Key(tag << TAG_SHIFT | 7)).collect()
}

#[test]
fn three_slow_of_eight_are_learnt_and_one_of_eight_is_forgotten() {
    use Change::{Forgotten, Learnt};
    for (results, changes, learnt) in [
        ("", &[][..], false),
        ("ff", &[], false),
        ("s", &[], false),
        ("ss", &[], false),
        ("sss", &[Learnt], true),
        ("ssss", &[Learnt], true),
        ("sffsffs", &[Learnt], true),
        ("sfffsfffs", &[], false), // The first is the ninth from behind.
        ("sssfffff", &[Learnt], true),
        ("sssffffff", &[Learnt], true), // Two of eight: as it was.
        ("sssfffffff", &[Learnt, Forgotten], false),
        ("sssfffffffs", &[Learnt, Forgotten], false),
        ("sssfffffffsss", &[Learnt, Forgotten, Learnt], true),
        ("ssfffffff", &[], false),
    ] {
        let routes = LearntRoutes::default();
        let key = routes.key_of("/report");
        assert_eq!(note_all(&routes, key, results, 9), changes, "{results}");
        assert_eq!((routes.is_learnt(key), routes.any()), (learnt, learnt), "{results}");
        assert!(!routes.is_learnt(routes.key_of("/other")));
    }
}

#[test]
fn while_nothing_is_slow_nothing_is_watched() {
    let routes = LearntRoutes::default();
    let key = routes.key_of("/");
    note_all(&routes, key, "ffff", 0);
    assert!(!routes.is_watching() && !routes.any());
    note_all(&routes, key, "s", 0);
    assert!(routes.is_watching() && !routes.any());
    // Eight fast ones, and it is as if there had been nothing.
    note_all(&routes, key, "fffffff", 0);
    assert!(routes.is_watching());
    note_all(&routes, key, "f", 0);
    assert!(!routes.is_watching());
    assert!(routes.words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
fn what_is_not_slow_for_an_hour_is_forgotten() {
    let begin = SECONDS - 5; // The kept seconds wrap meanwhile.
    let routes = LearntRoutes::default();
    let key = routes.key_of("/report");
    note_all(&routes, key, "sss", begin);
    assert_eq!(routes.note(key, FAST, begin + LEARNT_DECAY - 1), None);
    assert!(routes.is_learnt(key));
    assert_eq!(routes.note(key, FAST, begin + LEARNT_DECAY), Some(Change::Forgotten));
    assert!(!routes.is_learnt(key) && !routes.any() && !routes.is_watching());

    note_all(&routes, key, "sss", begin);
    assert_eq!(
        routes.note(key, SLOW, begin + LEARNT_DECAY),
        Some(Change::Forgotten),
        "the first of a new series"
    );
    assert_eq!(note_all(&routes, key, "ss", begin + LEARNT_DECAY), [Change::Learnt]);
    // A slow one each time keeps it.
    for step in 1..10 {
        assert_eq!(routes.note(key, SLOW, begin + LEARNT_DECAY + step * (LEARNT_DECAY - 1)), None);
    }
    assert!(routes.is_learnt(key));
}

#[test]
fn slow_ones_that_are_far_apart_are_not_learnt() {
    let routes = LearntRoutes::default();
    let key = routes.key_of("/nightly");
    for step in 0..10 {
        assert_eq!(routes.note(key, SLOW, step * DECAY), None);
    }
    assert!(!routes.any());
}

#[test]
fn a_second_that_comes_late_is_no_decay() {
    let routes = LearntRoutes::default();
    let key = routes.key_of("/report");
    note_all(&routes, key, "sss", 100);
    assert_eq!(routes.note(key, FAST, 98), None);
    assert_eq!(routes.sweep(97), 0);
    assert!(routes.is_learnt(key));
}

#[test]
fn a_sweep_takes_what_has_decayed() {
    let routes = LearntRoutes::default();
    let (old, single, young) = (routes.key_of("/old"), routes.key_of("/single"), routes.key_of("/young"));
    note_all(&routes, old, "sss", 0);
    note_all(&routes, single, "s", 0);
    note_all(&routes, young, "sss", 30);
    assert_eq!(routes.sweep(DECAY), 0);
    assert!(!routes.knows(single) && routes.knows(old), "a single one counts for a minute");
    assert_eq!(routes.sweep(LEARNT_DECAY - 1), 0);
    assert_eq!(routes.sweep(LEARNT_DECAY), 1);
    assert!(!routes.is_learnt(old) && routes.is_learnt(young) && routes.any());
    assert_eq!(routes.sweep(30 + LEARNT_DECAY), 1);
    assert!(!routes.any() && !routes.is_watching());
}

/// Eight of one burst are enough, and the next burst, however many minutes later, is known from its first request on.
#[test]
fn bursts_that_are_far_apart_are_learnt() {
    let routes = LearntRoutes::default();
    let key = routes.key_of("/burst");
    assert_eq!(note_all(&routes, key, "ssssssss", 0), [Change::Learnt]);
    routes.sweep(62);
    assert!(routes.is_learnt(key));
    assert_eq!(note_all(&routes, key, "ssssssss", 62), []);
}

#[test]
fn a_learnt_route_is_known_to_wait_or_to_compute() {
    let routes = LearntRoutes::default();
    let key = routes.key_of("/report");
    assert_eq!(routes.learnt(key), None);
    note_all(&routes, key, "ss", 0);
    assert_eq!(routes.note(key, Outcome::Computed, 0), Some(Change::Learnt));
    assert_eq!(routes.learnt(key), Some(true));
    routes.note(key, Outcome::Usual, 0);
    assert_eq!(routes.learnt(key), Some(true), "what is not measured says nothing");
    routes.note(key, Outcome::Waited, 0);
    assert_eq!(routes.learnt(key), Some(false));
}

#[test]
fn a_newcomer_displaces_only_what_has_decayed() {
    let routes = LearntRoutes::default();
    let keys = neighbours(WAYS as u64 + 1);
    let (newcomer, residents) = keys.split_last().unwrap();
    for (second, key) in (0..).zip(residents) {
        assert_eq!(note_all(&routes, *key, "sss", second), [Change::Learnt]);
    }
    assert_eq!(note_all(&routes, *newcomer, "ssssssss", LEARNT_DECAY - 1), [], "no place");
    assert!(residents.iter().all(|key| routes.is_learnt(*key)) && !routes.is_learnt(*newcomer));
    assert_eq!(routes.note(*newcomer, FAST, LEARNT_DECAY), None);
    assert!(routes.is_learnt(residents[0]), "a fast one takes no place");
    assert_eq!(note_all(&routes, *newcomer, "sss", LEARNT_DECAY), [Change::Learnt]);
    assert!(routes.is_learnt(*newcomer) && !routes.is_learnt(residents[0]));
    assert!(residents[1..].iter().all(|key| routes.is_learnt(*key)));
    assert_eq!(routes.learnt.load(Ordering::Relaxed), WAYS);
    assert_eq!(routes.entries.load(Ordering::Relaxed), WAYS);
}

#[test]
fn invented_paths_do_not_displace_a_learnt_route() {
    let routes = LearntRoutes::default();
    let known: Vec<Key> = ["/report", "/export", "/search"].iter().map(|path| routes.key_of(path)).collect();
    for key in &known {
        note_all(&routes, *key, "sss", 0);
    }
    let letters: Vec<u8> = (b'a'..=b'z').collect();
    for number in 0..100_000_usize {
        let name: Vec<u8> = (0..5).map(|place| letters[number / 26_usize.pow(place) % 26]).collect();
        let invented = routes.key_of(std::str::from_utf8(name.as_slice()).expect("letters"));
        assert_eq!(routes.note(invented, SLOW, 1), None);
    }
    assert!(known.iter().all(|key| routes.is_learnt(*key)));
    assert_eq!(routes.words.len(), 1_024);
    // An hour later nothing is left of them, nor of the routes, which were not asked for.
    routes.sweep(1 + LEARNT_DECAY);
    assert!(!routes.is_watching() && !routes.any());
}

#[test]
fn nobody_knows_the_key_of_a_route() {
    assert_ne!(LearntRoutes::default().key_of("/"), LearntRoutes::default().key_of("/"));
}

#[test]
fn threads_that_note_at_once_agree_in_the_end() {
    const THREADS: usize = 4;
    let routes = LearntRoutes::default();
    let keys = neighbours(WAYS as u64);
    let begin = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (routes, keys, begin) = (&routes, &keys, &begin);
            scope.spawn(move || {
                begin.wait();
                for round in 0..5_000 {
                    let key = keys[(round + thread) % keys.len()];
                    note_all(routes, key, if round % 100 < 50 { "s" } else { "f" }, 5);
                }
            });
        }
    });
    let words: Vec<Entry> = routes.words.iter().map(|word| Entry(word.load(Ordering::Relaxed))).collect();
    let entries = words.iter().filter(|entry| **entry != Entry::NONE).count();
    let learnt = words.iter().filter(|entry| entry.is_learnt()).count();
    assert_eq!(routes.entries.load(Ordering::Relaxed), entries);
    assert_eq!(routes.learnt.load(Ordering::Relaxed), learnt);
}
