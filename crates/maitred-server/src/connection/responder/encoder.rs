//! Encoding of responses for their connection: to bytes, or to values that the connection frames in their turn.
//!
//! Both settle a response's length, and take out the fields that belong to a connection. Head and framing of HTTP/1 are written
//! here, on the handler's thread. A head for frames stays a value: a compression with a state needs the order of the wire.

use maitred_exchange::Heads;
use maitred_h1::{DataPlan, Finish, HeadError, HeadReport, Sender, TRAILER, hop_by_hop, names_close};
use maitred_http::fields::{is_token, is_value};
use maitred_http::{FieldSet, ResponseHead, Status};

use super::trailers::Place;
use maitred_exchange::memory::spare_head;

/// Encoder of one response.
#[derive(Clone)]
pub(crate) enum Encoder {
    /// Writes bytes to the given buffer.
    H1(Sender),
    /// Keeps values for [`take_heads`](Self::take_heads); the buffer stays empty.
    Values(Box<ValueSender>),
}

impl Encoder {
    /// The heads that have not been handed over, where the connection has frames.
    pub(crate) fn take_heads(&mut self) -> Heads {
        match self {
            Self::H1(_) => Heads::new(),
            Self::Values(sender) => std::mem::take(&mut sender.heads),
        }
    }

    /// Whether some heads have not been handed over.
    pub(crate) fn has_heads(&self) -> bool {
        matches!(self, Self::Values(sender) if !sender.heads.is_empty())
    }

    /// Whether the connection has frames.
    pub(crate) fn is_framed(&self) -> bool {
        matches!(self, Self::Values(_))
    }

    /// Begins a WebSocket: the bytes that follow are neither counted nor framed here.
    ///
    /// # Errors
    /// The head cannot be sent as given.
    pub(super) fn accept(
        &mut self,
        head: &ResponseHead,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Result<(), HeadError> {
        match self {
            Self::H1(sender) => sender.send_switching(head, "websocket", out),
            Self::Values(sender) => sender.accept(head, date),
        }
    }

    /// Ends the connection after this response, if the connection has one exchange at a time.
    pub(crate) fn close_after(&mut self) {
        if let Self::H1(sender) = self {
            sender.close_after();
        }
    }

    /// Whether the response has only a head because the request is HEAD: a body is accepted and not sent.
    pub(super) fn drops_body(&self) -> bool {
        match self {
            Self::H1(sender) => sender.drops_body(),
            Self::Values(sender) => matches!(sender.state, State::Suppressed { permitted: true }),
        }
    }

    /// Whether the response is complete with the head: no body follows, or all of the declared length has been given.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::H1(sender) => sender.is_suppressed() || sender.is_complete(),
            Self::Values(sender) => matches!(sender.state, State::Fixed(0) | State::Suppressed { .. }),
        }
    }

    /// As [`Sender::announce_trailers`].
    pub(super) fn announce_trailers(&mut self) {
        match self {
            Self::H1(sender) => sender.announce_trailers(),
            Self::Values(sender) => sender.trailers = true,
        }
    }

    /// The place for fields behind the body when the head is sent.
    pub(super) fn place_of_trailers(&self) -> Place {
        match self {
            Self::H1(sender) if sender.is_chunked() => Place::Behind,
            Self::H1(sender) if !sender.is_suppressed() => Place::Counted,
            Self::Values(sender) if matches!(sender.state, State::Open | State::Fixed(_)) => Place::Behind,
            Self::H1(_) | Self::Values(_) => Place::NoBody,
        }
    }

    /// As [`Sender::send_interim`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn send_interim(&mut self, head: &ResponseHead, out: &mut Vec<u8>) -> Result<(), HeadError> {
        match self {
            Self::H1(sender) => sender.send_interim(head, out),
            Self::Values(sender) => sender.send_interim(head),
        }
    }

    /// As [`Sender::send_head`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn send_head(
        &mut self,
        head: &ResponseHead,
        length: Option<u64>,
        date: &[u8; 29],
        out: &mut Vec<u8>,
    ) -> Result<HeadReport, HeadError> {
        match self {
            Self::H1(sender) => sender.send_head(head, length, date, out),
            Self::Values(sender) => sender.send_head(head, length, date),
        }
    }

    /// As [`Sender::send_data`].
    pub(crate) fn send_data(&mut self, length: u64, out: &mut Vec<u8>) -> DataPlan {
        match self {
            Self::H1(sender) => sender.send_data(length, out),
            Self::Values(sender) => sender.send_data(length),
        }
    }

    /// As [`Sender::send_last`].
    pub(crate) fn send_last(&mut self, length: u64, out: &mut Vec<u8>) -> (DataPlan, Finish) {
        match self {
            Self::H1(sender) => sender.send_last(length, out),
            Self::Values(sender) => (sender.send_data(length), sender.finish()),
        }
    }

    /// As [`Sender::finish`].
    pub(crate) fn finish(&mut self, trailers: Option<&FieldSet>, out: &mut Vec<u8>) -> Finish {
        match self {
            Self::H1(sender) => sender.finish(trailers, out),
            Self::Values(sender) => sender.finish(),
        }
    }
}

