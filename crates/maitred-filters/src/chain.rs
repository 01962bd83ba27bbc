//! The configured filters of a server, and the way of one request through them.
//!
//! ```text
//! head ─► access ─► redirect ─► own ─► user? ──────────► rewrite ─► fields ─► own ─► body, routes ... ─► response's fields
//!           403       30x              401  `─ checking ─┘                                               of all of them
//! ```
//! Of each kind, the most specific filter that a request meets decides, as with the rules of pools; fields are changed by all
//! that it meets, by the most specific one last.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use maitred_http::{Peer, RequestHead, ResponseHead, Status, target};
use maitred_match::{Ambiguity, PathPattern, RuleIndex, decide};
use maitred_stats::Counters;

use crate::basic::hasher::{Full, Hasher, Ticket};
use crate::basic::{Asked, Authentication};
use crate::native::{Filter, FilterRequest, Place, Step};
use crate::rule::{Asker, Condition, FilterRule};

/// The kinds of filters, in the order in which a request comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Access,
    Redirect,
    MaxBody,
    ReadAhead,
    Authentication,
    Rewrite,
    Request,
    Response,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Access,
        Self::Redirect,
        Self::MaxBody,
        Self::ReadAhead,
        Self::Authentication,
        Self::Rewrite,
        Self::Request,
        Self::Response,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Redirect => "redirect",
            Self::MaxBody => "max-body",
            Self::ReadAhead => "read-ahead",
            Self::Authentication => "basic-auth",
            Self::Rewrite => "rewrite",
            Self::Request => "request fields",
            Self::Response => "response fields",
        }
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Self::Access | Self::Redirect | Self::MaxBody | Self::ReadAhead => Place::BeforeAuthentication,
            Self::Authentication => Place::Authentication,
            Self::Rewrite | Self::Request => Place::AfterAuthentication,
            Self::Response => Place::Response,
        }
    }

    /// The effect of a rule of this kind in words, if it has one.
    pub(crate) fn of(self, rule: &FilterRule) -> Option<String> {
        match self {
            Self::Access => rule.access.as_ref().map(ToString::to_string),
            Self::Redirect => rule.redirect.as_ref().map(ToString::to_string),
            Self::MaxBody => rule.max_body.map(|bytes| format!("at most {bytes} bytes")),
            Self::ReadAhead => rule.read_ahead.map(|on| if on { "on" } else { "off" }.to_owned()),
            Self::Authentication => rule.authentication.as_ref().map(|authentication| match authentication {
                Authentication::Off => "nobody is asked".to_owned(),
                Authentication::Basic(basic) => {
                    format!("users of {}, realm {}", basic.users().path().display(), basic.realm())
                }
            }),
            Self::Rewrite => rule.rewrite.as_ref().map(|rewrite| format!("to {rewrite}")),
            Self::Request => Some(&rule.request).filter(|it| !it.is_empty()).map(ToString::to_string),
            Self::Response => {
                let does = Some(&rule.response).filter(|it| !it.is_empty()).map(ToString::to_string);
                does.map(|does| match &rule.response_status {
                    Some(statuses) => format!("{does} (status {statuses})"),
                    None => does,
                })
            }
        }
    }

    /// Whether of several rules only the most specific one counts.
    pub(crate) fn is_exclusive(self) -> bool {
        !matches!(self, Self::Request | Self::Response)
    }
}

/// The counters of each rule and kind.
const HITS: usize = 0;
const ANSWERED: usize = 1;

/// The rules. Immutable: a change puts another chain in their place.
#[derive(Default)]
pub(crate) struct Chain {
    /// The most specific one first.
    pub(crate) rules: Box<[Entry]>,
    index: RuleIndex,
    /// A rule asks for the path of each request.
    asks_all: bool,
}

pub(crate) struct Entry {
    pub(crate) rule: FilterRule,
    counts: [Option<Box<Counters<2>>>; Kind::ALL.len()],
}

impl Entry {
    fn new(rule: FilterRule) -> Self {
        let counts = Kind::ALL.map(|kind| kind.of(&rule).map(|_| Box::default()));
        Self { rule, counts }
    }

    fn count(&self, kind: Kind, answered: bool) {
        if let Some(counts) = &self.counts[kind as usize] {
            counts.add(HITS, 1);
            if answered {
                counts.add(ANSWERED, 1);
            }
        }
    }

