//! A handler that answers from a list and remembers its requests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use maitred_http::{RequestHead, ResponseHead, Status};
use maitred_runtime::{Exchange, Handler, InvocationType};

/// A request as the handler saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The head.
    pub head: RequestHead,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Answers each request with the next response of its list, and with 500 when the list is used up.
#[derive(Debug, Default)]
pub struct ScriptedHandler {
    answers: Mutex<VecDeque<(ResponseHead, Vec<u8>)>>,
    seen: Mutex<Vec<Seen>>,
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere in the test is reported there.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptedHandler {
    /// A handler without answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer behind those that are there.
    #[must_use]
    pub fn then(self, head: ResponseHead, body: impl Into<Vec<u8>>) -> Self {
        lock(&self.answers).push_back((head, body.into()));
        self
    }

    /// The requests so far, in the order they came.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }
}

impl Handler for ScriptedHandler {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn handle(&self, exchange: Exchange) {
        let request = exchange.request();
        let body = request.body.to_vec().expect("the body can be read");
        lock(&self.seen).push(Seen { head: request.head.clone(), body });
        let answer = lock(&self.answers).pop_front();
        let (head, body) =
            answer.unwrap_or_else(|| (ResponseHead::new(Status::INTERNAL_SERVER_ERROR), Vec::new()));
        // A peer that is gone is the business of the test, which sees it at its end.
        let _ = exchange.respond(head, body);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use maitred_runtime::{Content, Flow, Observe, Request, Respond, SendError};

    use super::*;

    type Answers = Arc<Mutex<Vec<(u16, Vec<u8>)>>>;

    /// Keeps the status and the body of each answer.
    #[derive(Default)]
    struct Keep(Answers);

    impl Respond for Keep {
        fn send_head(&mut self, _: &Request, head: &ResponseHead, _: Option<u64>) -> Result<(), SendError> {
            lock(&self.0).push((head.status.code(), Vec::new()));
            Ok(())
        }

        fn send_data(&mut self, _: &Request, content: Content) -> Result<Flow, SendError> {
            if let (Content::Bytes(bytes), Some((_, body))) = (content, lock(&self.0).last_mut()) {
                body.extend(bytes);
            }
            Ok(Flow::Ready)
        }

        fn finish(self: Box<Self>, _: Box<Request>) {}

        fn abort(self: Box<Self>, _: Box<Request>, reason: &str) {
            panic!("{reason}");
        }

        fn wait(&mut self, _: Duration) -> Result<Flow, SendError> {
            Ok(Flow::Ready)
        }

        fn is_closed(&self) -> bool {
            false
        }

        fn observe(&mut self, _: Arc<dyn Observe>) {}

        fn has_peer_ended(&self) -> bool {
            false
        }

        fn is_full(&self) -> bool {
            false
        }
    }

    #[test]
    fn answers_come_in_order_and_then_500() {
        let handler = ScriptedHandler::new()
            .then(ResponseHead::new(Status::OK), "first")
            .then(ResponseHead::new(Status::NOT_FOUND), "second");
        let kept = Answers::default();
        for body in [b"a", b"b", b"c"] {
            let request = Request { body: body.to_vec().into(), ..Request::default() };
            handler.handle(Exchange::new(request, Box::new(Keep(Arc::clone(&kept)))));
        }
        let expected = [(200, b"first".to_vec()), (404, b"second".to_vec()), (500, vec![])];
        assert_eq!(*lock(&kept), expected);
        let bodies: Vec<_> = handler.seen().into_iter().map(|seen| seen.body).collect();
        assert_eq!(bodies, [b"a", b"b", b"c"]);
    }
}
