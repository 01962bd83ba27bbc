//! Time that an exchange, its peer or the connection has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use maitred_http::{ResponseHead, Status};
use maitred_io::clock;
use maitred_runtime::Handler;
use maitred_turns::Signals;

use super::client::{
    CANCEL, Client, END_HEADERS, END_STREAM, GOAWAY, HEADERS, NO_ERROR, Part, RESET, WINDOW, data, head, ok,
    open,
};
use super::{Do, Done, Puppet, open_for};
use crate::connection::framed::Framed;
use crate::connection::websocket::tests::Keeper;
use crate::connection::{Key, Protocol};
use crate::settings::Settings;

#[test]
fn each_has_a_deadline_of_its_own_for_its_response() {
    let limit = Duration::from_secs(3);
    let mut client = open(|settings| settings.pool.limits.request_timeout = Some(limit));
    let (mut first, mut second) = (client.driven.puppet("/a"), client.driven.puppet("/b"));
    let mut jobs = client.get(1, "/a", &[]);
    client.driven.passes(Duration::from_secs(2));
    jobs.extend(client.get(3, "/b", &[]));
    let mut jobs = jobs.into_iter();
    client.driven.runs(jobs.next().expect("one"), &mut first);
    client.driven.runs(jobs.next().expect("two"), &mut second);
    client.driven.passes(Duration::from_millis(1500));
    let parts = client.answers();
    assert_eq!(parts.first(), Some(&head(1, "504")));
    assert!(parts.contains(&Part::End(1)), "{parts:?}");
    assert_eq!(first.does(Do::Send("late".into())), Done::Gone);
    second.does(Do::Send("in time".into()));
    second.finishes();
    assert_eq!(client.answers(), [ok(3), data(3, "in time"), Part::End(3)]);
    first.finishes();
    let snapshot = client.driven.server.figures().snapshot();
    assert_eq!((snapshot.requests, snapshot.timeouts, snapshot.errors), (2, 1, 1));
}

#[test]
fn an_interim_response_does_not_end_the_time_of_its_request() {
    let keeper = Arc::new(Keeper::default());
    let limit = |settings: &mut Settings| settings.pool.limits.request_timeout = Some(Duration::from_secs(3));
    let framed = |site: &_| Protocol::Framed(Framed::new(site));
    let handler = Arc::clone(&keeper) as Arc<dyn Handler>;
    let mut client = Client::of(open_for(handler, 1 << 20, limit, framed));
    client.begin(&[]);
    let jobs = client.get(1, "/a", &[]);
    client.driven.run_here(jobs);
    let mut exchange = keeper.exchange();
    exchange.send_interim(&ResponseHead::new(Status::EARLY_HINTS)).expect("it leaves");
    client.driven.passes(Duration::from_secs(4));
    let heads: Vec<Part> =
        client.answers().into_iter().filter(|part| matches!(part, Part::Head(..))).collect();
    assert_eq!(heads, [head(1, "103"), head(1, "504")]);
}

#[test]
fn each_has_a_deadline_of_its_own_for_its_body() {
    let mut client = open(|settings| settings.timeouts.body = Duration::from_secs(10));
    let begins = |client: &mut Client, stream, path| {
        let block = client.block("POST", path, &[]);
        client.send(HEADERS, END_HEADERS, stream, &block);
        assert!(client.sends(stream, b"x").is_empty());
    };
    begins(&mut client, 1, "/a");
    client.driven.passes(Duration::from_secs(6));
    begins(&mut client, 3, "/b");
    client.driven.passes(Duration::from_secs(5));
    let parts = client.answers();
    assert_eq!((parts.first(), parts.last()), (Some(&head(1, "408")), Some(&Part::End(1))));
    let jobs = client.ends(3, b"");
    client.driven.run_here(jobs);
    assert_eq!(client.answers(), [ok(3), data(3, "/b 1"), Part::End(3)]);
    let snapshot = client.driven.server.figures().snapshot();
    assert_eq!((snapshot.requests, snapshot.refused), (1, 1), "each is written down for itself");
}

