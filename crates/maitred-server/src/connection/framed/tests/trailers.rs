//! Fields behind the body of a response, as frames. The toy protocol has the heads of HTTP/1.1, so that a client says whether it
//! takes them; it writes them as a further head.

use maitred_http::FieldSet;
use maitred_testkit::{Frame, STREAM_WINDOW};

use super::{Do, Done, body, data, get, ok, open};

fn sum() -> FieldSet {
    let mut fields = FieldSet::new();
    fields.push("x-sum", "7");
    fields.push("content-type", "it is too late");
    fields
}

/// As a client that takes trailers asks for it.
fn taking(stream: u32, path: &str) -> Frame {
    get(stream, &format!("{path}\nte: trailers"))
}

fn trailers(stream: u32) -> Frame {
    Frame::Head(stream, "x-sum: 7".into())
}

#[test]
fn they_end_a_stream_behind_its_body_whether_that_is_counted_or_not() {
    let mut driven = open(|_| {});
    let asked = [taking(1, "/a"), taking(3, "/b?content-length=2"), taking(5, "/c"), get(7, "/d")];
    let mut puppets = ["/a", "/b", "/c", "/d"].map(|path| driven.puppet(path));
    for (job, puppet) in driven.asks(&asked).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
    }
    for (number, puppet) in puppets.iter().enumerate() {
        if number != 2 {
            puppet.does(Do::Send("ab".into()));
        }
        assert_eq!(puppet.does(Do::FinishWith(sum())), Done::Yes);
    }
    let all = driven.answers();
    let of = |stream: u32| {
        let of_it = |frame: &&Frame| matches!(frame, Frame::Head(of, _) | Frame::Data(of, _) | Frame::End(of) if *of == stream);
        all.iter().filter(of_it).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(1), [ok(1), data(1, "ab"), trailers(1), Frame::End(1)]);
    assert_eq!(of(3), [ok(3), data(3, "ab"), trailers(3), Frame::End(3)]);
    assert_eq!(of(5), [ok(5), trailers(5), Frame::End(5)], "behind an empty body");
    assert_eq!(of(7), [ok(7), data(7, "ab"), Frame::End(7)], "its client does not take them");
    puppets.into_iter().for_each(|puppet| puppet.joins());
}

#[test]
fn they_wait_for_a_reader_that_gives_no_credit_for_the_body() {
    let mut driven = open(|_| {});
    let mut puppet = driven.puppet("/a");
    let job = driven.asks(&[taking(1, "/a")]).pop().expect("one");
    driven.runs(job, &mut puppet);
    puppet.does(Do::Send(vec![b'x'; STREAM_WINDOW as usize + 10]));
    assert_eq!(puppet.does(Do::FinishWith(sum())), Done::Yes);
    let frames = driven.answers();
    assert_eq!(body(&frames, 1).len(), STREAM_WINDOW as usize);
    assert!(!frames.contains(&trailers(1)));
    assert!(driven.asks(&[Frame::Credit(1, 10)]).is_empty());
    assert_eq!(driven.answers(), [data(1, "xxxxxxxxxx"), trailers(1), Frame::End(1)]);
    puppet.joins();
}

#[test]
fn a_response_that_is_not_whole_is_reset_and_has_none() {
    let mut driven = open(|_| {});
    let mut puppets = [driven.puppet("/short"), driven.puppet("/bad")];
    let asked = [taking(1, "/short?content-length=9"), taking(3, "/bad")];
    for (job, puppet) in driven.asks(&asked).into_iter().zip(&mut puppets) {
        driven.runs(job, puppet);
    }
    let [short, bad] = puppets;
    short.does(Do::Send("ab".into()));
    short.does(Do::FinishWith(sum()));
    let mut fields = sum();
    fields.push("x-bad", "a\nb");
    bad.does(Do::Send("ab".into()));
    assert_eq!(bad.does(Do::FinishWith(fields)), Done::Gone);
    let all = driven.answers();
    assert_eq!(all, [ok(1), data(1, "ab"), Frame::Reset(1), ok(3), data(3, "ab"), Frame::Reset(3)]);
    [short, bad].into_iter().for_each(|puppet| puppet.joins());
}
