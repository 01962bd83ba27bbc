//! What responses ask for themselves, where several of them share a connection.

use std::time::Duration;

use maitred_io::clock;
use maitred_limits::minimum::{Minimum, RateWatch};
use maitred_testkit::{Frame, STREAM_WINDOW};
use maitred_turns::Signals;

use super::{Do, Done, Driven, Puppet, body, get, open, open_with};
use crate::Place;

#[test]
fn each_has_the_send_timeout_that_it_asks_for() {
    let mut driven = open(|settings| settings.timeouts.send = Duration::from_secs(10));
    let mut puppets = [driven.puppet("/a"), driven.puppet("/b"), driven.puppet("/c")];
    let asked = [get(1, "/a?Maitred-Send-Timeout=3"), get(3, "/b?Maitred-Send-Timeout=60"), get(5, "/c")];
    for (job, puppet) in driven.asks(&asked).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
        puppet.does(Do::Send(vec![b'x'; STREAM_WINDOW as usize + 1]));
    }
    assert_eq!(driven.answers().iter().filter(|frame| matches!(frame, Frame::Reset(_))).count(), 0);
    driven.passes(Duration::from_secs(4));
    assert_eq!(driven.answers(), [Frame::Reset(1)], "a shorter one");
    driven.passes(Duration::from_secs(7));
    assert_eq!(driven.answers(), [Frame::Reset(5)], "that of all");
    assert_eq!(driven.server.snapshot().open, 1);
    driven.passes(Duration::from_secs(40));
    assert_eq!(driven.answers(), []);
    driven.passes(Duration::from_secs(10));
    assert_eq!(driven.answers(), [Frame::Reset(3)], "a longer one");
    for (puppet, done) in puppets.into_iter().zip([Done::Gone, Done::Gone, Done::Gone]) {
        assert_eq!(puppet.does(Do::Send("x".into())), done);
        puppet.does(Do::Finish);
        puppet.joins();
    }
}

/// Streams with these queries, whose peer gives all the credit that they want and takes nothing of the connection: 10 s is how long
/// it may do so. Of each stream more is sent than is made frames of, but of those that only begin.
fn blocked(queries: &[&str], begins_only: usize) -> (Driven, Vec<Puppet>) {
    let mut driven = open_with(600, |settings| settings.timeouts.send = Duration::from_secs(10));
    let mut puppets: Vec<Puppet> =
        (0..queries.len()).map(|number| driven.puppet(&format!("/{number}"))).collect();
    let asked: Vec<Frame> = (0..)
        .zip(queries)
        .map(|(number, query)| get(2 * number + 1, &format!("/{number}?{query}")))
        .collect();
    for (job, puppet) in driven.asks(&asked).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
    }
    let mut credit = vec![Frame::Credit(0, 1 << 24)];
    credit.extend((0..queries.len() as u32).map(|number| Frame::Credit(2 * number + 1, 1 << 24)));
    assert!(driven.asks(&credit).is_empty());
    for puppet in &puppets[begins_only..] {
        puppet.does(Do::Send(vec![b'x'; 200_000]));
        // In the place of what the pipe has taken: now as many frames as may be are ahead.
        puppet.does(Do::Send("x".into()));
    }
    (driven, puppets)
}

fn finish(puppets: Vec<Puppet>) {
    for puppet in puppets {
        puppet.does(Do::Finish);
        puppet.joins();
    }
}

fn is_open(driven: &Driven) -> bool {
    driven.group.with_connection(driven.token, |connection| !connection.is_dead()) == Some(true)
}

#[test]
fn one_that_asks_for_a_short_time_ends_alone_where_the_peer_takes_nothing_of_the_connection() {
    let (mut driven, puppets) = blocked(&["Maitred-Send-Timeout=3", ""], 0);
    driven.passes(Duration::from_secs(4));
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Gone);
    assert_eq!(puppets[1].does(Do::Send("x".into())), Done::Yes);
    driven.passes(Duration::from_secs(7));
    assert!(!is_open(&driven), "nothing was taken for as long as all have");
    finish(puppets);
}

#[test]
fn a_connection_lives_as_long_as_the_longest_time_that_one_of_its_responses_asks_for() {
    // The second one has something that waits for its frames, which are all of the first one.
    let (mut driven, puppets) = blocked(&["", "Maitred-Send-Timeout=30"], 0);
    driven.passes(Duration::from_secs(29));
    assert!(is_open(&driven));
    driven.passes(Duration::from_secs(2));
    assert!(!is_open(&driven));
    finish(puppets);
}

#[test]
fn the_time_that_was_asked_for_holds_until_the_last_frame_has_left() {
    for (seconds, dies) in [(3, 3), (30, 30)] {
        let query = format!("Maitred-Send-Timeout={seconds}");
        let (mut driven, puppets) = blocked(&[&query], 1);
        puppets[0].does(Do::Send(vec![b'x'; 20_000]));
        // It is over, and its frames have not left.
        finish(puppets);
        driven.passes(Duration::from_secs(dies - 1));
        assert!(is_open(&driven), "{seconds}");
        driven.passes(Duration::from_secs(2));
        assert!(!is_open(&driven), "{seconds}");
    }
}

#[test]
fn a_time_that_was_asked_for_begins_when_there_is_something_to_take() {
    let (mut driven, puppets) = blocked(&["Maitred-Send-Timeout=3", ""], 1);
    // The peer has taken nothing for a while, and the first one had nothing to send.
    let back_then = clock::monotonic() - 8_000_000_000;
    let aged = driven.group.with_connection(driven.token, |connection| {
        let minimum = Minimum { rate: 0, grace: 0 };
        let position = connection.writer.as_ref()?.sent();
        connection.writer.as_mut()?.patience = Some(RateWatch::begin(minimum, back_then, position));
        connection.protocol.framed()?.streams.get_mut(1)?.queue.as_mut()?.moved = back_then;
        Some(())
    });
    assert_eq!(aged, Some(Some(())));
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Yes);
    driven.turn(Signals::TIMER);
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Yes, "its time begins");
    finish(puppets);
}

#[test]
fn one_that_asks_for_a_low_bandwidth_holds_up_no_other() {
    let mut driven = open(|_| {});
    let mut puppets = [driven.puppet("/a"), driven.puppet("/b")];
    let asked = [get(1, "/a?Maitred-Bandwidth=100"), get(3, "/b")];
    for (job, puppet) in driven.asks(&asked).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
    }
    for puppet in &puppets {
        puppet.does(Do::Send(vec![b'x'; STREAM_WINDOW as usize - 1]));
    }
    let frames = driven.answers();
    // Two pieces of 1 KiB at once, and the next one after some seconds.
    assert_eq!([1, 3].map(|stream| body(&frames, stream).len()), [2048, STREAM_WINDOW as usize - 1]);
    let shown = driven.server.connection(Place { group: 0, token: driven.token.to_u64(), stream: 0 });
    let limits: Vec<_> =
        shown.expect("it is there").deliveries.into_iter().map(|(stream, of)| (stream, of.limit)).collect();
    assert_eq!(limits, [(1, Some(100))]);
    let resumes = driven.group.with_connection(driven.token, |connection| connection.resumes_at());
    let wait = resumes.expect("it is there").saturating_sub(clock::monotonic());
    assert!((1_000_000_000..=11_000_000_000).contains(&wait), "{wait}");
    for puppet in puppets {
        puppet.does(Do::Finish);
        puppet.joins();
    }
}
