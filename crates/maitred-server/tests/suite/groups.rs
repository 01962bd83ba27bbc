//! Several poll groups: who gets a connection, when a request leaves its group, and what they do together.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::pools::{all_answered, block, body, queue, with_reports};
use crate::harness::{
    PATIENCE, Running, connect, exchange, get, get_last, read_all, read_response, settings, start, wait_until,
};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_server::figures::Format;
use maitred_server::{DEFAULT_POOL, Overflow, PoolLimits, Routes, Settings, Strategy};
use maitred_testkit::client::Client;

/// A server of `count` groups with a thread each, and a pool `reports`; `/wait...` waits at the door.
fn groups(count: usize, change: impl FnOnce(&mut Settings)) -> (Running, Opened) {
    groups_beside(Routes::new(), count, change)
}

/// The same with other routes beside the application.
fn groups_beside(routes: Routes, count: usize, change: impl FnOnce(&mut Settings)) -> (Running, Opened) {
    let door = Arc::new(Door::default());
    let routes = routes.with_application(Arc::new(guarded(&door)));
    let settings = with_reports(settings(routes), |settings| {
        settings.poll_groups = count;
        settings.pool.limits.max_threads = count;
        change(settings);
    });
    (start(settings), Opened(door))
}

/// So many connections, the first one in the first group, the next one in the next.
fn spread(running: &Running, count: usize) -> Vec<Client> {
    let open = running.server.figures().snapshot().open as usize;
    let one = |n| {
        let stream = connect(running.address);
        wait_until("it is accepted", || running.server.figures().snapshot().open as usize == open + n);
        stream
    };
    (1..=count).map(one).collect()
}

fn ask(stream: &mut Client, path: &str) {
    stream.write_all(&get(path)).unwrap();
}

/// The number of the group whose thread has answered.
fn group_of(stream: &mut Client) -> usize {
    let answer = body(stream);
    let (_, thread) = answer.split_once(" on maitred-").expect("a thread of the default pool");
    thread.split('-').next().unwrap().parse().unwrap_or_else(|_| panic!("{answer}"))
}

fn ask_group(stream: &mut Client) -> usize {
    ask(stream, "/fast");
    group_of(stream)
}

fn figure(running: &Running, name: &str) -> u64 {
    let metrics = running.server.figures().page(Format::Prometheus);
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("maitred_{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

fn migrations(running: &Running) -> u64 {
    figure(running, "migrations_total")
}

#[test]
fn a_connection_goes_to_the_group_with_the_fewest_and_stays_there() {
    // With a thread to spare in each: one that the system stops in the application is none that blocks.
    let (running, _opened) = &groups(3, |settings| settings.pool.limits.max_threads = 6);
    assert_eq!(figure(running, "poll_groups"), 3);
    let mut streams = spread(running, 7);
    for _ in 0..3 {
        assert_eq!(streams.iter_mut().map(ask_group).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3, 1]);
    }
    // Both of the second group.
    drop((streams.remove(4), streams.remove(1)));
    wait_until("they are closed", || running.server.figures().snapshot().open == 5);
    assert_eq!(spread(running, 2).iter_mut().map(ask_group).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(migrations(running), 0);
}

#[test]
fn a_request_leaves_its_group_when_all_its_threads_are_busy_and_only_then() {
    // Two threads in each: one that the system stops in the application is none that blocks.
    let (running, Opened(door)) = &groups(2, |settings| settings.pool.limits.max_threads = 4);
    let mut streams = spread(running, 6);
    let mut inside = 0;
    for _ in 0..3 {
        // The threads of the first group wait until another connection of it has been answered. Anew if one of them had answered, and not
        // left the application yet, so that the other group took a request.
        loop {
            let before = migrations(running);
            ask(&mut streams[0], "/wait");
            ask(&mut streams[2], "/wait");
            inside += 2;
            door.wait_for(inside);
            if migrations(running) == before {
                break;
            }
            door.let_one_through();
            door.let_one_through();
            group_of(&mut streams[0]);
            group_of(&mut streams[2]);
        }
        let before = migrations(running);
        assert_eq!(ask_group(&mut streams[4]), 2);
        assert_eq!(migrations(running), before + 1);
        // The other group's own requests stay there.
        assert_eq!((ask_group(&mut streams[1]), ask_group(&mut streams[3])), (2, 2));
        assert_eq!(migrations(running), before + 1);
        door.let_one_through();
        door.let_one_through();
        assert_eq!((group_of(&mut streams[0]), group_of(&mut streams[2])), (1, 1));
        // The thread may have answered, and not have left the application yet.
        let begin = Instant::now();
        while ask_group(&mut streams[4]) != 1 {
            assert!(begin.elapsed() < PATIENCE, "the group serves itself again");
        }
    }
}

/// Five requests stand still in their own group; the threads of another one, of which there was one, take the others.
#[test]
fn all_threads_of_other_groups_take_what_is_left() {
    let (running, Opened(door)) = &groups(2, |settings| settings.pool.limits.max_threads = 10);
    let mut streams = spread(running, 21);
    for stream in streams.iter_mut().step_by(2) {
        ask(stream, "/wait");
    }
    door.wait_for(10);
    assert_eq!(migrations(running), 5);
    running.wait_for_figure(DEFAULT_POOL, "queued", 1);
    door.open();
    for stream in streams.iter_mut().step_by(2) {
        group_of(stream);
    }
    assert_eq!((door.most(), running.figure(DEFAULT_POOL, "threads_made_total")), (10, 10));
}

#[test]
fn with_the_threads_of_all_groups_blocked_the_engine_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "static").unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let routes = Routes::new().with_static("/s", files);
    let (running, Opened(door)) = &groups_beside(routes, 2, |settings| {
        (settings.pool.limits.queue, settings.pool.limits.overflow) = (4, Overflow::Refuse);
        settings.timeouts.head = Duration::from_millis(100);
        settings.health_path = Some("/health".to_owned());
    });
    let mut clients = block(running, door, DEFAULT_POOL, 2);
    // Two of each group, as many as may wait.
    clients.extend(queue(running, DEFAULT_POOL, 4));
    for _ in 0..10 {
        assert!(exchange(running.address, &get_last("/health")).ends_with("ok\n"));
        assert!(exchange(running.address, &get_last("/s/a.txt")).ends_with("static"));
        assert!(exchange(running.address, &get_last("/metrics")).contains("maitred_poll_groups 2\n"));
        assert!(exchange(running.address, &get_last("/wait")).starts_with("HTTP/1.1 503 "));
    }
    let mut halves = [connect(running.address), connect(running.address)];
    for half in &mut halves {
        half.write_all(b"GET / HT").unwrap();
    }
    for half in &mut halves {
        assert!(read_all(half).starts_with("HTTP/1.1 408 "));
    }
    door.open();
    all_answered(&mut clients, "/wait");
    assert_eq!(running.figure(DEFAULT_POOL, "queued"), 0);
}

