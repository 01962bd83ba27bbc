//! Several pools: a slow one fenced, queues that are full, every thread blocked, rules changed at run time.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::pools::{
    ALL, MANY, all_answered, block, body, path, pool, queue, rule, serve, with_reports,
};
use crate::harness::{
    ask, connect, exchange, figure_in, get, get_last, read_all, read_response, settings, start, wait_until,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_server::{DEFAULT_POOL, Overflow, PoolLimits, PoolSettings, Routes, Strategy};
use maitred_testkit::client::Client;

#[test]
fn fifty_clients_of_a_pool_of_two_threads_hold_up_no_others_and_are_answered_in_order() {
    let (running, Opened(door)) = &serve(|settings| pool(settings, "reports").limits.max_threads = 2);
    let mut clients = Vec::new();
    let mut others = connect(running.address);
    for number in 0..50 {
        clients.push(ask(running.address, &format!("/report/{number}")));
        match number {
            0 | 1 => door.wait_for(number + 1),
            _ => running.wait_for_figure("reports", "queued", number as u64 - 1),
        }
        others.write_all(&[get("/fast"), get("/other/path")].concat()).unwrap();
        assert!(body(&mut others).starts_with("/fast on maitred-"));
        assert!(body(&mut others).starts_with("/other/path on maitred-"));
    }
    // One leaves, the next one comes: who comes next is certain.
    for came in 3..=50 {
        door.let_one_through();
        door.wait_for(came);
    }
    let in_order: Vec<_> = (0..50).map(|number| format!("/report/{number}")).collect();
    assert_eq!(door.came(), in_order);
    door.open();
    for (number, stream) in clients.iter_mut().enumerate() {
        let answer = body(stream);
        assert!(answer.starts_with(&format!("/report/{number} on maitred-reports-")), "{answer}");
    }
    assert_eq!(door.most(), 2);
    assert_eq!(running.figure("reports", "threads_made_total"), 2);
}

#[test]
fn a_burst_of_one_route_keeps_no_other_one_waiting() {
    for name in [DEFAULT_POOL, "reports"] {
        let (running, Opened(door)) = &serve(|settings| pool(settings, name).limits.max_threads = 1);
        let mut clients = block(running, door, name, 1);
        clients.extend(queue(running, name, 40));
        let other = format!("{}/of-another-route", path(name));
        let mut late = ask(running.address, &other);
        running.wait_for_figure(name, "queued", 41);
        for came in 2..=8 {
            door.let_one_through();
            door.wait_for(came);
        }
        let place = door.came().iter().position(|path| *path == other);
        assert!(place.is_some(), "{name}: {:?}", door.came());
        door.open();
        assert!(body(&mut late).starts_with(&other));
        all_answered(&mut clients, path(name));
    }
}

#[test]
fn requests_that_come_at_once_get_a_thread_each() {
    for strategy in MANY {
        for name in ["reports", DEFAULT_POOL] {
            let (running, Opened(door)) = &serve(|settings| {
                settings.pool.strategy = strategy;
                pool(settings, name).limits.max_threads = 6;
            });
            let mut clients: Vec<_> = (0..6).map(|_| connect(running.address)).collect();
            for stream in &mut clients {
                stream.write_all(&get(path(name))).unwrap();
            }
            door.wait_for(6);
            door.open();
            all_answered(&mut clients, path(name));
        }
    }
}

#[test]
fn a_full_queue_refuses_or_has_the_next_ones_wait() {
    for strategy in MANY {
        for name in ["reports", DEFAULT_POOL] {
            for overflow in [Overflow::Refuse, Overflow::Wait] {
                fill(strategy, name, overflow);
            }
        }
    }
}

/// Two threads are blocked and three requests wait, as many as may.
fn fill(strategy: Strategy, name: &str, overflow: Overflow) {
    let (running, Opened(door)) = &serve(|settings| {
        settings.pool.strategy = strategy;
        let limits = &mut pool(settings, name).limits;
        (limits.max_threads, limits.queue, limits.overflow) = (2, 3, overflow);
    });
    let mut clients = block(running, door, name, 2);
    clients.extend(queue(running, name, 3));
    let mut refused = 0;
    match overflow {
        Overflow::Refuse => {
            let mut stream = connect(running.address);
            for _ in 0..4 {
                stream.write_all(&get(path(name))).unwrap();
                let (head, body) = read_response(&mut stream);
                assert!(
                    head.starts_with("HTTP/1.1 503 ") && head.contains("\r\nRetry-After: 1\r\n"),
                    "{head}"
                );
                assert!(body.starts_with(b"503 Service Unavailable: every thread is busy"));
            }
            refused = 4;
        }
        Overflow::Wait => clients.extend((0..7).map(|_| ask(running.address, path(name)))),
    }
    // The other pool is not blocked.
    if name == "reports" {
        assert!(exchange(running.address, &get_last("/fast")).contains("/fast on "));
    }
    let metrics = exchange(running.address, &get_last("/metrics"));
    assert_eq!(figure_in(&metrics, name, "refused_total"), refused, "{strategy:?} {name} {overflow:?}");
    door.open();
    all_answered(&mut clients, path(name));
    assert_eq!(running.figure(name, "queued"), 0);
    assert!(exchange(running.address, &get_last(path(name))).starts_with("HTTP/1.1 200 "));
}

#[test]
fn with_every_thread_of_every_pool_blocked_the_engine_goes_on() {
    for strategy in ALL {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "static").unwrap();
        let door = Arc::new(Door::default());
        let routes = Routes::new()
            .with_static("/s", StaticFiles::open(folder.path(), StaticSettings::default()).unwrap())
            .with_application(Arc::new(guarded(&door)));
        let _opened = Opened(Arc::clone(&door));
        let settings = with_reports(settings(routes), |settings| {
            settings.pool.strategy = strategy;
            settings.pool.limits.max_threads = if strategy == Strategy::Pc { 1 } else { 2 };
            settings.pools[0].limits = PoolLimits {
                max_threads: 1,
                queue: 1,
                overflow: Overflow::Refuse,
                ..settings.pools[0].limits
            };
            let mut timed = PoolSettings::named("timed");
            timed.limits.request_timeout = Some(Duration::from_millis(100));
            (timed.limits.max_threads, timed.limits.max_lost) = (1, 0);
            settings.pools.push(timed);
            settings.rules.push(rule("timed", "/wait/timed"));
            settings.timeouts.head = Duration::from_millis(100);
            settings.health_path = Some("/health".to_owned());
        });
        let threads = settings.pool.limits.max_threads;
        let running = &start(settings);
        let mut clients = block(running, &door, DEFAULT_POOL, threads);
        clients.extend(queue(running, DEFAULT_POOL, 2));
        let mut reports = block(running, &door, "reports", 1);
        reports.extend(queue(running, "reports", 1));
        let times_out =
            || assert!(exchange(running.address, &get("/wait/timed")).starts_with("HTTP/1.1 504 "));
        // On a busy machine the time of the first one may be over before its thread begins.
        wait_until("a request has timed out in its thread", || {
            times_out();
            running.figure("timed", "threads_lost") == 1
        });
        // One that waits for it.
        times_out();
        for _ in 0..10 {
            assert!(exchange(running.address, &get_last("/s/a.txt")).ends_with("static"), "{strategy:?}");
            assert!(exchange(running.address, &get_last("/health")).ends_with("ok\n"));
            let metrics = exchange(running.address, &get_last("/metrics"));
            assert_eq!(figure_in(&metrics, DEFAULT_POOL, "queued"), 2);
            assert_eq!(figure_in(&metrics, "timed", "threads_lost"), 1);
            assert!(exchange(running.address, &get_last("/report")).starts_with("HTTP/1.1 503 "));
            assert!(exchange(running.address, b"BAD\r\n\r\n").starts_with("HTTP/1.1 400 "));
        }
        let mut half = connect(running.address);
        half.write_all(b"GET / HT").unwrap();
        assert!(read_all(&mut half).starts_with("HTTP/1.1 408 "));
        door.open();
        all_answered(&mut clients, "/wait");
        all_answered(&mut reports, "/report");
    }
}

