//! Admission of requests: refusals where a client makes too many, or connections hold more memory than allowed.

use maitred_http::Status;
use maitred_limits::Rule;

use super::Context;
use super::answer::respond;
use super::held::lacks_room;
use super::link::Link;
use super::pipeline::Received;
use super::response::Response;
use super::stream::Stream;
use super::wire::Wire;

/// Reason of a refusal, and the seconds until another request may be admitted.
pub(super) struct NotNow {
    status: Status,
    text: &'static str,
    seconds: u64,
}

/// Admits the request or refuses it. Costs two loads where no limit is set.
///
/// # Errors
/// The refusal.
pub(super) fn admit(
    link: &impl Link,
    wire: &Wire,
    context: &Context<'_>,
    stream: &Stream,
) -> Result<(), NotNow> {
    let site = &context.group.site;
    let peer = wire.client_of(stream).peer;
    if site.guard.budget.is_over() && !stream.destination.is_engine() {
        site.guard.applied.note(Rule::BufferBudget, peer, &site.log);
        let text = "503 Service Unavailable: the server is short of memory\n";
        return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
    }
    if stream.queue.is_none() && lacks_room(link, wire, context, stream) {
        let text = "503 Service Unavailable: the server is short of memory\n";
        return Err(NotNow { status: Status::SERVICE_UNAVAILABLE, text, seconds: 1 });
    }
    site.guard.request(peer, context.now, &site.log).map_err(|seconds| {
        let text = "429 Too Many Requests: this client makes more requests than it may (--client-rate)\n";
        NotNow { status: Status::TOO_MANY_REQUESTS, text, seconds }
    })
}

/// Answers with 429 or 503. The connection stays after a 429, unless the unwanted body of the request is still to
/// come.
pub(super) fn answer_not_now(
    link: &mut impl Link,
    wire: &mut Wire,
    context: &mut Context<'_>,
    stream: Box<Stream>,
    refusal: NotNow,
) -> Received {
    let NotNow { status, text, seconds } = refusal;
    let is_complete = stream.facts.is_some_and(|facts| facts.complete);
    let response = Response::text(status, text)
        .with("Retry-After", seconds.to_string())
        .keep_alive(is_complete && status == Status::TOO_MANY_REQUESTS);
    respond(link, wire, context, stream, response)
}
