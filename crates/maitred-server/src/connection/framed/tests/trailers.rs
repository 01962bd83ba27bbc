//! Fields behind the body of a response, which are a head without a status. Every client of HTTP/2 takes them.

use maitred_http::FieldSet;

use super::client::{INTERNAL_ERROR, Part, WINDOW, body, data, ok, open};
use super::{Do, Done, Puppet};

fn sum() -> FieldSet {
    let mut fields = FieldSet::new();
    fields.push("x-sum", "7");
    fields.push("content-type", "it is too late");
    fields
}

fn trailers(stream: u32) -> Part {
    Part::Head(stream, "x-sum: 7".into())
}

#[test]
fn they_end_a_stream_behind_its_body_whether_that_is_counted_or_not() {
    let mut client = open(|_| {});
    let [plain, counted, empty] = client.begins([(1, "/a"), (3, "/b?content-length=2"), (5, "/c")]);
    for puppet in [&plain, &counted] {
        puppet.does(Do::Send("ab".into()));
    }
    for puppet in [plain, counted, empty] {
        assert_eq!(puppet.does(Do::FinishWith(sum())), Done::Yes);
        puppet.joins();
    }
    let all = client.answers();
    let of = |stream: u32| {
        let of_it = |part: &&Part| matches!(part, Part::Head(of, _) | Part::Data(of, _) | Part::End(of) if *of == stream);
        all.iter().filter(of_it).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(1), [ok(1), data(1, "ab"), trailers(1), Part::End(1)]);
    assert_eq!(of(3), [ok(3), data(3, "ab"), trailers(3), Part::End(3)]);
    assert_eq!(of(5), [ok(5), trailers(5), Part::End(5)], "behind an empty body");
}

#[test]
fn they_wait_for_a_reader_that_gives_no_credit_for_the_body() {
    let mut client = open(|_| {});
    let [puppet] = client.begins([(1, "/a")]);
    assert!(client.gives(0, 1 << 20).is_empty());
    puppet.does(Do::Send(vec![b'x'; WINDOW + 10]));
    assert_eq!(puppet.does(Do::FinishWith(sum())), Done::Yes);
    let parts = client.answers();
    assert_eq!(body(&parts, 1).len(), WINDOW);
    assert!(!parts.contains(&trailers(1)));
    assert!(client.gives(1, 10).is_empty());
    assert_eq!(client.answers(), [data(1, "xxxxxxxxxx"), trailers(1), Part::End(1)]);
    puppet.joins();
}

#[test]
fn a_response_that_is_not_whole_is_reset_and_has_none() {
    let mut client = open(|_| {});
    let [short, bad] = client.begins([(1, "/short?content-length=9"), (3, "/bad")]);
    short.does(Do::Send("ab".into()));
    short.does(Do::FinishWith(sum()));
    let mut fields = sum();
    fields.push("x-bad", "a\nb");
    bad.does(Do::Send("ab".into()));
    assert_eq!(bad.does(Do::FinishWith(fields)), Done::Gone);
    let [first, second] = [1, 3].map(|stream| Part::Reset(stream, INTERNAL_ERROR));
    let all = client.answers();
    assert_eq!(all, [ok(1), data(1, "ab"), first, ok(3), data(3, "ab"), second]);
    [short, bad].into_iter().for_each(Puppet::joins);
}
