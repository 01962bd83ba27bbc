//! An answer for people: lines of names and values, tables of lists, blocks where a table would be too wide.
//!
//! The end of a name tells the unit of its value: `_seconds` and `_bytes` are shown with their unit.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Greatest width of a table. A wider one loses columns of [`SPARE`], and if that is not enough is shown as blocks.
const MAX_WIDTH: usize = 150;

/// Columns that a wide table loses, in this order; `--json` has them.
const SPARE: [&str; 3] = ["since", "peer", "name"];

/// Pairs of the longest time of a bucket, in seconds, and a count.
const BUCKETS: &str = "buckets";

/// Longest text in a table; longer ones are cut.
const MAX_CELL: usize = 60;

pub(super) fn show(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) => {
            let (plain, lists): (Vec<_>, Vec<_>) =
                fields.iter().partition(|(_, value)| !is_list_of_objects(value));
            lines(&mut text, &plain, "");
            for (name, value) in lists {
                if !text.is_empty() {
                    text.push('\n');
                }
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                list(&mut text, name, items);
            }
        }
        other => {
            let _ = writeln!(text, "{}", cell("", other));
        }
    }
    text
}

fn is_list_of_objects(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_object))
}

/// A line for each field, the names in one column.
fn lines(text: &mut String, fields: &[(&String, &Value)], indent: &str) {
    let width = fields.iter().map(|(name, _)| title(name).chars().count()).max().unwrap_or(0);
    for (name, value) in fields {
        let label = title(name);
        match value {
            Value::Array(items) => {
                let _ = writeln!(text, "{indent}{label}:");
                for item in items {
                    for line in cell(if *name == BUCKETS { name } else { "" }, item).lines() {
                        let _ = writeln!(text, "{indent}  {line}");
                    }
                }
            }
            Value::Object(inner) => {
                let parts: Vec<String> = inner
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(name, value)| format!("{} {}", title(name), cell(name, value)))
                    .collect();
                let _ = writeln!(text, "{indent}{label:<width$}  {}", parts.join(", "));
            }
            value => {
                let _ = writeln!(text, "{indent}{label:<width$}  {}", cell(name, value));
            }
        }
    }
}

fn list(text: &mut String, name: &str, items: &[Value]) {
    let items: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    if items.is_empty() {
        let _ = writeln!(text, "{}: none", title(name));
        return;
    }
    let _ = writeln!(text, "{}:", title(name));
    // Lines of a log are shown as they are.
    if let Some(all) = items.iter().map(|item| item.get("line")).collect::<Option<Vec<_>>>() {
        all.iter().flat_map(|line| line.as_str().unwrap_or_default().lines()).for_each(|line| {
            let _ = writeln!(text, "  {}", cell("", &line.into()));
        });
        return;
    }
    let mut columns: Vec<&String> = items[0]
        .keys()
        .filter(|column| items.iter().any(|item| item.get(*column).is_some_and(|value| !value.is_null())))
        .collect();
    let is_nested = |value: &Value| value.is_array() || value.is_object();
    let nested = items.iter().any(|item| item.values().any(is_nested));
    let width = |column: &String| {
        let cells = items.iter().map(|item| table_cell(column, item).chars().count());
        cells.chain([title(column).chars().count()]).max().unwrap_or(0)
    };
    let whole = |columns: &[&String]| columns.iter().map(|column| width(column) + 2).sum::<usize>();
    for spare in SPARE {
        if whole(&columns) > MAX_WIDTH {
            columns.retain(|column| *column != spare);
        }
    }
    let rows: Vec<Vec<String>> =
        items.iter().map(|item| columns.iter().map(|column| table_cell(column, item)).collect()).collect();
    let widths: Vec<usize> = columns.iter().map(|column| width(column)).collect();
    if nested || whole(&columns) > MAX_WIDTH {
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                text.push('\n');
            }
            let fields: Vec<_> = item.iter().filter(|(_, value)| !value.is_null()).collect();
            lines(text, &fields, "  ");
        }
        return;
    }
    let titles: Vec<String> = columns.iter().map(|column| title(column)).collect();
    let is_number =
        |position: usize| items.iter().all(|item| !item.get(columns[position]).is_some_and(Value::is_string));
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for (position, cell) in row.iter().enumerate() {
            let width = widths[position];
            let _ = match is_number(position) {
                true => write!(line, "  {cell:>width$}"),
                false => write!(line, "  {cell:<width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn table_cell(column: &str, item: &Map<String, Value>) -> String {
    let cell = cell(column, item.get(column).unwrap_or(&Value::Null));
    match cell.char_indices().nth(MAX_CELL) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell,
    }
}

/// `user_seconds` is `user`.
fn title(name: &str) -> String {
    let plain = name.strip_suffix("_seconds").or_else(|| name.strip_suffix("_bytes")).unwrap_or(name);
    plain.replace('_', " ")
}

fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(seconds) if name.ends_with("_seconds") => time(seconds),
            Some(bytes) if name.ends_with("_bytes") => size(bytes),
            Some(fraction) if number.is_f64() => format!("{fraction:.3}"),
            _ => number.to_string(),
        },
        // Control characters are left out: they would give commands to the terminal.
        Value::String(text) => text.chars().filter(|each| !each.is_control() || *each == '\n').collect(),
        Value::Array(pair) if name == BUCKETS && pair.len() == 2 => {
            format!("up to {}  {}", cell("_seconds", &pair[0]), pair[1])
        }
        nested => nested.to_string(),
    }
}

