//! Traces: the place of a request in its trace, and the spans that are made of its outcome.
//!
//! ```text
//! head --place--> TracePlace, traceparent of ours --> application, calls
//! record --note--> kept by the sampling, or slow, or failed? --span.rs--> exporter, which the server's driver empties
//! ```
//! Promises: a request waits for nothing here, and one that is not kept allocates nothing. Leaves out: the messages, the queue and its
//! limits (maitred-trace), and the connection to the collector (maitred-server).

mod ids;
mod rules;
mod span;

use std::fmt;
use std::sync::OnceLock;

use maitred_http::trace::Arrival;
use maitred_http::{Peer, RequestHead, TracePlace};
use maitred_io::clock;
use maitred_io::sync::NamedLock;
use maitred_log::{End, Outcome};
use maitred_runtime::CallSpan;
use maitred_stats::Span as Phase;
use maitred_trace::context::Flags;
use maitred_trace::{Context, Exporter, Format, Pushed, Signal};

use crate::nanos;
use crate::proxies::Proxies;
pub use ids::{seed, span_id};
pub use rules::{TracePhases, TraceRules, TraceTrust};
pub use span::server_of;
use span::{Traced, call_spans};

/// The name of the field that says the parent.
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Traces of a server, and the exporters of all that goes to its collector.
pub struct Tracing {
    rules: TraceRules,
    /// Nanoseconds from which on a request is slow.
    slow: u64,
    exporters: [Option<Waiting>; 3],
    /// Has the driver look at the exporters.
    bell: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// The items of a signal that wait for the driver.
pub struct Waiting {
    /// The encoding of the items.
    pub format: Format,
    /// The exporter. It is locked for the copy of an item, or of a batch.
    pub exporter: NamedLock<Exporter>,
}

/// The trace of a request as lines of the error log name it: ` [trace_id=... span_id=...]`; nothing without one. Most requests have no
/// such line: the field is read for a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceLabel(Option<[u8; 55]>);

impl TraceLabel {
    /// By the value of the field `traceparent` that the application has got: our span, or, without tracing, that of the caller.
    #[must_use]
    pub fn of_field(field: Option<&[u8]>) -> Self {
        Self(field.and_then(|field| field.try_into().ok()))
    }
}

impl fmt::Display for TraceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref().and_then(|field| Context::parse(field)) {
            Some(Context { trace, span, .. }) => write!(f, " [trace_id={trace} span_id={span}]"),
            None => Ok(()),
        }
    }
}

impl Tracing {
    /// Traces by these rules; items wait in the exporters, of which there is one for each signal that is sent.
    #[must_use]
    pub fn new(rules: TraceRules, exporters: Vec<(Signal, Format, Exporter)>) -> Self {
        let slow = if rules.slow.is_zero() { u64::MAX } else { nanos(rules.slow) };
        let mut all = [const { None }; 3];
        for (signal, format, exporter) in exporters {
            let exporter = NamedLock::with_name(format!("otlp {}", signal.name()).into(), exporter);
            all[signal as usize] = Some(Waiting { format, exporter });
        }
        Self { rules, slow, exporters: all, bell: OnceLock::new() }
    }

    /// The items of a signal, if that is sent.
    #[must_use]
    pub fn waiting(&self, signal: Signal) -> Option<&Waiting> {
        self.exporters[signal as usize].as_ref()
    }

    /// `ring` has the driver look at the exporters, from any thread, from now on.
    pub fn ring_by(&self, ring: impl Fn() + Send + Sync + 'static) {
        self.bell.get_or_init(|| Box::new(ring));
    }

