use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Test {
    pool: Pool<u32>,
    now: Instant,
    woken: Arc<Woken>,
}

const SECOND: Duration = Duration::from_secs(1);

fn test(per_key: usize, total: usize) -> Test {
    let pool = Pool::new(Settings { per_key, total, ..Settings::default() });
    Test { pool, now: Instant::now(), woken: Arc::default() }
}

fn key(host: &str) -> Arc<Key> {
    Arc::new(Key::plain(host, 80))
}

impl Test {
    fn out(&self, host: &str) -> Result<Slot<u32>, Full> {
        self.pool.check_out(&key(host), 7, self.now)
    }

    /// A slot with the new connection `number`.
    fn made(&self, host: &str, number: u32) -> Slot<u32> {
        let mut slot = self.out(host).expect("room");
        assert!(slot.connection().is_none());
        slot.put(number, self.now);
        slot
    }

    fn keep(&self, host: &str, number: u32) {
        self.made(host, number).give_back(Kept::default(), self.now);
    }

    fn wait(&self, host: &str) -> Waiting<u32> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.pool.check_out_or_wait(&key(host), 8, self.now, waker).expect_err("it is full")
    }

    fn connection(&self, host: &str) -> Option<u32> {
        self.out(host).expect("room").connection().copied()
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }
}

fn taken(waiting: &Waiting<u32>) -> Option<Option<u32>> {
    waiting.take().map(|mut slot| slot.connection().copied())
}

#[test]
fn the_youngest_idle_connection_of_the_same_key_is_used_first() {
    let test = test(9, 9);
    let slots = [test.made("a", 1), test.made("a", 2), test.made("b", 3)];
    slots.into_iter().for_each(|slot| slot.give_back(Kept::default(), test.now));
    let mut slot = test.out("a").expect("idle");
    assert_eq!((slot.connection().copied(), slot.is_reused()), (Some(2), true));
    assert_eq!(test.connection("a"), Some(1));
    assert_eq!(test.connection("a"), None, "dropped with its slot");
    assert_eq!(test.connection("b"), Some(3));
}

#[test]
fn every_part_of_the_key_counts() {
    let test = test(99, 99);
    let plain = Key::plain("a", 80);
    let proxy = |credentials: Option<&[u8]>| Proxy {
        host: "p".into(),
        port: 3128,
        tls: None,
        credentials: credentials.map(Box::from),
        fields: Box::default(),
    };
    let tls = |verify, server_name: Option<&str>| TlsIdentity {
        verify,
        server_name: server_name.map(Box::from),
        ..TlsIdentity::default()
    };
    use crate::key::{Authorities, ClientCertificate, Place, Proxy, TlsIdentity};
    let with = |certificate: &str, password: &str| ClientCertificate {
        certificate: certificate.into(),
        key: None,
        password: Some(password.into()),
    };
    let of_client = |certificate, password| TlsIdentity {
        certificate: Some(with(certificate, password)),
        ..TlsIdentity::default()
    };
    let of_file =
        |file: &str| TlsIdentity { authorities: Authorities::At(file.into()), ..TlsIdentity::default() };
    let keys = [
        plain.clone(),
        Key::plain("a", 81),
        Key { place: Place::Socket("/a".into()), ..plain.clone() },
        Key { proxy: Some(proxy(None)), ..plain.clone() },
        Key { proxy: Some(proxy(Some(b"Basic x"))), ..plain.clone() },
        Key { proxy: Some(Proxy { tls: Some(tls(true, None)), ..proxy(None) }), ..plain.clone() },
        Key { tls: Some(tls(true, None)), ..plain.clone() },
        Key { tls: Some(tls(false, None)), ..plain.clone() },
        Key { tls: Some(tls(true, Some("b"))), ..plain.clone() },
        Key { tls: Some(of_client("c", "secret")), ..plain.clone() },
        Key { tls: Some(of_client("c", "another secret")), ..plain.clone() },
        Key { tls: Some(of_file("d")), ..plain },
    ]
    .map(Arc::new);
    for (number, key) in (0..).zip(&keys) {
        let mut slot = test.pool.check_out(key, 0, test.now).expect("room");
        assert!(slot.connection().is_none(), "{key:?}");
        slot.put(number, test.now);
        slot.give_back(Kept::default(), test.now);
    }
    let shown = format!("{keys:?}");
    assert!(!shown.contains("Basic") && !shown.contains("secret"), "credentials are not shown: {shown}");
}

