//! The answer of `history`.
//!
//! ```text
//! {"on": true, "resolution_seconds": 10, "start": 1764061200, "intervals": 3, "max_bytes": 6914880,
//!  "marks": [{"time": 1764061210, "what": "reload"}],
//!  "figures": {"requests": [7, 0, null], "p99_seconds": [0.031, null, null]},
//!  "latency": {"bounds_seconds": [0.0, 0.000016384, ...], "counts": [[[12, 6], [13, 1]], [], null]}}
//! ```
//! One array for each figure, with one value for each interval: the first begins `start` seconds after 1970, the others
//! follow without a gap. `null` stands for an interval without a look, or an unknown value. `latency` is there if it is
//! asked for: pairs of a bucket and the number of requests in it. The names stay; others may come.

use serde_json::{Map, Value, json};

use maitred_history::{Figure, MAX_BYTES, latency};

use super::{Keeper, routes};
use crate::given::option;
use crate::{Argument, Given, Refusal, did_you_mean, lock};

pub(crate) const ARGUMENTS: [Argument; 7] = [
    option("last", "how long ago it begins, such as 90, 5m, 1h or 7d; 5m without it"),
    option(
        "since",
        "the first second, instead of last: a time of the last 24 hours such as 12:05, or counted since 1970",
    ),
    option("until", "the last second, likewise"),
    option("resolution", "1s, 10s or 10m; the finest that is kept for that long without it"),
    option("figure", "names of figures, any number of times; latency for the buckets of times"),
    option(
        "routes",
        "the routes that took most time, compared with the same length of time just before (before), or so much earlier (1h, 1d)",
    ),
    option("route", "a route that routes shows, minute by minute"),
];

const SHOWN: u64 = 300;

/// No figure: the times of requests by bucket.
const LATENCY: &str = "latency";

impl Keeper {
    /// The answer to a question with these arguments.
    pub fn answer(&self, given: &Given) -> Result<Value, Refusal> {
        if given.value("pool").is_some() {
            return Err(Refusal::wrong("the history is that of all pools together; leave the pool out"));
        }
        let mut state = lock(&self.state);
        let about_routes = given.value("routes").or(given.value("route")).is_some();
        let shown = if about_routes { routes::SHOWN } else { SHOWN };
        // Rows end with the last look; routes and marks may be newer.
        let newest = state.history.newest();
        let newest = if about_routes { newest.max(Some(super::seconds())) } else { newest };
        let (from, to) = span(given, newest, shown)?;
        if about_routes {
            return routes::answer(&state.history.routes, given, from..to + 1);
        }
        let marked = from..if given.value("until").is_some() { to + 1 } else { u64::MAX };
        let (figures, with_latency) = wanted(given)?;
        let resolution = given.duration("resolution")?;
        let step = resolution.unwrap_or_else(|| state.history.step_from(from));
        let table = state.history.table(from, to, step, &figures).ok_or_else(|| not_kept(step))?;
        let columns = figures.iter().zip(&table.values).map(|(figure, values)| {
            let values: Vec<Value> = values.iter().map(|value| number(*value)).collect();
            (figure.name().to_owned(), values.into())
        });
        let mut answer = json!({
            "on": state.is_on,
            "resolution_seconds": table.step,
            "start": table.times.first(),
            "intervals": table.times.len(),
            "max_bytes": MAX_BYTES,
            "marks": routes::marks(&state.history.routes, marked),
            "figures": columns.collect::<Map<_, _>>(),
        });
        if with_latency {
            let rows = state.history.latency(from, to, step).unwrap_or_default();
            let bounds: Vec<f64> =
                (0..latency::BUCKETS).map(|bucket| latency::lower(bucket) as f64 / 1e9).collect();
            let counts: Vec<_> = rows.iter().map(|row| row.as_ref().map(|row| pairs(row))).collect();
            answer[LATENCY] = json!({ "bounds_seconds": bounds, "counts": counts });
        }
        Ok(answer)
    }
}