    /// Has the driver look at the exporters.
    pub fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell();
        }
    }

    /// Finds the place of a request whose head is complete, and makes our span the parent in the head: for the application and for
    /// other servers there is one field, ours. Where no spans are sent, the field stays as it has come.
    pub fn place(&self, proxies: &Proxies, peer: Peer, secure: bool, head: &mut RequestHead) {
        head.arrival = Arrival { secure, peer: peer.ip() };
        if self.waiting(Signal::Traces).is_none() {
            return;
        }
        let given = Context::received(head.fields.all(PARENT), head.fields.all(STATE));
        let place = match given {
            Some((context, state)) if self.trusts(proxies, peer) => {
                match state.as_str().as_bytes() {
                    b"" => head.fields.remove(STATE) > 0,
                    kept => head.fields.first(STATE) == Some(kept) || head.fields.set(STATE, kept),
                };
                self.below(context)
            }
            given => {
                head.fields.remove(STATE);
                let link = given.map(|(context, _)| (*context.trace.bytes(), *context.span.bytes()));
                TracePlace { link, ..self.root() }
            }
        };
        head.fields.set(PARENT, place.parent_field(place.span));
        head.trace = Some(place);
    }

    fn trusts(&self, proxies: &Proxies, peer: Peer) -> bool {
        match self.rules.trust {
            TraceTrust::All => true,
            TraceTrust::None => false,
            TraceTrust::Proxies => proxies.trusts(peer),
        }
    }

    fn below(&self, Context { trace, span, flags }: Context) -> TracePlace {
        let is_sampled = self.rules.sampler.keeps(trace, Some(flags.is_sampled()));
        TracePlace {
            trace: *trace.bytes(),
            parent: *span.bytes(),
            span: span_id(),
            flags: flags.with_sampled(is_sampled).bits(),
            ..TracePlace::default()
        }
    }

    /// A trace that begins here.
    fn root(&self) -> TracePlace {
        let (trace, span) = ids::root();
        let flags = Flags::sampled(self.rules.sampler.keeps(trace, None)).bits();
        TracePlace { trace: *trace.bytes(), span: *span.bytes(), flags, ..TracePlace::default() }
    }

    /// Whether the span of this exchange goes out: by the sampling, or because the server was slow or has failed. Slow and broken
    /// connections of clients keep none: clients would decide about the sampling.
    fn keeps(&self, place: &TracePlace, outcome: &Outcome<'_>) -> bool {
        let Outcome { times, end, .. } = outcome;
        let own = || {
            let spans = times.spans();
            let of_client = [Phase::Accept, Phase::Receive, Phase::Write].map(|part| spans.get(part));
            spans.total() - of_client.iter().sum::<u64>()
        };
        place.is_sampled()
            || outcome.status.code() >= 500
            || !matches!(end, End::Complete | End::PeerGone | End::TooSlow)
            // A WebSocket lasts as long as both sides want.
            || outcome.status.code() != 101 && times.total() >= self.slow && own() >= self.slow
    }

    /// Keeps the spans and the record of an exchange that has ended. `route` has the pattern that led the request to its destination,
    /// `calls` its calls with the names of their servers.
    pub(crate) fn note(
        &self,
        outcome: &Outcome<'_>,
        route: &str,
        calls: impl FnOnce() -> Vec<(CallSpan, String)>,
    ) {
        let place = outcome.head.trace.unwrap_or_else(|| self.late_place(outcome.head));
        let spans = self.waiting(Signal::Traces).filter(|_| self.keeps(&place, outcome));
        let records = self.waiting(Signal::Logs).filter(|_| !self.rules.leaves_out(outcome.head.path()));
        if spans.is_none() && records.is_none() {
            return;
        }
        let traced = Traced { place: &place, outcome, route, rules: &self.rules, limits: &self.rules.limits };
        if let Some(waiting) = spans {
            traced.spans(waiting.format, self.rules.phases, &calls(), |item| self.push(waiting, item));
        }
        if let Some(waiting) = records {
            traced.record(waiting.format, |item| self.push(waiting, item));
        }
    }

    /// Keeps the spans of calls that have ended after the record of their request was written.
    pub(crate) fn note_calls(&self, place: &TracePlace, calls: &[(CallSpan, String)]) {
        if let Some(waiting) = self.waiting(Signal::Traces) {
            call_spans(place, (waiting.format, &self.rules.limits), calls, |item| self.push(waiting, item));
        }
    }

    /// The place of a request that has none: without spans that of its caller, else that of a head that could not be read.
    fn late_place(&self, head: &RequestHead) -> TracePlace {
        let given = self
            .waiting(Signal::Traces)
            .is_none()
            .then(|| Context::received(head.fields.all(PARENT), head.fields.all(STATE)));
        match given.flatten() {
            Some((Context { trace, span, flags }, _)) => TracePlace {
                trace: *trace.bytes(),
                span: *span.bytes(),
                flags: flags.bits(),
                ..TracePlace::default()
            },
            None => self.root(),
        }
    }

    fn push(&self, waiting: &Waiting, item: &[u8]) {
        let pushed = waiting.exporter.lock().push(item, clock::monotonic_coarse());
        if pushed == Pushed::Wakes {
            self.ring();
        }
    }
}
