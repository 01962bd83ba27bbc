//! Each budget is tested from both sides: traffic within it is served, and traffic beyond it ends the connection.

use super::*;
use crate::budgets::{Budgets, Rate};
use maitred_http::{ResponseHead, Status};

/// A server with one budget that is small, and all others as usual.
fn with(change: impl FnOnce(&mut Budgets)) -> Server {
    let mut settings = Settings::default();
    change(&mut settings.budgets);
    Server::with(settings)
}

const SMALL: Rate = Rate { burst: 3, per_second: 1 };

/// Sends `frames` again and again with the number of the next stream; how often that went well.
fn endured(server: &mut Server, frames: impl Fn(u32) -> Vec<u8>) -> usize {
    for times in 0..100_000 {
        let seen = server.feed(&frames(2 * times + 1), usize::MAX);
        if let Some(error) = seen.iter().find(|line| line.starts_with('!')) {
            assert_eq!(error, "! EnhanceYourCalm");
            return times as usize;
        }
    }
    usize::MAX
}

/// The budget takes three at once, and one more after a second.
fn takes_three(mut server: Server, frames: impl Fn(u32) -> Vec<u8>) {
    assert_eq!(endured(&mut server.clone(), &frames), 3);
    // Of each kind one, a second apart, is no fault ever.
    for times in 0..10 {
        server.now += SECOND;
        let seen = server.feed(&frames(2 * times + 1), usize::MAX);
        assert!(!seen.iter().any(|line| line.starts_with('!')), "{seen:?}");
    }
}

#[test]
fn resets_of_the_peer() {
    let request = |stream| [post(stream), reset(stream)].concat();
    takes_three(with(|budgets| budgets.resets = SMALL), request);
    assert_eq!(endured(&mut Server::new(), request), 500);
}

#[test]
fn resets_that_the_peer_causes() {
    let errors = || with(|budgets| budgets.errors = SMALL);
    for (name, fault) in [
        ("credit of nothing", (|stream| [post(stream), credit(stream, 0)].concat()) as fn(u32) -> Vec<u8>),
        ("data behind the end", |stream| [get(stream), data(stream, b"x")].concat()),
        ("a head behind the end", |stream| [get(stream), get(stream)].concat()),
        ("a stream that depends on itself", |stream| [get(stream), depends(stream, stream)].concat()),
        ("a malformed head", |stream| headers(stream, END_STREAM, &[("X", "y")])),
        ("too much data", |stream| [post_of(stream, "0"), data(stream, b"x")].concat()),
        ("data behind a reset", |stream| [post(stream), reset(stream), data(stream, b"x")].concat()),
    ] {
        assert_eq!(endured(&mut Server::new(), fault), 200, "{name}");
        takes_three(errors(), fault);
    }
}

#[test]
fn resets_that_the_caller_finds() {
    let mut server = with(|budgets| budgets.errors = SMALL);
    for stream in [1, 3, 5, 7] {
        assert_eq!(server.gets(&[&post(stream)]).len(), 1);
        let sent =
            server.sends(|connection, out| connection.put_reset(stream, ErrorCode::FlowControlError, out));
        assert_eq!(sent.len(), 1);
    }
    assert_eq!(server.gets(&[&get(9)]), ["! EnhanceYourCalm"]);
    // Those that are no fault of the peer do not count.
    let mut server = with(|budgets| (budgets.errors, budgets.refused) = (SMALL, SMALL));
    for stream in (1..99).step_by(2) {
        assert_eq!(server.gets(&[&post(stream)]).len(), 1);
        let code = if stream % 4 == 1 { ErrorCode::NoError } else { ErrorCode::Cancel };
        server.sends(|connection, out| connection.put_reset(stream, code, out));
    }
    for stream in [101, 103, 105, 107] {
        assert_eq!(server.gets(&[&post(stream)]).len(), 1);
        server.sends(|connection, out| connection.put_reset(stream, ErrorCode::RefusedStream, out));
    }
    assert_eq!(server.gets(&[b""]), ["! EnhanceYourCalm"]);
}

#[test]
fn refused_streams() {
    let settings = |refused| Settings {
        max_streams: 1,
        budgets: Budgets { refused, ..Budgets::default() },
        ..Settings::default()
    };
    let full = |refused| {
        let mut server = Server::with(settings(refused));
        server.gets(&[&get(1)]);
        server
    };
    takes_three(full(SMALL), |stream| get(stream + 2));
    assert_eq!(endured(&mut full(Budgets::default().refused), |stream| get(stream + 2)), 256);
    // The same of streams that come too late.
    let mut server = with(|budgets| budgets.refused = SMALL);
    server.sends(Connection::put_drain);
    server.sends(Connection::put_drain);
    takes_three(server, get);
}

