//! A server without a network: the receiver and the sender around a few fixed answers.

use maitred_h1::{Event, HeadFacts, Limits, Receiver, Sender};
use maitred_http::{Method, RequestHead, ResponseHead, Status, Version};
use maitred_testkit::Peer;

pub(crate) const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// Answers `/hello` with a known length, `/stream` with an unknown one, `/echo` with the body and
/// its trailers, everything else with 404.
#[derive(Default)]
pub(crate) struct Server {
    receiver: Receiver,
    head: RequestHead,
    facts: HeadFacts,
    sender: Option<Sender>,
    body: Vec<u8>,
    held: Vec<u8>,
    out: Vec<u8>,
    closed: bool,
}

impl Server {
    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Head(facts) => {
                self.facts = facts;
                self.body.clear();
                let to_head = self.head.method == Method::Head;
                let mut sender = Sender::new(self.head.version, to_head, facts.keep_alive);
                if facts.expect_continue {
                    sender.send_continue(&mut self.out);
                }
                self.sender = Some(sender);
                if facts.complete {
                    self.answer();
                }
            }
            Event::Data(bytes) => self.body.extend_from_slice(bytes),
            Event::Trailers(fields) => {
                for (name, value) in fields.iter() {
                    self.body.extend_from_slice(&[b"[", name, b"=", value, b"]"].concat());
                }
            }
            Event::End => self.answer(),
            Event::NeedMore => {}
        }
    }

    fn answer(&mut self) {
        let Some(mut sender) = self.sender.take() else { return };
        let plain = ResponseHead::new(Status::OK);
        let (head, length, parts) = match self.head.path() {
            b"/hello" => (plain, Some(5), vec![b"hello".to_vec()]),
            b"/stream" => (plain, None, vec![b"one".to_vec(), b"and two".to_vec()]),
            b"/echo" => (plain, Some(self.body.len() as u64), vec![std::mem::take(&mut self.body)]),
            b"*" => (plain.with("Allow", "GET, HEAD"), Some(0), vec![]),
            _ => (ResponseHead::new(Status::NOT_FOUND), Some(0), vec![]),
        };
        if sender.send_head(&head, length, DATE, &mut self.out).is_err() {
            self.closed = true;
            return;
        }
        for part in parts {
            let plan = sender.send_data(part.len() as u64, &mut self.out);
            self.out.extend_from_slice(&part[..plan.allowed as usize]);
            self.out.extend_from_slice(plan.suffix);
        }
        self.closed |= !sender.finish(None, &mut self.out).reusable;
    }
}

impl Peer for Server {
    fn handle_input(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        while !self.closed {
            match self.receiver.poll_event(rest, &mut self.head, &Limits::default()) {
                Ok(step) => {
                    rest = &rest[step.consumed..];
                    if matches!(step.event, Event::NeedMore) {
                        break;
                    }
                    self.handle_event(step.event);
                }
                Err(error) => {
                    let text = error.reason.as_bytes();
                    let mut sender = Sender::new(Version::Http11, false, false);
                    let head = ResponseHead::new(error.status);
                    sender
                        .send_head(&head, Some(text.len() as u64), DATE, &mut self.out)
                        .expect("a good head");
                    sender.send_data(text.len() as u64, &mut self.out);
                    self.out.extend_from_slice(text);
                    self.closed = true;
                }
            }
        }
        self.held = rest.to_vec();
    }

    fn poll_transmit(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}
