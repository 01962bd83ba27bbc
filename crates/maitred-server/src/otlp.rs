//! The way of spans, figures and log records to a collector: a task of the poll groups, which empties the exporters.
//!
//! ```text
//! exporter of each signal --next--> post --EngineClient--> collector
//!        ^ push: requests             `--answered, failed--> exporter, the bell, the next turn
//! ```
//! Promises: a thread that polls makes and sends a batch between requests; no thread waits. One post of each signal is under way. Leaves out:
//! batches, retries and their pauses (maitred-trace), spans (maitred-exchange).

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use maitred_client::call::Options;
use maitred_client::exchange::Timeouts;
use maitred_client::key::Key;
use maitred_client::pushed::{CallHandle, Flow, Next, Receiver, RequestBody};
use maitred_client::{CallError, Observer, Report, Settings, Times};
use maitred_exchange::Site;
use maitred_exchange::tracing::Waiting;
use maitred_h1::{OutgoingRequest, ResponseFacts};
use maitred_http::{Method, ResponseHead};
use maitred_io::clock;
use maitred_log::wall_nanos;
use maitred_trace::exporter::retry_after;
use maitred_trace::metrics::Period;
use maitred_trace::{Counts, Post, Signal, Step};

use crate::connection::Group;
use crate::engine_client::{Driver, EngineClient, Task};
use crate::otlp_figures::{Active, Reading};
use crate::otlp_settings::{OtlpSettings, OtlpTarget};

/// Bytes of a collector's answer that are read: messages are short.
const MAX_ANSWER: usize = 64 * 1024;

/// The state of the way to a collector.
#[derive(Clone, Debug)]
pub struct OtlpState {
    /// The name of the signal.
    pub signal: &'static str,
    /// The URL.
    pub to: String,
    /// The items.
    pub counts: Counts,
    /// The reason why the last post was not taken, and the time since when none is, in monotonic nanoseconds.
    pub trouble: Option<(String, u64)>,
}

/// Sends what waits in the exporters of a site.
pub(crate) struct Sender {
    site: Arc<Site>,
    settings: OtlpSettings,
    client: EngineClient,
    /// Brings the task another turn.
    waker: OnceLock<Waker>,
    groups: Box<[Weak<Group>]>,
    figures: Mutex<Figures>,
    /// By signal.
    troubles: [Mutex<Option<(String, u64)>>; 3],
    /// All items have had their end.
    finished: (Mutex<bool>, Condvar),
}

/// The readings of the figures.
struct Figures {
    /// The next one, in monotonic nanoseconds.
    due: u64,
    /// The counts are from then on, in nanoseconds since 1970.
    since: u64,
    active: Active,
}

/// The calls to the collector are no calls of the application.
struct Silent;

impl Observer for Silent {
    fn begun(&self, _: &Key) -> u64 {
        0
    }

    fn ended(&self, _: u64, _: &Key, _: &Report) {}
}

impl Sender {
    /// Sends to the collector from now on, by the first group.
    pub(crate) fn begin(
        settings: OtlpSettings,
        groups: &[Arc<Group>],
        driver: &Arc<dyn Driver>,
    ) -> Option<Arc<Self>> {
        let group = groups.first()?;
        let site = Arc::clone(&group.site);
        let tracing = site.tracing.as_ref()?;
        let client = EngineClient::new(Settings::default());
        client.serve(Arc::clone(driver), Arc::new(Silent));
        let now = clock::monotonic();
        let figures = Mutex::new(Figures {
            due: now + nanos(settings.interval),
            since: wall_nanos(now),
            active: Active::new(),
        });
        let sender = Arc::new(Self {
            settings,
            client,
            waker: OnceLock::new(),
            groups: groups.iter().map(Arc::downgrade).collect(),
            figures,
            troubles: Default::default(),
            finished: (Mutex::new(false), Condvar::new()),
            site: Arc::clone(&site),
        });
        let waker = sender.client.run(Box::new(Looks(Arc::downgrade(&sender)))).ok()?;
        sender.waker.get_or_init(|| waker);
        let own = Arc::downgrade(&sender);
        tracing.ring_by(move || {
            if let Some(sender) = own.upgrade() {
                sender.wake();
            }
        });
        Some(sender)
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    fn waiting(&self, signal: Signal) -> Option<&Waiting> {
        self.site.tracing.as_ref()?.waiting(signal)
    }

    /// Sends what is due, and returns the time of the next look.
    fn look(self: &Arc<Self>, now: u64) -> u64 {
        let mut due = self.read_figures(now);
        let mut is_finished = true;
        for target in &self.settings.targets {
            let Some(waiting) = self.waiting(target.signal) else { continue };
            loop {
                let step = waiting.exporter.lock().next(now);
                match step {
                    Step::Post(post) => self.post(target, &post),
                    Step::WaitUntil(until) => {
                        is_finished = false;
                        due = due.min(until.unwrap_or(u64::MAX));
                        break;
                    }
                    Step::Finished => break,
                }
            }
            self.tell(waiting);
        }
        if is_finished {
            let (finished, bell) = &self.finished;
            *finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
            bell.notify_all();
        }
        due
    }

    /// Logs what an exporter has to say.
    fn tell(&self, waiting: &Waiting) {
        let next = || waiting.exporter.lock().news();
        while let Some(news) = next() {
            self.site.log.warn(format_args!("{news}"));
        }
    }

    /// Reads the figures if it is time; returns the time of the next reading.
    fn read_figures(&self, now: u64) -> u64 {
        let Some(waiting) = self.waiting(Signal::Metrics) else { return u64::MAX };
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= figures.due {
            figures.due = now + nanos(self.settings.interval);
            let period = Period { start: figures.since, end: wall_nanos(now) };
            waiting.exporter.lock().replace();
            let push = &mut |item: &[u8]| _ = waiting.exporter.lock().push(item, now);
            let (exponential, format) = (self.settings.exponential, waiting.format);
            Reading { exponential, format, period, push }.read(&self.groups, &mut figures.active);
            waiting.exporter.lock().flush();
        }
        figures.due
    }

    fn post(self: &Arc<Self>, target: &OtlpTarget, post: &Post) {
        let mut fields = target.fields.clone();
        fields.push("Content-Type", post.content_type());
        if let Some(coding) = post.content_encoding() {
            fields.push("Content-Encoding", coding);
        }
        fields.push_missing("User-Agent", concat!("maitred/", env!("CARGO_PKG_VERSION")));
        let request = OutgoingRequest {
            method: &Method::Post,
            target: target.target.as_bytes(),
            authority: target.authority.as_bytes(),
            fields: &fields,
            length: None,
            upgrade: false,
        };
        let times = Times {
            exchange: Timeouts { total: Some(target.timeout), ..Timeouts::default() },
            ..Times::default()
        };
        // Collectors know a span that arrives twice by its id; a lost post costs hundreds of spans.
        let options = Options { times, repeatable: Some(true), ..Options::default() };
        let answer = Answer { sender: Arc::clone(self), signal: target.signal, head: None, body: Vec::new() };
        let body = RequestBody::Whole(Arc::new(post.body()));
        if let Err(not) = self.client.start(&target.key, &request, body, &options, Box::new(answer)) {
            not.tell();
        }
    }

    /// Takes nothing more; all items have their end after `limit` at the latest.
    pub(crate) fn finish(&self, limit: Duration) {
        let deadline = clock::monotonic() + nanos(limit);
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).due = 0;
        self.read_figures(clock::monotonic());
        for target in &self.settings.targets {
            if let Some(waiting) = self.waiting(target.signal) {
                waiting.exporter.lock().finish(deadline);
            }
        }
        self.wake();
    }

