//! Several exchanges on one connection: what becomes of one of them, and of the others meanwhile.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64ct::{Base64, Encoding};
use maitred_dispatch::Serve;
use maitred_filters::{Authentication, BasicAuth, Condition, FilterRule, Users};
use maitred_io::clock;
use maitred_turns::Signals;

use super::client::{
    Client, DATA, END_HEADERS, END_STREAM, FRAME, HEADERS, INTERNAL_ERROR, Part, WINDOW, body, credit, data,
    frame, head, ok, open, open_with,
};
use super::{Do, Done, Driven, Puppet, open_speaking};
use crate::connection::carrier::Carrier;
use crate::connection::carrier::with_carrier;
use crate::connection::held::holds;
use crate::connection::{Connection, Protocol};
use crate::settings::{Overflow, Settings};

#[test]
fn two_requests_run_at_once_and_their_answers_leave_interleaved() {
    let mut client = open(|_| {});
    let [first, second] = client.begins([(1, "/a"), (3, "/b")]);
    for (puppet, text) in [(&first, "a1"), (&second, "b1"), (&first, "a2"), (&second, "b2")] {
        assert_eq!(puppet.does(Do::Send(text.into())), Done::Yes);
    }
    second.finishes();
    first.finishes();
    let expected = [
        ok(1),
        data(1, "a1"),
        ok(3),
        data(3, "b1"),
        data(1, "a2"),
        data(3, "b2"),
        Part::End(3),
        Part::End(1),
    ];
    assert_eq!(client.answers(), expected);
    assert_eq!(client.driven.server.figures().snapshot().requests, 2);
}

#[test]
fn one_is_cut_and_the_other_is_not() {
    let mut client = open(|_| {});
    let [first, second] = client.begins([(1, "/a"), (3, "/b")]);
    first.does(Do::Send("a".into()));
    first.does(Do::Cut);
    second.does(Do::Send("b".into()));
    second.finishes();
    let cut = Part::Reset(1, INTERNAL_ERROR);
    assert_eq!(client.answers(), [ok(1), data(1, "a"), cut, ok(3), data(3, "b"), Part::End(3)]);
    first.joins();
    let snapshot = client.driven.server.figures().snapshot();
    assert_eq!((snapshot.requests, snapshot.cut), (2, 1));
}

#[test]
fn a_reader_that_stalls_holds_up_no_other() {
    let mut client = open(|_| {});
    let [first, second] = client.begins([(1, "/a"), (3, "/b")]);
    assert!(client.gives(0, 1 << 20).is_empty());
    first.does(Do::Send(vec![b'a'; WINDOW + 100]));
    first.finishes();
    for _ in 0..3 {
        second.does(Do::Send(vec![b'b'; 1000]));
    }
    second.finishes();
    let parts = client.answers();
    assert_eq!(body(&parts, 1).len(), WINDOW, "as far as its window goes");
    assert_eq!(body(&parts, 3).len(), 3000);
    assert!(parts.contains(&Part::End(3)) && !parts.contains(&Part::End(1)));
    for _ in 0..2 {
        assert!(client.gives(1, 60).is_empty());
    }
    let parts = client.answers();
    assert_eq!((body(&parts, 1).len(), parts.last()), (100, Some(&Part::End(1))));
}

