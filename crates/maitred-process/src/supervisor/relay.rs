//! Questions of `maitred ctl` to all workers, and their answers as one.
//!
//! A question goes to every worker that serves. Counts are added up, and lists have the rows of all workers, each row with the number of its
//! worker; other values are those of the first worker. Changes are made in all workers, and in workers that are started later.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use maitred_control::{
    Answered, Caller, Control, Counted, CounterSums, Doors, FINDING, Finder, Keeper, LOGS, Look, MEMORY,
    ProcessFigures, Question, RECENT, SNAPSHOT, UPSTREAMS, WORKER, counts_of, find, help, lock, merge_logs,
    merge_recent, process_row, snapshot_of, stats_of, upstreams_of,
};
use maitred_finding::Picture;
use maitred_server::figures::{Retired, Statistics, Totals, WorkerPage, merge_pages, page_of_workers};
use maitred_server::{Applied, Log, Rule};
use maitred_supervise::{Beat, Crew, Phase, WorkerId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Happening;
use super::message::{COUNTED, LOOKED, OWN_PAGE, PICTURE, ToWorker};
use super::process::{Pending, Process};

/// Changes of settings, which workers that are started later get as well.
const LASTING: [&str; 4] = ["set", "map add", "map remove", "log-level"];

/// A change for workers that are starting now. Workers that are started later open the new files anyway.
const REOPEN: &str = "reopen";

/// Queries whose answer is the same for all workers.
const SAME: [&str; 5] = ["map", "handlers", "explain", "settings", "configuration"];

/// The workers, as the doors of the control see them.
pub(super) struct Workers {
    languages: &'static str,
    /// The model by which workers accept connections, as `status` names it.
    accept: &'static str,
    addresses: Vec<String>,
    began: Instant,
    sender: Sender<Happening>,
    /// Pictures of all workers together.
    finder: Finder,
    log: Arc<Log>,
    state: Mutex<State>,
    seen: Mutex<Seen>,
    history: Keeper,
    /// Rules that the supervisor has applied itself.
    applied: Applied,
}

#[derive(Default)]
struct State {
    /// Workers that serve or drain.
    serving: BTreeMap<WorkerId, Arc<Process>>,
    beats: BTreeMap<WorkerId, Beat>,
    application: Option<String>,
    /// Changes by operators since the configuration was read, by number.
    changes: BTreeMap<u64, Question>,
    next_change: u64,
    /// For each starting worker the first change that is not in its setup.
    untold: BTreeMap<WorkerId, u64>,
    /// Figures of the processes that have ended.
    retired: Retired,
    /// Rows of all processes, for `status`.
    shown: Vec<Value>,
    ready: usize,
    wanted: usize,
    failures: u64,
    /// Workers started in the place of others, by reason.
    restarts: Vec<(&'static str, u64)>,
}

/// Begins to answer questions. If that fails, the supervisor goes on without a control.
pub(super) fn start(workers: &Arc<Workers>, doors: Doors, log: &Log) -> Option<Control> {
    let own = Arc::clone(workers);
    let places = doors.places();
    let relay = Arc::new(move |question: &Question, caller: &Caller| own.answer(question, caller, &places));
    let told = Arc::clone(workers);
    let wrong_token = Box::new(move |peer: SocketAddr| {
        told.applied.note(Rule::WrongToken, peer.into(), &told.log);
    });
    Control::relay(doors, relay, wrong_token)
        .inspect_err(|error| log.error(format_args!("the control cannot be started: {error}")))
        .ok()
}

pub(super) fn keep_history(workers: &Arc<Workers>, log: &Log) {
    let watched = Arc::downgrade(workers);
    let watches = std::thread::Builder::new().name("maitred-history".to_owned());
    if let Err(error) = watches.spawn(move || watch(&watched)) {
        log.error(format_args!("there will be no history: {error}"));
    }
}

/// Looks at the workers once a second, until the supervisor has dropped them. A thread of its own, since it waits for answers of workers.
fn watch(workers: &Weak<Workers>) {
    while let Some(own) = workers.upgrade() {
        let ahead = own.history.ahead();
        if ahead.is_zero() {
            own.look();
        }
        drop(own);
        std::thread::sleep(ahead);
    }
}

/// Longest wait of a look for answers of workers: each row of the history is one second.
const LOOK_LIMIT: Duration = Duration::from_millis(300);

/// Counts that are not in the shared memory of the workers: the last answer of each worker, and the sum over all workers ever.
#[derive(Default)]
struct Seen {
    last: BTreeMap<WorkerId, ProcessFigures>,
    /// Answers that have not come yet.
    late: BTreeMap<WorkerId, Pending>,
    sum: ProcessFigures,
}

impl Seen {
    /// Asks the serving workers, except those whose last answer is still due, and waits for [`LOOK_LIMIT`].
    fn ask(&mut self, serving: &[Arc<Process>]) {
        let asked = Question::get(LOOKED);
        let (deadline, mut late) = (Instant::now() + LOOK_LIMIT, std::mem::take(&mut self.late));
        let pending = serving.iter().map(|process| {
            let pending = late.remove(&process.id);
            (process.id, pending.unwrap_or_else(|| process.ask(&asked, "the supervisor")))
        });
        for (id, pending) in pending.collect::<Vec<_>>() {
            match pending.wait_until(deadline) {
                Ok(answer) => {
                    let looked = answer.and_then(|answer| answer.read());
                    looked.into_iter().for_each(|looked| self.note(id, looked));
                }
                Err(pending) => _ = self.late.insert(id, pending),
            }
        }
    }

    fn note(&mut self, id: WorkerId, looked: ProcessFigures) {
        let last = self.last.remove(&id).unwrap_or_default();
        self.sum.add_counts(&looked, &last);
        self.last.insert(id, looked);
    }

    /// Returns the gauges of the serving workers, with the counts of all workers ever. A worker that has not answered is in it with its last
    /// answer.
    fn all(&mut self, serving: &[Arc<Process>]) -> ProcessFigures {
        let mut now = ProcessFigures::default();
        self.last.retain(|id, _| serving.iter().any(|process| process.id == *id));
        self.last.values().for_each(|looked| now.merge(looked));
        ProcessFigures { gauges: now.gauges, ..self.sum.clone() }
    }
}

impl Workers {
    /// Looks at all workers, for the history. The counts of a worker that has ended or does not answer are read from its shared memory.
    fn look(&self) {
        // One look at a time: the last one is made by another thread.
        let mut seen = lock(&self.seen);
        let look = Look::begin();
        let serving: Vec<_> = lock(&self.state).serving.values().cloned().collect();
        seen.ask(&serving);
        let (totals, counters) = self.totals();
        let looked = seen.all(&serving);
        let is_on = totals.on;
        let counts = counts_of(totals, &counters, &looked);
        self.history.note(&counts, &looked.gauges, is_on, look);
        if self.history.wants_routes() {
            self.note_routes();
        }
    }

    fn note_routes(&self) {
        let state = lock(&self.state);
        let mut statistics = state.retired.statistics.clone();
        state.serving.values().for_each(|process| statistics.merge(&process.statistics()));
        drop(state);
        self.history.note_routes(&statistics);
    }

    /// Marks in the history that the workers are replaced from now on.
    pub(super) fn mark_reload(&self) {
        self.history.mark("reload");
    }

    /// Takes the last look, after the workers have ended, and writes the history.
    pub(super) fn end_history(&self) {
        self.look();
        self.note_routes();
        self.history.write();
    }

    /// Stops writing the history: the file belongs to a new program from now on.
    pub(super) fn leave_history(&self) {
        self.history.leave_file();
    }

    /// Writes the history up to now into the file, for a new program.
    pub(super) fn write_history(&self) {
        self.note_routes();
        self.history.write();
    }

    /// Returns the counts of all workers ever from their shared memory.
    fn totals(&self) -> (Totals, CounterSums) {
        // Under the lock, so that each process counts once: as serving or as ended.
        let state = lock(&self.state);
        let mut totals = Totals::from(&state.retired.statistics);
        let mut counters = CounterSums::default();
        state.retired.counters.iter().for_each(|(series, count)| counters.add(series, *count));
        totals.on = state.serving.is_empty();
        for process in state.serving.values() {
            totals.merge(&process.totals());
            process.each_counter(|series, count| counters.add(series, count));
        }
        (totals, counters)
    }

    pub(super) fn new(
        languages: &'static str,
        accept: &'static str,
        addresses: Vec<String>,
        sender: Sender<Happening>,
        history: Keeper,
        log: &Arc<Log>,
    ) -> Self {
        Self {
            languages,
            accept,
            addresses,
            began: Instant::now(),
            sender,
            finder: Finder::new(),
            log: Arc::clone(log),
            state: Mutex::default(),
            seen: Mutex::default(),
            history,
            applied: Applied::default(),
        }
    }

    /// Adds a worker that serves, and sends it the changes that its setup does not have.
    pub(super) fn add(&self, process: &Arc<Process>) {
        let mut state = lock(&self.state);
        state.serving.insert(process.id, Arc::clone(process));
        let untold = state.untold.remove(&process.id).unwrap_or_default();
        for change in state.changes.range(untold..).map(|(_, change)| change) {
            // As for changes in the setup, the answer is not waited for.
            let _ = process.ask(change, "as changed before");
        }
    }

    /// Takes out a worker whose process has ended, and keeps its figures.
    pub(super) fn retire(&self, process: &Process) {
        let mut state = lock(&self.state);
        state.serving.remove(&process.id);
        state.untold.remove(&process.id);
        state.beats.remove(&process.id);
        process.retire(&mut state.retired);
    }

    pub(super) fn note(&self, worker: WorkerId, beat: Beat) {
        lock(&self.state).beats.insert(worker, beat);
    }

    pub(super) fn set_application(&self, application: Option<String>) {
        lock(&self.state).application = application;
    }

    /// Returns the changes by operators since the configuration was read, for the setup of a worker.
    pub(super) fn changes(&self, worker: WorkerId) -> Vec<Question> {
        let mut state = lock(&self.state);
        let next = state.next_change;
        state.untold.insert(worker, next);
        state.changes.values().filter(|change| change.name() != REOPEN).cloned().collect()
    }

    /// Drops the changes by operators: a configuration that is read again takes them back.
    pub(super) fn forget_changes(&self) {
        lock(&self.state).changes.clear();
    }

    /// Keeps the rows of all processes, for `status`.
    pub(super) fn show(&self, crew: &Crew, pids: &BTreeMap<WorkerId, Arc<Process>>) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        let row = |view: maitred_supervise::WorkerView| {
            let beat = state.beats.get(&view.id).copied().unwrap_or_default();
            let phase = match view.phase {
                Phase::Starting => "starting",
                Phase::Serving => "serving",
                Phase::Stopping => "draining",
            };
            json!({
                "worker": view.number,
                "pid": pids.get(&view.id).map(|process| process.pid()),
                "phase": phase,
                "for_seconds": now.saturating_duration_since(view.since).as_secs_f64(),
                "requests": beat.requests,
                "waiting": beat.waiting,
                "memory_bytes": beat.memory,
            })
        };
        let shown = crew.workers().map(row).collect();
        (state.shown, state.wanted, state.failures) = (shown, crew.wanted(), crew.failures());
        state.ready = crew.workers().filter(|view| view.phase == Phase::Serving).count();
        state.restarts = crew.restarts().collect();
    }

    /// Answers a worker that asks for the figures of all workers.
    pub(super) fn answer_worker(self: &Arc<Self>, process: &Arc<Process>, id: u64, question: Question) {
        let (own, asks) = (Arc::clone(self), Arc::clone(process));
        let answers = std::thread::Builder::new().name("maitred-ctl".to_owned());
        // A thread, since the answer needs answers of other workers, for which the supervisor must not wait.
        let began = answers.spawn(move || {
            let caller = Caller::Relayed(format!("worker {}", asks.number));
            asks.send(&ToWorker::Answer(id, own.answer(&question, &caller, &[])));
        });
        if let Err(error) = began {
            let text = format!("no thread can be made: {error}");
            process.send(&ToWorker::Answer(id, Answered::error(503, &text)));
        }
    }

    fn answer(&self, question: &Question, caller: &Caller, doors: &[String]) -> Answered {
        self.try_answer(question, caller, doors).unwrap_or_else(|refused| refused)
    }

    fn try_answer(
        &self,
        question: &Question,
        caller: &Caller,
        doors: &[String],
    ) -> Result<Answered, Answered> {
        let name = question.name();
        if name.is_empty() {
            return Ok(Answered::json(200, &help()));
        }
        if name == "drain" && question.method == "POST" {
            let told = self.sender.send(Happening::Drain);
            told.map_err(|_| Answered::error(503, "the server has ended"))?;
            return Ok(Answered::json(200, &json!({ "changed": ["drain: as by SIGTERM"] })));
        }
        let (question, one) = without_worker(question)?;
        let reopens = name == REOPEN && question.method == "POST" && one.is_none();
        if reopens {
            self.log.reopen();
        }
        if one.is_none() && question.is_for_metrics() {
            return Ok(self.page(&question));
        }
        if one.is_none() && name == "stats" {
            return self.stats(&question);
        }
        if one.is_none() && name == UPSTREAMS && question.is_query() {
            return self.upstreams(&question);
        }
        if one.is_none() && name == "history" && question.is_query() {
            return self.history(&question);
        }
        if name == FINDING && question.is_query() {
            return self.finding(&question, one);
        }
        if name == SNAPSHOT && question.is_query() {
            return Ok(Answered::json(200, &snapshot_of(one, |part| self.answer(part, caller, doors))));
        }
        let lasts = reopens || (LASTING.contains(&&*name) && one.is_none());
        let lasting = lasts.then(|| self.note_change(question.clone()));
        let mut answers = self.ask(&question, one, &caller.to_string());
        // 503 is the answer of workers whose server has ended, but whose process has not.
        answers.retain(|(_, answer)| answer.status != 503);
        let is_refused = answers.is_empty() || answers.iter().any(|(_, answer)| answer.status != 200);
        if let Some(number) = lasting.filter(|_| is_refused) {
            lock(&self.state).changes.remove(&number);
        }
        if answers.is_empty() {
            return match one {
                Some(number) => {
                    let text = format!("there is no worker {number} that serves; 'status' lists them");
                    Err(Answered::error(404, &text))
                }
                // The log says why no worker serves.
                None if name == LOGS => self.merged(&question, Vec::new()),
                None if name == "status" => Ok(Answered::json(200, &self.status(Value::Null, doors))),
                None => Err(none_serves()),
            };
        }
        if let Some((_, refused)) = answers.iter().find(|(_, answer)| answer.status != 200) {
            return Err(refused.clone());
        }
        if one.is_some() || SAME.contains(&&*name) {
            return Ok(answers[0].1.clone());
        }
        let values = read(&answers);
        if name == "status" {
            return Ok(Answered::json(200, &self.status(merge(values), doors)));
        }
        self.merged(&question, values)
    }

    /// Merges the answers of several workers, with the supervisor's own lines and rows.
    fn merged(&self, question: &Question, values: Vec<(usize, Value)>) -> Result<Answered, Answered> {
        let name = question.name();
        if name == LOGS {
            return Ok(Answered::json(200, &merge_logs(values, &self.log, &question.given()?)?));
        }
        let mut merged = merge(values);
        if name == RECENT {
            merge_recent(&mut merged);
        }
        if name == MEMORY
            && let Some(rows) = merged["processes"].as_array_mut()
        {
            rows.iter_mut().for_each(|row| row["process"] = "worker".into());
            rows.push(process_row("supervisor"));
        }
        Ok(Answered::json(200, &merged))
    }

    fn history(&self, question: &Question) -> Result<Answered, Answered> {
        let given = question.given()?;
        find(&question.name())?.check(&given)?;
        Ok(Answered::json(200, &self.history.answer(&given)?))
    }

    /// Notes a change before any worker is asked, so that a worker that becomes ready meanwhile gets it, too.
    fn note_change(&self, change: Question) -> u64 {
        let mut state = lock(&self.state);
        if change.name() == REOPEN {
            // One reopening is enough.
            state.changes.retain(|_, earlier| *earlier != change);
        }
        let number = state.next_change;
        state.next_change += 1;
        state.changes.insert(number, change);
        number
    }

    /// Asks the serving workers, or one of them, and returns the answers by number.
    fn ask(&self, question: &Question, one: Option<usize>, caller: &str) -> Vec<(usize, Answered)> {
        let answers = self.ask_each(question, one, caller).into_iter();
        answers.map(|(process, answer)| (process.number, answer)).collect()
    }

    fn ask_each(
        &self,
        question: &Question,
        one: Option<usize>,
        caller: &str,
    ) -> Vec<(Arc<Process>, Answered)> {
        let asked: Vec<Arc<Process>> = lock(&self.state).serving.values().cloned().collect();
        let asked = asked.into_iter().filter(|process| one.is_none_or(|number| process.number == number));
        let pending: Vec<(Arc<Process>, Pending)> = asked
            .map(|process| {
                let pending = process.ask(question, caller);
                (process, pending)
            })
            .collect();
        let answers = pending.into_iter().filter_map(|(process, pending)| Some((process, pending.wait()?)));
        let mut answers: Vec<_> = answers.collect();
        answers.sort_by_key(|(process, _)| process.number);
        answers
    }

    /// Returns the figures of the ended workers, the figures of all workers, and the positions of the workers of `running` that still run. Each
    /// process counts once: a worker that ends meanwhile is among the ended ones, or not in this answer.
    fn counted(&self, running: &[(Arc<Process>, Answered)]) -> (Retired, Statistics, Vec<usize>) {
        let state = lock(&self.state);
        let retired = state.retired.clone();
        let still: Vec<usize> =
            (0..running.len()).filter(|at| state.serving.contains_key(&running[*at].0.id)).collect();
        let mut statistics = retired.statistics.clone();
        // Under the lock, so that no worker is retired between the two reads.
        still.iter().for_each(|at| statistics.merge(&running[*at].0.statistics()));
        (retired, statistics, still)
    }

    /// Answers `stats` for all workers, including ended ones.
    fn stats(&self, question: &Question) -> Result<Answered, Answered> {
        let asked = Question::get(COUNTED);
        let running = self.ask_each(&asked, None, "the supervisor");
        let (retired, statistics, still) = self.counted(&running);
        let mut counts = still.iter().filter_map(|at| running[*at].1.read::<Counted>());
        let mut counted = counts.next().unwrap_or_default();
        counts.for_each(|one| counted.merge(&one));
        counted.add_retired(&retired.counters);
        counted.up = self.began.elapsed();
        Ok(Answered::json(200, &stats_of(&counted, &statistics, &question.given()?)?))
    }

    /// Answers `upstreams` for all workers, including ended ones.
    fn upstreams(&self, question: &Question) -> Result<Answered, Answered> {
        find(UPSTREAMS)?.check(&question.given()?)?;
        let running = self.ask_each(&Question::get(COUNTED), None, "the supervisor");
        let (_, statistics, _) = self.counted(&running);
        Ok(Answered::json(200, &upstreams_of(&statistics)))
    }

    /// Answers `finding` for all workers together, or for one. Pictures of one worker are not kept between questions.
    fn finding(&self, question: &Question, one: Option<usize>) -> Result<Answered, Answered> {
        let given = question.given()?;
        find(FINDING)?.check(&given)?;
        let own = Finder::new();
        let finder = if one.is_none() { &self.finder } else { &own };
        if finder.is_first() {
            finder.keep(self.picture(one).ok_or_else(|| {
                Answered::error(503, "no such worker serves at this moment; 'status' lists them")
            })?);
            finder.wait();
        }
        let picture = self.picture(one).ok_or_else(none_serves)?;
        if let Some(pool) = given.value("pool").filter(|pool| !picture.pools.contains_key(*pool)) {
            return Err(Answered::error(404, &format!("there is no pool '{pool}'; 'pools' lists them")));
        }
        let mut answer = finder.answer(picture);
        let asked = Question::post("/stacks");
        finder.add_place(&mut answer, || Some(merge(read(&self.ask(&asked, one, "the supervisor")))));
        Ok(Answered::json(200, &answer))
    }

    fn picture(&self, one: Option<usize>) -> Option<Picture> {
        let asked = Question::get(PICTURE);
        let pictures: Vec<(usize, Picture)> = read(&self.ask(&asked, one, "the supervisor"));
        pictures.into_iter().fold(None, |all: Option<Picture>, (number, own)| {
            let mut all = all.unwrap_or_default();
            all.merge(&number.to_string(), &own);
            Some(all)
        })
    }

    /// Answers with the page of figures of all workers.
    fn page(&self, question: &Question) -> Answered {
        let asked = Question { path: OWN_PAGE.to_owned(), ..question.clone() };
        let running = self.ask_each(&asked, None, "the supervisor");
        running.iter().for_each(|(process, answer)| process.keep_page(&answer.body));
        let (retired, statistics, still) = self.counted(&running);
        let names: Vec<String> = still.iter().map(|at| running[*at].0.number.to_string()).collect();
        let pages =
            names.iter().zip(&still).map(|(worker, at)| WorkerPage { worker, text: &running[*at].1.body });
        let format = question.format();
        let own = {
            let State { ready, wanted, restarts, .. } = &*lock(&self.state);
            page_of_workers(*ready, *wanted, restarts, self.applied.total(Rule::WrongToken), format)
        };
        let pages = [WorkerPage { worker: "", text: &own }].into_iter().chain(pages);
        let body = merge_pages(&pages.collect::<Vec<_>>(), &retired.counters, &statistics, format);
        Answered { status: 200, body, media_type: format.media_type().to_owned(), allow: None }
    }

    /// Builds the answer to `status`: the supervisor's own values, then the merged values of the workers.
    fn status(&self, merged: Value, doors: &[String]) -> Value {
        let state = lock(&self.state);
        let mut status = Map::new();
        status.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        status.insert("language".to_owned(), self.languages.into());
        status.insert("application".to_owned(), state.application.clone().into());
        status.insert("pid".to_owned(), std::process::id().into());
        status.insert("uptime_seconds".to_owned(), self.began.elapsed().as_secs_f64().into());
        status.insert("accept".to_owned(), self.accept.into());
        status.insert("workers_wanted".to_owned(), state.wanted.into());
        status.insert("workers_failed".to_owned(), state.failures.into());
        status.insert("control".to_owned(), doors.into());
        status.insert("workers".to_owned(), state.shown.clone().into());
        // Clients find a server by its port in this list, also while no worker serves.
        let listeners = self.addresses.iter().map(|address| json!({ "address": address }));
        status.insert("listeners".to_owned(), listeners.collect());
        if let Value::Object(merged) = merged {
            let own = ["pid", "uptime_seconds", "control", "version", "language", "application"];
            status.extend(merged.into_iter().filter(|(name, _)| !own.contains(&&**name)));
        }
        status.into()
    }
}

fn none_serves() -> Answered {
    Answered::error(503, "no worker serves at this moment; 'status' lists them")
}

/// The values of the workers that have not refused, by number.
fn read<T: DeserializeOwned>(answers: &[(usize, Answered)]) -> Vec<(usize, T)> {
    answers.iter().filter_map(|(number, answer)| Some((*number, answer.read()?))).collect()
}

/// Splits a question into the question itself and the number of a worker.
fn without_worker(question: &Question) -> Result<(Question, Option<usize>), Answered> {
    let mut own = question.clone();
    let mut parts: Vec<&str> = question.query.split('&').filter(|part| !part.is_empty()).collect();
    let is_worker = |part: &&str| part.split('=').next() == Some(WORKER);
    let Some(at) = parts.iter().position(is_worker) else { return Ok((own, None)) };
    let value = parts.remove(at).split_once('=').map_or("", |(_, value)| value);
    let number = value.parse::<usize>();
    let number =
        number.map_err(|_| Answered::error(400, &format!("worker: '{value}' is no number of a worker")))?;
    own.query = parts.join("&");
    Ok((own, Some(number)))
}

/// Merges several answers: counts are added up, lists have the rows of all, and other values are those of the first answer.
fn merge(answers: Vec<(usize, Value)>) -> Value {
    let mut answers = answers.into_iter();
    let Some((number, first)) = answers.next() else { return Value::Null };
    let mut merged = with_worker(number, first);
    for (number, answer) in answers {
        let (Value::Object(mine), Value::Object(theirs)) = (&mut merged, with_worker(number, answer)) else {
            continue;
        };
        for (name, value) in theirs {
            match (mine.get_mut(&name), value) {
                (Some(Value::Array(rows)), Value::Array(others)) => {
                    for row in others {
                        if row.get(WORKER).is_some() || !rows.contains(&row) {
                            rows.push(row);
                        }
                    }
                }
                (Some(number), Value::Number(other)) if is_count(&name) => {
                    if let (Some(one), Some(two)) = (number.as_u64(), other.as_u64()) {
                        *number = (one + two).into();
                    }
                }
                // One ready worker is enough.
                (Some(ready), Value::Bool(true)) if name == "ready" => *ready = true.into(),
                (Some(_), _) => {}
                (None, value) => _ = mine.insert(name, value),
            }
        }
    }
    merged
}

/// Whether a number of an answer is a count, which is added up over the workers.
fn is_count(name: &str) -> bool {
    !name.ends_with("_seconds") && !["pid", "poll_groups", "limit_bytes"].contains(&name)
}

/// Adds the number of the worker to the rows of its lists, except to lists that are the same for all workers.
fn with_worker(number: usize, mut answer: Value) -> Value {
    const OF_ALL: [&str; 6] =
        ["listeners", "socket_options", "changed", "control", "certificates", "clients"];
    if let Value::Object(fields) = &mut answer {
        for (_, list) in fields.iter_mut().filter(|(name, _)| !OF_ALL.contains(&name.as_str())) {
            for row in list.as_array_mut().into_iter().flatten() {
                if let Value::Object(row) = row {
                    let mut numbered = Map::new();
                    numbered.insert(WORKER.to_owned(), number.into());
                    numbered.append(row);
                    *row = numbered;
                }
            }
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_rows_have_their_worker() {
        let one = json!({ "total": 2, "ready": false, "draining": false, "active": [{ "path": "/a" }], "listeners": [{ "address": ":1" }] });
        let two = json!({ "total": 3, "ready": true, "draining": true, "active": [{ "path": "/a" }], "listeners": [{ "address": ":1" }] });
        let merged = merge(vec![(1, one), (2, two)]);
        assert_eq!(
            merged,
            json!({
                "total": 5,
                "ready": true,
                "draining": false,
                "active": [{ "worker": 1, "path": "/a" }, { "worker": 2, "path": "/a" }],
                "listeners": [{ "address": ":1" }],
            })
        );
        assert_eq!(merge(Vec::new()), Value::Null);
    }

    #[test]
    fn one_worker_can_be_asked() {
        let question = Question { query: "pool=x&worker=2".into(), ..Question::default() };
        let (own, one) = without_worker(&question).expect("right");
        assert_eq!((&*own.query, one), ("pool=x", Some(2)));
        let question = Question { query: "worker=two".into(), ..Question::default() };
        assert_eq!(without_worker(&question).expect_err("no number").status, 400);
    }
}
