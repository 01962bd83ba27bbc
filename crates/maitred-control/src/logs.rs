//! `logs`: the last lines of the error log, from memory, and of the access log, from its file.
//!
//! Lines are data: they were made printable when they were written, and are shown unchanged.

use maitred_log::{KeptEntry, Level, Log, write_iso_time};
use serde_json::{Map, Value, json};

use super::change::level;
use super::{Given, QueryContext, Refusal};

/// The query.
pub const LOGS: &str = "logs";

const USUAL: usize = 50;
const MOST: usize = 1000;

struct LogQuery<'a> {
    error: bool,
    access: bool,
    last: usize,
    request: Option<&'a str>,
    level: Option<Level>,
}

impl<'a> LogQuery<'a> {
    fn of(given: &'a Given) -> Result<Self, Refusal> {
        let (error, access) = match given.value("which") {
            None => (true, true),
            Some("error") => (true, false),
            Some("access") => (false, true),
            Some(other) => return Err(Refusal::wrong(format!("which: '{other}' is none of error, access"))),
        };
        let last = match given.value("last") {
            None => USUAL,
            Some(text) => text
                .parse()
                .ok()
                .filter(|last| (1..=MOST).contains(last))
                .ok_or_else(|| Refusal::wrong(format!("last: '{text}' is no number from 1 to {MOST}")))?,
        };
        let level = given.value("level").map(level).transpose();
        let level = level.map_err(|wrong| Refusal::wrong(format!("level: {wrong}")))?;
        let request = given.value("request").filter(|id| !id.is_empty());
        Ok(Self { error, access, last, request, level })
    }

    /// An id is a word of its own: one that another one begins with is not meant.
    fn is_of_request(&self, line: &str) -> bool {
        let Some(id) = self.request else { return true };
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
        line.match_indices(id).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + id.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    }

    /// Whether the entry is within the level. An entry whose mark is no level is written at every level.
    fn is_of_level(&self, entry: &KeptEntry) -> bool {
        let Some(most) = self.level else { return true };
        Level::ALL.into_iter().any(|level| level.name() == entry.mark && level <= most)
    }
}

pub(super) fn logs(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let asked = LogQuery::of(given)?;
    let log = asking.server.log();
    let mut answer = Map::new();
    if asked.access {
        let tails = log.access_tails(asked.last, &|line| asked.is_of_request(line));
        let goes_to: Vec<&str> = tails.iter().map(|tail| &*tail.place).collect();
        let goes_to =
            if goes_to.is_empty() { "nowhere: access-log is off".to_owned() } else { goes_to.join(", ") };
        answer.insert("access_log_goes_to".to_owned(), goes_to.into());
        let mut troubles: Vec<String> = tails.iter().filter_map(|tail| tail.trouble.clone()).collect();
        troubles.dedup();
        answer.insert(
            "access_log_trouble".to_owned(),
            Some(troubles.join("; ")).filter(|text| !text.is_empty()).into(),
        );
        let lines = tails.iter().flat_map(|tail| tail.lines.iter().map(|line| json!({ "line": line })));
        answer.insert("access_log".to_owned(), lines.collect());
    }
    if asked.error {
        answer.insert("error_log".to_owned(), entries(log, &asked).into());
    }
    Ok(answer.into())
}

fn entries(log: &Log, asked: &LogQuery<'_>) -> Vec<Value> {
    let kept = log.kept_entries().into_iter();
    let wanted: Vec<KeptEntry> =
        kept.filter(|entry| asked.is_of_level(entry) && asked.is_of_request(&entry.line)).collect();
    let from = wanted.len().saturating_sub(asked.last);
    wanted[from..].iter().map(row).collect()
}

fn row(entry: &KeptEntry) -> Value {
    let mut time = String::new();
    write_iso_time(&mut time, entry.micros);
    let level = Some(entry.mark).filter(|mark| !mark.is_empty());
    json!({ "time": time, "level": level, "line": entry.line })
}

/// The answers of several processes as one: entries of all and those of `own`, the process that asks them, in the order of their time. The
/// access log is one file for all of them, which the first has read.
pub fn merge_logs(answers: Vec<(usize, Value)>, own: &Log, given: &Given) -> Result<Value, Refusal> {
    let asked = LogQuery::of(given)?;
    let mut rows = if asked.error { entries(own, &asked) } else { Vec::new() };
    let mut merged = answers.first().map_or_else(|| json!({}), |(_, first)| first.clone());
    for (number, mut answer) in answers {
        for row in answer["error_log"].as_array_mut().into_iter().flatten() {
            row["worker"] = number.into();
            rows.push(row.take());
        }
    }
    // The sort is stable: entries of one moment stay in the order of their process.
    rows.sort_by(|one, other| one["time"].as_str().cmp(&other["time"].as_str()));
    rows.drain(..rows.len().saturating_sub(asked.last));
    if asked.error {
        merged["error_log"] = rows.into();
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: &str) -> Given {
        Given(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn the_arguments_select_log_and_lines() {
        let refused =
            |name: &str, value: &str| LogQuery::of(&given(name, value)).err().expect("refused").text;
        assert_eq!(refused("which", "acess"), "which: 'acess' is none of error, access");
        assert_eq!(refused("last", "0"), "last: '0' is no number from 1 to 1000");
        assert_eq!(refused("last", "1001"), "last: '1001' is no number from 1 to 1000");
        assert_eq!(
            refused("level", "eror"),
            "level: 'eror' is none of error, warn, info or debug; did you mean 'error'?"
        );
    }

    #[test]
    fn an_id_is_a_word_and_a_level_those_above_it() {
        let given = given("request", "ab-1");
        let asked = LogQuery::of(&given).expect("right");
        for (line, is) in
            [("x ab-1 y", true), ("\"ab-1\"", true), ("ab-12", false), ("cab-1 ab-1", true), ("", false)]
        {
            assert_eq!(asked.is_of_request(line), is, "{line}");
        }
        let given = Given(vec![("level".to_owned(), "warn".to_owned())]);
        let asked = LogQuery::of(&given).expect("right");
        let is = |mark| asked.is_of_level(&KeptEntry { micros: 0, mark, line: String::new() });
        assert_eq!(["error", "warn", "info", "app", ""].map(is), [true, true, false, false, false]);
    }
}