#[test]
fn one_that_is_cancelled_while_it_is_queued_is_not_run() {
    let mut client = open(|_| {});
    let jobs = client.gets(&[(1, "/a"), (3, "/b")], &[]);
    let group = Arc::clone(&client.driven.group);
    for job in jobs {
        group.scheduler.give(job, &group);
    }
    assert!(client.resets(1).is_empty());
    let mut run = 0;
    while let Some(job) = group.scheduler.next_queued() {
        // What is not run says nothing about how long requests take.
        run += usize::from(group.run(job, clock::monotonic()).is_some());
    }
    assert_eq!((run, client.driven.puppets.begun.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(client.answers(), [ok(3), data(3, "/b 0"), Part::End(3)]);
    assert!(client.driven.look(|connection| connection.is_between_requests()));
}

#[test]
fn a_reader_that_takes_nothing_is_not_tried_with_each_block() {
    let mut h1 = open_speaking(100, |_| {}, |_| Protocol::h1());
    let mut puppet = h1.puppet("/a");
    h1.client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("the pipe has room");
    let mut jobs = h1.turn(Signals::READ).into_iter();
    h1.runs(jobs.next().expect("one"), &mut puppet);
    tried_seldom(&mut h1, &puppet);
    puppet.finishes();
    let mut client = open_with(100, |_| {});
    let [puppet] = client.begins([(1, "/a")]);
    tried_seldom(&mut client.driven, &puppet);
    puppet.finishes();
}

/// What comes when the pipe is full is not tried to be sent until a turn comes.
fn tried_seldom(driven: &mut Driven, puppet: &Puppet) {
    (0..10).for_each(|_| drop(puppet.does(Do::Send(vec![b'x'; 100]))));
    let before = driven.sends.load(Ordering::SeqCst);
    (0..100).for_each(|_| drop(puppet.does(Do::Send(vec![b'x'; 100]))));
    assert_eq!(driven.sends.load(Ordering::SeqCst), before);
    let mut part = [0; 100];
    assert_eq!(driven.client.read(&mut part).expect("it is there"), 100);
    assert!(driven.turn(Signals::WRITE).is_empty());
    assert_eq!(driven.client.read(&mut part).expect("it goes on"), 100);
}

#[test]
fn a_writer_that_waits_for_room_is_woken_when_its_stream_is_reset() {
    let mut client = open(|settings| settings.writer.memory = 100);
    let [puppet] = client.begins([(1, "/a")]);
    puppet.does(Do::Send(vec![b'a'; 2 * WINDOW]));
    puppet.to.send(Do::Wait).expect("it lives");
    let begin = Instant::now();
    let waits = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| carrier.streams().any(|stream| stream.observer.is_some()))
    };
    while !client.driven.look(waits) {
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not wait");
    }
    assert!(client.resets(1).is_empty());
    // Half of the time after which it would look by itself.
    assert_eq!(puppet.from.recv_timeout(Duration::from_secs(10)), Ok(Done::Gone));
    assert_eq!(puppet.does(Do::Send("more".into())), Done::Gone);
    let is_between = |connection: &mut Connection| connection.is_between_requests();
    assert!(!client.driven.look(is_between), "it counts while it runs");
    puppet.finishes();
    assert!(client.driven.look(is_between));
}

#[test]
fn sixty_five_that_arrive_at_once_before_a_short_queue_are_all_answered() {
    let mut client = open(|settings| {
        settings.pool.limits.queue = 40;
        settings.pool.limits.overflow = Overflow::Refuse;
    });
    let asked: Vec<(u32, &str)> = (0..65).map(|number| (2 * number + 1, "/x")).collect();
    let jobs = client.gets(&asked, &[]);
    assert_eq!(jobs.len(), 65);
    let group = Arc::clone(&client.driven.group);
    for job in jobs {
        group.scheduler.give(job, &group);
    }
    while let Some(job) = group.scheduler.next_queued() {
        client.driven.run_here(vec![job]);
    }
    client.driven.turn(Signals::WRITE);
    let parts = client.answers();
    let with = |status: &str| {
        parts.iter().filter(|part| matches!(part, Part::Head(_, text) if text == status)).count()
    };
    assert_eq!((with("200"), with("503")), (40, 25));
    let mut ended: Vec<u32> = parts
        .iter()
        .filter_map(|part| if let Part::End(stream) = part { Some(*stream) } else { None })
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, asked.iter().map(|(stream, _)| *stream).collect::<Vec<_>>());
}

// ---- Bodies of requests ----

/// Handlers read what comes for these paths as it comes.
fn reads_live(settings: &mut Settings) {
    settings.filters.push(FilterRule {
        when: Condition { path: Some("/live/*".parse().expect("a path")), ..Condition::default() },
        read_ahead: Some(false),
        ..FilterRule::default()
    });
}

/// A request whose body is to come, and whose handler runs.
fn live(client: &mut Client, stream: u32, path: &str) -> Puppet {
    let mut puppet = client.driven.puppet(path);
    let job = client.post(stream, path, &[]).pop().expect("its head is enough");
    client.driven.runs(job, &mut puppet);
    puppet
}

#[test]
fn a_body_that_is_read_as_it_comes_goes_on_beside_requests() {
    let mut client = open(reads_live);
    let puppet = live(&mut client, 1, "/live/a");
    assert!(client.sends(1, b"ping").is_empty());
    assert_eq!(puppet.does(Do::Read), Done::Bytes(b"ping".to_vec()));
    puppet.does(Do::Send("pong".into()));
    let block = client.block("GET", "/x", &[]);
    client.send(HEADERS, END_HEADERS | END_STREAM, 3, &block);
    let jobs = client.sends(1, b"again");
    assert_eq!(jobs.len(), 1);
    client.driven.run_here(jobs);
    assert_eq!(puppet.does(Do::Read), Done::Bytes(b"again".to_vec()));
    assert!(client.ends(1, b"").is_empty());
    assert_eq!(puppet.does(Do::Read), Done::Bytes(Vec::new()), "the client's side has ended");
    puppet.does(Do::Send("last".into()));
    puppet.finishes();
    let parts = client.answers();
    assert_eq!((body(&parts, 1), body(&parts, 3)), (b"ponglast".to_vec(), b"/x 0".to_vec()));
    assert!(parts.contains(&Part::End(1)) && parts.contains(&Part::End(3)));
}