#[test]
fn data_for_streams_that_were_reset() {
    let late = |late| {
        let mut server = with(|budgets| budgets.late = late);
        server.gets(&[&post(1)]);
        server.sends(|connection, out| connection.put_reset(1, ErrorCode::Cancel, out));
        server
    };
    takes_three(late(SMALL), |_| data(1, b"x"));
    takes_three(late(SMALL), |_| headers(1, END_STREAM, &[]));
    takes_three(late(SMALL), |_| reset(1));
    assert_eq!(endured(&mut late(Budgets::default().late), |_| data(1, b"x")), 4096);
}

#[test]
fn resets_of_streams_that_have_ended() {
    // Ours was under way: once for each stream that is free.
    let mut server = with(|budgets| budgets.late = SMALL);
    let answer = |server: &mut Server, stream| {
        server.gets(&[&get(stream)]);
        let head = ResponseHead::new(Status::OK);
        server.sends(|connection, out| connection.put_head(stream, &head, true, out));
    };
    for stream in (1..21).step_by(2) {
        answer(&mut server, stream);
        assert_eq!(server.gets(&[&reset(stream)]), [""; 0]);
    }
    takes_three(server, |_| reset(19));
}

#[test]
fn frames_of_a_block() {
    let long = block(&GET);
    let cut = |pieces: usize| {
        let mut frames = frame(HEADERS, END_STREAM, 1, &long[..1]);
        for piece in 1..pieces {
            frames.extend(frame(CONTINUATION, 0, 1, &long[piece..=piece]));
        }
        frames.extend(frame(CONTINUATION, END_HEADERS, 1, &long[pieces..]));
        frames
    };
    assert_eq!(Server::new().gets(&[&cut(16)]), ["head 1 GET / ends"]);
    assert_eq!(Server::new().gets(&[&cut(17)]), ["! EnhanceYourCalm"]);
    // Those that are empty.
    let empty = |stream| {
        let mut frames = frame(HEADERS, END_STREAM, stream, b"");
        frames.extend(frame(CONTINUATION, END_HEADERS, stream, &block(&GET)));
        frames
    };
    takes_three(with(|budgets| budgets.empty = SMALL), empty);
}

#[test]
fn blocks_that_are_far_too_large() {
    // 80 KiB are gathered, so that a block that is a little too large is answered.
    let frames = |last: usize| {
        let mut frames =
            frame(HEADERS, END_STREAM, 1, &[&block(&GET)[..], &[0x82; 16_384]].concat()[..16_384]);
        for _ in 0..4 {
            frames.extend(frame(CONTINUATION, 0, 1, &[0x82; 16_384]));
        }
        frames.extend(frame(CONTINUATION, END_HEADERS, 1, &vec![0x82; last]));
        frames
    };
    assert_eq!(Server::new().gets(&[&frames(1)]), ["! EnhanceYourCalm"]);
    // 80 KiB of small fields are a list of 3 MiB.
    assert_eq!(Server::new().gets(&[&frames(0)]), ["! EnhanceYourCalm"]);
}

#[test]
fn lists_that_are_far_too_large() {
    // accept-encoding: gzip, deflate. Of 60 bytes it is one of a block.
    let gets = |times: usize| {
        let block = [&block(&GET)[..], &vec![0x90; times]].concat();
        Server::new().gets(&[&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)])
    };
    let list = 4 * 65_536 / 60;
    assert_eq!(gets(100), ["head 1 GET / ends"]);
    assert_eq!(gets(list - 10), ["head 1 GET / ends 431"]);
    assert_eq!(gets(list + 1), ["! EnhanceYourCalm"]);
}

#[test]
fn entries_of_the_table_that_a_block_repeats() {
    // A field of 4000 bytes that the table has is a byte of a block.
    let adds = [&block(&GET)[..], b"\x40\x01x", &[127, 0xa1, 0x1e], &[b'x'; 4000]].concat();
    let block = |flags, stream, times: usize| {
        frame(HEADERS, END_HEADERS | flags, stream, &[&block(&GET)[..], &vec![0xbe; times]].concat())
    };
    let first = frame(HEADERS, END_HEADERS | END_STREAM, 1, &adds);
    let gets = |more: &[u8]| Server::new().gets(&[&[&first[..], more].concat()]).split_off(1);
    // Every request of a client may name its cookie.
    let many: Vec<u8> = (1..100).flat_map(|number| block(END_STREAM, 2 * number + 1, 4)).collect();
    assert_eq!(gets(&many).len(), 99);
    assert_eq!(gets(&block(END_STREAM, 3, 5)), ["! EnhanceYourCalm"]);
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0xbe; 5]);
    assert_eq!(gets(&[&post(3)[..], &trailers].concat()), ["head 3 POST /", "! EnhanceYourCalm"]);
}