#[test]
fn a_head_request_that_is_answered_in_its_handlers_place_gets_no_body() {
    let mut client = open(|settings| settings.pool.limits.request_timeout = Some(Duration::from_secs(3)));
    let block = client.block("HEAD", "/a", &[]);
    let jobs = client.asks(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    assert_eq!(jobs.len(), 1);
    client.driven.passes(Duration::from_secs(4));
    assert_eq!(client.answers(), [head(1, "504"), Part::End(1)]);
    client.driven.run_here(jobs);
    assert_eq!(client.driven.puppets.begun.load(Ordering::SeqCst), 0);
}

/// Two requests whose handlers run. The first one has sent as much as the connection's window takes.
fn without_credit(client: &mut Client) -> [Puppet; 2] {
    let puppets = client.begins([(1, "/a"), (3, "/b")]);
    puppets[0].does(Do::Send(vec![b'x'; WINDOW]));
    client.answers();
    puppets
}

#[test]
fn a_stream_that_is_reset_after_it_was_answered_sends_nothing_more() {
    let mut client = open(|settings| settings.pool.limits.request_timeout = Some(Duration::from_secs(3)));
    let puppets = without_credit(&mut client);
    client.driven.passes(Duration::from_secs(4));
    assert_eq!(client.answers(), [head(3, "504")], "its text waits for credit");
    assert!(client.resets(3).is_empty() && client.gives(0, 1000).is_empty());
    assert_eq!(client.answers(), []);
    puppets.into_iter().for_each(Puppet::finishes);
    client.driven.turn(Signals::WRITE);
    assert!(client.driven.look(|connection| connection.is_between_requests()));
}

#[test]
fn without_credit_for_the_connection_its_streams_are_reset_in_time() {
    let mut client = open(|settings| settings.timeouts.send = Duration::from_secs(10));
    let puppets = without_credit(&mut client);
    puppets[1].does(Do::Send("x".into()));
    assert_eq!(client.answers(), [ok(3)], "it has a window, and the connection has none");
    client.driven.passes(Duration::from_secs(11));
    assert_eq!(client.answers(), [Part::Reset(3, CANCEL)]);
    assert_eq!(puppets[1].does(Do::Send("x".into())), Done::Gone);
    puppets.into_iter().for_each(Puppet::finishes);
}

#[test]
fn a_stream_whose_peer_gives_no_credit_is_given_up_and_the_others_go_on() {
    let mut client = open(|_| {});
    let [idle, other] = client.begins([(1, "/a"), (3, "/b")]);
    assert!(client.gives(0, 1 << 20).is_empty());
    idle.does(Do::Send(vec![b'x'; 2 * WINDOW]));
    client.answers();
    let key = Key { token: client.driven.token, stream: 1 };
    let now = clock::monotonic() + 3_000_000_000;
    let since = client.driven.look(|connection| connection.peer_idle_since(key, now));
    assert!(since.is_some_and(|since| now - since >= 3_000_000_000), "{since:?}");
    let answers = client.driven.look(|connection| connection.peer_idle_since(Key { stream: 3, ..key }, now));
    assert_eq!(answers, None, "nothing of it waits");
    let group = Arc::clone(&client.driven.group);
    client.driven.look(|connection| connection.give_up_peer(&group, key));
    client.driven.goes_on();
    assert_eq!(idle.does(Do::Send("x".into())), Done::Gone);
    other.does(Do::Send("x".into()));
    assert_eq!(client.answers(), [Part::Reset(1, CANCEL), ok(3), Part::Data(3, b"x".to_vec())]);
    [idle, other].into_iter().for_each(Puppet::finishes);
}

#[test]
fn an_idle_connection_is_told_that_it_ends() {
    let mut client = open(|settings| settings.timeouts.keep_alive = Duration::from_secs(5));
    let jobs = client.get(1, "/x", &[]);
    client.driven.run_here(jobs);
    client.driven.passes(Duration::from_secs(4));
    assert!(!client.is_at_end());
    client.driven.passes(Duration::from_secs(2));
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(4)), (GOAWAY, NO_ERROR));
    assert!(client.is_at_end());
}