#[test]
fn bytes_of_a_body_that_no_handler_has_read_count_in_the_budget() {
    let mut client = open(reads_live);
    let puppet = live(&mut client, 1, "/live/a");
    let held = |client: &Client| {
        client.driven.look(|connection| with_carrier!(connection, |carrier, wire| holds(carrier, wire)))
    };
    let before = held(&client);
    (0..3).for_each(|_| assert!(client.sends(1, &[b'x'; FRAME]).is_empty()));
    assert_eq!(held(&client) - before, 3 * FRAME as u64);
    puppet.finishes();
}

#[test]
fn a_client_that_ends_its_side_inside_a_body_ends_it_for_the_reader() {
    let mut client = open(reads_live);
    let puppet = live(&mut client, 1, "/live/a");
    assert!(client.sends(1, b"ping").is_empty());
    client.driven.client.shutdown_write();
    assert!(client.driven.turn(Signals::READ.with(Signals::READ_CLOSED)).is_empty());
    assert_eq!(puppet.does(Do::Read), Done::Bytes(b"ping".to_vec()), "what has come is there still");
    let ends = |connection: &mut Connection| {
        with_carrier!(connection, |carrier, _wire| carrier.streams().all(|stream| stream.has_read_end()))
    };
    assert!(client.driven.look(ends), "the next read does not wait for more");
    assert_eq!(puppet.does(Do::Read), Done::Gone);
    puppet.finishes();
}

#[test]
fn handlers_are_told_when_receiving_fails() {
    let mut client = open(reads_live);
    let puppet = live(&mut client, 1, "/live/a");
    client.driven.breaks.store(true, Ordering::SeqCst);
    assert!(client.driven.turn(Signals::READ).is_empty());
    assert!(client.driven.look(|connection| connection.wire.is_dead()), "it is there until the handler ends");
    assert_eq!(puppet.does(Do::Read), Done::Gone);
    assert_eq!(puppet.does(Do::Send(b"x".to_vec())), Done::Gone);
}

#[test]
fn a_body_is_credited_to_the_connection_at_once_and_to_its_stream_when_it_is_taken() {
    let mut client = open(reads_live);
    let puppet = live(&mut client, 1, "/live/a");
    // Credit is gathered up to a quarter of a window: 64 KiB of a stream, 4 MiB of the connection.
    assert!(client.post(3, "/x", &[]).is_empty());
    (0..4).for_each(|_| assert!(client.sends(3, &[b'x'; FRAME]).is_empty()));
    assert_eq!(credit(&client.frames()), [(3, 64 * 1024)], "it is in memory");
    let mut jobs = Vec::new();
    for stream in (1..).step_by(2).filter(|stream| *stream != 3).take(16) {
        if stream > 1 {
            jobs.extend(client.post(stream, "/live/b", &[]));
        }
        (0..16).for_each(|_| assert!(client.sends(stream, &[b'x'; FRAME]).is_empty()));
    }
    assert_eq!(jobs.len(), 15);
    assert_eq!(credit(&client.frames()), [(0, 4 * 1024 * 1024)], "no handler has taken anything");
    for _ in 0..63 {
        assert_eq!(puppet.does(Do::Read), Done::Bytes(vec![b'x'; 1024]));
    }
    assert_eq!(credit(&client.frames()), []);
    assert_eq!(puppet.does(Do::Read), Done::Bytes(vec![b'x'; 1024]));
    assert_eq!(credit(&client.frames()), [(1, 64 * 1024)]);
    puppet.finishes();
}

#[test]
fn frames_in_pieces_of_any_size_are_read() {
    let mut client = open_with(64, |_| {});
    let block = client.block("POST", "/x", &[]);
    let bytes = [frame(HEADERS, END_HEADERS, 1, &block), frame(DATA, END_STREAM, 1, b"12345")].concat();
    let mut jobs = Vec::new();
    for byte in bytes {
        client.write(&[byte]);
        jobs.extend(client.driven.turn(Signals::READ));
    }
    client.driven.run_here(jobs);
    let mut parts = Vec::new();
    for _ in 0..20 {
        parts.extend(client.answers());
        client.driven.turn(Signals::WRITE);
    }
    assert_eq!(parts, [ok(1), data(1, "/x 5"), Part::End(1)]);
}

