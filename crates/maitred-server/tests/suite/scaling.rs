//! The number of threads of a pool: limits changed at run time, the marks of its queue, threads that are replaced.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::harness::door::Opened;
use crate::harness::pools::{ALL, MANY, all_answered, block, path, pool, queue, serve};
use crate::harness::{
    PATIENCE, Running, connect, exchange, get, get_last, read_all, read_response, wait_until,
};
use maitred_runtime::{NativeThreads, ThreadBody, ThreadHost};
use maitred_server::figures::Format;
use maitred_server::{DEFAULT_POOL, Overflow, PoolLimits, Strategy};

/// Changes the limits of a pool of a running server.
fn set(running: &Running, name: &str, limits: PoolLimits) {
    assert!(running.server.pools().set_limits(name, &limits));
}

/// How many threads of a pool were asked for, or have ended, for this reason.
fn starts(running: &Running, pool: &str, reason: &str) -> u64 {
    by_reason(running, "starts", pool, reason)
}

fn ends(running: &Running, pool: &str, reason: &str) -> u64 {
    by_reason(running, "ends", pool, reason)
}

fn by_reason(running: &Running, what: &str, pool: &str, reason: &str) -> u64 {
    let start = format!("maitred_pool_thread_{what}_total{{pool=\"{pool}\",reason=\"{reason}\"}} ");
    let metrics = running.server.figures().page(Format::Prometheus);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

#[test]
fn threads_follow_a_maximum_that_is_raised_and_lowered() {
    for strategy in MANY {
        for name in ["reports", DEFAULT_POOL] {
            let mut limits = PoolLimits { max_threads: 1, ..PoolLimits::default() };
            let (running, Opened(door)) = &serve(|settings| {
                settings.pool.strategy = strategy;
                pool(settings, name).limits = limits;
            });
            let mut clients = block(running, door, name, 1);
            clients.extend(queue(running, name, 6));
            for most in [2, 5] {
                limits.max_threads = most;
                set(running, name, limits);
                door.wait_for(most);
                assert_eq!(running.figure(name, "threads"), most as u64, "{strategy:?} {name}");
            }
            limits.max_threads = 2;
            set(running, name, limits);
            // A thread that is too many ends after its request, and takes no other one.
            for left in [4, 3, 2] {
                door.let_one_through();
                door.wait_for_inside(left);
                running.wait_for_figure(name, "threads", left as u64);
            }
            assert_eq!(running.figure(name, "queued"), 2);
            assert_eq!(ends(running, name, "limit"), 3);
            door.let_one_through();
            door.wait_for(6);
            door.open();
            all_answered(&mut clients, path(name));
            assert_eq!((door.most(), running.figure(name, "threads_made_total")), (5, 5));
        }
    }
}

#[test]
fn a_minimum_that_is_raised_makes_threads_at_once() {
    for strategy in MANY {
        for name in ["reports", DEFAULT_POOL] {
            let (running, _opened) = &serve(|settings| settings.pool.strategy = strategy);
            set(running, name, PoolLimits { min_threads: 4, ..PoolLimits::default() });
            assert_eq!(running.figure(name, "threads"), 4, "{strategy:?} {name}");
            assert_eq!(starts(running, name, "least"), 4);
            // They are kept.
            let limits = PoolLimits { thread_idle: Duration::from_millis(1), ..PoolLimits::default() };
            set(running, name, PoolLimits { min_threads: 3, ..limits });
            wait_until("the one above the minimum ends", || running.figure(name, "threads") == 3);
            assert_eq!((ends(running, name, "idle"), ends(running, name, "limit")), (1, 0));
            assert!(exchange(running.address, &get_last("/")).starts_with("HTTP/1.1 200 "));
        }
    }
    let (running, _opened) = &serve(|_| {});
    assert!(!running.server.pools().set_limits("no such pool", &PoolLimits::default()));
}

#[test]
fn limits_that_no_pool_can_have_are_brought_into_bounds() {
    let none = PoolLimits { min_threads: 0, max_threads: 0, ..PoolLimits::default() };
    for strategy in ALL {
        let (running, Opened(door)) = &serve(|settings| settings.pool.strategy = strategy);
        door.open();
        for name in [DEFAULT_POOL, "reports"] {
            set(running, name, none);
            for _ in 0..3 {
                assert!(exchange(running.address, &get_last(path(name))).starts_with("HTTP/1.1 200 "));
            }
            running.wait_for_figure(name, "threads", 1);
        }
        set(running, DEFAULT_POOL, PoolLimits { min_threads: 5, ..PoolLimits::default() });
        let expected = if strategy == Strategy::Pc { 1 } else { 5 };
        assert_eq!(running.figure(DEFAULT_POOL, "threads"), expected, "{strategy:?}");
    }
}

/// Threads that are idle rely on those that poll, which end one after the other.
#[test]
fn while_threads_end_one_goes_on_polling() {
    for strategy in MANY {
        let (running, Opened(door)) = &serve(|settings| {
            settings.pool.strategy = strategy;
            settings.pool.limits.thread_requests = 1;
        });
        let mut clients = block(running, door, DEFAULT_POOL, 4);
        door.open();
        all_answered(&mut clients, path(DEFAULT_POOL));
        let begin = Instant::now();
        let ended =
            || running.figure(DEFAULT_POOL, "threads_made_total") - running.figure(DEFAULT_POOL, "threads");
        // Over one connection: the end of another one would cause a check.
        let mut stream = connect(running.address);
        let mut ask_once_more = || {
            stream.write_all(&get("/fast")).unwrap();
            assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200 "), "{strategy:?}");
        };
        while ended() < 3 {
            assert!(begin.elapsed() < PATIENCE, "one a second ends");
            ask_once_more();
        }
        ask_once_more();
    }
}

#[test]
fn threads_that_have_served_their_number_of_requests_are_replaced_and_no_request_is_lost() {
    for strategy in ALL {
        for name in ["reports", DEFAULT_POOL] {
            let threads = if strategy == Strategy::Pc && name == DEFAULT_POOL { 1 } else { 2 };
            let (running, Opened(door)) = &serve(|settings| {
                settings.pool.strategy = strategy;
                let limits = &mut pool(settings, name).limits;
                (limits.min_threads, limits.max_threads, limits.thread_requests) = (2, 2, 3);
            });
            door.open();
            let mut clients: Vec<_> = (0..4).map(|_| connect(running.address)).collect();
            // The second one ends a second after the first.
            let begin = Instant::now();
            while running.figure(name, "threads_made_total") < 2 * threads {
                assert!(begin.elapsed() < PATIENCE, "each thread has been replaced");
                for stream in &mut clients {
                    stream.write_all(&get(path(name)).repeat(3)).unwrap();
                }
                for stream in &mut clients {
                    all_answered(std::slice::from_mut(stream), path(name));
                    all_answered(std::slice::from_mut(stream), path(name));
                    all_answered(std::slice::from_mut(stream), path(name));
                }
            }
            wait_until("the new ones are there", || running.figure(name, "threads") == threads);
            assert!(ends(running, name, "spent") >= threads && starts(running, name, "spent") >= threads);
            for stream in &mut clients {
                stream.write_all(&get_last("/last")).unwrap();
                assert!(read_all(stream).contains("/last on "));
            }
        }
    }
}

#[test]
fn idle_threads_end_down_to_the_minimum() {
    for strategy in MANY {
        for name in ["reports", DEFAULT_POOL] {
            let (running, Opened(door)) = &serve(|settings| {
                settings.pool.strategy = strategy;
                let limits = &mut pool(settings, name).limits;
                (limits.min_threads, limits.max_threads) = (2, 6);
                limits.thread_idle = Duration::from_millis(20);
            });
            let mut clients = block(running, door, name, 6);
            assert_eq!(running.figure(name, "threads"), 6);
            door.open();
            all_answered(&mut clients, path(name));
            running.wait_for_figure(name, "threads", 2);
            all_answered(&mut [crate::harness::ask(running.address, path(name))], path(name));
        }
    }
}

/// Has threads begin when the test says so.
#[derive(Default)]
struct Held {
    waiting: Mutex<Vec<(String, ThreadBody)>>,
    changed: Condvar,
}

/// The host that shares it. Threads whose names it knows begin at once.
struct Host(Arc<Held>, fn(&str) -> bool);

fn all_but_reports(name: &str) -> bool {
    !name.starts_with("maitred-reports-")
}

impl ThreadHost for Host {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        if (self.1)(&name) {
            return NativeThreads::new(|_| {}).spawn(name, body);
        }
        self.0.waiting.lock().unwrap().push((name, body));
        self.0.changed.notify_all();
        Ok(())
    }
}