fn span(given: &Given, newest: Option<u64>, shown: u64) -> Result<(u64, u64), Refusal> {
    let (last, since, until) = (given.duration("last")?, moment(given, "since")?, moment(given, "until")?);
    let to = until.unwrap_or_else(|| newest.unwrap_or_default());
    let from = match (since, last) {
        (Some(_), Some(_)) => {
            return Err(Refusal::wrong("since and last at once; leave one of them out"));
        }
        (Some(since), None) => since,
        (None, last) => (to + 1).saturating_sub(last.unwrap_or(shown)),
    };
    Ok((from, to))
}

fn pairs(row: &[u32]) -> Vec<(usize, u32)> {
    row.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
}

/// A count without a point.
fn number(value: Option<f64>) -> Value {
    let whole = value.filter(|value| value.fract() == 0.0 && (0.0..9e15).contains(value));
    whole.map_or_else(|| value.into(), |value| (value as u64).into())
}

fn not_kept(step: u64) -> Refusal {
    Refusal::wrong(format!("resolution: {step} s is not kept; there are 1s, 10s and 10m"))
}

/// A second since 1970, or the time of a clock, which was passed last within a day. The largest that a row can have is below 2^32.
fn moment(given: &Given, name: &str) -> Result<Option<u64>, Refusal> {
    let wrong = |text: &str| {
        Refusal::wrong(format!(
            "{name}: '{text}' is neither a time such as 12:05 nor a second since 1970; 'date +%s' prints the present one"
        ))
    };
    let parse = |text: &str| {
        let second = text.parse::<u32>().ok().map(u64::from);
        second.or_else(|| of_clock(text, &jiff::Zoned::now())).ok_or_else(|| wrong(text))
    };
    given.value(name).map(parse).transpose()
}

/// When a clock showed this time last.
fn of_clock(text: &str, now: &jiff::Zoned) -> Option<u64> {
    let time: jiff::civil::Time = text.parse().ok()?;
    let today = now.with().time(time).build().ok()?;
    let passed = if today <= *now { today } else { today.yesterday().ok()? };
    u64::try_from(passed.timestamp().as_second()).ok()
}