const USERS: &str =
    "ann:$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";

/// A client of a server that asks for a password below `/in`.
fn guarded(is_right: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Client {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users");
    std::fs::write(&path, USERS).expect("room");
    let users = Users::open_judged(&path, is_right).expect("valid");
    open(|settings| {
        settings.filters.push(FilterRule {
            when: Condition { path: Some("/in/*".parse().expect("a path")), ..Condition::default() },
            authentication: Some(Authentication::Basic(BasicAuth::new(users, "realm").expect("a realm"))),
            ..FilterRule::default()
        });
    })
}

#[test]
fn a_request_that_a_filter_answers_before_its_body_leaves_nothing_behind() {
    let mut client = guarded(|_| false);
    assert!(client.post(1, "/in/x", &[]).is_empty());
    assert_eq!(client.answers().first(), Some(&head(1, "401")));
    assert!(client.ends(1, b"unwanted").is_empty());
    assert_eq!(
        client
            .driven
            .look(|connection| with_carrier!(connection, |carrier, _wire| carrier.streams().count())),
        0
    );
}

#[test]
fn nothing_of_a_request_goes_on_before_its_filters_have_let_it_pass() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let is_right = move |password: &[u8]| {
        let _ = wait.lock().expect("no panic").recv();
        password == b"right"
    };
    let mut client = guarded(is_right);
    let of =
        |password: &str| format!("Basic {}", Base64::encode_string(format!("ann:{password}").as_bytes()));
    // All of it is there before its password is known to be wrong.
    assert!(client.post(1, "/in/x", &[("authorization", &of("wrong"))]).is_empty());
    assert!(client.ends(1, b"secret").is_empty());
    assert_eq!(client.answers(), []);
    go.send(()).expect("it is checked");
    let begin = Instant::now();
    let refused = loop {
        assert!(client.driven.turn(Signals::NONE).is_empty());
        let answers = client.answers();
        if !answers.is_empty() {
            break answers;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    };
    assert_eq!(refused.first(), Some(&head(1, "401")));
    assert!(client.post(3, "/in/x", &[("authorization", &of("right"))]).is_empty());
    // A quarter of its window: so much is credited at once when it is taken.
    (0..4).for_each(|_| assert!(client.sends(3, &[b'x'; FRAME]).is_empty()));
    assert_eq!(credit(&client.frames()), [], "nothing has taken it");
    go.send(()).expect("it is checked");
    while credit(&client.frames()) != [(3, 64 * 1024)] {
        assert!(client.driven.turn(Signals::NONE).is_empty());
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    let jobs = client.ends(3, b"");
    client.driven.run_here(jobs);
    assert_eq!(client.answers(), [ok(3), data(3, "/in/x 65536"), Part::End(3)]);
    assert_eq!(client.driven.puppets.begun.load(Ordering::SeqCst), 1);
}

// ---- The end of a side ----

#[test]
fn when_the_peer_goes_every_handler_is_told_and_the_slot_is_free_after_the_last() {
    let mut client = open(|_| {});
    let [first, second] = client.begins([(1, "/a"), (3, "/b")]);
    let driven = &mut client.driven;
    assert!(driven.turn(Signals::CLOSED).is_empty());
    assert_eq!(first.does(Do::Send("x".into())), Done::Gone);
    first.finishes();
    driven.goes_on();
    assert_eq!(driven.server.figures().snapshot().open, 1);
    assert_eq!(second.does(Do::Send("x".into())), Done::Gone);
    second.finishes();
    driven.goes_on();
    assert_eq!(driven.server.figures().snapshot().open, 0);
}

#[test]
fn a_client_that_has_ended_its_side_gets_its_answers_and_then_the_end() {
    let mut client = open(|_| {});
    let block = client.block("GET", "/x", &[]);
    client.send(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    client.driven.client.shutdown_write();
    let jobs = client.driven.turn(Signals::READ.with(Signals::READ_CLOSED));
    assert!(!client.is_at_end());
    client.driven.run_here(jobs);
    assert!(client.driven.turn(Signals::NONE).is_empty());
    assert_eq!(client.answers(), [ok(1), data(1, "/x 0"), Part::End(1)]);
    assert!(client.is_at_end());
}

#[test]
fn an_answer_of_the_engine_needs_no_handler() {
    let mut client = open(|settings| settings.health_path = Some("/health".into()));
    assert!(client.get(1, "/health", &[]).is_empty());
    assert_eq!(client.answers(), [ok(1), data(1, "ok\n"), Part::End(1)]);
}
