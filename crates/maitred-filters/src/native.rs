//! Filters that a program brings: a trait, and the arguments of its methods.

use maitred_http::{Peer, RequestHead, ResponseHead, Status};
use maitred_stats::Times;

/// A filter of the program's own (`Settings::native_filters` of maitred-server): called for every request at
/// the places it names. One value serves all threads at once.
///
/// The first three places are on the thread that polls, with the connection in its hands: a method that waits stops
/// other connections too. Long work belongs into a handler.
pub trait Filter: Send + Sync + 'static {
    /// The name in the list of filters.
    fn name(&self) -> &str;

    /// Where it is called. Asked once.
    fn places(&self) -> &[Place];

    /// The head of a request is there, and its sender has not been authenticated. Its fields may be changed.
    fn before_authentication(&self, request: &mut FilterRequest<'_>) -> Step {
        let _ = request;
        Step::Pass
    }

    /// The request's user is authenticated where that is required ([`RequestHead::user`]). Its fields may be changed.
    fn after_authentication(&self, request: &mut FilterRequest<'_>) -> Step {
        let _ = request;
        Step::Pass
    }

    /// The response to a request that came to the filters begins, of whomever. Framing fields are decided later.
    fn response(&self, request: &RequestHead, response: &mut ResponseHead) {
        let _ = (request, response);
    }

    /// A response has left, or its peer has: called for requests that were refused before any filter, too.
    fn trace(&self, exchange: &Traced<'_>) {
        let _ = exchange;
    }
}

/// A place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Behind the configured filters that come before authentication.
    BeforeAuthentication,
    /// Where users are asked for.
    Authentication,
    /// Behind the configured ones that come after it.
    AfterAuthentication,
    /// Behind the configured changes of the response's fields.
    Response,
    /// After the response.
    Trace,
}

impl Place {
    /// All of them, in the order in which a request comes to them.
    pub const ALL: [Self; 5] = [
        Self::BeforeAuthentication,
        Self::Authentication,
        Self::AfterAuthentication,
        Self::Response,
        Self::Trace,
    ];

    /// The name in the list of filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeAuthentication => "before authentication",
            Self::Authentication => "authentication",
            Self::AfterAuthentication => "after authentication",
            Self::Response => "response",
            Self::Trace => "trace",
        }
    }
}

/// The decision of a filter about a request.
#[derive(Debug)]
pub enum Step {
    /// The request goes on.
    Pass,
    /// The request is answered: status and fields, and the body.
    Answer(ResponseHead, Vec<u8>),
}

/// A request whose body has not been asked for.
#[derive(Debug)]
pub struct FilterRequest<'a> {
    /// Its head. Everything behind the filters sees its [`path_and_query`](RequestHead::path_and_query).
    pub head: &'a mut RequestHead,
    /// The peer that has sent it.
    pub peer: Peer,
}

/// A request that is over, with its result.
#[derive(Debug)]
pub struct Traced<'a> {
    /// Its head, as the filters have left it.
    pub head: &'a RequestHead,
    /// The peer that has sent it.
    pub peer: Peer,
    /// The status of its response.
    pub status: Status,
    /// Bytes of the body of the response.
    pub body_bytes: u64,
    /// Whether all of it has left.
    pub complete: bool,
    /// When it passed its stations.
    pub times: Times,
}
