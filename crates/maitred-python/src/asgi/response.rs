//! The phases of a response, and the sending of its parts: head and body in one write where the body is complete.

use std::time::Duration;

use maitred_http::FieldSet;
use maitred_runtime::{Exchange, Flow, Last, SendError, Stream};
use pyo3::prelude::*;

use crate::values::Declared;

pub(super) enum Phase {
    Waiting {
        exchange: Exchange,
        declared: Option<Declared>,
    },
    /// `due`: the body is complete, and its trailers, of which these have come, are not.
    Streaming {
        stream: Stream,
        due: Option<FieldSet>,
    },
    Busy,
    Over {
        peer_gone: bool,
    },
}

/// The result of sending a part, and the phase after it.
pub(super) type Sent = (Result<Flow, SendError>, Phase);

const OVER: Phase = Phase::Over { peer_gone: false };

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Body,
    Trailers,
    End,
}

impl After {
    /// The phase of a stream that is not over.
    fn of(self, stream: Stream) -> Phase {
        Phase::Streaming { stream, due: (self == Self::Trailers).then(FieldSet::new) }
    }
}

/// Sends a part of a body and writes it to a file, on this thread and before it makes another one: all responses
/// together hold far more than they may, since bodies are made faster than the spooler writes them.
pub(super) fn to_disk(py: Python<'_>, phase: Phase, body: Last<'_>, next: After) -> Sent {
    let started = match phase {
        Phase::Waiting { exchange, declared: Some(declared) } => {
            let length = declared.length.or_else(|| (next == After::End).then(|| body.len()));
            let started = exchange.start(&declared.head, length);
            Declared::recycle(declared.head);
            started
        }
        Phase::Streaming { stream, .. } => Ok(stream),
        unchanged => return (Ok(Flow::Ready), unchanged),
    };
    let mut stream = match started {
        Ok(stream) => stream,
        Err(error) => return (Err(error), OVER),
    };
    let sent = stream.send(body.keep()).and_then(|_| py.detach(|| stream.relieve()));
    match sent {
        Ok(()) if next == After::Body => {
            let flow = if stream.is_full() { Flow::Full } else { Flow::Ready };
            return (Ok(flow), next.of(stream));
        }
        Ok(()) if next == After::Trailers => return (Ok(Flow::Ready), next.of(stream)),
        Err(SendError::Closed) => stream.abort("the peer closed the connection"),
        // If more was sent than declared, the declared bytes have been sent, so the response is whole.
        Ok(()) | Err(_) => stream.finish(),
    }
    (sent.map(|()| Flow::Ready), OVER)
}

/// Sends the head of a response without a body, which is complete then; the application's body is dropped.
pub(super) fn head_alone(exchange: Exchange, declared: Declared, body: Last<'_>) -> Sent {
    let started = exchange.start(&declared.head, declared.length);
    Declared::recycle(declared.head);
    match started {
        Ok(stream) if body.is_empty() => {
            stream.finish();
            (Ok(Flow::Ready), OVER)
        }
        Ok(stream) => go_on(stream, body, After::Body),
        Err(error) => (Err(error), OVER),
    }
}

pub(super) fn start(exchange: Exchange, declared: Declared, body: Last<'_>, next: After) -> Sent {
    let started = exchange.start(&declared.head, declared.length);
    Declared::recycle(declared.head);
    let started = started.and_then(|mut stream| {
        if body.is_empty() && next == After::Body {
            // Nothing but the head is to be sent now; it would wait for the body otherwise.
            stream.wait(Duration::ZERO)?;
        }
        Ok(stream)
    });
    match started {
        Ok(stream) => go_on(stream, body, next),
        Err(error) => (Err(error), OVER),
    }
}

pub(super) fn go_on(mut stream: Stream, body: Last<'_>, next: After) -> Sent {
    if next == After::End {
        // The engine delivers it; no thread has to wait.
        return (stream.finish_with(body).map(|()| Flow::Ready), OVER);
    }
    let sent = if body.is_empty() { Ok(Flow::Ready) } else { stream.send(body.keep()) };
    match sent {
        Err(SendError::Closed) => stream.abort("the peer closed the connection"),
        // The declared bytes have been sent, so the response is whole.
        Err(_) => stream.finish(),
        // The engine delivers the rest of it.
        Ok(_) if next == After::Trailers => return (Ok(Flow::Ready), next.of(stream)),
        Ok(_) => return (sent, next.of(stream)),
    }
    (sent, OVER)
}

/// A body that is complete: one write where the declared length does not speak against it.
pub(super) fn whole(exchange: Exchange, declared: Declared, body: Last<'_>, is_head: bool) -> Sent {
    let Declared { head, length } = declared;
    // Without a body by nature, "nothing" says nothing about the length a GET would have.
    let bodyless = is_head || head.status.forbids_body();
    let length = length.or_else(|| (!body.is_empty() || !bodyless).then(|| body.len()));
    let started = exchange.start(&head, length);
    Declared::recycle(head);
    let sent = started.and_then(|stream| stream.finish_with(body));
    (sent.map(|()| Flow::Ready), OVER)
}

pub(super) fn joined(mut before: FieldSet, after: FieldSet) -> FieldSet {
    if before.is_empty() {
        return after;
    }
    for (name, value) in after.iter() {
        // They were checked; those past the length of a set are left out.
        let _ = before.push_checked(name, value);
    }
    before
}
