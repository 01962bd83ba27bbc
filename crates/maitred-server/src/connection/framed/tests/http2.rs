//! What HTTP/2 has beside its exchanges: windows, urgency, resets, the ways in which a connection ends.

use std::io::{Read, Write};
use std::time::Duration;

use maitred_turns::Signals;

use super::client::{
    ACK, CANCEL, Client, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME, GOAWAY,
    Got, HEADERS, NO_ERROR, PING, PROTOCOL_ERROR, REFUSED_STREAM, RESET, SETTINGS, WINDOW, WINDOW_UPDATE,
    data_of, open,
};
use super::{Do, Done, open_speaking};
use crate::connection::Protocol;
use crate::settings::Settings;

#[test]
fn a_small_answer_is_two_frames_and_the_second_ends_it() {
    let mut client = open(|_| {});
    let jobs = client.get(1, "/x", &[]);
    client.driven.run_here(jobs);
    let frames = client.frames();
    let [head, data] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(head.status(), "200");
    assert_eq!(
        (head.flags, data.kind, data.flags, &data.payload[..]),
        (END_HEADERS, DATA, END_STREAM, &b"/x 0"[..])
    );
}

#[test]
fn a_ping_is_answered_although_no_handler_runs() {
    let mut client = open(|_| {});
    let jobs = client.get(1, "/x", &[]);
    assert!(client.asks(PING, 0, 0, b"12345678").is_empty());
    let expected =
        Got { kind: PING, flags: ACK, stream: 0, payload: b"12345678".to_vec(), head: String::new() };
    assert_eq!(client.frames(), [expected]);
    client.driven.run_here(jobs);
}

#[test]
fn a_peer_that_makes_its_windows_smaller_waits_until_they_are_open_again() {
    let mut client = open(|_| {});
    let [puppet] = client.begins([(1, "/a")]);
    assert!(client.gives(0, 1 << 20).is_empty());
    assert_eq!(puppet.does(Do::Send(vec![b'a'; WINDOW + 3000])), Done::Yes);
    let frames = client.frames();
    assert_eq!(data_of(&frames, 1), WINDOW);
    // SETTINGS_INITIAL_WINDOW_SIZE: the window is now 1000 bytes below nothing.
    let smaller = (WINDOW as u32 - 1000).to_be_bytes();
    assert!(client.asks(SETTINGS, 0, 0, &[&[0, 4], &smaller[..]].concat()).is_empty());
    assert!(client.gives(1, 1000).is_empty());
    assert_eq!(data_of(&client.frames(), 1), 0, "that was owed");
    assert!(client.gives(1, 10).is_empty());
    assert_eq!(data_of(&client.frames(), 1), 10);
    assert!(client.gives(1, 10_000).is_empty());
    assert_eq!(data_of(&client.frames(), 1), 2990);
    puppet.finishes();
}

#[test]
fn more_credit_than_a_window_may_have_ends_the_stream_or_the_connection() {
    let mut client = open(|_| {});
    let [puppet] = client.begins([(1, "/a")]);
    client.frames();
    assert!(client.gives(1, (1 << 31) - 1).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].stream, frames[0].number(0)), (RESET, 1, FLOW_CONTROL_ERROR));
    assert_eq!(puppet.does(Do::Send("x".into())), Done::Gone);
    assert!(client.gives(0, (1 << 31) - 1).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(0), frames[0].number(4)), (GOAWAY, 1, FLOW_CONTROL_ERROR));
    assert!(client.is_at_end());
    puppet.finishes();
}

#[test]
fn a_peer_that_says_the_default_by_name_wants_whole_responses_one_after_the_other() {
    for (said, in_order) in [(&[("priority", "u=3")][..], true), (&[], false)] {
        let mut client = open(|_| {});
        assert!(client.gives(0, 1 << 24).is_empty());
        let bigger = (1_u32 << 24).to_be_bytes();
        assert!(client.asks(SETTINGS, 0, 0, &[&[0, 4], &bigger[..]].concat()).is_empty());
        let puppets = client.begins_with([(1, "/first"), (3, "/second")], said);
        client.frames();
        for puppet in &puppets {
            puppet.does(Do::Send(vec![b'x'; 2 << 20]));
        }
        let mut frames = client.frames();
        while data_of(&frames, 1) < 3 << 19 {
            client.driven.turn(Signals::WRITE);
            frames.extend(client.frames());
        }
        let second = data_of(&frames, 3);
        assert_eq!(second < 1 << 19, in_order, "{said:?}: {second}");
        for puppet in puppets {
            puppet.does(Do::Cut);
            puppet.joins();
        }
    }
}

