//! The history as lines for people: a row for each interval, with a choice of figures if none are named.

use maitred_control::Given;
use serde_json::{Map, Value};

/// The figures that are shown if none are named.
const FIGURES: &str = "requests,requests_4xx,requests_5xx,p50_seconds,p99_seconds,queue_max,threads_busy,connections_open,memory_bytes";

/// The time that is shown if none is named.
const LAST: &str = "1m";

pub(super) const NAME: &str = "history";

/// Completes a question without `--json`: the figures and the time, if they are not given.
pub(super) fn for_people(given: &Given) -> Given {
    let mut given = given.clone();
    if given.value("route").or(given.value("routes")).is_some() {
        return given;
    }
    let mut unless = |named: &[&str], value: &str| {
        if named.iter().all(|name| given.value(name).is_none()) {
            given.0.push((named[0].to_owned(), value.to_owned()));
        }
    };
    unless(&["figure"], FIGURES);
    unless(&["last", "since"], LAST);
    given
}

/// Turns the answer into one with a list that has an object for each interval, for [`show`](super::show::show).
pub(super) fn rows(mut value: Value) -> Value {
    show_times(&mut value);
    let Some(Value::Object(figures)) = value.get_mut("figures").map(Value::take) else { return value };
    let count = value["intervals"].as_u64().unwrap_or_default();
    let (start, step) = (value["start"].as_u64(), value["resolution_seconds"].as_u64().unwrap_or_default());
    let latency = value.get_mut("latency").map(Value::take);
    let row = |at: u64| {
        let mut row = Map::new();
        let time = start.unwrap_or_default().saturating_add(at.saturating_mul(step));
        row.insert("time".to_owned(), clock_time(time).into());
        let index = usize::try_from(at).unwrap_or_default();
        row.extend(figures.iter().map(|(name, values)| (name.clone(), values[index].clone())));
        if let Some(latency) = &latency {
            row.insert("latency".to_owned(), buckets(&latency["bounds_seconds"], &latency["counts"][index]));
        }
        Value::Object(row)
    };
    let rows: Vec<Value> = (0..count).map(row).collect();
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| matches!(&**name, "on" | "resolution_seconds" | "marks"));
        fields.insert("history".to_owned(), rows.into());
    }
    value
}

/// The counts of requests by least duration: `0.25 ms: 6`.
fn buckets(bounds: &Value, counts: &Value) -> Value {
    let Some(pairs) = counts.as_array() else { return Value::Null };
    let one = |pair: &Value| {
        let bound =
            bounds[pair[0].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or_default()].as_f64();
        format!("{:.2} ms: {}", bound.unwrap_or_default() * 1e3, pair[1])
    };
    pairs.iter().map(one).collect::<Vec<_>>().join(", ").into()
}

/// Writes times of marks and of answers about routes as clock times. An empty list of marks is left out.
fn show_times(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.retain(|name, value| name != "marks" || value.as_array().is_none_or(|marks| !marks.is_empty()));
    let show = |time: &mut Value| {
        if let Some(seconds) = time.as_u64() {
            *time = clock_time(seconds).into();
        }
    };
    for name in ["since", "until", "earlier_since", "earlier_until"] {
        fields.get_mut(name).into_iter().for_each(show);
    }
    for list in ["marks", "minutes"] {
        let rows = fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        rows.filter_map(|row| row.get_mut("time")).for_each(show);
    }
}

fn clock_time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or_default();
    let moment = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_is_a_row() {
        let value = json!({
            "on": true, "resolution_seconds": 10, "start": 86_400, "intervals": 2, "max_bytes": 7,
            "figures": { "requests": [7, null], "p50_seconds": [0.25, null] },
            "latency": { "bounds_seconds": [0.0, 0.016], "counts": [[[0, 3], [1, 4]], null] },
        });
        let shown = rows(value);
        let row = &shown["history"][0];
        assert_eq!((&row["requests"], &row["p50_seconds"]), (&json!(7), &json!(0.25)));
        assert_eq!(row["latency"], "0.00 ms: 3, 16.00 ms: 4");
        assert!(shown["history"][1]["time"].as_str().is_some_and(|time| time.ends_with(":10")), "{shown}");
        assert_eq!(shown["history"][1]["requests"], Value::Null);
        assert!(shown.get("start").is_none());
        let given = for_people(&Given::default());
        assert_eq!((given.value("figure"), given.value("last")), (Some(FIGURES), Some(LAST)));
        let since = Given(vec![("since".to_owned(), "7".to_owned())]);
        assert_eq!(for_people(&since).value("last"), None);
    }
}