impl Held {
    /// Waits until so many threads have been asked for and have not begun.
    fn wait_for(&self, count: usize) {
        let waiting = self.waiting.lock().unwrap();
        let enough = |waiting: &mut Vec<_>| waiting.len() < count;
        let (waiting, _) = self.changed.wait_timeout_while(waiting, PATIENCE, enough).unwrap();
        assert_eq!(waiting.len(), count);
    }

    fn let_one_begin(&self) {
        let (name, body) = self.waiting.lock().unwrap().remove(0);
        NativeThreads::new(|_| {}).spawn(name, body).unwrap();
    }
}

/// A pool with a queue of ten and these marks, in percent.
fn marked(low_mark: u8, high_mark: u8) -> (Running, Opened, Arc<Held>) {
    let held = Arc::new(Held::default());
    let host = Arc::new(Host(Arc::clone(&held), all_but_reports));
    let (running, opened) = serve(|settings| {
        let limits = &mut pool(settings, "reports").limits;
        *limits = PoolLimits { queue: 10, max_threads: 6, low_mark, high_mark, ..*limits };
        settings.threads = vec![host];
    });
    (running, opened, held)
}

#[test]
fn between_the_marks_one_thread_is_made_at_a_time_and_above_the_high_one_more() {
    let (running, Opened(door), held) = &marked(0, 80);
    let mut clients = queue(running, "reports", 8);
    held.wait_for(1);
    clients.extend(queue(running, "reports", 2));
    // The ninth and the tenth.
    held.wait_for(3);
    for begun in 1..=3 {
        held.let_one_begin();
        door.wait_for(begun);
    }
    // The last one to begin has had one made behind it: seven wait.
    held.wait_for(1);
    for begun in 4..=6 {
        held.let_one_begin();
        door.wait_for(begun);
    }
    held.wait_for(0);
    door.open();
    all_answered(&mut clients, "/report");
    assert_eq!(running.figure("reports", "threads_made_total"), 6);
    assert_eq!(starts(running, "reports", "waiting"), 6);
}