#[test]
fn an_urgent_response_leaves_first_and_the_others_are_not_forgotten() {
    let mut client = open(|_| {});
    assert!(client.gives(0, 1 << 24).is_empty());
    let bigger = (1_u32 << 24).to_be_bytes();
    assert!(client.asks(SETTINGS, 0, 0, &[&[0, 4], &bigger[..]].concat()).is_empty());
    let [slow] = client.begins_with([(1, "/slow")], &[("priority", "u=6")]);
    let [urgent] = client.begins_with([(3, "/urgent")], &[("priority", "u=0")]);
    client.frames();
    // More than the pipe takes: what waits has its order.
    slow.does(Do::Send(vec![b's'; 2 << 20]));
    urgent.does(Do::Send(vec![b'u'; 2 << 20]));
    let before = client.frames();
    let mut frames = Vec::new();
    while data_of(&frames, 3) < 1 << 20 {
        client.driven.turn(Signals::WRITE);
        frames.extend(client.frames());
    }
    assert!(data_of(&before, 1) >= 1 << 19, "it was alone at first: {}", data_of(&before, 1));
    let (urgent_bytes, slow_bytes) = (data_of(&frames, 3), data_of(&frames, 1));
    assert!(urgent_bytes > 8 * slow_bytes, "{urgent_bytes} {slow_bytes}");
    assert!(slow_bytes > 0, "one frame of sixteen");
    for puppet in [&slow, &urgent] {
        puppet.does(Do::Cut);
    }
    slow.joins();
    urgent.joins();
}

#[test]
fn a_body_that_is_not_wanted_is_told_so_when_the_window_is_used_up() {
    let mut client = open(|settings| settings.max_body = 10);
    assert!(client.post(1, "/x", &[("content-length", "300000")]).is_empty());
    let frames = client.frames();
    assert_eq!(frames[0].status(), "413");
    let [.., data] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((data.kind, data.flags, data.stream), (DATA, END_STREAM, 1));
    // 256 KiB are the window of a stream; what is left of the 15th frame on is the last one.
    let part = [0; FRAME];
    for _ in 0..14 {
        assert!(client.sends(1, &part).is_empty());
    }
    assert!(client.frames().iter().all(|frame| frame.kind != RESET));
    assert!(client.sends(1, &part).is_empty());
    let frames = client.frames();
    let resets: Vec<_> = frames.iter().filter(|frame| frame.kind == RESET).collect();
    let [reset] = &resets[..] else { panic!("{frames:?}") };
    assert_eq!((reset.stream, reset.number(0)), (1, NO_ERROR));
    // What was on its way does no harm.
    assert!(client.ends(1, b"hello, world").is_empty());
    let jobs = client.get(3, "/y", &[]);
    client.driven.run_here(jobs);
    let head = client.frames().into_iter().find(|frame| frame.kind == HEADERS).expect("a head");
    assert_eq!(head.status(), "200");
}

#[test]
fn a_window_that_its_peer_fills_becomes_wider_while_there_is_memory() {
    const MIB: u64 = 1024 * 1024;
    for (budget, widens) in [(MIB, true), (MIB / 4, false), (0, false)] {
        let mut client = open(|settings| (settings.body_memory, settings.body_budget) = (MIB, budget));
        assert!(client.post(1, "/up", &[]).is_empty());
        for _ in 0..32 {
            assert!(client.sends(1, &[b'x'; FRAME]).is_empty());
        }
        let frames = client.frames();
        let pings: Vec<_> = frames.iter().filter(|frame| frame.kind == PING).collect();
        let [ping] = &pings[..] else { panic!("{pings:?}") };
        assert!(client.asks(PING, ACK, 0, &ping.payload).is_empty());
        let frames = client.frames();
        let wider: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream, frame.number(0))).collect();
        let held = |client: &Client| client.driven.group.site.body_budget.figures().held;
        let expected = (WINDOW_UPDATE, 1, 256 * 1024);
        assert_eq!((wider, held(&client)), if widens { (vec![expected], MIB / 4) } else { (vec![], 0) });
        let jobs = client.ends(1, b"");
        client.driven.run_here(jobs);
        assert_eq!(held(&client), 0, "the stream is over");
    }
}

