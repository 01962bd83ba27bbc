//! What heads hold, and who is refused when all of them hold more than they may.

use maitred_turns::Signals;

use super::client::{CONTINUATION, Client, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, REFUSED_STREAM, RESET, open};

/// A server whose heads may hold so many bytes, as many of each kind.
fn with(budget: u64) -> Client {
    open(|settings| settings.limits.heads = budget)
}

/// Bytes of heads that wait for the peer, and of others.
fn held(client: &Client) -> (u64, u64) {
    let (held, _) = client.driven.group.site.guard.heads.figures();
    (held.waiting, held.running)
}

/// The streams that were reset as refused.
fn refused(client: &mut Client) -> Vec<u32> {
    let frames = client.frames();
    let resets = frames.iter().filter(|frame| frame.kind == RESET);
    resets.inspect(|frame| assert_eq!(frame.number(0), REFUSED_STREAM)).map(|frame| frame.stream).collect()
}

#[test]
fn requests_that_are_not_complete_are_refused_and_those_that_run_are_not() {
    let mut client = with(200_000);
    let large = "x".repeat(4000);
    let jobs = client.get(1, "/runs", &[("cookie", &large)]);
    let mut stream = 1;
    let gone = loop {
        stream += 2;
        assert!(stream < 200, "that is more than there may be");
        // The table has the cookie, so that each costs the peer a few bytes.
        assert!(client.post(stream, "/waits", &[("cookie", &large)]).is_empty());
        let gone = refused(&mut client);
        if !gone.is_empty() {
            break gone;
        }
        assert!(held(&client).0 < 200_000, "{:?}", held(&client));
    };
    assert_eq!(gone, (3..=stream).step_by(2).collect::<Vec<_>>());
    let (waiting, running) = held(&client);
    assert!(waiting == 0 && (2000..20_000).contains(&running), "{waiting}, {running}");
    let (buffers, _) = client.driven.group.site.guard.budget.figures();
    assert!(buffers >= running, "{buffers}: they count as buffers, too");
    client.driven.run_here(jobs);
    client.driven.turn(Signals::RESUME);
    let frames = client.frames();
    assert_eq!(frames[0].status(), "200");
    assert!(client.post(stream + 2, "/more", &[]).is_empty() && refused(&mut client).is_empty());
    assert_eq!(held(&client).1, 0);
}

#[test]
fn requests_beyond_the_budget_are_refused_until_others_have_run() {
    let mut client = with(100_000);
    let large = "x".repeat(4000);
    let (mut stream, mut jobs) = (1, Vec::new());
    let gone = loop {
        jobs.extend(client.get(stream, "/", &[("cookie", &large)]));
        let gone = refused(&mut client);
        if !gone.is_empty() {
            break gone;
        }
        stream += 2;
        assert!(held(&client).1 < 110_000, "{:?}", held(&client));
    };
    assert_eq!(gone, [stream]);
    client.driven.run_here(jobs);
    client.driven.turn(Signals::RESUME);
    client.frames();
    assert_eq!(held(&client), (0, 0));
    assert_eq!(client.get(stream + 2, "/", &[("cookie", &large)]).len(), 1);
}

#[test]
fn without_a_budget_all_are_let_in() {
    let mut client = with(0);
    let large = "x".repeat(4000);
    for number in 0..100 {
        assert!(client.post(2 * number + 1, "/", &[("cookie", &large)]).is_empty());
    }
    assert!(refused(&mut client).is_empty() && held(&client).0 > 400_000, "{:?}", held(&client));
}

#[test]
fn a_head_that_is_not_complete_ends_its_connection() {
    let mut client = with(40_000);
    assert!(client.asks(HEADERS, 0, 1, &[0; 16_000]).is_empty());
    assert!(held(&client).0 >= 10_000, "{:?}", held(&client));
    for _ in 0..2 {
        assert!(client.asks(CONTINUATION, 0, 1, &[0; 16_000]).is_empty());
    }
    let frames = client.frames();
    let last = frames.last().expect("a frame");
    assert_eq!((last.kind, last.number(4)), (GOAWAY, ENHANCE_YOUR_CALM));
    assert!(client.is_at_end() && held(&client) == (0, 0));
}

#[test]
fn a_peer_that_has_ended_its_side_holds_no_request_that_is_not_complete() {
    let mut client = with(1 << 20);
    assert!(client.post(1, "/", &[("cookie", &"x".repeat(4000))]).is_empty());
    assert!(held(&client).0 > 2000);
    client.driven.client.shutdown_write();
    assert!(client.driven.turn(Signals::READ.with(Signals::READ_CLOSED)).is_empty());
    assert_eq!(held(&client), (0, 0));
    assert!(client.is_at_end());
}
