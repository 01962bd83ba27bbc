//! Responses whose form depends on their body: compressed ones, and ranges of complete ones.
//!
//! ```text
//! Held --a part--> (as it is) | Parts --end--> complete, or cut where the application was too short
//!   `--all of it--> one response with its length: compressed, or the ranges that were asked for, or as it is
//! ```
//! A valid head is held until then. A caller that wants the head to leave before the body calls
//! [`begin_parts`](Responder::begin_parts).

use std::os::unix::fs::FileExt;

use maitred_compress as compress;
use maitred_compress::{Compressing, Compression};
use maitred_exchange::last_bytes;
use maitred_files::partial;
use maitred_h1::Finish;
use maitred_http::ResponseHead;
use maitred_http::coding::Coding;
use maitred_log::End;
use maitred_runtime::{Content, Flow, Last, Request, Respond, SendError};

use super::{On, Responder, cut};
use maitred_exchange::memory::with_date;
use maitred_exchange::stages::Wish;

/// Size of the pieces in which a file in a compressed stream is read.
const PIECE: usize = 64 * 1024;

/// State of a body that is reshaped.
pub(super) enum Reshaping {
    Held(Held),
    Parts(Parts),
}

/// A head that waits for its body.
pub(super) struct Held {
    /// The head for an unchanged body.
    pub(super) head: ResponseHead,
    pub(super) length: Option<u64>,
    pub(super) wish: Wish,
}

/// A body that is compressed part by part.
pub(super) struct Parts {
    compressing: Compressing,
    /// Bytes missing of the length that the application declared.
    left: Option<u64>,
    /// Uncompressed and compressed bytes so far.
    taken: u64,
    made: u64,
}

impl Responder {
    fn compression(&self) -> Option<&Compression> {
        self.group.site.compression.as_ref()
    }

    /// Calls `act`, which compresses `bytes` bytes, without the interpreter. An event loop keeps the interpreter: it
    /// has nothing else to do meanwhile, and would have to wait for a thread that has taken it.
    fn compress(&self, bytes: usize, act: &mut dyn FnMut()) {
        if bytes >= compress::RELEASED_FROM && !self.group.is_on_loop(self.origin.pool.into()) {
            self.group.host_of(self.origin.pool.into()).without_interpreter(act);
        } else {
            act();
        }
    }

    /// Writes a head that was found valid.
    fn write_head(&mut self, head: &ResponseHead, length: Option<u64>) {
        let written = with_date(|date| self.encoder.send_head(head, length, date, &mut self.buffer));
        debug_assert!(written.is_ok(), "it was tried");
        self.status = head.status;
    }

    /// Writes a held head before the body is complete; from then on a body to compress is compressed part by part.
    pub(super) fn begin_parts(&mut self) {
        let held = self.reshaping.take_if(|reshaping| matches!(**reshaping, Reshaping::Held(_)));
        let Some(Reshaping::Held(Held { head, length, wish })) = held.map(|held| *held) else { return };
        let compressed = self.compression().and_then(|compression| match wish {
            Wish::Compress(coding) => {
                Some((compression.head(&head, coding)?, compression.for_stream(coding)?))
            }
            Wish::Ranges => None,
        });
        let Some((head, compressing)) = compressed else { return self.write_head(&head, length) };
        self.write_head(&head, None);
        let parts = Parts { compressing, left: length, taken: 0, made: 0 };
        self.reshaping = Some(Box::new(Reshaping::Parts(parts)));
    }

    /// Writes a held head of a response without a body.
    pub(super) fn begin_without_body(&mut self) {
        let held = self.reshaping.take_if(|reshaping| matches!(**reshaping, Reshaping::Held(_)));
        if let Some(Reshaping::Held(Held { head, length, .. })) = held.map(|held| *held) {
            self.write_head(&head, length);
        }
    }

