//! What responses ask for themselves, where several of them share a connection.

use std::time::Duration;

use maitred_io::clock;
use maitred_limits::minimum::{Minimum, RateWatch};
use maitred_turns::Signals;

use super::client::{CANCEL, Client, Part, WINDOW, body, open, open_with};
use super::{Do, Done, Puppet};
use crate::Place;
use crate::connection::Protocol;
use crate::connection::carrier::Carrier;
use crate::connection::carrier::with_carrier;

#[test]
fn each_has_the_send_timeout_that_it_asks_for() {
    let mut client = open(|settings| settings.timeouts.send = Duration::from_secs(10));
    let puppets =
        client.begins([(1, "/a?Maitred-Send-Timeout=3"), (3, "/b?Maitred-Send-Timeout=60"), (5, "/c")]);
    assert!(client.gives(0, 1 << 20).is_empty());
    for puppet in &puppets {
        puppet.does(Do::Send(vec![b'x'; WINDOW + 1]));
    }
    assert!(!client.answers().iter().any(|part| matches!(part, Part::Reset(..))));
    client.driven.passes(Duration::from_secs(4));
    assert_eq!(client.answers(), [Part::Reset(1, CANCEL)], "a shorter one");
    client.driven.passes(Duration::from_secs(7));
    assert_eq!(client.answers(), [Part::Reset(5, CANCEL)], "that of all");
    assert_eq!(client.driven.server.figures().snapshot().open, 1);
    client.driven.passes(Duration::from_secs(40));
    assert_eq!(client.answers(), []);
    client.driven.passes(Duration::from_secs(10));
    assert_eq!(client.answers(), [Part::Reset(3, CANCEL)], "a longer one");
    for puppet in puppets {
        assert_eq!(puppet.does(Do::Send("x".into())), Done::Gone);
        puppet.finishes();
    }
}

/// Streams with these queries, whose peer gives all the credit that they want and takes nothing of the connection: 10 s is how long
/// it may do so. Of each stream more is sent than is made frames of, but of those that only begin.
fn blocked<const N: usize>(queries: [&str; N], begins_only: usize) -> (Client, [Puppet; N]) {
    let mut client = open_with(600, |settings| settings.timeouts.send = Duration::from_secs(10));
    let numbered = std::array::from_fn::<_, N, _>(|number| format!("/{number}?{}", queries[number]));
    let puppets = client.begins(std::array::from_fn(|number| (2 * number as u32 + 1, &*numbered[number])));
    assert!(client.gives(0, 1 << 24).is_empty());
    for number in 0..N as u32 {
        assert!(client.gives(2 * number + 1, 1 << 24).is_empty());
    }
    for puppet in &puppets[begins_only..] {
        puppet.does(Do::Send(vec![b'x'; 200_000]));
        // In the place of what the pipe has taken: now as many frames as may be are ahead.
        puppet.does(Do::Send("x".into()));
    }
    (client, puppets)
}

fn finish<const N: usize>(puppets: [Puppet; N]) {
    puppets.into_iter().for_each(Puppet::finishes);
}

fn is_open(client: &Client) -> bool {
    let driven = &client.driven;
    driven.group.with_connection(driven.token, |connection| !connection.wire.is_dead()) == Some(true)
}

#[test]
fn one_that_asks_for_a_short_time_ends_alone_where_the_peer_takes_nothing_of_the_connection() {
    let (mut client, puppets) = blocked(["Maitred-Send-Timeout=3", ""], 0);
    client.driven.passes(Duration::from_secs(4));
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Gone);
    assert_eq!(puppets[1].does(Do::Send("x".into())), Done::Yes);
    client.driven.passes(Duration::from_secs(7));
    assert!(!is_open(&client), "nothing was taken for as long as all have");
    finish(puppets);
}

#[test]
fn a_connection_lives_as_long_as_the_longest_time_that_one_of_its_responses_asks_for() {
    // The second one has something that waits for its frames, which are all of the first one.
    let (mut client, puppets) = blocked(["", "Maitred-Send-Timeout=30"], 0);
    client.driven.passes(Duration::from_secs(29));
    assert!(is_open(&client));
    client.driven.passes(Duration::from_secs(2));
    assert!(!is_open(&client));
    finish(puppets);
}

#[test]
fn the_time_that_was_asked_for_holds_until_the_last_frame_has_left() {
    for (seconds, dies) in [(3, 3), (30, 30)] {
        let query = format!("Maitred-Send-Timeout={seconds}");
        let (mut client, puppets) = blocked([&query], 1);
        puppets[0].does(Do::Send(vec![b'x'; 20_000]));
        // It is over, and its frames have not left.
        finish(puppets);
        client.driven.passes(Duration::from_secs(dies - 1));
        assert!(is_open(&client), "{seconds}");
        client.driven.passes(Duration::from_secs(2));
        assert!(!is_open(&client), "{seconds}");
    }
}

#[test]
fn a_time_that_was_asked_for_begins_when_there_is_something_to_take() {
    let (mut client, puppets) = blocked(["Maitred-Send-Timeout=3", ""], 1);
    // The peer has taken nothing for a while, and the first one had nothing to send.
    let back_then = clock::monotonic() - 8_000_000_000;
    let aged = client.driven.look(|connection| {
        let minimum = Minimum { rate: 0, grace: 0 };
        let position = connection.wire.writer.as_ref()?.sent();
        connection.wire.writer.as_mut()?.patience = Some(RateWatch::begin(minimum, back_then, position));
        let Protocol::Framed(framed) = &mut connection.protocol else { return None };
        framed.streams.get_mut(1)?.queue.as_mut()?.moved = back_then;
        Some(())
    });
    assert_eq!(aged, Some(()));
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Yes);
    client.driven.turn(Signals::TIMER);
    assert_eq!(puppets[0].does(Do::Send("x".into())), Done::Yes, "its time begins");
    finish(puppets);
}

#[test]
fn one_that_asks_for_a_low_bandwidth_holds_up_no_other() {
    let mut client = open(|_| {});
    let puppets = client.begins([(1, "/a?Maitred-Bandwidth=100"), (3, "/b")]);
    for puppet in &puppets {
        puppet.does(Do::Send(vec![b'x'; 4095]));
    }
    let parts = client.answers();
    // Two pieces of 1 KiB at once, and the next one after some seconds.
    assert_eq!([1, 3].map(|stream| body(&parts, stream).len()), [2048, 4095]);
    let driven = &client.driven;
    let shown = driven.server.connections().at(Place { group: 0, token: driven.token.to_u64(), stream: 0 });
    let limits: Vec<_> =
        shown.expect("it is there").deliveries.into_iter().map(|(stream, of)| (stream, of.limit)).collect();
    assert_eq!(limits, [(1, Some(100))]);
    let resumes = driven.look(|connection| {
        with_carrier!(connection, |carrier, wire| carrier.resumes_at().min(wire.resumes_at()))
    });
    let wait = resumes.saturating_sub(clock::monotonic());
    assert!((1_000_000_000..=11_000_000_000).contains(&wait), "{wait}");
    finish(puppets);
}
