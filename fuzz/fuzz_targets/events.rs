//! Shared by the targets of HTTP/1: a receiver's events for bytes cut in some way.

use maitred_h1::{Event, HeadFacts, Limits, Receiver, RequestError};
use maitred_http::RequestHead;

/// An event that can be kept. Neighbouring data is one.
#[derive(Debug)]
#[allow(dead_code, reason = "the cuts are compared as text, so each target reads only some parts")]
pub(crate) enum Seen {
    Head(Box<RequestHead>, HeadFacts),
    Body(Vec<u8>),
    Trailers(Vec<(Vec<u8>, Vec<u8>)>),
    End,
    Refused(RequestError),
}

/// The events of `stream` in pieces of `piece` bytes, and how many bytes were consumed.
pub(crate) fn events(stream: &[u8], piece: usize) -> (Vec<Seen>, usize) {
    let (mut receiver, mut head, limits) = (Receiver::new(), RequestHead::default(), Limits::default());
    let (mut seen, mut start, mut end) = (Vec::new(), 0, 0);
    while end < stream.len() {
        end = stream.len().min(end.saturating_add(piece));
        loop {
            let step = match receiver.poll_event(&stream[start..end], &mut head, &limits) {
                Ok(step) => step,
                Err(error) => {
                    seen.push(Seen::Refused(error));
                    return (seen, start);
                }
            };
            assert!(step.consumed <= end - start);
            start += step.consumed;
            match step.event {
                Event::NeedMore => break,
                Event::Head(facts) => seen.push(Seen::Head(Box::new(head.clone()), facts)),
                Event::Data(bytes) => match seen.last_mut() {
                    Some(Seen::Body(body)) => body.extend_from_slice(bytes),
                    _ => seen.push(Seen::Body(bytes.to_vec())),
                },
                Event::Trailers(fields) => {
                    let fields = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                    seen.push(Seen::Trailers(fields.collect()));
                }
                Event::End => seen.push(Seen::End),
            }
        }
    }
    (seen, start)
}

/// The events, which must be the same however the stream is cut.
pub(crate) fn events_of_any_cut(stream: &[u8]) -> (Vec<Seen>, usize) {
    let whole = events(stream, usize::MAX);
    // Byte by byte is the hardest; the others make pieces that differ with the input.
    for piece in [1, 2 + stream.len() / 5, 1 + stream.len() / 2] {
        assert_eq!(format!("{:?}", events(stream, piece).0), format!("{:?}", whole.0), "pieces of {piece}");
    }
    whole
}