    /// `send_data` for a reshaped response.
    pub(super) fn send_reshaped(&mut self, request: &Request, content: Content) -> Result<Flow, SendError> {
        let all = Some(content.len());
        let is_all = |reshaping: &mut Box<Reshaping>| matches!(&**reshaping, Reshaping::Held(held) if held.length == all);
        if let Some(Reshaping::Held(held)) = self.reshaping.take_if(is_all).map(|reshaping| *reshaping) {
            let mut flow = Flow::Ready;
            for part in self.replace(request, &held, content) {
                flow = self.send_data(request, part)?;
            }
            return Ok(flow);
        }
        self.begin_parts();
        let Some(mut reshaping) = self.reshaping.take() else { return self.send_data(request, content) };
        let Reshaping::Parts(parts) = &mut *reshaping else { return Err(SendError::Closed) };
        let (content, surplus) = parts.admit(content);
        let sent = self.send_part(request, parts, &content);
        let declared = parts.taken;
        self.reshaping = Some(reshaping);
        if surplus > 0 && sent.is_ok() {
            self.report_surplus(request, surplus);
            return Err(SendError::TooLong { declared });
        }
        sent
    }

    /// Compresses a part and sends the output.
    fn send_part(
        &mut self,
        request: &Request,
        parts: &mut Parts,
        content: &Content,
    ) -> Result<Flow, SendError> {
        let Content::File(range) = content else {
            return self.send_block(request, parts, content.bytes().unwrap_or_default());
        };
        let (mut flow, mut done) = (Flow::Ready, 0);
        let mut piece = vec![0; PIECE];
        while done < range.length {
            let want = (range.length - done).min(PIECE as u64) as usize;
            if let Err(error) = range.file.read_exact_at(&mut piece[..want], range.offset + done) {
                self.group
                    .site
                    .log
                    .error(format_args!("{}: reading: {error}", On(self.origin.peer, request)));
                return Err(SendError::Closed);
            }
            flow = self.send_block(request, parts, &piece[..want])?;
            done += want as u64;
        }
        Ok(flow)
    }

    fn send_block(&mut self, request: &Request, parts: &mut Parts, block: &[u8]) -> Result<Flow, SendError> {
        let made = self.make(request, parts, block)?;
        let plan = self.encoder.send_data(made.len() as u64, &mut self.buffer);
        self.body_bytes += plan.allowed;
        if plan.allowed == 0 { Ok(Flow::Ready) } else { self.deliver(made.into(), plan.suffix) }
    }

    /// Compresses a block.
    fn make(&self, request: &Request, parts: &mut Parts, block: &[u8]) -> Result<Vec<u8>, SendError> {
        let mut made = Vec::new();
        let mut done = Ok(());
        self.compress(block.len(), &mut || done = parts.compressing.encoder.block(block, &mut made));
        if done.is_err() {
            return Err(self.report_failed(request));
        }
        parts.made += made.len() as u64;
        Ok(made)
    }

    fn report_failed(&self, request: &Request) -> SendError {
        let on = On(self.origin.peer, request);
        self.group.site.log.error(format_args!("{on}: there is no memory to compress the response with"));
        SendError::Closed
    }

    /// `finish_with` for a reshaped response.
    pub(super) fn finish_reshaped(
        mut self: Box<Self>,
        reshaping: Reshaping,
        request: Box<Request>,
        last: Last<'_>,
    ) -> Result<(), SendError> {
        let held = match reshaping {
            Reshaping::Parts(parts) => return self.finish_parts(parts, request, last),
            Reshaping::Held(held) => held,
        };
        if held.length.is_some_and(|length| length != last.len()) {
            // The declared length is not used: the length is counted as for every body.
            self.reshaping = Some(Box::new(Reshaping::Held(held)));
            self.begin_parts();
            return self.finish_with(request, last);
        }
        match held.wish {
            Wish::Compress(coding) => {
                let compressed = self.compress_all(&held.head, coding, &last);
                if let Some((head, body)) = compressed {
                    self.write_head(&head, Some(body.len() as u64));
                    return self.finish_with(request, Last::Given(body.into()));
                }
                self.write_head(&held.head, Some(last.len()));
                self.finish_with(request, last)
            }
            Wish::Ranges => {
                let mut parts = self.replace(&request, &held, last.keep());
                let last = parts.pop().unwrap_or(Content::Static(b""));
                for part in parts {
                    // The end of the exchange notes a peer that is gone.
                    let _ = self.send_data(&request, part);
                }
                self.finish_with(request, Last::Given(last))
            }
        }
    }