    pub(crate) fn counts(&self, kind: Kind) -> [u64; 2] {
        self.counts[kind as usize].as_ref().map_or([0; 2], |counts| counts.snapshot())
    }
}

impl Chain {
    pub(crate) fn new(rules: Vec<FilterRule>) -> Self {
        let mut entries: Vec<Entry> = rules.into_iter().map(Entry::new).collect();
        // The sort is stable: the later one of two equal rules has to stand first before it.
        entries.reverse();
        entries.sort_by_cached_key(|entry| Reverse(entry.rule.when.specificity()));
        let index = RuleIndex::new(entries.iter().map(|entry| {
            let Condition { host, path, .. } = &entry.rule.when;
            (host.as_ref().map(|host| host.number), path.as_ref().and_then(PathPattern::first_segment))
        }));
        let asks_all = entries.iter().any(|entry| entry.rule.when.asks_for_path_alone());
        Self { rules: entries.into(), index, asks_all }
    }

    /// The positions of the rules that a request meets. `path` becomes its decoded and normalised path, if it depends on that.
    pub(crate) fn met(
        &self,
        head: &RequestHead,
        path: &mut Vec<u8>,
        asker: Asker,
    ) -> Result<Vec<u32>, Ambiguity> {
        let at = |path: &[u8]| {
            let is_met = |place: &usize| self.rules[*place].rule.when.is_met(head, path, asker);
            // There are fewer than 2^32.
            self.index.candidates(head.host, path).filter(is_met).map(|place| place as u32).collect()
        };
        let asks = |when: &Condition| when.path.is_some() && when.is_met_but_path(head, asker);
        // A plain path has one reading.
        let is_certain = || target::is_plain(head.path()) || self.asks_all;
        if is_certain() || self.rules.iter().any(|entry| asks(&entry.rule.when)) {
            decide(head.path(), path, at)
        } else {
            Ok(at(b""))
        }
    }

    /// The first of the rules at these positions that does something of this kind.
    pub(crate) fn first(&self, met: &[u32], kind: Kind) -> Option<&Entry> {
        let mut entries = met.iter().filter_map(|position| self.rules.get(*position as usize));
        entries.find(|entry| entry.counts[kind as usize].is_some())
    }
}

#[derive(Default)]
pub(crate) struct Own {
    pub(crate) all: Vec<Arc<dyn Filter>>,
    pub(crate) before: Vec<Arc<dyn Filter>>,
    pub(crate) after: Vec<Arc<dyn Filter>>,
    pub(crate) response: Vec<Arc<dyn Filter>>,
    pub(crate) trace: Vec<Arc<dyn Filter>>,
}

impl Own {
    pub(crate) fn new(all: Vec<Arc<dyn Filter>>) -> Self {
        let at = |place| all.iter().filter(|filter| filter.places().contains(&place)).cloned().collect();
        Self {
            before: at(Place::BeforeAuthentication),
            after: at(Place::AfterAuthentication),
            response: at(Place::Response),
            trace: at(Place::Trace),
            all,
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty() && self.response.is_empty())
    }
}

/// A request in the filters, and behind them.
pub struct Passed {
    chain: Arc<Chain>,
    own: Arc<Own>,
    /// The positions of the rules that it meets, the most specific one first.
    met: Vec<u32>,
    stage: Stage,
}

enum Stage {
    Before,
    Authentication,
    Checking(Ticket),
    After,
    Done,
}

/// The decision about a request.
pub enum Decision {
    /// The request goes on.
    Pass,
    /// A password is being checked.
    Wait,
    /// The request gets this answer.
    Answer(Answer),
}

/// An answer of a filter.
pub struct Answer {
    /// The head of the response.
    pub head: ResponseHead,
    /// The body of the response.
    pub body: Cow<'static, [u8]>,
    /// A suspicion about the client for its operator.
    pub suspicion: Option<Suspicion>,
}

/// The reason to suspect a client that is asked for a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// The name or the password is wrong.
    WrongPassword,
    /// Too many passwords of this client wait to be checked.
    TooMany,
    /// Too many of all clients do.
    TooManyOfAll,
}

impl Answer {
    /// An answer with the status as its text.
    fn plain(head: ResponseHead) -> Self {
        let text = format!("{} {}\n", head.status.code(), head.status.reason());
        let head = head.with("Content-Type", "text/plain; charset=utf-8");
        Self { head, body: Cow::Owned(text.into_bytes()), suspicion: None }
    }