fn wanted(given: &Given) -> Result<(Vec<Figure>, bool), Refusal> {
    let names =
        given.all("figure").flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let (latency, names): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == LATENCY);
    let figures: Vec<Figure> =
        names.iter().map(|name| Figure::find(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?;
    let is_all = figures.is_empty() && latency.is_empty();
    Ok((if is_all { Figure::all().collect() } else { figures }, !latency.is_empty()))
}

fn unknown(name: &str) -> Refusal {
    let names = || Figure::all().map(Figure::name).chain([LATENCY]);
    let remedy = did_you_mean(name, names(), format!("there are {}", names().collect::<Vec<_>>().join(", ")));
    Refusal::unknown(format!("there is no figure '{name}'; {remedy}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use maitred_history::{Counts, Gauges};

    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Given {
        Given(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn look(keeper: &Keeper, requests: u64, is_on: bool) {
        let mut counts = Counts::default();
        counts.requests[2] = requests;
        (0..requests).for_each(|_| counts.total.record(20_000));
        let at = lock(&keeper.state).last + Duration::from_secs(1);
        let look = super::super::Look { at, ..super::super::Look::begin() };
        keeper.note(&counts, &Gauges::default(), is_on, look);
    }

    fn kept() -> Keeper {
        let keeper = Keeper::default();
        look(&keeper, 7, true);
        keeper
    }

    #[test]
    fn it_has_an_array_for_each_figure() {
        let keeper = kept();
        let asked = given(&[("figure", "requests,memory_bytes"), ("figure", "latency")]);
        let value = keeper.answer(&asked).expect("an answer");
        assert_eq!(value["figures"], json!({ "requests": [7], "memory_bytes": [null] }));
        assert_eq!((&value["resolution_seconds"], &value["intervals"]), (&json!(1), &json!(1)));
        assert_eq!(value["latency"]["counts"], json!([[[1, 7]]]));
        assert_eq!(value["latency"]["bounds_seconds"][1], 0.000016384);
        let start = value["start"].as_u64().expect("a time").to_string();
        for (name, text) in [("last", "1h"), ("since", &*start), ("last", "1")] {
            let value = keeper.answer(&given(&[(name, text)])).expect("an answer");
            assert_eq!(value["figures"]["requests"], json!([7]), "{name} {text}");
        }
        let coarse = keeper.answer(&given(&[("last", "30d"), ("figure", "requests")])).expect("an answer");
        assert_eq!(
            (&coarse["resolution_seconds"], &coarse["figures"]["requests"]),
            (&json!(600), &json!([7]))
        );
        let none = Keeper::default().answer(&given(&[("figure", "queue")])).expect("an answer");
        assert_eq!((&none["start"], &none["figures"]["queue"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn a_wrong_question_is_answered_with_the_valid_form() {
        let refused = |pairs: &[(&str, &str)]| kept().answer(&given(pairs)).expect_err("refused").text;
        assert_eq!(
            refused(&[("figure", "request")]),
            "there is no figure 'request'; did you mean 'requests'?"
        );
        assert_eq!(
            refused(&[("resolution", "1m")]),
            "resolution: 60 s is not kept; there are 1s, 10s and 10m"
        );
        for wrong in ["1y", "", "0", "-1", "99999999d"] {
            assert!(refused(&[("last", wrong)]).contains("is no time"), "{wrong}");
        }
        assert!(refused(&[("last", "1"), ("since", "2")]).contains("at once"));
        assert!(refused(&[("pool", "default")]).contains("all pools"));
        assert!(refused(&[("since", "99999999999")]).contains("nor a second since 1970"));
    }

    #[test]
    fn a_time_of_the_clock_is_that_of_today_or_yesterday() {
        let now: jiff::Zoned = "2026-11-28T10:00:00+00:00[UTC]".parse().expect("a time");
        let second = |text| of_clock(text, &now).map(|second| second as i64 - now.timestamp().as_second());
        assert_eq!(
            (second("09:05"), second("10:00"), second("12:05:10")),
            (Some(-3300), Some(0), Some(7510 - 86400))
        );
        assert_eq!((second("25:00"), second("soon")), (None, None));
    }

    #[test]
    fn routes_are_compared_with_their_earlier_times() {
        let keeper = kept();
        let begin = lock(&keeper.state).history.newest().expect("a row") / 60 * 60;
        let mut times = maitred_stats::Distribution::default();
        for (minute, milliseconds) in [(60, 10), (1, 20), (0, 500)] {
            (0..100).for_each(|_| times.record(milliseconds * 1_000_000));
            let routes = [("GET /a".to_owned(), times.clone())];
            lock(&keeper.state).history.routes.add(begin / 60 - minute, &routes);
        }
        let (since, until) = (begin.to_string(), (begin + 59).to_string());
        let ask = |name, value: &str| {
            keeper.answer(&given(&[("since", &since), ("until", &until), (name, value)])).expect("an answer")
        };
        let mean =
            |value: &Value, name: &str| (value["routes"][0][name].as_f64().unwrap_or_default() * 1e3).round();
        let before = ask("routes", "before");
        assert_eq!((mean(&before, "mean_seconds"), mean(&before, "earlier_mean_seconds")), (500.0, 20.0));
        assert_eq!(mean(&ask("routes", "1h"), "earlier_mean_seconds"), 10.0);
        assert_eq!(ask("routes", "1d")["routes"][0]["earlier_requests"], json!(0));
        let minutes = ask("route", "GET /a");
        assert_eq!(
            (&minutes["minutes"][0]["time"], &minutes["minutes"][0]["requests"]),
            (&json!(begin), &json!(100))
        );
        let refused = keeper.answer(&given(&[("routes", "soon")])).expect_err("refused").text;
        assert!(refused.contains("'soon'"), "{refused}");
        let marks = keeper.answer(&given(&[("last", "1h")])).expect("an answer")["marks"].clone();
        assert_eq!(marks[0]["what"], "start");
    }

    #[test]
    fn while_statistics_are_off_nothing_is_kept() {
        let keeper = kept();
        for (requests, is_on) in [(20, false), (30, true), (35, true)] {
            look(&keeper, requests, is_on);
        }
        let value = keeper.answer(&given(&[("figure", "requests")])).expect("an answer");
        let values = value["figures"]["requests"].as_array().cloned().unwrap_or_default();
        assert_eq!(values.iter().filter_map(Value::as_u64).sum::<u64>(), 12);
    }
}