    /// Compresses a complete body with its head. `None` if the body is sent as it is: files, which leave without
    /// being read, and bodies that would not become smaller.
    fn compress_all(
        &self,
        head: &ResponseHead,
        coding: Coding,
        last: &Last<'_>,
    ) -> Option<(ResponseHead, Vec<u8>)> {
        let compression = self.compression()?;
        let body = last_bytes(last).filter(|body| body.len() as u64 >= compression.min_length())?;
        let level = compression.level(coding)?;
        let (mut made, mut done) = (Vec::with_capacity(body.len() / 3), Ok(()));
        self.compress(body.len(), &mut || done = compress::whole(coding, level, body, &mut made));
        if done.is_err() || made.len() >= body.len() {
            return None;
        }
        compression.note(coding, 1, body.len() as u64, made.len() as u64);
        Some((compression.head(head, coding)?, made))
    }

    /// Returns the content in place of a complete body, and writes its head.
    fn replace(&mut self, request: &Request, held: &Held, body: Content) -> Vec<Content> {
        let wanted = match held.wish {
            Wish::Compress(coding) => {
                let body = Last::Given(body);
                if let Some((head, made)) = self.compress_all(&held.head, coding, &body) {
                    self.write_head(&head, Some(made.len() as u64));
                    return vec![made.into()];
                }
                Err(body.keep())
            }
            Wish::Ranges => partial::parts(&request.head, &held.head, body),
        };
        match wanted {
            Ok(wanted) => {
                self.write_head(&wanted.head, Some(wanted.length));
                wanted.parts
            }
            Err(body) => {
                self.write_head(&held.head, Some(body.len()));
                vec![body]
            }
        }
    }

    /// Sends the last part of a body that is compressed part by part.
    fn finish_parts(
        mut self: Box<Self>,
        mut parts: Parts,
        request: Box<Request>,
        last: Last<'_>,
    ) -> Result<(), SendError> {
        let (content, surplus) = parts.admit(last.keep());
        let short_by = parts.left.unwrap_or(0);
        // The last block leaves together with the end, unless the body is too short or the block has to be read
        // first.
        let block = if short_by > 0 { None } else { content.bytes() };
        if block.is_none()
            && let Err(error) = self.send_part(&request, &mut parts, &content)
        {
            // The decoded body would be incomplete.
            let _ = (*self).end(request, false, End::Cut, Last::NOTHING, b"");
            return Err(error);
        }
        if short_by > 0 {
            let end = self.end_of(&request, Finish { reusable: false, short_by });
            return (*self).end(request, false, end, Last::NOTHING, b"");
        }
        let surplus = (surplus > 0).then(|| {
            self.report_surplus(&request, surplus);
            SendError::TooLong { declared: parts.taken }
        });
        let Parts { compressing: Compressing { encoder, coding, .. }, taken, made, .. } = parts;
        let (mut encoder, mut tail, mut done) = (Some(encoder), Vec::new(), Ok(()));
        let block = block.unwrap_or_default();
        self.compress(block.len(), &mut || {
            done = encoder.take().map_or(Ok(()), |encoder| encoder.last(block, &mut tail));
        });
        if done.is_err() {
            let error = self.report_failed(&request);
            let _ = (*self).end(request, false, End::Cut, Last::NOTHING, b"");
            return Err(error);
        }
        if let Some(compression) = self.compression() {
            compression.note(coding, 1, taken, made + tail.len() as u64);
        }
        let sent = self.finish_with(request, Last::Given(tail.into()));
        surplus.map_or(sent, Err)
    }
}

impl Parts {
    /// Splits `content` into the part within the declared length and the number of bytes beyond.
    fn admit(&mut self, content: Content) -> (Content, u64) {
        let length = content.len();
        let allowed = self.left.map_or(length, |left| left.min(length));
        self.left = self.left.map(|left| left - allowed);
        self.taken += allowed;
        (cut(content, allowed), length - allowed)
    }
}
