//! Requests of a client that makes too many.

use maitred_h1::Sender;
use maitred_http::{Method, ResponseHead, Status};

use super::{Connection, Context, Turn};
use crate::group::Group;
use crate::scratch::Incoming;
use crate::static_files::Body;

impl Connection {
    /// Whether the peer may make a request now. One load where there is no limit.
    ///
    /// # Errors
    /// It may not; the value are the seconds after which it may.
    pub(super) fn admit(&self, context: &Context<'_>) -> Result<(), u64> {
        let site = &context.group.site;
        site.guard.request(self.peer.ip(), context.now, &site.log)
    }

    /// 429. The connection stays, unless a body is on its way that nobody wants.
    pub(super) fn answer_too_many(
        &mut self,
        context: &mut Context<'_>,
        incoming: Box<Incoming>,
        seconds: u64,
    ) -> Option<Turn> {
        let head = &incoming.request.head;
        let keep_alive = incoming.facts.is_some_and(|facts| facts.keep_alive && facts.complete)
            && !context.group.is_draining();
        let sender = Sender::new(head.version, head.method == Method::Head, keep_alive);
        let text = "429 Too Many Requests: this client makes more requests than it may (--client-rate)\n";
        let answer = ResponseHead::new(Status::TOO_MANY_REQUESTS)
            .with("Content-Type", "text/plain; charset=utf-8")
            .with("Retry-After", seconds.to_string());
        self.answer_now(context, sender, incoming, &answer, text.len() as u64, Body::One(text.into()))
    }

    /// It is over, and does not count for its client any more.
    pub(crate) fn leave(&self, group: &Group) {
        if self.counted {
            group.site.guard.close(self.peer.ip());
        }
    }
}
