//! The history of the figures: who looks once a second, and what is answered of it.
//!
//! Promises: one look takes at most a hundredth of a processor, however many routes there are: then it is done less often, and the seconds
//! between have no row. While statistics are off nothing is kept. Leaves out: rows and steps, which maitred-history knows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use maitred_dispatch::PoolFigures;
use maitred_history::{COUNTERS, Counts, Gauges, History, MAX_BYTES, STEPS, Sample, Series};
use maitred_io::process;
use maitred_server::Server;
use maitred_server::figures::Totals;
use serde_json::{Value, json};

use super::owner::Refusal;
use super::question::{Answered, Question};
use super::table::Given;
use super::{QueryContext, nearest};

/// The name of the command.
pub(super) const NAME: &str = "history";

/// The part of a processor that looks may take.
const SHARE: u32 = 100;

/// Looks come a little after a second has ended, so that each is of one second.
const AFTER: Duration = Duration::from_millis(2);

/// Seconds that are shown if nothing else is asked for.
const SHOWN: u64 = 300;

/// The series that each count is made of, in the order of [`COUNTERS`]; the lines that a log has dropped are counted elsewhere.
const OF_COUNTERS: [&str; COUNTERS.len() - 1] = [
    "maitred_errors_total",
    "maitred_timeouts_total",
    "maitred_cut_total",
    "maitred_refused_total",
    "maitred_pool_refused_total",
    "maitred_rules_applied_total",
    "maitred_connections_accepted_total",
    "maitred_http2_connections_total",
    "maitred_websockets_accepted_total",
    "maitred_tls_handshakes_total",
];

/// What a process says of itself beside what it counts in memory that others read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// What is there now.
    pub gauges: Gauges,
    /// Processor time so far, in nanoseconds.
    pub cpu_ns: u64,
    /// Lines of the logs that could not be written so far.
    pub log_dropped: u64,
}

impl Looked {
    /// At this process.
    pub fn at(server: &Server) -> Self {
        let pools = server.pool_figures();
        let sum = |of: fn(&PoolFigures) -> usize| pools.iter().map(of).sum::<usize>() as u64;
        let inside = server.members().iter().filter(|member| member.inside().is_some()).count() as u64;
        let stuck = sum(|pool| pool.lost);
        let busy = inside.saturating_sub(stuck);
        let ended = |name: &str| name.starts_with("maitred_websockets_ended_total");
        let sockets = server.websockets();
        let accepted = sockets.iter().find(|(name, _)| name == "maitred_websockets_accepted_total");
        let ended: u64 = sockets.iter().filter(|(name, _)| ended(name)).map(|(_, count)| count).sum();
        let (errors, access) = server.log().dropped();
        Self {
            gauges: Gauges([
                Some(server.snapshot().open),
                Some(accepted.map_or(0, |(_, count)| *count).saturating_sub(ended)),
                Some(sum(|pool| pool.queued)),
                Some(sum(|pool| pool.threads).saturating_sub(busy + stuck)),
                Some(busy),
                Some(stuck),
                process::anonymous_bytes(),
            ]),
            cpu_ns: process::processor_ns(),
            log_dropped: errors + access.unwrap_or_default(),
        }
    }

    /// Adds what another process has now.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.gauges.0.iter_mut().zip(other.gauges.0) {
            if let Some(theirs) = theirs {
                *mine.get_or_insert_default() += theirs;
            }
        }
        self.cpu_ns += other.cpu_ns;
        self.log_dropped += other.log_dropped;
    }

    /// For another process, which reads it by [`from_json`](Self::from_json).
    pub fn to_json(&self) -> Value {
        json!({ "gauges": self.gauges.0, "cpu_ns": self.cpu_ns, "log_dropped": self.log_dropped })
    }

    /// What [`to_json`](Self::to_json) has made. What is missing is not known, or 0.
    pub fn from_json(value: &Value) -> Self {
        Self {
            gauges: Gauges(std::array::from_fn(|at| value["gauges"][at].as_u64())),
            cpu_ns: value["cpu_ns"].as_u64().unwrap_or_default(),
            log_dropped: value["log_dropped"].as_u64().unwrap_or_default(),
        }
    }
}

/// Everything that is counted, for a sample.
pub fn counts_of(totals: &Totals, counters: &BTreeMap<String, u64>, looked: &Looked) -> Counts {
    let mut counts = Counts {
        requests: totals.classes,
        bytes_out: totals.all.bytes,
        cpu_ns: looked.cpu_ns,
        spans: totals.all.spans.clone(),
        total: totals.all.total.clone(),
        ..Counts::default()
    };
    for (count, name) in counts.counters.iter_mut().zip(OF_COUNTERS) {
        let labelled = |series: &str| {
            series.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        };
        let of_name = counters.range(name.to_owned()..).take_while(|(series, _)| series.starts_with(name));
        *count = of_name.filter(|(series, _)| labelled(series)).map(|(_, count)| count).sum();
    }
    counts.counters[OF_COUNTERS.len()] = looked.log_dropped;
    counts
}

/// Keeps the history of a server.
pub struct Keeper(Mutex<State>);