#[test]
fn limits_hold_for_a_key_and_for_all() {
    let test = test(2, 3);
    let (_one, two, three) = (test.made("a", 1), test.made("a", 2), test.made("b", 3));
    assert_eq!(test.out("a").expect_err("full"), Full::Key);
    assert_eq!(test.out("c").expect_err("full"), Full::Pool);
    drop(two);
    let (four, callers) = (test.made("c", 4), test.pool.holders());
    assert_eq!(callers.iter().map(|holder| holder.caller).collect::<Vec<_>>(), [7, 7, 7]);
    assert_eq!(callers.iter().filter(|holder| *holder.key == *key("c")).count(), 1);
    // An idle connection of another key gives way.
    three.give_back(Kept::default(), test.now);
    four.give_back(Kept::default(), test.now + SECOND);
    let _five = test.made("d", 5);
    assert_eq!(test.connection("c"), Some(4));
    assert_eq!(test.connection("b"), None);
}

#[test]
fn idle_connections_are_used_within_all_their_limits() {
    let kept = |seconds: Option<u64>, requests| Kept { idle: seconds.map(Duration::from_secs), requests };
    for (kept, after, expected) in [
        (kept(None, None), 3, Some(1)),
        (kept(None, None), 4, None),
        (kept(Some(60), None), 59, Some(1)),
        (kept(Some(2), None), 2, None),
        (kept(Some(9999), None), 119, Some(1)),
        (kept(Some(9999), None), 120, None),
        (kept(Some(0), None), 0, None),
        (kept(None, Some(1)), 0, Some(1)),
        (kept(None, Some(0)), 0, None),
    ] {
        let mut test = test(1, 1);
        test.made("a", 1).give_back(kept, test.now);
        test.now += SECOND * after;
        assert_eq!(test.connection("a"), expected, "{kept:?} after {after} s");
    }
    // A number that a server has named once counts down.
    let test = test(1, 1);
    test.made("a", 1).give_back(kept(None, Some(1)), test.now);
    test.out("a").expect("room").give_back(Kept::default(), test.now);
    assert_eq!(test.connection("a"), None);
}

#[test]
fn an_old_connection_is_not_used() {
    let mut test = test(1, 1);
    let forever = Kept { idle: Some(SECOND * 100), requests: None };
    test.made("a", 1).give_back(forever, test.now);
    for _ in 0..3 {
        test.now += SECOND * 99;
        let mut slot = test.out("a").expect("room");
        assert_eq!(slot.connection().copied(), Some(1));
        slot.give_back(forever, test.now);
    }
    test.now += SECOND * 3;
    assert_eq!(test.connection("a"), None);
}

#[test]
fn waiters_get_slots_in_their_order() {
    let test = test(1, 2);
    let (mut one, two) = (test.made("a", 1), test.made("b", 2));
    let (first, second, third) = (test.wait("a"), test.wait("c"), test.wait("a"));
    assert_eq!((test.woken(), taken(&first)), (0, None));
    one.put(9, test.now);
    one.give_back(Kept::default(), test.now);
    assert_eq!(test.woken(), 1);
    let slot = first.take().expect("the first waits for this key");
    assert!(slot.is_reused());
    // The next in the queue waits for another key: the connection gives way to it.
    slot.give_back(Kept::default(), test.now);
    assert_eq!((test.woken(), taken(&third), taken(&second)), (2, None, Some(None)));
    // That slot was dropped at once.
    assert_eq!((test.woken(), taken(&third)), (3, Some(None)));
    drop(two);
    assert_eq!((test.pool.holders().len(), test.pool.idle()), (0, 0));
}

#[test]
fn a_waiter_that_goes_takes_nothing_with_it() {
    let test = test(1, 1);
    let one = test.made("a", 1);
    let (gone, stays) = (test.wait("a"), test.wait("a"));
    drop(gone);
    one.give_back(Kept::default(), test.now);
    assert_eq!(taken(&stays), Some(Some(1)), "dropped here");
    let (one, gone, stays) = (test.made("a", 2), test.wait("a"), test.wait("b"));
    drop(one);
    // It goes with a slot that was handed to it and not taken.
    assert_eq!(test.woken(), 2);
    drop(gone);
    assert_eq!(taken(&stays), Some(None));
    let inner = test.pool.0.lock();
    assert!(inner.places.is_empty() && inner.firsts.is_empty());
}

#[test]
fn a_sweep_takes_out_what_is_old_or_refused_and_serves_waiters() {
    let mut test = test(2, 2);
    test.keep("a", 1);
    test.now += SECOND * 3;
    let _used = test.made("b", 2);
    test.now += SECOND;
    assert_eq!(test.pool.sweep(test.now, |_| true), [1]);
    test.keep("a", 3);
    assert_eq!(test.pool.sweep(test.now, |connection| *connection != 3), [3]);
    assert_eq!((test.pool.idle(), test.pool.holders().len()), (0, 1));
}