    /// Waits until all items have had their end, at most for `limit`; returns whether they have.
    pub(crate) fn wait_finished(&self, limit: Duration) -> bool {
        let (finished, bell) = &self.finished;
        let guard = finished.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = bell
            .wait_timeout_while(guard, limit, |finished| !*finished)
            .unwrap_or_else(PoisonError::into_inner);
        *guard
    }

    /// The state of each signal.
    pub(crate) fn states(&self) -> Vec<OtlpState> {
        let of = |target: &OtlpTarget| {
            let counts = self.waiting(target.signal)?.exporter.lock().counts();
            let trouble =
                self.troubles[target.signal as usize].lock().unwrap_or_else(PoisonError::into_inner);
            let (signal, to) = (target.signal.name(), target.shown.clone());
            Some(OtlpState { signal, to, counts, trouble: trouble.clone() })
        };
        self.settings.targets.iter().filter_map(of).collect()
    }

    /// Keeps the trouble of the last post; the time is that of the first without success.
    fn note(&self, signal: Signal, trouble: Option<String>, now: u64) {
        let mut kept = self.troubles[signal as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let since = kept.as_ref().map_or(now, |(_, since)| *since);
        *kept = trouble.map(|why| (why, since));
    }

    /// Sends nothing any more.
    pub(crate) fn close(&self, driver: &Arc<dyn Driver>) {
        self.client.leave(driver);
    }
}

/// The turns of a sender, as long as that is there.
struct Looks(Weak<Sender>);

impl Task for Looks {
    fn turn(&mut self, now: Instant) -> Next {
        let Some(sender) = self.0.upgrade() else { return Next::Ended };
        let began = clock::monotonic();
        let due = sender.look(began);
        let wait = (due != u64::MAX).then(|| Duration::from_nanos(due.saturating_sub(began)));
        Next::Wait(wait.and_then(|wait| now.checked_add(wait)))
    }
}

/// The answer of the collector.
struct Answer {
    sender: Arc<Sender>,
    signal: Signal,
    head: Option<ResponseHead>,
    body: Vec<u8>,
}

impl Receiver for Answer {
    fn head(&mut self, _: &CallHandle, head: ResponseHead, _: ResponseFacts) -> Flow {
        self.head = Some(head);
        Flow::Continue
    }

    fn data(&mut self, _: &CallHandle, bytes: &[u8]) -> Flow {
        let room = MAX_ANSWER.saturating_sub(self.body.len());
        self.body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Flow::Continue
    }

    fn end(self: Box<Self>, result: Result<(), CallError>, _: &Report) {
        let Self { sender, signal, head, body } = *self;
        let now = clock::monotonic();
        let trouble = match (&result, &head) {
            (Ok(()), Some(head)) if head.status.code() < 300 => None,
            (Ok(()), Some(head)) => Some(format!("it answers {}", head.status.code())),
            (Ok(()), None) => Some("it does not answer".to_owned()),
            (Err(error), _) => Some(error.to_string()),
        };
        if let Some(waiting) = sender.waiting(signal) {
            let mut exporter = waiting.exporter.lock();
            match (&trouble, head) {
                (_, Some(head)) if result.is_ok() => {
                    let after = head.fields.first("retry-after");
                    let after = after.and_then(|value| retry_after(value, clock::unix_seconds()));
                    exporter.answered(head.status.code(), after, &body, now);
                }
                (why, _) => exporter.failed(why.as_deref().unwrap_or_default(), now),
            }
        }
        sender.note(signal, trouble, now);
        sender.wake();
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