/// Times of requests are all in milliseconds, so that those of a column can be compared.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 10.0 => format!("{:.3} ms", seconds * 1e3),
        _ if seconds < 600.0 => format!("{seconds:.1} s"),
        _ if seconds < 36_000.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// `700 B`, `2.0 MiB`.
pub(crate) fn size(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024.0 {
        return format!("{bytes:.0} B");
    }
    let mut value = bytes / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_table_and_empty_columns_are_left_out() {
        let value = json!({
            "total": 2,
            "active": [
                { "path": "/a", "peer": null, "for_seconds": 61.25, "sent_bytes": 512 },
                { "path": "/long/one", "peer": null, "for_seconds": 0.5, "sent_bytes": 3_145_728 },
            ],
            "queued": [],
        });
        assert_eq!(
            show(&value),
            "total  2\n\nactive:\n  path              for     sent\n  /a             61.2 s    512 B\n  \
             /long/one  500.000 ms  3.0 MiB\n\nqueued: none\n"
        );
    }

    #[test]
    fn a_table_that_is_too_wide_loses_what_it_can_do_without() {
        let thread = |tid: u32| json!({ "tid": tid, "name": "n".repeat(50), "path": format!("/{}", "p".repeat(80)), "since": "s".repeat(50), "peer": "127.0.0.1:1" });
        let text = show(&json!({ "threads": [thread(7), thread(8)] }));
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("name") && !text.contains("since") && text.contains("ppp…"), "{text}");
    }

    #[test]
    fn buckets_have_the_unit_of_all_times() {
        let value = json!({ "route": "GET /a", "buckets": [[0.000524287, 2], [12.5, 1]] });
        assert_eq!(show(&value), "route    GET /a\nbuckets:\n  up to 0.524 ms  2\n  up to 12.5 s  1\n");
    }

    #[test]
    fn lines_of_a_log_are_lines() {
        let value = json!({ "error_log": [{ "time": "t", "line": "t info a" }, { "time": "t", "line": "t error b\n  c", "worker": 2 }] });
        assert_eq!(show(&value), "error log:\n  t info a\n  t error b\n    c\n");
    }

    #[test]
    fn rows_with_lists_are_shown_as_blocks() {
        let value = json!({ "stacks": [{ "tid": 7, "doing": null, "stack": ["one\n  two", "three"] }] });
        assert_eq!(show(&value), "stacks:\n  tid    7\n  stack:\n    one\n      two\n    three\n");
    }

    #[test]
    fn nothing_in_an_answer_tells_the_terminal_what_to_do() {
        assert_eq!(show(&json!({ "a": "x\u{1b}[2Jy" })), "a  x[2Jy\n");
    }
}