struct State {
    history: History,
    /// When the last look was, or the start.
    last: Instant,
    /// When the next one is due.
    due: Instant,
    /// Whether figures were counted at the last look.
    is_on: bool,
}

impl Default for Keeper {
    fn default() -> Self {
        let now = Instant::now();
        Self(Mutex::new(State {
            history: History::default(),
            last: now,
            due: now + until_next(),
            is_on: true,
        }))
    }
}

impl Keeper {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next look is still ahead.
    pub fn ahead(&self) -> Duration {
        self.state().due.saturating_duration_since(Instant::now())
    }

    /// Notes what was seen in a look that began at `began`; `is_on` if the figures are counted.
    pub fn note(&self, counts: &Counts, gauges: &Gauges, is_on: bool, began: Instant) {
        let state = &mut *self.state();
        let covered = began.saturating_duration_since(state.last);
        if is_on && state.is_on {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = at.saturating_sub(began.elapsed());
            state.history.add(&Sample { at, covered, counts, gauges });
        } else {
            state.history.skip(counts);
        }
        (state.last, state.is_on) = (began, is_on);
        let pause = began.elapsed() * SHARE;
        state.due = Instant::now() + until_next();
        while state.due < began + pause {
            state.due += Duration::from_secs(1);
        }
    }

    /// Looks at a server of this process, if it is time to; how long it is not.
    pub(super) fn look(&self, server: &Server) -> Duration {
        let ahead = self.ahead();
        if !ahead.is_zero() {
            return ahead;
        }
        let (began, totals, looked) = (Instant::now(), server.totals(), Looked::at(server));
        let counts = counts_of(&totals, &server.counters(), &looked);
        self.note(&counts, &looked.gauges, totals.on, began);
        self.ahead()
    }

    /// The answer to a question, by its `Accept` or `format` as JSON or CSV.
    ///
    /// # Errors
    /// An argument is wrong.
    pub fn answer(&self, question: &Question, given: &Given) -> Result<Answered, Refusal> {
        Ok(shown(&self.value(given)?, question, given))
    }

    fn value(&self, given: &Given) -> Result<Value, Refusal> {
        if given.value("pool").is_some() {
            return Err(Refusal::wrong("the history is that of all pools together; leave the pool out"));
        }
        let series = wanted(given)?;
        is_csv(given)?;
        let state = self.state();
        let newest = state.history.newest().unwrap_or_default();
        let to = number(given, "to")?.unwrap_or(newest);
        let from = match (number(given, "from")?, number(given, "seconds")?) {
            (Some(_), Some(_)) => {
                return Err(Refusal::wrong("from and seconds at once; leave one of them out"));
            }
            (Some(from), None) => from,
            (None, seconds) => (to + 1).saturating_sub(seconds.unwrap_or(SHOWN)),
        };
        let step = number(given, "step")?.unwrap_or_else(|| state.history.step_from(from));
        let table = state.history.table(from, to, step, &series).ok_or_else(|| {
            let steps = STEPS.map(|(step, _)| step.to_string()).join(", ");
            Refusal::wrong(format!("step: {step} s is not kept; there are {steps}"))
        })?;
        let names: Vec<&str> = series.iter().map(|series| series.name()).collect();
        Ok(json!({
            "on": state.is_on,
            "step_seconds": table.step,
            "max_bytes": MAX_BYTES,
            "columns": names,
            "times": table.times,
            "values": table.values,
        }))
    }
}

/// As a command of the table.
pub(super) fn history(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let kept = asking.history.ok_or_else(|| {
        Refusal::conflict("this process keeps no history: with several workers the supervisor keeps that of all of them; leave the number of the worker out")
    })?;
    kept.value(given)
}

/// As JSON, or as CSV where that is asked for.
pub(super) fn shown(value: &Value, question: &Question, given: &Given) -> Answered {
    let by_accept = given.value("format").is_none() && question.accept.contains("text/csv");
    if !by_accept && given.value("format") != Some("csv") {
        return Answered::json(200, value);
    }
    let mut body = "time".to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for name in list(&value["columns"]) {
        let _ = write!(body, ",{}", name.as_str().unwrap_or_default());
    }
    body.push('\n');
    let columns: Vec<Vec<Value>> = list(&value["values"]).iter().map(list).collect();
    for (row, time) in list(&value["times"]).iter().enumerate() {
        let _ = write!(body, "{time}");
        for column in &columns {
            match column.get(row) {
                None | Some(Value::Null) => body.push(','),
                Some(value) => _ = write!(body, ",{value}"),
            }
        }
        body.push('\n');
    }
    Answered { status: 200, body, media_type: "text/csv; charset=utf-8".to_owned(), allow: None }
}

fn is_csv(given: &Given) -> Result<bool, Refusal> {
    match given.value("format") {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(other) => Err(Refusal::wrong(format!("format: '{other}' is none of json, csv"))),
    }
}