#[test]
fn empty_frames_of_data() {
    let upload = |mut server: Server| {
        server.gets(&[&post(1)]);
        server
    };
    takes_three(upload(with(|budgets| budgets.empty = SMALL)), |_| data(1, b""));
    assert_eq!(endured(&mut upload(Server::new()), |_| data(1, b"")), 100);
    assert_eq!(endured(&mut upload(Server::new()), |_| padded(1, 0, b"", 9)), 100);
}

#[test]
fn small_frames_of_data() {
    let upload = |mut server: Server| {
        server.gets(&[&post(1)]);
        server
    };
    assert_eq!(endured(&mut upload(Server::new()), |_| data(1, b"x")), 256 * 1024 / 31);
    assert_eq!(endured(&mut upload(Server::new()), |_| padded(1, 0, b"x", 255)), 256 * 1024 / (32 + 256 - 1));
    // Messages of 32 bytes, as fast as they come, and the ends of bodies.
    let mut server = upload(Server::new());
    for _ in 0..20_000 {
        let seen = server.feed(&data(1, &[b'x'; 32]), usize::MAX);
        assert!(seen.iter().all(|line| !line.starts_with('!')), "{seen:?}");
        server.sends(|connection, out| {
            (connection.put_credit(0, 32, out), connection.put_credit(1, 32, out)).0
        });
    }
    let rate = Rate { burst: 100, per_second: 31 };
    let mut server = upload(with(|budgets| budgets.overhead = rate));
    for _ in 0..20 {
        server.now += SECOND;
        assert_eq!(server.gets(&[&data(1, b"x")]), ["data 1 x"]);
    }
}

#[test]
fn settings_and_pings() {
    takes_three(Server::fresh_with(|budgets| budgets.settings = SMALL), |_| settings_frame(&[]));
    takes_three(Server::fresh_with(|budgets| budgets.settings = SMALL), |_| settings_ack());
    takes_three(with(|budgets| budgets.pings = SMALL), |_| frame(PING, 0, 0, &[0; 8]));
    takes_three(with(|budgets| budgets.pings = SMALL), |_| frame(PING, ACK, 0, &[0; 8]));
    takes_three(with(|budgets| budgets.pings = SMALL), |_| frame(GOAWAY, 0, 0, &[0; 8]));
    assert_eq!(endured(&mut Server::new(), |_| settings_frame(&[])), 63);
    assert_eq!(endured(&mut Server::new(), |_| frame(PING, 0, 0, &[0; 8])), 1000);
    let many = |count| settings_frame(&vec![(0xff, 0); count]);
    assert_eq!(Server::new().gets(&[&many(32)]), ["< settings ack"]);
    assert_eq!(Server::new().gets(&[&many(33)]), ["! EnhanceYourCalm"]);
}

impl Server {
    /// A server with a small budget of which the first settings have used nothing yet.
    fn fresh_with(change: impl FnOnce(&mut Budgets)) -> Self {
        let mut server = with(change);
        server.now += SECOND;
        server
    }
}

#[test]
fn priorities() {
    takes_three(with(|budgets| budgets.priorities = SMALL), |_| depends(1, 3));
    takes_three(with(|budgets| budgets.priorities = SMALL), |_| priority_update(1, "u=1"));
    assert_eq!(endured(&mut Server::new(), |_| depends(1, 3)), 500);
}

#[test]
fn window_updates() {
    takes_three(with(|budgets| budgets.updates = SMALL), |_| credit(0, 1));
    let mut server = with(|budgets| budgets.updates = SMALL);
    server.gets(&[&get(1)]);
    server.sends(|connection, out| connection.put_data(1, 0, false, out));
    assert_eq!(endured(&mut server, |_| credit(1, 1)), 3 + 2 + 10);
    assert_eq!(endured(&mut Server::new(), |_| credit(0, 1)), 1000);
}

#[test]
fn frames_of_unknown_types() {
    takes_three(with(|budgets| budgets.unknown = SMALL), |_| frame(99, 0, 0, b"x"));
    assert_eq!(endured(&mut Server::new(), |_| frame(99, 0, 0, b"x")), 500);
}