#[test]
fn a_body_that_is_not_wanted_and_ends_is_not_reset() {
    let mut client = open(|settings| settings.max_body = 10);
    assert!(client.post(1, "/x", &[("content-length", "12")]).is_empty());
    assert!(client.ends(1, b"hello, world").is_empty());
    // Of those that do not end, eight wait: the ninth has the oldest one reset.
    for number in 0..9 {
        assert!(client.post(3 + 2 * number, "/x", &[("content-length", "12")]).is_empty());
    }
    let frames = client.frames();
    let resets: Vec<_> =
        frames.iter().filter(|frame| frame.kind == RESET).map(|frame| frame.stream).collect();
    assert_eq!(resets, [3]);
}

#[test]
fn a_client_that_waits_with_its_body_is_asked_for_it() {
    let mut client = open(|_| {});
    assert!(client.post(1, "/x", &[("expect", "100-continue")]).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].status(), frames[0].flags), ("100", END_HEADERS));
    let jobs = client.ends(1, b"hello");
    client.driven.run_here(jobs);
    let frames = client.frames();
    assert_eq!(frames.iter().find(|frame| frame.kind == DATA).expect("a body").payload, b"/x 5");
}

#[test]
fn a_drain_says_so_first_and_ends_when_all_are_answered() {
    let mut client = open(|_| {});
    let jobs = client.get(1, "/x", &[]);
    client.driven.group.groups.begin_drain();
    assert!(client.driven.turn(Signals::DRAIN).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(0), frames[0].number(4)), (GOAWAY, (1 << 31) - 1, NO_ERROR));
    assert_eq!((frames[1].kind, frames[1].flags), (PING, 0));
    // A request that was on its way is answered.
    let others = client.get(3, "/y", &[]);
    assert_eq!(others.len(), 1);
    let payload = frames[1].payload.clone();
    assert!(client.asks(PING, ACK, 0, &payload).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(0), frames[0].number(4)), (GOAWAY, 3, NO_ERROR));
    client.driven.run_here(jobs);
    client.driven.run_here(others);
    assert_eq!(client.frames().len(), 4);
    assert!(!client.is_at_end());
    client.driven.passes(Duration::from_secs(1));
    assert!(client.is_at_end());
}

#[test]
fn a_new_connection_is_told_of_a_drain_with_its_first_request() {
    let mut client = open(|_| {});
    client.driven.group.groups.begin_drain();
    assert!(client.driven.turn(Signals::DRAIN).is_empty());
    assert_eq!(client.frames(), [], "its request may be on its way");
    let jobs = client.get(1, "/x", &[]);
    assert_eq!((jobs.len(), client.frames()[0].kind), (1, GOAWAY));
    client.driven.run_here(jobs);
}

#[test]
fn a_peer_that_leaves_is_answered_until_it_has_left() {
    let mut client = open(|settings| settings.timeouts.keep_alive = Duration::from_secs(600));
    let goaway = [[0; 4], 0x77_u32.to_be_bytes()].concat();
    assert!(client.asks(GOAWAY, 0, 0, &goaway).is_empty());
    assert!(client.asks(PING, 0, 0, b"12345678").is_empty());
    assert_eq!(client.frames()[0].kind, PING);
    client.driven.passes(Duration::from_secs(3));
    assert!(client.is_at_end());
}

#[test]
fn who_breaks_the_rules_is_told_how_and_every_handler_is() {
    let mut client = open(|_| {});
    let [puppet] = client.begins([(1, "/a")]);
    client.frames();
    assert!(client.sends(0, b"x").is_empty(), "no stream has number 0");
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(4)), (GOAWAY, PROTOCOL_ERROR));
    let totals = client.driven.group.site.http2_counters.totals();
    let counted = totals.iter().find(|(series, _)| series.contains("protocol-error"));
    assert_eq!(counted.map(|(_, count)| *count), Some(1));
    assert!(client.is_at_end(), "our side");
    assert_eq!(puppet.does(Do::Send("x".into())), Done::Gone);
    puppet.finishes();
    // What the peer has sent still is read, so that it can read the reason.
    client.write(b"more");
    client.driven.turn(Signals::READ);
    for _ in 0..2 {
        client.driven.passes(Duration::from_secs(3));
    }
    assert_eq!(client.driven.group.groups.open(), 0);
}