#[test]
fn a_drain_ends_the_connections_of_all_groups() {
    let (running, Opened(door)) = &groups(2, |_| {});
    let mut idle = spread(running, 2);
    for stream in &mut idle {
        ask_group(stream);
    }
    let mut busy = block(running, door, DEFAULT_POOL, 2);
    running.server.drain();
    for stream in &mut idle {
        assert_eq!(read_all(stream), "");
    }
    assert!(!running.server.wait_drained(Duration::ZERO));
    door.open();
    for stream in &mut busy {
        let (head, _) = read_response(stream);
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("\r\nConnection: close\r\n"), "{head}");
    }
    drop(busy);
    assert!(running.server.wait_drained(PATIENCE));
    assert_eq!(running.server.figures().snapshot().open, 0);
}

#[test]
fn limits_are_those_of_all_groups_together() {
    let (running, Opened(door)) = &groups(2, |settings| settings.pool.limits.max_threads = 5);
    let figures = || ["threads", "threads_max"].map(|name| running.figure(DEFAULT_POOL, name));
    assert_eq!((figures(), running.server.figures().snapshot().threads), ([2, 5], 2));
    let mut clients = block(running, door, DEFAULT_POOL, 5);
    let limits = PoolLimits { max_threads: 7, ..PoolLimits::default() };
    assert!(running.server.pools().set_limits(DEFAULT_POOL, &limits));
    clients.extend(block(running, door, DEFAULT_POOL, 2));
    assert_eq!(figures(), [7, 7]);
    // A thread each is the least.
    assert!(running.server.pools().set_limits(DEFAULT_POOL, &PoolLimits { max_threads: 1, ..limits }));
    door.open();
    all_answered(&mut clients, "/wait");
    wait_until("there are two", || figures() == [2, 2]);
    drop(clients);
    assert!(!running.server.pools().set_limits("no such pool", &limits));
}

#[test]
fn there_are_never_more_groups_than_threads_and_one_with_other_strategies() {
    let (running, _opened) = &groups(3, |settings| settings.pool.limits.max_threads = 2);
    assert_eq!(figure(running, "poll_groups"), 2);
    for strategy in [Strategy::Pc, Strategy::Pec, Strategy::Epc] {
        let (running, _opened) = &groups(2, |settings| settings.pool.strategy = strategy);
        assert_eq!(figure(running, "poll_groups"), 1);
    }
}

#[test]
fn a_named_pool_is_one_for_all_groups() {
    let (running, Opened(door)) = &groups(2, |settings| settings.pools[0].limits.max_threads = 2);
    let mut clients = block(running, door, "reports", 2);
    clients.extend(queue(running, "reports", 4));
    door.open();
    all_answered(&mut clients, "/report");
    assert_eq!((door.most(), running.figure("reports", "threads_made_total")), (2, 2));
    assert_eq!(migrations(running), 0);
}

/// A thread is lost to the group it belongs to, whatever the group of its request.
#[test]
fn a_thread_that_is_lost_with_a_request_of_another_group_is_replaced_in_its_own() {
    let (running, Opened(door)) = &groups(2, |settings| {
        settings.pool.limits.request_timeout = Some(Duration::from_millis(300));
        settings.pool.limits.max_lost = 2;
    });
    let mut streams = spread(running, 4);
    for (came, stream) in [0, 2].into_iter().enumerate() {
        ask(&mut streams[stream], "/wait");
        door.wait_for(came + 1);
    }
    assert_eq!(migrations(running), 1);
    for stream in [0, 2] {
        assert!(read_all(&mut streams[stream]).starts_with("HTTP/1.1 504 "));
    }
    assert_eq!(running.figure(DEFAULT_POOL, "threads_lost"), 2);
    assert_eq!((ask_group(&mut streams[1]), migrations(running)), (2, 1));
    door.open();
    running.wait_for_figure(DEFAULT_POOL, "threads_lost", 0);
    running.wait_for_figure(DEFAULT_POOL, "threads", 2);
    assert_eq!(ask_group(&mut streams[3]), 2);
}