fn number(given: &Given, name: &str) -> Result<Option<u64>, Refusal> {
    let wrong = |text: &str| {
        Refusal::wrong(format!("{name}: '{text}' is no number of seconds; write whole ones, such as 300"))
    };
    // The largest time that a row can have is below 2^32.
    let valid = |text: &str| text.parse::<u64>().ok().filter(|number| *number <= u64::from(u32::MAX));
    given.value(name).map(|text| valid(text).ok_or_else(|| wrong(text))).transpose()
}

fn wanted(given: &Given) -> Result<Vec<Series>, Refusal> {
    let names =
        given.all("series").flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let of = |name: &str| {
        Series::find(name).ok_or_else(|| {
            let remedy = match nearest(name, Series::all().map(Series::name)) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => {
                    format!("there are {}", Series::all().map(Series::name).collect::<Vec<_>>().join(", "))
                }
            };
            Refusal::unknown(format!("there is no series '{name}'; {remedy}"))
        })
    };
    let series: Vec<Series> = names.map(of).collect::<Result<_, _>>()?;
    Ok(if series.is_empty() { Series::all().collect() } else { series })
}

/// How long it is until a second of the clock has ended.
fn until_next() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into()) + AFTER
}

#[cfg(test)]
mod tests {
    use maitred_history::GAUGES;

    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Given {
        Given(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn kept() -> Keeper {
        let keeper = Keeper::default();
        let mut counts = Counts::default();
        counts.requests[2] = 7;
        let began = keeper.state().last + Duration::from_secs(1);
        keeper.note(&counts, &Gauges::default(), true, began);
        keeper
    }

    #[test]
    fn it_is_json_or_csv() {
        let (keeper, question) = (kept(), Question { accept: "text/csv".to_owned(), ..Question::default() });
        let asked = given(&[("series", "requests,p50_seconds"), ("series", "queue")]);
        let value = keeper.value(&asked).expect("an answer");
        assert_eq!(value["columns"], json!(["requests", "p50_seconds", "queue"]));
        assert_eq!(value["values"], json!([[7.0], [null], [null]]));
        assert_eq!(value["step_seconds"], 1);
        let csv = keeper.answer(&question, &asked).expect("an answer");
        let time = &value["times"][0];
        assert_eq!(csv.body, format!("time,requests,p50_seconds,queue\n{time},7.0,,\n"));
        assert_eq!(csv.media_type, "text/csv; charset=utf-8");
        let json = given(&[("format", "json")]);
        assert_eq!(keeper.answer(&question, &json).expect("an answer").media_type, "application/json");
    }

    #[test]
    fn a_wrong_question_is_answered_with_what_would_be_right() {
        let refused = |pairs: &[(&str, &str)]| kept().value(&given(pairs)).expect_err("refused").text;
        assert_eq!(
            refused(&[("series", "request")]),
            "there is no series 'request'; did you mean 'requests'?"
        );
        assert_eq!(refused(&[("step", "60")]), "step: 60 s is not kept; there are 1, 10, 600");
        assert!(refused(&[("seconds", "1h")]).contains("no number of seconds"));
        assert!(refused(&[("seconds", "1"), ("from", "2")]).contains("at once"));
        assert!(refused(&[("format", "xml")]).contains("json, csv"));
        assert!(refused(&[("pool", "default")]).contains("all pools"));
        assert!(refused(&[("from", "99999999999")]).contains("no number of seconds"));
    }

    #[test]
    fn while_statistics_are_off_nothing_is_kept() {
        let keeper = kept();
        let mut counts = Counts::default();
        let requests = |keeper: &Keeper| {
            let value = keeper.value(&given(&[("series", "requests")])).expect("an answer");
            let values = value["values"][0].as_array().cloned().unwrap_or_default();
            values.iter().filter_map(Value::as_f64).sum::<f64>()
        };
        for (requests, is_on) in [(20, false), (30, true), (35, true)] {
            counts.requests[2] = requests;
            let began = keeper.state().last + Duration::from_secs(1);
            keeper.note(&counts, &Gauges::default(), is_on, began);
        }
        assert_eq!(requests(&keeper), 12.0);
    }

    #[test]
    fn what_a_process_says_is_the_same_on_the_other_side() {
        let mut gauges = Gauges::default();
        gauges.0[1] = Some(5);
        let looked = Looked { gauges, cpu_ns: 7, log_dropped: 9 };
        let text = looked.to_json().to_string();
        assert_eq!(Looked::from_json(&serde_json::from_str(&text).expect("json")), looked);
        let mut sum = looked.clone();
        sum.merge(&looked);
        assert_eq!((sum.gauges.0[1], sum.gauges.0[0], sum.cpu_ns), (Some(10), None, 14));
        assert_eq!(GAUGES[1], "websockets_open");
    }

    #[test]
    fn series_with_labels_are_added() {
        let counters = [
            ("maitred_errors_total", 2),
            ("maitred_pool_refused_total{pool=\"a\"}", 3),
            ("maitred_pool_refused_total{pool=\"b\"}", 4),
            ("maitred_refused_total_other", 100),
        ];
        let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
        let counts =
            counts_of(&Totals::default(), &counters, &Looked { log_dropped: 1, ..Looked::default() });
        assert_eq!(counts.counters, [2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 1]);
    }
}