#[test]
fn who_floods_is_told_so_and_nothing_more_of_it_is_read() {
    let mut client = open(|_| {});
    let [puppet] = client.begins([(1, "/a")]);
    client.frames();
    let mut last = None;
    for _ in 0..100_000 {
        client.asks(PING, 0, 0, b"opaque!!");
        last = client.frames().pop();
        if last.as_ref().is_none_or(|frame| frame.kind == GOAWAY) {
            break;
        }
    }
    let last = last.expect("it is told");
    assert_eq!((last.kind, last.number(4)), (GOAWAY, ENHANCE_YOUR_CALM));
    assert!(client.driven.client.write_all(b"more").is_err(), "it would not be read");
    assert_eq!(puppet.does(Do::Send("x".into())), Done::Gone);
    puppet.finishes();
    client.driven.turn(Signals::RESUME);
    assert_eq!(client.driven.server.figures().snapshot().open, 0, "without any time");
}

#[test]
fn of_a_peer_that_resets_many_streams_the_rest_is_read_later() {
    let mut client = open(|_| {});
    for stream in (1..=2 * 64).step_by(2) {
        let block = client.block("GET", "/a", &[]);
        client.send(HEADERS, END_HEADERS | END_STREAM, stream, &block);
        client.send(RESET, 0, stream, &CANCEL.to_be_bytes());
    }
    client.driven.ahead = 2_000_000_000;
    let mut jobs = client.asks(PING, 0, 0, b"opaque!!");
    assert_eq!(jobs.len(), 32);
    // However late this is, the pause is not over.
    client.driven.ahead = 1_000_000_000;
    assert!(client.driven.turn(Signals::READ).is_empty());
    client.driven.ahead = 2_005_000_000;
    jobs.extend(client.driven.turn(Signals::TIMER));
    assert_eq!(jobs.len(), 64);
    assert!(client.frames().is_empty());
    client.driven.ahead += 5_000_000;
    assert!(client.driven.turn(Signals::TIMER).is_empty());
    let kinds: Vec<_> = client.frames().iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(kinds, [(PING, ACK)]);
    client.driven.run_here(jobs);
}

#[test]
fn more_requests_than_there_may_be_are_refused_and_those_that_were_reset_count() {
    let mut client = open(|settings| {
        settings.http2 = Some(maitred_exchange::site::Http2Settings { streams: 2, ..Default::default() });
    });
    let first = client.get(1, "/a", &[]);
    let second = client.get(3, "/b", &[]);
    assert_eq!(first.len() + second.len(), 2);
    // A peer that resets what it has asked for does not get another one in its place: the handler has it still.
    assert!(client.resets(1).is_empty());
    assert!(client.get(5, "/c", &[]).is_empty());
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].stream, frames[0].number(0)), (RESET, 5, REFUSED_STREAM));
    client.driven.run_here(first);
    let third = client.get(7, "/d", &[]);
    assert_eq!(third.len(), 1, "the first one is over");
    client.driven.run_here(second);
    client.driven.run_here(third);
}

#[test]
fn a_client_of_http_1_goes_over_where_that_is_allowed() {
    let ask = b"GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n";
    for allowed in [true, false] {
        let change = |settings: &mut Settings| {
            settings.http2 =
                Some(maitred_exchange::site::Http2Settings { upgrade: allowed, ..Default::default() });
        };
        let mut client = Client::of(open_speaking(1 << 20, change, |_| Protocol::h1()));
        client.write(ask);
        let jobs = client.driven.turn(Signals::READ);
        assert_eq!(jobs.len(), 1);
        client.driven.run_here(jobs);
        let mut answer = vec![0; 4096];
        let count = client.driven.client.read(&mut answer).expect("an answer");
        let text = String::from_utf8_lossy(&answer[..count]).into_owned();
        if !allowed {
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
            continue;
        }
        let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
        assert!(text.starts_with(switching), "{text}");
        client.received = answer[switching.len()..count].to_vec();
        let frames = client.frames();
        let head = frames.iter().find(|frame| frame.kind == HEADERS).expect("the answer to the request");
        assert_eq!((head.status(), head.stream), ("200", 1));
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.asks(SETTINGS, 0, 0, &[]);
        let jobs = client.get(3, "/y", &[]);
        client.driven.run_here(jobs);
        let frames = client.frames();
        let head = frames.iter().find(|frame| frame.kind == HEADERS).expect("the answer in frames");
        assert_eq!((head.status(), head.stream), ("200", 3));
    }
}
