//! Requests that are not let in: of a client that makes too many, or while connections hold more than they may.

use maitred_h1::Sender;
use maitred_http::{Method, RequestHead, ResponseHead, Status};

use super::answer::is_of_engine;
use super::request::Received;
use super::stream::Stream;
use super::{Connection, Context};
use maitred_files::Body;
use maitred_limits::Rule;

/// Why a request is not let in, and after how many seconds another one may be.
pub(super) struct NotNow {
    status: Status,
    text: &'static str,
    seconds: u64,
}

impl Connection {
    /// Whether the peer may make this request now. Two loads where there is no limit.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn admit(&self, context: &Context<'_>, head: &RequestHead) -> Result<(), NotNow> {
        let site = &context.group.site;
        if site.guard.budget.is_over() && !is_of_engine(site, head) {
            site.guard.applied.note(Rule::BufferBudget, self.peer.ip(), &site.log);
            let text = "503 Service Unavailable: the server is short of memory\n";
            return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
        }
        site.guard.request(self.peer.ip(), context.now, &site.log).map_err(|seconds| {
            let text = "429 Too Many Requests: this client makes more requests than it may (--client-rate)\n";
            NotNow { status: Status::TOO_MANY_REQUESTS, text, seconds }
        })
    }

    /// 429 or 503. The connection stays after the former, unless a body is on its way that nobody wants.
    pub(super) fn answer_not_now(
        &mut self,
        context: &mut Context<'_>,
        stream: Box<Stream>,
        refusal: NotNow,
    ) -> Received {
        let NotNow { status, text, seconds } = refusal;
        let head = &stream.request.head;
        let keep_alive = stream.facts.is_some_and(|facts| facts.keep_alive && facts.complete)
            && status == Status::TOO_MANY_REQUESTS
            && !context.group.is_draining();
        let sender = Sender::new(head.version, head.method == Method::Head, keep_alive);
        let answer = ResponseHead::new(status)
            .with("Content-Type", "text/plain; charset=utf-8")
            .with("Retry-After", seconds.to_string());
        self.answer_now(context, sender, stream, &answer, text.len() as u64, Body::One(text.into()))
    }
}
