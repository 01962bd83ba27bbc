//! The history as lines for people: a row for each interval, of the series that say most if none are named.

use maitred_control::Given;
use serde_json::{Map, Value};

/// Shown if nothing else is asked for.
const SERIES: &str = "requests,requests_4xx,requests_5xx,p50_seconds,p99_seconds,queue,threads_busy,connections_open,memory_bytes";

/// The name of the command.
pub(super) const NAME: &str = "history";

/// What is asked for, for people.
pub(super) fn for_people(given: &Given) -> Given {
    let mut given = given.clone();
    if given.value("series").is_none() && given.value("format").is_none() {
        given.0.push(("series".to_owned(), SERIES.to_owned()));
    }
    given
}

/// A list with an object for each interval, for [`show`](super::show::show).
pub(super) fn rows(mut value: Value) -> Value {
    let Some(times) = value["times"].as_array() else { return value };
    let names: Vec<&str> =
        value["columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let row = |(at, time): (usize, &Value)| {
        let mut row = Map::new();
        row.insert("time".to_owned(), clock_time(time).into());
        for (column, name) in names.iter().enumerate() {
            let cell = &value["values"][column][at];
            // A count is shown without a point.
            let whole = cell.as_f64().filter(|cell| cell.fract() == 0.0 && !name.ends_with("_seconds"));
            row.insert((*name).to_owned(), whole.map_or_else(|| cell.clone(), |cell| (cell as u64).into()));
        }
        Value::Object(row)
    };
    let rows: Vec<Value> = times.iter().enumerate().map(row).collect();
    if let Value::Object(fields) = &mut value {
        for raw in ["columns", "times", "values"] {
            fields.remove(raw);
        }
        fields.insert("intervals".to_owned(), rows.into());
    }
    value
}

fn clock_time(seconds: &Value) -> String {
    let moment = jiff::Timestamp::from_second(seconds.as_i64().unwrap_or_default()).unwrap_or_default();
    moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_is_a_row() {
        let value = json!({
            "on": true, "step_seconds": 1, "columns": ["requests", "p50_seconds"], "times": [0, 1],
            "values": [[7.0, null], [0.25, null]],
        });
        let shown = rows(value);
        assert_eq!(shown["intervals"][0]["requests"], 7);
        assert_eq!(shown["intervals"][0]["p50_seconds"], 0.25);
        assert_eq!(shown["intervals"][1]["requests"], Value::Null);
        assert!(shown.get("times").is_none());
        let given = for_people(&Given::default());
        assert_eq!(given.value("series"), Some(SERIES));
        let csv = Given(vec![("format".to_owned(), "csv".to_owned())]);
        assert_eq!(for_people(&csv), csv);
        assert_eq!(rows("a,b".into()), Value::from("a,b"));
    }
}