/// The name of the thread that answers, without its number.
fn pool_of(stream: &mut Client, path: &str) -> String {
    stream.write_all(&get(path)).unwrap();
    let answer = body(stream);
    let (_, thread) = answer.split_once(" on ").unwrap();
    thread.trim_end_matches(|last: char| last == '-' || last.is_ascii_digit()).to_owned()
}

#[test]
fn a_path_goes_to_another_pool_from_then_on() {
    for strategy in ALL {
        let (running, Opened(door)) = &serve(|settings| {
            settings.pool.strategy = strategy;
            settings.pools.push(PoolSettings::named("others"));
        });
        let rules = [rule("reports", "/report*"), rule("others", "/moved/*")];
        let mut stream = connect(running.address);
        assert_eq!(pool_of(&mut stream, "/moved/a"), "maitred");
        running.server.pools().set_rules(&rules).unwrap();
        // On the connection that is open, too.
        assert_eq!(pool_of(&mut stream, "/moved/a"), "maitred-others");
        // Waiting requests stay where they are.
        let mut clients = block(running, door, "reports", 1);
        running.server.pools().set_rules(&rules[1..]).unwrap();
        let more = ask(running.address, "/report");
        door.wait_for(2);
        clients.push(more);
        let wrong = running.server.pools().set_rules(&[rules[0].clone(), rule("other", "/x")]).unwrap_err();
        assert_eq!(wrong.to_string(), "rule 2 leads to the pool 'other', which does not exist");
        assert_eq!(pool_of(&mut stream, "/moved/a"), "maitred-others", "nothing has changed");
        running.server.pools().set_rules(&[]).unwrap();
        door.open();
        let threads: Vec<_> = clients.iter_mut().map(body).collect();
        assert!(threads[0].starts_with("/report on maitred-reports-"), "{threads:?}");
        assert!(!threads[1].contains("reports-"), "{threads:?}");
        assert_eq!(pool_of(&mut stream, "/moved/a"), "maitred");
    }
}
