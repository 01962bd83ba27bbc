//! Calls to other servers: counted by server, and for the request that they belong to.
//!
//! ```text
//! begun --> a place in the list of running calls, with the request --phase, phase--> ended --> counts, distribution, request
//! ```
//! Promises: a call takes no lock that another thread holds for longer than a copy of some words. Leaves out: the calls themselves
//! (maitred-client), and how the request is found that the calling code works for (`outgoing` of maitred-runtime).

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use maitred_client::key::Key;
use maitred_client::{End, Observer, Phase, Report};
use maitred_http::TracePlace;
use maitred_io::{clock, tasks};
use maitred_log::{CallLine, Log, RequestId};
use maitred_runtime::{Begun, CallSpan, Outgoing, OutgoingCounts, Slowest, outgoing};
use maitred_stats::{Arena, CallEnd, EndedCall, Part, Recorder, Upstream, Upstreams};

/// The number in the place of a pool, for distributions of calls.
pub(crate) const CALLS: u16 = u16::MAX - 2;

/// The number in the place of a route, of the first server: no route has one as high.
pub(crate) const FIRST_SERVER: u32 = 1 << 16;

/// Names of the distributions, which no entry of `Server-Timing` can have.
pub(crate) const TOTAL: &str = "call;total";
pub(crate) const FIRST_BYTE: &str = "call;first-byte";

/// Running calls that are listed: more than a client makes at once by default. Further ones count, and belong to no request.
const LISTED: usize = 1024;

/// The number of a call: this bit, the place of the call or [`LISTED`] above, and its server below.
const BEGUN: u64 = 1 << 63;
const SERVER: u32 = 16;

type Late = Box<dyn Fn(&TracePlace, CallSpan) + Send + Sync>;

/// The calls of a process.
pub struct Calls {
    pub(crate) upstreams: Upstreams,
    recorder: Arc<Recorder>,
    hashes: RandomState,
    places: Box<[Place]>,
    log: OnceLock<Arc<Log>>,
    /// Takes the span of a call that has ended after the response to its request.
    late: OnceLock<Late>,
}

#[derive(Default)]
struct Place {
    call: Mutex<Option<Call>>,
    part: AtomicU8,
}

struct Call {
    server: u16,
    since: u64,
    outgoing: Option<Begun>,
    /// The thread of a call that belongs to no request.
    thread: i32,
}

impl Call {
    fn request(&self) -> Option<&Outgoing> {
        self.outgoing.as_ref().map(|begun| &*begun.outgoing)
    }
}

/// A call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCall {
    /// The server.
    pub server: String,
    /// The number of the request that the call belongs to, if to one.
    pub request: Option<u64>,
    /// The beginning, in monotonic nanoseconds.
    pub since: u64,
    /// The time of the calls of its request that have ended, in nanoseconds; 0 of all calls of one request but the first.
    pub earlier: u64,
    /// The part in which the call is.
    pub part: Part,
}

impl Calls {
    pub(crate) fn new(arena: &Arena, recorder: Arc<Recorder>) -> Self {
        Self {
            upstreams: Upstreams::in_arena(arena),
            recorder,
            hashes: RandomState::new(),
            places: (0..LISTED).map(|_| Place::default()).collect(),
            log: OnceLock::new(),
            late: OnceLock::new(),
        }
    }

    /// Gives `take` the spans of calls that end after the response to their request, if its trace is sampled.
    pub(crate) fn give_late(&self, take: impl Fn(&TracePlace, CallSpan) + Send + Sync + 'static) {
        self.late.get_or_init(|| Box::new(take));
    }

    /// Calls that end from now on have a line in this log, if it has a log of calls.
    pub fn write_to(&self, log: &Arc<Log>) {
        if log.writes_calls() {
            self.log.get_or_init(|| Arc::clone(log));
        }
    }

    /// The calls that have not ended, the longest first.
    pub fn running(&self) -> Vec<RunningCall> {
        let of = |place: &Place| {
            let call = place.lock();
            let call = call.as_ref()?;
            let request = call.request().map(|outgoing| (outgoing.request(), outgoing.counts().nanos));
            Some((call.since, call.server, request, part_of_number(place.part.load(Relaxed))))
        };
        let mut running: Vec<_> = self.places.iter().filter_map(of).collect();
        running.sort_by_key(|(since, ..)| *since);
        let mut seen = HashSet::new();
        let shown = |(since, server, request, part): (u64, u16, Option<(u64, u64)>, Part)| {
            let earlier = request.filter(|(number, _)| seen.insert(*number)).map_or(0, |(_, nanos)| nanos);
            RunningCall {
                server: self.name(server),
                request: request.map(|(number, _)| number),
                since,
                earlier,
                part,
            }
        };
        running.into_iter().map(shown).collect()
    }