/// Length and framing of a response whose parts stay values.
#[derive(Clone)]
pub(crate) struct ValueSender {
    to_head: bool,
    /// Fields behind the body are announced.
    trailers: bool,
    state: State,
    heads: Heads,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// Missing bytes of the declared length.
    Fixed(u64),
    /// The end of the stream ends it.
    Open,
    /// `permitted`: the response is to HEAD.
    Suppressed {
        permitted: bool,
    },
    Done {
        whole: bool,
    },
}

impl ValueSender {
    /// Encoder for the response to one request; `to_head` says that its method is HEAD.
    pub(crate) fn new(to_head: bool) -> Self {
        Self { to_head, trailers: false, state: State::Waiting, heads: Heads::new() }
    }

    /// Makes the head of a response of the engine with a body of this length.
    pub(crate) fn only(&mut self, head: &ResponseHead, length: Option<u64>, date: &[u8; 29]) -> Heads {
        // A head that cannot be sent is a fault of the engine; its stream then ends without a head.
        let _ = self.send_head(head, length, date);
        std::mem::take(&mut self.heads)
    }

    fn send_interim(&mut self, head: &ResponseHead) -> Result<(), HeadError> {
        if self.state != State::Waiting {
            return Err(HeadError::AlreadySent);
        }
        if !matches!(head.status.code(), 102..=199) {
            return Err(HeadError::NotInterim(head.status));
        }
        let (head, _) = settled(head, false)?;
        self.heads.push(head);
        Ok(())
    }

    /// A 2xx to CONNECT, behind which bytes go in both directions: it has no length (RFC 9110 §8.6).
    fn accept(&mut self, head: &ResponseHead, date: &[u8; 29]) -> Result<(), HeadError> {
        if !head.fields.contains("content-length") {
            return self.send_head(head, None, date).map(drop);
        }
        let mut plain = head.clone();
        plain.fields.remove("content-length");
        self.send_head(&plain, None, date).map(drop)
    }

    fn send_head(
        &mut self,
        head: &ResponseHead,
        length: Option<u64>,
        date: &[u8; 29],
    ) -> Result<HeadReport, HeadError> {
        if self.state != State::Waiting {
            return Err(HeadError::AlreadySent);
        }
        if head.status.code() < 200 {
            return Err(HeadError::InterimStatus(head.status));
        }
        let (mut settled, Found { removed, length: declared, close }) = settled(head, self.trailers)?;
        settled.fields.push_missing("Date", date);
        settled.fields.push_missing("Server", "maitred");
        let known = length.or(declared);
        let (state, said) = if head.status.forbids_body() {
            let said = declared.filter(|_| head.status == Status::NOT_MODIFIED);
            (State::Suppressed { permitted: self.to_head }, said)
        } else if self.to_head {
            (State::Suppressed { permitted: true }, declared.or(length.filter(|length| *length > 0)))
        } else {
            (known.map_or(State::Open, State::Fixed), known)
        };
        if let Some(said) = said {
            settled.fields.push("Content-Length", said.to_string());
        }
        self.state = state;
        self.heads.push(settled);
        let wrong = matches!(state, State::Fixed(_)) && length.is_some() && declared != length;
        Ok(HeadReport {
            length: match state {
                State::Fixed(left) => Some(left),
                State::Suppressed { .. } => Some(0),
                _ => None,
            },
            removed,
            wrong_length: declared.filter(|_| wrong),
            close,
        })
    }