/// Threads that check out, wait, give up, give back and drop by chance: nothing is lost, no limit is passed, and every
/// waiter that stays is served.
#[test]
fn ten_thousand_calls_that_end_in_any_way_leave_nothing() {
    struct Thread(std::thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let pool = Pool::<u32>::new(Settings { per_key: 2, total: 3, ..Settings::default() });
    let (now, used) = (Instant::now(), AtomicUsize::new(0));
    let call = |chance: usize| {
        let key = key(["a", "b", "c"][chance % 3]);
        let waker = Waker::from(Arc::new(Thread(std::thread::current())));
        let found = pool.check_out_or_wait(&key, 0, now, waker);
        let slot = match found {
            Ok(slot) => Some(slot),
            Err(_) if chance.is_multiple_of(7) => None,
            Err(waiting) => loop {
                match waiting.take() {
                    Some(slot) => break Some(slot),
                    None => std::thread::park(),
                }
            },
        };
        let Some(mut slot) = slot else { return };
        assert!(used.fetch_add(1, Ordering::SeqCst) < 3);
        if slot.connection().is_none() {
            slot.put(0, now);
        }
        std::thread::yield_now();
        used.fetch_sub(1, Ordering::SeqCst);
        match chance % 5 {
            0 | 1 => drop(slot),
            _ => slot.give_back(Kept::default(), now),
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let call = &call;
            scope.spawn(move || {
                let mut chance = thread + 1;
                for _ in 0..1250 {
                    chance = chance
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    call(chance >> 33);
                }
            });
        }
    });
    assert!(pool.holders().is_empty());
    let inner = pool.0.lock();
    let idle: usize = inner.places.values().map(|place| place.idle.len()).sum();
    assert_eq!((inner.open, inner.waiting), (idle, 0));
    assert!(inner.places.values().all(|place| place.open == place.idle.len() && place.waiting.is_empty()));
}

#[test]
fn idle_connections_whose_time_has_passed_leave_at_the_next_use_of_their_key() {
    let mut test = test(4, 4);
    let slots: Vec<_> = (0..3).map(|number| test.made("a", number)).collect();
    slots.into_iter().for_each(|slot| slot.give_back(Kept::default(), test.now));
    test.now += SECOND * 3;
    let used = test.out("a").expect("an idle one");
    assert_eq!(test.pool.idle(), 2);
    test.now += SECOND * 2;
    used.give_back(Kept::default(), test.now);
    assert_eq!(test.pool.idle(), 1, "after a release");

    let (old, young) = (test.made("b", 0), test.made("b", 1));
    old.give_back(Kept::default(), test.now);
    test.now += SECOND * 3;
    young.give_back(Kept::default(), test.now);
    test.now += SECOND * 2;
    let _used = test.out("b").expect("the young one");
    let inner = test.pool.0.lock();
    assert_eq!(inner.places.get(&key("b")).map(|place| place.open), Some(1), "after a check-out");
}

#[test]
fn a_sweep_looks_without_the_lock_and_loses_nothing_by_a_panic() {
    let test = test(2, 4);
    let slots: Vec<_> = (0..2).map(|number| test.made("a", number)).collect();
    slots.into_iter().for_each(|slot| slot.give_back(Kept::default(), test.now));
    let mut waiting = None;
    let gone = test.pool.sweep(test.now, |number| {
        waiting.get_or_insert_with(|| test.wait("a"));
        *number == 0
    });
    assert_eq!((gone, test.woken()), (vec![1], 1));
    let mut slot = waiting.and_then(|waiting| waiting.take()).expect("one that was kept");
    assert_eq!(slot.connection().copied(), Some(0));
    slot.give_back(Kept::default(), test.now);

    test.keep("b", 2);
    let panics = std::panic::AssertUnwindSafe(|| {
        test.pool.sweep(test.now, |_| std::panic::resume_unwind(Box::new(())))
    });
    std::panic::catch_unwind(panics).expect_err("it panics");
    assert_eq!((test.connection("a"), test.connection("b")), (Some(0), Some(2)));
}

#[test]
fn the_last_waker_is_woken() {
    let test = test(1, 1);
    let slot = test.made("a", 1);
    let (waiting, other) = (test.wait("a"), Arc::new(Woken::default()));
    assert!(waiting.take_or_wake(&Waker::from(Arc::clone(&other))).is_none());
    drop(slot);
    assert_eq!((test.woken(), other.0.load(Ordering::SeqCst)), (0, 1));
    assert!(waiting.take_or_wake(Waker::noop()).is_some());
}

#[test]
fn connections_to_a_server_that_is_not_called_any_more_leave_too() {
    let mut test = test(4, 4);
    test.keep("a", 1);
    let _used = test.made("b", 2);
    test.now += SECOND * 11;
    drop(test.out("c").expect("room"));
    let inner = test.pool.0.lock();
    assert_eq!((inner.open, inner.places.len()), (1, 1));
}
