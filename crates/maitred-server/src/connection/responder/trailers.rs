//! Fields behind the body of a response (RFC 9110 §6.5): their place, and the choice of those that are sent.
//!
//! Promises: a warning names fields that are dropped because of the application; no warning names fields that are
//! dropped because of the client or its method. Leaves out: the bytes on the wire (the encoder, and maitred-h2).

use maitred_h1::{HeadError, is_forbidden_trailer};
use maitred_http::FieldSet;
use maitred_http::fields::{is_token, is_value};
use maitred_runtime::{Last, Request, Respond, SendError};

use super::Responder;

/// Place of fields behind a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Behind,
    /// The head declares the length, and the protocol has no place behind the last byte.
    Counted,
    /// There is no body.
    NoBody,
}

impl Responder {
    /// Returns the fields that are sent, if any; the head is on its way by then.
    ///
    /// # Errors
    /// A field cannot be sent.
    pub(super) fn place_trailers(
        &mut self,
        request: &Request,
        mut trailers: FieldSet,
    ) -> Result<Option<Box<FieldSet>>, HeadError> {
        check(&trailers)?;
        for name in remove_forbidden(&mut trailers) {
            self.warn_once(
                request,
                &format!("the application sent the trailer {name}, which has a meaning only in the head; it was left out"),
            );
        }
        if trailers.is_empty() || !request.takes_trailers() {
            return Ok(None);
        }
        self.begin_without_body();
        match self.encoder.place_of_trailers() {
            Place::Behind => return Ok(Some(Box::new(trailers))),
            Place::NoBody => {}
            Place::Counted => self.warn_once(
                request,
                "the application sent trailers for a response with a Content-Length, behind which HTTP/1.1 has no place for \
                 them; they were dropped: leave the Content-Length out",
            ),
        }
        Ok(None)
    }

    /// Ends a chunked response with these fields.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) fn finish_chunked(
        mut self: Box<Self>,
        request: Box<Request>,
        last: Last<'_>,
        trailers: &FieldSet,
    ) -> Result<(), SendError> {
        let sent = if last.is_empty() { Ok(()) } else { self.send_data(&request, last.keep()).map(drop) };
        let finish = self.encoder.finish(Some(trailers), &mut self.buffer);
        let end = self.end_of(&request, finish);
        sent.and((*self).end(request, finish.reusable, end, Last::NOTHING, b""))
    }
}

fn check(trailers: &FieldSet) -> Result<(), HeadError> {
    if trailers.is_checked() {
        return Ok(());
    }
    for (name, value) in trailers.iter() {
        let shown = || name.escape_ascii().to_string();
        if !is_token(name) {
            return Err(HeadError::InvalidName(shown()));
        }
        if !is_value(value) {
            return Err(HeadError::InvalidValue(shown()));
        }
    }
    Ok(())
}

/// Removes fields that may stand only in a head, and returns their names.
fn remove_forbidden(trailers: &mut FieldSet) -> Vec<String> {
    let mut removed = Vec::new();
    trailers.retain(|name| {
        let is_forbidden = is_forbidden_trailer(name);
        if is_forbidden {
            removed.push(name.escape_ascii().to_string());
        }
        !is_forbidden
    });
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> FieldSet {
        let mut fields = FieldSet::new();
        for (name, value) in all {
            fields.push(name, value);
        }
        fields
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        assert_eq!(check(&fields(&[("x-sum", "7"), ("grpc-message", "")])), Ok(()));
        let name = HeadError::InvalidName(":status".into());
        assert_eq!(check(&fields(&[("x-sum", "7"), (":status", "200")])), Err(name));
        let value = HeadError::InvalidValue("x-sum".into());
        assert_eq!(check(&fields(&[("x-sum", "a\r\nb")])), Err(value));
    }

    #[test]
    fn what_belongs_into_the_head_is_taken_out() {
        let mut trailers =
            fields(&[("Content-Length", "1"), ("x-sum", "7"), ("set-cookie", "a=b"), ("te", "")]);
        assert_eq!(remove_forbidden(&mut trailers), ["Content-Length", "set-cookie", "te"]);
        assert_eq!(trailers.iter().collect::<Vec<_>>(), [(&b"x-sum"[..], &b"7"[..])]);
    }
}