    fn send_data(&mut self, length: u64) -> DataPlan {
        let plan = |allowed, surplus| DataPlan { allowed, surplus, suffix: b"" };
        match self.state {
            State::Fixed(left) => {
                let allowed = length.min(left);
                self.state = State::Fixed(left - allowed);
                plan(allowed, length - allowed)
            }
            State::Open => plan(length, 0),
            State::Suppressed { permitted: true } => plan(0, 0),
            State::Suppressed { permitted: false } | State::Waiting | State::Done { .. } => plan(0, length),
        }
    }

    fn finish(&mut self) -> Finish {
        let (whole, short_by) = match self.state {
            State::Fixed(left) => (left == 0, left),
            State::Open | State::Suppressed { .. } => (true, 0),
            State::Waiting => (false, 0),
            State::Done { whole } => (whole, 0),
        };
        self.state = State::Done { whole };
        Finish { reusable: whole, short_by }
    }
}

/// Facts in the fields of a head that this module decides on.
#[derive(Default)]
struct Found {
    removed: Vec<&'static str>,
    length: Option<u64>,
    /// The connection is to end.
    close: bool,
}

/// Splits a head: first the fields that are sent, then the hop-by-hop fields and the declared length. `Trailer` is sent where it
/// announces `trailers`.
fn settled(head: &ResponseHead, trailers: bool) -> Result<(ResponseHead, Found), HeadError> {
    let mut settled = spare_head(head.status);
    let mut found = Found::default();
    for (name, value) in head.fields.iter() {
        if !is_token(name) {
            return Err(HeadError::InvalidName(name.escape_ascii().to_string()));
        }
        if !is_value(value) {
            return Err(HeadError::InvalidValue(name.escape_ascii().to_string()));
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value.trim_ascii()).ok().and_then(|text| text.parse().ok());
            let length: u64 = length.ok_or(HeadError::ContentLength)?;
            if found.length.replace(length).is_some_and(|before| before != length) {
                return Err(HeadError::ContentLength);
            }
        } else if let Some(hop) = hop_by_hop(name).filter(|hop| !(trailers && *hop == TRAILER)) {
            // The connection states these in its own way.
            found.close |= hop == "Connection" && names_close(value);
            if !value.eq_ignore_ascii_case(b"close") {
                found.removed.push(hop);
            }
        } else {
            settled.fields.push(name, value);
        }
    }
    Ok((settled, found))
}

#[cfg(test)]
mod tests {
    use maitred_http::Version;

    use super::*;

    const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

    fn sent(head: ResponseHead, length: Option<u64>) -> (ValueSender, ResponseHead, HeadReport) {
        let mut sender = ValueSender::new(false);
        let report = sender.send_head(&head, length, DATE).expect("a good head");
        let head = sender.heads.pop().expect("the head");
        (sender, head, report)
    }

    #[test]
    fn a_head_has_its_length_and_no_field_of_a_connection() {
        let head = ResponseHead::new(Status::OK)
            .with("Connection", "close")
            .with("Keep-Alive", "5")
            .with("Content-Length", "7")
            .with("X-A", "b");
        let (_, head, report) = sent(head, Some(5));
        assert_eq!(head.fields.first("content-length"), Some(&b"5"[..]));
        assert!(!head.fields.contains("connection") && !head.fields.contains("keep-alive"));
        assert_eq!(head.fields.first("x-a"), Some(&b"b"[..]));
        assert_eq!((report.wrong_length, report.removed), (Some(7), vec!["Keep-Alive"]));
        assert!(report.close);
    }