    /// The running calls of the request with this number, as if they had failed now; none if there are none.
    pub(crate) fn present(&self, request: u64, now: u64) -> Option<OutgoingCounts> {
        let present = Outgoing::of(request);
        for place in &self.places {
            let held = place.lock();
            let own = held.as_ref().filter(|call| call.request().is_some_and(|own| own.request() == request));
            if let Some(call) = own {
                let part = place.part.load(Relaxed);
                let nanos = now.saturating_sub(call.since);
                present.add(Slowest { nanos, server: call.server, part }, true);
            }
        }
        Some(present.counts()).filter(|counts| !counts.is_empty())
    }

    /// The calls of the request with this number, for their spans, while a call of its runs: those that have ended, and those that run,
    /// as if they ended now.
    pub(crate) fn spans(&self, request: u64, now: u64) -> Vec<CallSpan> {
        let mut spans = Vec::new();
        for place in &self.places {
            let mut held = place.lock();
            if let Some(Call { server, since, outgoing: Some(Begun { outgoing, call }), .. }) = &mut *held
                && outgoing.request() == request
                // The call has its span now, and gets no second one at its end.
                && let Some(facts) = call.take()
            {
                spans.extend(outgoing.take_spans());
                spans.push(CallSpan {
                    facts,
                    server: *server,
                    begun: *since,
                    nanos: now.saturating_sub(*since),
                    status: None,
                    failure: "unfinished",
                    retried: false,
                });
            }
        }
        spans
    }

    /// The name of a server.
    pub fn name(&self, server: u16) -> String {
        self.upstreams.name(server)
    }

    /// The counts of all servers, without percentiles.
    pub fn counts(&self) -> Vec<Upstream> {
        self.upstreams.read()
    }

    fn server_of(&self, key: &Key) -> u16 {
        let hash = self.hashes.hash_one((&key.place, key.tls.is_some()));
        self.upstreams.number(hash, || key.to_string())
    }

    /// Lists a call; [`LISTED`] where there is no place.
    fn list(&self, server: u16) -> usize {
        thread_local! {
            /// The place of this thread's last call, which is free again as a rule.
            static NEAR: Cell<usize> = Cell::new(next_thread());
        }
        let outgoing = outgoing::running();
        let thread = if outgoing.is_some() { 0 } else { tasks::own() };
        let mut call = Some(Call { server, since: clock::monotonic(), outgoing, thread });
        let near = NEAR.try_with(Cell::get).unwrap_or_default();
        for at in (near..near + LISTED).map(|at| at % LISTED) {
            let place = &self.places[at];
            let Ok(mut held) = place.call.try_lock() else { continue };
            if held.is_none() {
                *held = call.take();
                place.part.store(Part::Slot as u8, Relaxed);
                let _ = NEAR.try_with(|near| near.set(at));
                return at;
            }
        }
        LISTED
    }

    fn place(&self, number: u64) -> Option<&Place> {
        self.places.get((number & !BEGUN) as usize >> SERVER)
    }
}

/// The first place of a thread: those of other threads are not on the same lines of memory.
fn next_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(8, Relaxed) % LISTED
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Option<Call>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Calls {
    fn begun(&self, key: &Key) -> u64 {
        let server = self.server_of(key);
        self.upstreams.begin(server);
        BEGUN | (self.list(server) as u64) << SERVER | u64::from(server)
    }

    fn phase(&self, number: u64, phase: Phase) {
        if let (Some(place), Some(part)) = (self.place(number), part_of_phase(phase)) {
            place.part.store(part as u8, Relaxed);
        }
    }

    fn describe(&self, number: u64) -> Option<String> {
        let call = self.place(number)?.lock();
        let call = call.as_ref()?;
        Some(match call.request() {
            Some(outgoing) => format!("request {}", outgoing.request()),
            None => tasks::describe(call.thread),
        })
    }

    fn ended(&self, number: u64, key: &Key, report: &Report) {
        if number & BEGUN == 0 {
            return;
        }
        let server = number as u16;
        let call = self.place(number).and_then(|place| place.lock().take());
        let ended = ended(report);
        self.upstreams.end(server, &ended);
        let record = |name, time: Duration| {
            let route = FIRST_SERVER + u32::from(server);
            self.recorder.record_timing(CALLS, route, name, nanos(time));
        };
        record(TOTAL, report.total);
        if let Some(time) = report.first_byte {
            record(FIRST_BYTE, time);
        }
        let outgoing = call.as_ref().and_then(Call::request);
        if let Some(log) = self.log.get() {
            let id =
                outgoing.map(|outgoing| RequestId::named(outgoing.given(), outgoing.request()).to_string());
            write_line(log, id.as_deref(), &key.to_string(), report);
        }
        if let Some(outgoing) = outgoing {
            let part = longest(report, &ended) as u8;
            outgoing.add(Slowest { nanos: nanos(report.total), server, part }, report.end != End::Complete);
        }
        if let Some(Call { since, outgoing: Some(Begun { outgoing, call: Some(facts) }), .. }) = call {
            let late = outgoing.add_span(CallSpan {
                facts,
                server,
                begun: since,
                nanos: nanos(report.total),
                status: report.status,
                failure: failure(report.end),
                retried: report.retried,
            });
            let place = outgoing.trace().filter(|place| place.is_sampled());
            if let (Some(span), Some(place), Some(take)) = (late, place, self.late.get()) {
                take(place, span);
            }
        }
    }
}