#[test]
fn a_window_that_stays_closed_costs_its_stream_and_the_peer_is_told() {
    let mut client = open(|settings| settings.timeouts.send = Duration::from_secs(5));
    let [puppet] = client.begins([(1, "/a")]);
    puppet.does(Do::Send(vec![b'a'; WINDOW + 1]));
    // Its handler is done before it is: then nothing else is under way.
    puppet.finishes();
    client.driven.passes(Duration::from_secs(4));
    assert!(client.frames().iter().all(|frame| frame.kind != RESET));
    client.driven.passes(Duration::from_secs(2));
    assert_eq!(client.answers(), [Part::Reset(1, CANCEL)]);
    assert!(!client.is_at_end());
}

#[test]
fn a_window_that_opens_too_slowly_costs_its_stream() {
    let mut client = open(|settings| {
        settings.limits.rates.outward = 1000;
        settings.timeouts.send = Duration::from_secs(30);
    });
    let [slow, fast] = client.begins([(1, "/slow"), (3, "/fast")]);
    for puppet in [&slow, &fast] {
        // The connection's window is open, and those of both are not.
        assert!(client.gives(0, 1 << 20).is_empty());
        puppet.does(Do::Send(vec![b'a'; 4 * WINDOW]));
    }
    let mut ended = 0;
    for _ in 0..60 {
        client.driven.passes(Duration::from_secs(1));
        client.gives(1, 1);
        client.gives(3, 2000);
        let resets: Vec<u32> =
            client.frames().iter().filter(|frame| frame.kind == RESET).map(|frame| frame.stream).collect();
        assert!(!resets.contains(&3), "it takes what it has to");
        ended += resets.len();
    }
    assert_eq!(ended, 1, "though there was never a long pause");
    assert_eq!(slow.does(Do::Send("x".into())), Done::Gone);
    assert_eq!(fast.does(Do::Send("x".into())), Done::Yes);
    for puppet in [slow, fast] {
        puppet.does(Do::Cut);
        puppet.joins();
    }
}

#[test]
fn a_head_that_stops_before_its_end_has_the_time_of_a_head() {
    let change = |settings: &mut Settings| {
        settings.timeouts.head = Duration::from_secs(5);
        settings.timeouts.keep_alive = Duration::from_secs(600);
    };
    for whole in [false, true] {
        let mut client = open(change);
        let block = client.block("GET", "/x", &[]);
        if whole {
            assert!(client.asks(HEADERS, END_STREAM, 1, &block).is_empty(), "CONTINUATION is awaited");
        } else {
            client.write(&[0, 0, 9, HEADERS]);
            assert!(client.driven.turn(Signals::READ).is_empty());
        }
        client.driven.passes(Duration::from_secs(4));
        assert!(!client.is_at_end());
        client.driven.passes(Duration::from_secs(2));
        assert!(client.is_at_end(), "{whole}");
    }
}

#[test]
fn a_reset_stream_whose_handler_goes_on_does_not_ring_when_its_time_is_over() {
    let limit = Some(Duration::from_secs(5));
    let mut client = open(|settings| settings.pool.limits.request_timeout = limit);
    // Its handler does not begin a response before the reset.
    let jobs = client.get(1, "/a", &[]);
    assert_eq!(jobs.len(), 1);
    assert!(client.resets(1).is_empty());
    client.driven.passes(Duration::from_secs(6));
    let now = clock::monotonic() + 6_000_000_000;
    assert!(client.driven.look(|connection| connection.wire.armed) > now, "no turn comes at once");
    drop(jobs);
}