    fn of(self, suspicion: Suspicion) -> Self {
        Self { suspicion: Some(suspicion), ..self }
    }
}

/// The facts that a decision needs besides the request.
pub struct At<'a> {
    /// The decoded and normalised path of the request as it was sent.
    pub path: &'a [u8],
    /// The peer that has sent the request.
    pub peer: Peer,
    /// The number that all addresses of a client share; none for a client without limits.
    pub client: Option<u128>,
    /// The time in monotonic nanoseconds.
    pub now: u64,
    /// The threads that check passwords, if there are any.
    pub hasher: Option<&'a Hasher>,
    /// Counts a check of this client in all processes for as long as the value lives; none if the client has so many.
    pub count: &'a dyn Fn(u32) -> Option<Box<dyn Send + Sync>>,
    /// Makes the callback for the end of a password check.
    pub wake: &'a dyn Fn() -> Box<dyn Fn() + Send + Sync>,
}

impl Passed {
    pub(crate) fn new(chain: Arc<Chain>, own: Arc<Own>, met: Vec<u32>) -> Self {
        let this = Self { chain, own, met, stage: Stage::Before };
        for kind in [Kind::MaxBody, Kind::ReadAhead] {
            if let Some(entry) = this.chain.first(&this.met, kind) {
                entry.count(kind, false);
            }
        }
        this
    }

    /// Whether a password check is under way, or its result has not been looked at.
    pub fn is_checking(&self) -> bool {
        matches!(self.stage, Stage::Checking(_))
    }

    /// The filters for an answer in the place of a handler, which has this value.
    pub fn for_answer(&self) -> Self {
        let (chain, own) = (Arc::clone(&self.chain), Arc::clone(&self.own));
        Self { chain, own, met: self.met.clone(), stage: Stage::Done }
    }

