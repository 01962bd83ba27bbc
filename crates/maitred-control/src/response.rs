//! An answer on its way to a client: status, fields, body.

use maitred_h1::Sender;
use maitred_http::{ResponseHead, Status, Version, date};
use maitred_io::clock;

use super::Answered;

pub(super) struct Answer {
    status: u16,
    media_type: String,
    pub(super) body: Vec<u8>,
    fields: Vec<(&'static str, String)>,
    to_head: bool,
}

impl From<Answered> for Answer {
    fn from(answered: Answered) -> Self {
        let Answered { status, body, media_type, allow } = answered;
        let fields = allow.into_iter().map(|allow| ("Allow", allow)).collect();
        Self { status, media_type, body: body.into_bytes(), fields, to_head: false }
    }
}

impl Answer {
    pub(super) fn error(status: u16, text: &str) -> Self {
        Answered::error(status, text).into()
    }

    pub(super) fn bytes(status: u16, media_type: &str, body: Vec<u8>) -> Self {
        Self { status, media_type: media_type.to_owned(), body, fields: Vec::new(), to_head: false }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// To a request with HEAD, the answer leaves without its body.
    pub(super) fn asked_with_head(self, to_head: bool) -> Self {
        Self { to_head, ..self }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let Self { status, media_type, body, fields, to_head } = self;
        let code = status;
        let status = Status::from_code(status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
        let mut head = ResponseHead::new(status).with("X-Content-Type-Options", "nosniff");
        if !media_type.is_empty() {
            head = head.with("Content-Type", &*media_type);
        }
        if !fields.iter().any(|(name, _)| *name == "Cache-Control") {
            head = head.with("Cache-Control", "no-store");
        }
        for (name, value) in &fields {
            head = head.with(name, value);
        }
        match code {
            401 => head = head.with("WWW-Authenticate", "Bearer"),
            429 => head = head.with("Retry-After", "1"),
            _ => {}
        }
        let length = (!matches!(code, 204 | 304)).then_some(body.len() as u64);
        let mut sender = Sender::new(Version::Http11, to_head, false);
        let mut out = Vec::with_capacity(body.len() + 256);
        // A head of our own can be sent.
        let date = date::format(clock::unix_seconds());
        let _ = sender.send_head(&head, length, &date, &mut out);
        if sender.send_data(body.len() as u64, &mut out).allowed > 0 {
            out.extend_from_slice(&body);
        }
        sender.finish(None, &mut out);
        out
    }
}