/// The failure of a call as the client log names it; empty without one.
fn failure(end: End) -> &'static str {
    match end {
        End::Complete => "",
        End::Dropped => "dropped",
        End::TimedOut(_) => "timeout",
        End::Failed(name) => name,
    }
}

fn write_line(log: &Log, id: Option<&str>, server: &str, report: &Report) {
    let (end, phase) = match report.end {
        End::Complete => ("complete", None),
        End::TimedOut(phase) => ("timeout", Some(phase.name())),
        end => (failure(end), None),
    };
    let Report { slot, resolve, connect, tls, first_byte, .. } = *report;
    let times = [slot, resolve, connect, tls, first_byte];
    let parts: [_; 5] = std::array::from_fn(|at| (Part::ALL[at].name(), times[at]));
    log.call(&CallLine {
        id,
        server,
        status: report.status,
        end,
        phase,
        reused: report.reused,
        retried: report.retried,
        parts: &parts,
        total: report.total,
        sent: report.sent,
        received: report.received,
    });
}

fn ended(report: &Report) -> EndedCall {
    let Report { slot, resolve, connect, tls, first_byte, .. } = *report;
    let before = [slot, resolve, connect, tls, first_byte].into_iter().flatten().sum();
    let body = first_byte.map(|_| report.total.saturating_sub(before));
    EndedCall {
        end: match (report.end, report.status) {
            (End::Complete, Some(status)) => CallEnd::Status(status),
            (End::Complete, None) => CallEnd::Failed("no response"),
            (End::Dropped, _) => CallEnd::Dropped,
            (End::TimedOut(phase), _) => CallEnd::TimedOut(phase.name()),
            (End::Failed(name), _) => CallEnd::Failed(name),
        },
        reused: report.reused,
        retried: report.retried,
        sent: report.sent,
        received: report.received,
        total: report.total,
        parts: [slot, resolve, connect, tls, first_byte, body],
    }
}

/// The part of a call that took most of its time.
fn longest(report: &Report, ended: &EndedCall) -> Part {
    if let End::TimedOut(phase) = report.end
        && let Some(part) = part_of_phase(phase)
    {
        return part;
    }
    let known: Duration = ended.parts.iter().flatten().sum();
    let longest = Part::ALL.into_iter().zip(ended.parts).max_by_key(|(_, time)| time.unwrap_or_default());
    match longest {
        // The part that failed has no time of its own.
        Some((_, time)) if report.total.saturating_sub(known) > time.unwrap_or_default() => {
            if report.reused || report.connect.is_some() { Part::FirstByte } else { Part::Connect }
        }
        Some((part, _)) => part,
        None => Part::FirstByte,
    }
}

/// The part that a phase belongs to; none of the whole call.
fn part_of_phase(phase: Phase) -> Option<Part> {
    match phase {
        Phase::Proxy => Some(Part::Connect),
        Phase::Write => Some(Part::FirstByte),
        Phase::Read => Some(Part::Body),
        _ => Part::ALL.into_iter().find(|part| part.name() == phase.name()),
    }
}

