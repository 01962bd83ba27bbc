//! Responses as a client reads them. Input: a byte that says how the response was asked for, then the bytes of a server.
//!
//! However the bytes are cut the events are the same; an accepted head has no byte that another parser could read as a
//! line end, and at most one framing field where a body can follow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_h1::{Asked, Event, Limits, Receiver, ResponseFacts};
use maitred_http::{BodyLength, ResponseHead, Status};

fuzz_target!(|input: &[u8]| {
    let Some((first, stream)) = input.split_first() else { return };
    let asked = [Asked::Ordinary, Asked::Head, Asked::Connect, Asked::Upgrade][usize::from(first % 4)];
    let whole = events(stream, asked, usize::MAX);
    for piece in [1, 2 + stream.len() / 5, 1 + stream.len() / 2] {
        assert_eq!(events(stream, asked, piece), whole, "pieces of {piece}");
    }
});

/// The events of `stream` in pieces of `piece` bytes as text, and how many bytes were consumed unless the
/// response is malformed.
fn events(stream: &[u8], asked: Asked, piece: usize) -> (Vec<String>, usize) {
    let (mut receiver, mut head) = (Receiver::of_response(asked), ResponseHead::new(Status::OK));
    let limits = Limits::of_responses();
    let (mut seen, mut body, mut start, mut end) = (Vec::new(), Vec::new(), 0, 0);
    while end < stream.len() {
        end = stream.len().min(end.saturating_add(piece));
        loop {
            let step = match receiver.poll_response(&stream[start..end], &mut head, &limits) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(format!("{body:?} {error:?}"));
                    return (seen, 0);
                }
            };
            assert!(step.consumed <= end - start);
            start += step.consumed;
            match step.event {
                Event::NeedMore => break,
                Event::Head(facts) => {
                    check(&head, facts, asked);
                    seen.push(format!("{head:?} {facts:?}"));
                }
                Event::Data(bytes) => {
                    assert!(!bytes.is_empty());
                    body.extend_from_slice(bytes);
                }
                Event::Trailers(fields) => seen.push(format!("{fields:?}")),
                Event::End => seen.push("end".to_owned()),
            }
        }
    }
    seen.push(format!("{body:?} {:?}", receiver.end_of_stream()));
    (seen, start)
}

fn check(head: &ResponseHead, facts: ResponseFacts, asked: Asked) {
    let is_text = |text: &[u8]| text.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t');
    assert!(is_text(head.reason.as_deref().unwrap_or_default()));
    for (name, value) in head.fields.iter() {
        let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        assert!(!name.is_empty() && name.iter().all(is_token) && is_text(value));
    }
    let code = head.status.code();
    assert!((100..1000).contains(&code));
    assert_eq!(facts.interim, code < 200 && !facts.switched);
    if facts.interim || asked == Asked::Head || [204, 304].contains(&code) {
        assert_eq!(facts.body, BodyLength::Empty);
    } else if !facts.switched {
        let count = |name| head.fields.all(name).count();
        let framed = count("content-length") + count("transfer-encoding");
        assert_eq!(framed, usize::from(facts.body != BodyLength::UntilClose));
    }
    assert!(!(facts.keep_alive && facts.body == BodyLength::UntilClose));
}