    #[test]
    fn a_body_is_counted_against_its_length() {
        let (mut sender, ..) = sent(ResponseHead::new(Status::OK), Some(5));
        assert_eq!(sender.send_data(3), DataPlan { allowed: 3, surplus: 0, suffix: b"" });
        assert_eq!(sender.clone().finish(), Finish { reusable: false, short_by: 2 });
        assert_eq!(sender.send_data(3), DataPlan { allowed: 2, surplus: 1, suffix: b"" });
        assert_eq!(sender.finish(), Finish { reusable: true, short_by: 0 });
        let (mut open, head, _) = sent(ResponseHead::new(Status::OK), None);
        assert!(!head.fields.contains("content-length"));
        assert_eq!(open.send_data(9).allowed, 9);
        assert_eq!(open.finish(), Finish { reusable: true, short_by: 0 });
    }

    #[test]
    fn what_cannot_be_sent_is_refused_and_another_head_may_follow() {
        let mut sender = ValueSender::new(false);
        let bad = ResponseHead::new(Status::OK).with("X-A", "b\r\nc");
        assert!(matches!(sender.send_head(&bad, None, DATE), Err(HeadError::InvalidValue(_))));
        assert!(sender.send_head(&ResponseHead::new(Status::OK), None, DATE).is_ok());
        assert!(matches!(sender.send_head(&bad, None, DATE), Err(HeadError::AlreadySent)));
    }

    #[test]
    fn the_field_that_names_trailers_is_sent_where_they_are_announced() {
        let head = ResponseHead::new(Status::OK).with("Trailer", "X-Sum");
        let (_, plain, report) = sent(head.clone(), None);
        assert_eq!((plain.fields.first("trailer"), report.removed), (None, vec!["Trailer"]));
        let mut encoder = Encoder::Values(Box::new(ValueSender::new(false)));
        encoder.announce_trailers();
        let report = encoder.send_head(&head, None, DATE, &mut Vec::new()).expect("a good head");
        let sent = encoder.take_heads().pop().expect("the head");
        assert_eq!((sent.fields.first("trailer"), report.removed), (Some(&b"X-Sum"[..]), vec![]));
    }

    #[test]
    fn trailers_have_a_place_behind_a_body_that_is_not_counted_and_in_frames_behind_any() {
        let h1 = |version, to_head| Encoder::H1(Sender::new(version, to_head, true));
        let values = |to_head| Encoder::Values(Box::new(ValueSender::new(to_head)));
        let (ok, empty) = (Status::OK, Status::NO_CONTENT);
        for (mut encoder, status, length, expected) in [
            (h1(Version::Http11, false), ok, None, Place::Behind),
            (h1(Version::Http11, false), ok, Some(5), Place::Counted),
            (h1(Version::Http11, true), ok, None, Place::NoBody),
            (h1(Version::Http11, false), empty, None, Place::NoBody),
            (h1(Version::Http11, false), Status::NOT_MODIFIED, None, Place::NoBody),
            (values(false), ok, None, Place::Behind),
            (values(false), ok, Some(5), Place::Behind),
            (values(true), ok, Some(5), Place::NoBody),
            (values(false), empty, None, Place::NoBody),
        ] {
            let head = ResponseHead::new(status);
            encoder.send_head(&head, length, DATE, &mut Vec::new()).expect("a good head");
            assert_eq!(encoder.place_of_trailers(), expected, "{status} {length:?}");
        }
    }

    #[test]
    fn a_response_to_head_has_a_length_and_no_body() {
        let mut sender = ValueSender::new(true);
        sender.send_head(&ResponseHead::new(Status::OK), Some(5), DATE).expect("a good head");
        assert_eq!(sender.send_data(5), DataPlan { allowed: 0, surplus: 0, suffix: b"" });
        assert!(sender.finish().reusable);
    }
}