/// The part with this number.
#[must_use]
pub fn part_of_number(number: u8) -> Part {
    Part::ALL.get(usize::from(number)).copied().unwrap_or(Part::FirstByte)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use maitred_runtime::CallFacts;

    use super::*;

    fn calls() -> Calls {
        Calls::new(&Arena::new(maitred_stats::memory::private(16)), Arc::new(Recorder::new()))
    }

    thread_local! {
        static REQUEST: std::cell::RefCell<Option<Begun>> = const { std::cell::RefCell::new(None) };
    }

    fn with_request(number: u64) -> Arc<Outgoing> {
        outgoing::set_running(|| REQUEST.with_borrow(Clone::clone));
        let own = Arc::new(Outgoing::of(number));
        let facts =
            CallFacts { span: [1; 8], method: maitred_http::Method::Get, path: b"/".as_slice().into() };
        REQUEST.set(Some(Begun { outgoing: Arc::clone(&own), call: Some(Box::new(facts)) }));
        own
    }

    fn report(end: End, total: u64, first_byte: Option<u64>) -> Report {
        let status = (end == End::Complete).then_some(200);
        let first_byte = first_byte.map(Duration::from_millis);
        Report { status, end, total: Duration::from_millis(total), first_byte, ..Report::default() }
    }

    #[test]
    fn a_call_belongs_to_its_request_also_when_another_thread_ends_it() {
        let (calls, key) = (calls(), Key::plain("api.example", 8080));
        let own = with_request(17);
        let (one, other) = (calls.begun(&key), calls.begun(&Key::plain("cdn.example", 80)));
        calls.phase(one, Phase::FirstByte);
        let running = calls.running();
        let shown: Vec<_> = running.iter().map(|call| (&*call.server, call.request, call.part)).collect();
        assert_eq!(
            shown,
            [
                ("http://api.example:8080", Some(17), Part::FirstByte),
                ("http://cdn.example:80", Some(17), Part::Slot)
            ]
        );
        let present = calls.present(17, running[0].since + 5_000_000).expect("two calls run");
        assert_eq!((present.calls, present.failed, present.slowest.nanos), (2, 2, 5_000_000));
        assert_eq!(calls.present(18, u64::MAX), None);
        std::thread::scope(|scope| {
            scope.spawn(|| calls.ended(one, &key, &report(End::Complete, 790, Some(780))));
        });
        let spans = calls.spans(17, running[1].since + 3);
        let [ended, unfinished] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(
            (ended.status, ended.failure, unfinished.failure, unfinished.nanos),
            (Some(200), "", "unfinished", 3)
        );
        calls.ended(other, &key, &report(End::TimedOut(Phase::Connect), 20, None));
        let counts = own.counts();
        assert_eq!((counts.calls, counts.failed, counts.nanos), (2, 1, 810_000_000));
        assert_eq!(calls.name(counts.slowest.server), "http://api.example:8080");
        assert_eq!(part_of_number(counts.slowest.part), Part::FirstByte);
        assert!(calls.running().is_empty());
        let rows = calls.counts();
        assert_eq!((rows[1].calls(), rows[1].running, rows[2].timeouts["connect"]), (1, 0, 1));
    }

    #[test]
    fn a_call_without_a_request_counts_and_a_number_of_no_call_does_not() {
        let (calls, key) = (calls(), Key::plain("api.example", 80));
        REQUEST.set(None);
        let number = calls.begun(&key);
        assert_eq!(calls.running()[0].request, None);
        let holder = calls.describe(number).expect("a thread");
        assert!(holder.starts_with(&format!("thread {} (", tasks::own())), "{holder}");
        calls.ended(number, &key, &report(End::Dropped, 1, None));
        calls.ended(0, &key, &report(End::Dropped, 1, None));
        assert_eq!((calls.counts()[1].dropped, calls.counts()[1].calls()), (1, 1));
    }

    #[test]
    fn more_calls_than_can_be_listed_still_count() {
        let (calls, key) = (calls(), Key::plain("api.example", 80));
        let numbers: Vec<u64> = (0..LISTED + 10).map(|_| calls.begun(&key)).collect();
        assert_eq!((calls.running().len(), calls.counts()[1].running), (LISTED, LISTED as u64 + 10));
        numbers.iter().for_each(|number| calls.ended(*number, &key, &report(End::Complete, 1, Some(1))));
        assert_eq!((calls.running().len(), calls.counts()[1].calls()), (0, LISTED as u64 + 10));
    }

    #[test]
    fn the_part_that_failed_is_the_longest_one_of_a_call_that_waited_there() {
        let of = |report: Report| longest(&report, &ended(&report));
        assert_eq!(of(report(End::Complete, 100, Some(80))), Part::FirstByte);
        assert_eq!(of(report(End::Complete, 100, Some(8))), Part::Body);
        assert_eq!(of(report(End::Failed("refused"), 100, None)), Part::Connect);
        assert_eq!(of(report(End::TimedOut(Phase::Slot), 100, None)), Part::Slot);
        let connected = Some(Duration::from_millis(3));
        assert_eq!(
            of(Report { connect: connected, ..report(End::Failed("reset"), 100, None) }),
            Part::FirstByte
        );
        let slow = Some(Duration::from_millis(70));
        assert_eq!(of(Report { resolve: slow, ..report(End::Complete, 100, Some(8)) }), Part::Resolve);
    }
}