    /// Whether there is nothing to do yet.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.stage, Stage::Checking(ticket) if !ticket.is_ready())
    }

    /// The longest body, where a filter says so.
    pub fn max_body(&self) -> Option<u64> {
        self.chain.first(&self.met, Kind::MaxBody)?.rule.max_body
    }

    /// Whether the body is read before the application runs, where a filter says so.
    pub fn read_ahead(&self) -> Option<bool> {
        self.chain.first(&self.met, Kind::ReadAhead)?.rule.read_ahead
    }

    /// Leads a request on. After [`Decision::Wait`], call again when it is not [waiting](Self::is_waiting).
    pub fn decide(&mut self, head: &mut RequestHead, at: &At<'_>) -> Decision {
        loop {
            let found = match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Before => {
                    if let Some(answer) = self.before(head, at) {
                        return Decision::Answer(answer);
                    }
                    self.stage = Stage::Authentication;
                    continue;
                }
                Stage::Authentication => match self.ask(head, at) {
                    None => {
                        self.stage = Stage::After;
                        continue;
                    }
                    Some(Asked::Known(found)) => found,
                    Some(Asked::Nothing) => return Decision::Answer(self.challenge()),
                    Some(Asked::Checking(ticket)) => {
                        self.stage = Stage::Checking(ticket);
                        return Decision::Wait;
                    }
                    Some(Asked::Busy(full)) => return Decision::Answer(busy(full)),
                },
                Stage::Checking(ticket) => match ticket.result() {
                    Some(found) => found,
                    None => {
                        self.stage = Stage::Checking(ticket);
                        return Decision::Wait;
                    }
                },
                Stage::After => return self.after(head, at).map_or(Decision::Pass, Decision::Answer),
                Stage::Done => return Decision::Pass,
            };
            let Some(user) = found else {
                return Decision::Answer(self.challenge().of(Suspicion::WrongPassword));
            };
            if let Some(entry) = self.chain.first(&self.met, Kind::Authentication) {
                entry.count(Kind::Authentication, false);
            }
            // Only four gigabytes of fields leave no room.
            head.user = head.fields.adopt(user.as_bytes()).unwrap_or_default();
            self.stage = Stage::After;
        }
    }

    fn before(&self, head: &mut RequestHead, at: &At<'_>) -> Option<Answer> {
        if let Some(entry) = self.chain.first(&self.met, Kind::Access) {
            let client = at.peer.ip();
            let allowed = entry.rule.access.as_ref().is_none_or(|access| access.allows(client));
            entry.count(Kind::Access, !allowed);
            if !allowed {
                return Some(Answer::plain(ResponseHead::new(Status::FORBIDDEN)));
            }
        }
        if let Some(entry) = self.chain.first(&self.met, Kind::Redirect)
            && let Some(redirect) = &entry.rule.redirect
            && let Some(location) = redirect.location(entry.rule.when.path.as_ref(), at.path, head.query())
        {
            entry.count(Kind::Redirect, true);
            let head = ResponseHead::new(redirect.status()).with("Location", location);
            return Some(Answer::plain(head));
        }
        let mut request = FilterRequest { head, peer: at.peer };
        call(&self.own.before, |filter| filter.before_authentication(&mut request))
    }

    fn ask(&self, head: &RequestHead, at: &At<'_>) -> Option<Asked> {
        let entry = self.chain.first(&self.met, Kind::Authentication)?;
        match &entry.rule.authentication {
            Some(Authentication::Basic(basic)) => {
                Some(basic.ask(head, (at.client, at.now), at.hasher, at.count, at.wake))
            }
            _ => {
                entry.count(Kind::Authentication, false);
                None
            }
        }
    }

    fn challenge(&self) -> Answer {
        let entry = self.chain.first(&self.met, Kind::Authentication);
        if let Some(entry) = entry {
            entry.count(Kind::Authentication, true);
        }
        Answer::plain(match entry.and_then(|entry| entry.rule.authentication.as_ref()) {
            Some(Authentication::Basic(basic)) => basic.challenge(),
            _ => ResponseHead::new(Status::UNAUTHORIZED),
        })
    }

    fn after(&self, head: &mut RequestHead, at: &At<'_>) -> Option<Answer> {
        if let Some(entry) = self.chain.first(&self.met, Kind::Rewrite)
            && head.path().starts_with(b"/")
            && let Some(rewrite) = &entry.rule.rewrite
            && let Some(target) = rewrite.target(entry.rule.when.path.as_ref(), at.path, head.query())
        {
            entry.count(Kind::Rewrite, false);
            if let Some(span) = head.fields.adopt(&target) {
                head.path_and_query = span;
            }
        }
        for entry in self.all(Kind::Request) {
            entry.count(Kind::Request, false);
            entry.rule.request.apply(&mut head.fields);
        }
        let mut request = FilterRequest { head, peer: at.peer };
        call(&self.own.after, |filter| filter.after_authentication(&mut request))
    }

    fn all(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        let entries = self.met.iter().rev().filter_map(|position| self.chain.rules.get(*position as usize));
        entries.filter(move |entry| entry.counts[kind as usize].is_some())
    }

    /// The head of a response with the changes of the filters; none if there are none.
    pub fn response_head(&self, request: &RequestHead, head: &ResponseHead) -> Option<ResponseHead> {
        let mut changed: Option<ResponseHead> = None;
        for entry in self.all(Kind::Response).filter(|entry| entry.rule.changes(head.status)) {
            entry.count(Kind::Response, false);
            entry.rule.response.apply(&mut changed.get_or_insert_with(|| head.clone()).fields);
        }
        for filter in &self.own.response {
            filter.response(request, changed.get_or_insert_with(|| head.clone()));
        }
        changed
    }

    /// The body was longer than [`max_body`](Self::max_body).
    pub fn note_too_long(&self) {
        if let Some(counts) = self
            .chain
            .first(&self.met, Kind::MaxBody)
            .and_then(|entry| entry.counts[Kind::MaxBody as usize].as_ref())
        {
            counts.add(ANSWERED, 1);
        }
    }
}

fn call(filters: &[Arc<dyn Filter>], mut ask: impl FnMut(&dyn Filter) -> Step) -> Option<Answer> {
    filters.iter().find_map(|filter| match ask(&**filter) {
        Step::Pass => None,
        Step::Answer(head, body) => Some(Answer { head, body: Cow::Owned(body), suspicion: None }),
    })
}

fn busy(full: Full) -> Answer {
    let (status, suspicion) = match full {
        Full::Share => (Status::TOO_MANY_REQUESTS, Suspicion::TooMany),
        Full::Queue => (Status::SERVICE_UNAVAILABLE, Suspicion::TooManyOfAll),
    };
    Answer::plain(ResponseHead::new(status).with("Retry-After", "1")).of(suspicion)
}
