//! A response in memory whose peer takes nothing: the test is the thread of its handler, and sets the time.

use std::io::{Read, Write};
use std::sync::Arc;

use maitred_dispatch::Inside;
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Flow, Handler, Stream};
use maitred_turns::Signals;

use super::*;
use crate::connection::Protocol;
use crate::connection::framed::tests::{Driven, open_for};
use crate::connection::websocket::tests::Keeper;
use crate::group::slots::Token;

const SECOND: u64 = 1_000_000_000;
const KEY: Key = Key { token: Token { slot: 0, generation: 0 }, stream: 1 };
/// More than a response may have in memory.
const FULL: usize = 300_000;

/// A connection of a server with one thread and no room in files, and its handler's exchange.
fn asks() -> (Driven, Arc<Keeper>, Vec<crate::group::Job>) {
    let keeper = Arc::new(Keeper::default());
    let handler = Arc::clone(&keeper) as Arc<dyn Handler>;
    let set = |settings: &mut crate::settings::Settings| {
        settings.pool.limits.max_threads = 1;
        settings.writer.file = 0;
    };
    let mut driven = open_for(handler, 1000, set, |_| Protocol::h1());
    driven.client.write_all(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("the pipe has room");
    let jobs = driven.turn(Signals::READ);
    (driven, keeper, jobs)
}

/// The same with a response that is full.
fn idle() -> (Driven, Stream) {
    let (driven, keeper, jobs) = asks();
    driven.run_here(jobs);
    let mut response = keeper.exchange().start(ResponseHead::new(Status::OK), None).expect("it begins");
    assert_eq!(response.send(vec![b'x'; FULL]), Ok(Flow::Full));
    (driven, response)
}

/// Whether the handler waits on after so many seconds.
fn waits_on(group: &Group, seconds: u64) -> bool {
    let now = clock::monotonic() + seconds * SECOND;
    let step = group.with_stream(KEY, |connection| next_step(connection, group, KEY, (false, now)));
    match step.expect("the exchange is there") {
        Ok(Step::Wait) => true,
        Err(SendError::Closed) => false,
        Ok(_) | Err(_) => panic!("the response is full"),
    }
}

#[test]
fn a_peer_that_takes_nothing_loses_its_response_when_a_request_waits_for_the_thread() {
    let (mut driven, mut response) = idle();
    let group = Arc::clone(&driven.group);
    let _thread = Inside::enter(&group.scheduler);
    assert!(waits_on(&group, 20), "no request waits");
    let (other, _, jobs) = asks();
    jobs.into_iter().for_each(|job| group.scheduler.give(job, &group));
    assert!(waits_on(&group, 4), "the peer has time");
    assert!(!waits_on(&group, 6));
    assert_eq!(group.site.guard.applied.total(maitred_limits::Rule::HeldThread), 1);
    assert_eq!(response.send("more"), Err(SendError::Closed));
    response.finish();
    driven.turn(Signals::NONE);
    assert!(group.with_connection(KEY.token, |_| ()).is_none(), "the connection has ended");
    assert!(group.scheduler.next_queued().is_some(), "the other request is next");
    drop(other);
}

#[test]
fn a_peer_that_takes_something_every_second_keeps_its_response() {
    let (mut driven, response) = idle();
    let group = Arc::clone(&driven.group);
    let _thread = Inside::enter(&group.scheduler);
    let (_other, _, jobs) = asks();
    jobs.into_iter().for_each(|job| group.scheduler.give(job, &group));
    for second in 1..30 {
        assert!(waits_on(&group, second), "{second}");
        let mut taken = [0; 1000];
        assert!(driven.client.read(&mut taken).is_ok_and(|count| count > 0));
        driven.passes(Duration::from_secs(1));
        driven.turn(Signals::WRITE);
    }
    drop(response);
}

#[test]
fn a_response_made_by_a_thread_of_the_application_keeps_no_request_waiting() {
    let (driven, response) = idle();
    let group = Arc::clone(&driven.group);
    let (_other, _, jobs) = asks();
    jobs.into_iter().for_each(|job| group.scheduler.give(job, &group));
    assert!(waits_on(&group, 20));
    drop(response);
}
