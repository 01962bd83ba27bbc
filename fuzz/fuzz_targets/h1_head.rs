//! Request heads and streams of requests. Input: the bytes of a client on one connection.
//!
//! However the bytes are cut the events are the same; an accepted head has no byte that another parser
//! could read as a line end, and written anew it is read as the same head.
#![no_main]

mod events;

use events::{Seen, events, events_of_any_cut};
use libfuzzer_sys::fuzz_target;
use maitred_h1::HeadFacts;
use maitred_http::{RequestHead, Version};

fuzz_target!(|input: &[u8]| {
    for seen in events_of_any_cut(input).0 {
        if let Seen::Head(head, facts) = seen {
            check(&head);
            check_written_anew(&head, facts);
        }
    }
});

fn check(head: &RequestHead) {
    assert!(head.target().iter().all(u8::is_ascii_graphic));
    for (name, value) in head.fields.iter() {
        let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        assert!(!name.is_empty() && name.iter().all(is_token));
        assert!(value.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t'));
    }
    let hosts = head.fields.all("host").count();
    assert!(hosts == 1 || (hosts == 0 && head.version == Version::Http10));
    let framed = head.fields.all("content-length").count() + head.fields.all("transfer-encoding").count();
    assert!(framed <= 1);
    let mut types = head.fields.all("content-type");
    let first = types.next();
    assert!(types.all(|other| Some(other) == first));
    assert!(
        matches!(head.fields.bytes(head.path_and_query).first(), Some(b'/' | b'*'))
            || head.method.as_str() == "CONNECT"
    );
}

fn check_written_anew(head: &RequestHead, facts: HeadFacts) {
    let mut bytes = Vec::new();
    let version = head.version.as_str().as_bytes();
    bytes.extend_from_slice(
        &[head.method.as_str().as_bytes(), b" ", head.target(), b" ", version, b"\r\n"].concat(),
    );
    for (name, value) in head.fields.iter() {
        bytes.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"\r\n");
    match &events(&bytes, usize::MAX).0[..] {
        [Seen::Head(again, facts_again), ..] => {
            assert_eq!(facts, *facts_again);
            assert_eq!(
                (again.target(), again.authority(), again.body),
                (head.target(), head.authority(), head.body)
            );
            assert!(again.fields.iter().eq(head.fields.iter()));
        }
        // One space more behind every colon can pass the limit on heads.
        [Seen::Refused(error)] if error.status.code() == 431 => {}
        other => panic!("{head:?} became {other:?}"),
    }
}