#[test]
fn with_a_high_mark_of_100_threads_are_made_one_after_the_other() {
    let (running, Opened(door), held) = &marked(0, 100);
    let mut clients = queue(running, "reports", 12);
    for begun in 1..=6 {
        held.wait_for(1);
        held.let_one_begin();
        door.wait_for(begun);
    }
    held.wait_for(0);
    door.open();
    all_answered(&mut clients, "/report");
}

#[test]
fn below_the_low_mark_no_thread_is_made() {
    // Three of ten.
    let (running, Opened(door)) = &serve(|settings| {
        let limits = &mut pool(settings, "reports").limits;
        (limits.queue, limits.low_mark) = (10, 30);
    });
    let mut clients = block(running, door, "reports", 1);
    clients.extend(queue(running, "reports", 2));
    door.let_one_through();
    door.wait_for(2);
    // One waits and one is inside; with the third that waits comes the second thread.
    clients.extend(queue(running, "reports", 1));
    assert_eq!(running.figure("reports", "threads_made_total"), 1);
    clients.push(crate::harness::ask(running.address, "/report"));
    door.wait_for(3);
    assert_eq!(running.figure("reports", "threads_made_total"), 2);
    door.open();
    all_answered(&mut clients, "/report");
}

#[test]
fn the_marks_are_those_of_the_limits_as_they_are_now() {
    let mut limits = PoolLimits { min_threads: 0, queue: 100, low_mark: 30, ..PoolLimits::default() };
    let (running, Opened(door)) = &serve(|settings| pool(settings, "reports").limits = limits);
    let mut clients = block(running, door, "reports", 1);
    clients.extend(queue(running, "reports", 5));
    assert_eq!(running.figure("reports", "threads"), 1);
    limits.queue = 10;
    assert!(running.server.pools().set_limits("reports", &limits));
    // Five wait, then four, then three; at two no more is made, but by a thread that begins before the one before it has
    // taken its request, of which there may be several in a row.
    door.wait_for(4);
    assert!(running.figure("reports", "queued") <= 2);
    door.open();
    all_answered(&mut clients, "/report");
}

/// The system refuses the successor of the only thread for a while.
#[test]
fn without_a_thread_what_needs_none_is_served_and_requests_wait_within_their_limits() {
    for strategy in MANY {
        for name in [DEFAULT_POOL, "reports"] {
            let held = Arc::new(Held::default());
            let begins: fn(&str) -> bool = match name {
                DEFAULT_POOL => |thread| thread != "maitred-2",
                _ => |thread| thread != "maitred-reports-2",
            };
            let host = Arc::new(Host(Arc::clone(&held), begins));
            let limit = Duration::from_millis(50);
            let limits = PoolLimits {
                min_threads: 1,
                max_threads: 1,
                thread_requests: 1,
                queue: 1,
                overflow: Overflow::Refuse,
                ..PoolLimits::default()
            };
            let (running, Opened(door)) = &serve(|settings| {
                settings.pool.strategy = strategy;
                pool(settings, name).limits = limits;
                settings.threads = vec![host];
            });
            door.open();
            let get = get_last(path(name));
            assert!(exchange(running.address, &get).starts_with("HTTP/1.1 200 "), "{strategy:?} {name}");
            held.wait_for(1);
            assert_eq!(running.figure(name, "threads_starting"), 1);
            assert!(exchange(running.address, &get_last("/metrics")).starts_with("HTTP/1.1 200 "));
            let mut waiting = queue(running, name, 1);
            assert!(exchange(running.address, &get).starts_with("HTTP/1.1 503 "), "{strategy:?} {name}");
            set(running, name, PoolLimits { queue: 2, request_timeout: Some(limit), ..limits });
            assert!(exchange(running.address, &get).starts_with("HTTP/1.1 504 "), "{strategy:?} {name}");
            // A request that has timed out keeps its place until a thread comes by.
            set(running, name, PoolLimits { queue: 2, ..limits });
            held.wait_for(1);
            held.let_one_begin();
            all_answered(&mut waiting, path(name));
            assert!(exchange(running.address, &get).starts_with("HTTP/1.1 200 "), "{strategy:?} {name}");
            assert_eq!(running.figure(name, "threads"), 1);
        }
    }
}
