//! The answer to a question, by a server of this process.

use serde_json::{Value, json};

use super::table::Run;
use super::{
    Answered, Caller, Command, Done, Given, QueryContext, Question, Refusal, SNAPSHOT, Wanted, commands,
    find, finding, logs, memory, snapshot_of,
};

/// Queries about parts of the server that belong to no pool, and about steps before a request has one.
const OF_ALL_POOLS: [&str; 8] =
    ["status", finding::FINDING, logs::LOGS, memory::MEMORY, SNAPSHOT, "filters", "caches", "tls"];

pub(super) fn answer(asking: &QueryContext<'_>, question: &Question, caller: &Caller) -> Answered {
    try_answer(asking, question, caller).unwrap_or_else(|refused| refused)
}

fn try_answer(asking: &QueryContext<'_>, question: &Question, caller: &Caller) -> Result<Answered, Answered> {
    let name = question.name();
    if name.is_empty() {
        return Ok(Answered::json(200, &help()));
    }
    let is_query = question.is_query();
    if question.is_for_metrics() {
        let format = question.format();
        let body = asking.server.figures().page(format);
        let media_type = format.media_type().to_owned();
        return Ok(Answered { status: 200, body, media_type, allow: None });
    }
    let command = find(&name)?;
    if command.change && question.method != "POST" || !command.change && !is_query {
        let allow = if command.change { "POST" } else { "GET, HEAD" };
        let text = format!("{name} is asked with {}", if command.change { "POST" } else { "GET" });
        return Err(Answered { allow: Some(allow.to_owned()), ..Answered::error(405, &text) });
    }
    let (value, lines) = run(asking, command, &question.given()?)?;
    for line in lines {
        asking.server.log().notice(format_args!("control: {line} ({caller})"));
    }
    Ok(Answered::json(200, &value))
}

/// The list of the commands, for a question without a path.
pub fn help() -> Value {
    let all = commands().iter().map(|command| {
        json!({
            "path": format!("/{}", command.name.replace(' ', "/")),
            "method": if command.change { "POST" } else { "GET" },
            "usage": command.usage(),
            "help": command.help,
        })
    });
    json!({ "commands": all.collect::<Vec<_>>() })
}

/// The answer of a command, and lines for the log.
fn run(asking: &QueryContext<'_>, command: &Command, given: &Given) -> Result<(Value, Vec<String>), Refusal> {
    command.check(given)?;
    let query = match command.run {
        Run::Query(query) => query,
        Run::Snapshot => |asking: &QueryContext<'_>, _: &Given| {
            let caller = Caller::Relayed("a snapshot".to_owned());
            Ok(snapshot_of(None, |question| answer(asking, question, &caller)))
        },
        Run::Change(change) => {
            let Done { lines, value } = change(asking, given)?;
            return Ok((value.unwrap_or_else(|| json!({ "changed": lines })), lines));
        }
    };
    let (wanted, mut answer) = (Wanted::of(asking, given)?, query(asking, given)?);
    if let (Some(_), true) = (wanted.name, OF_ALL_POOLS.contains(&command.name)) {
        answer["note"] = "the same for every pool".into();
    }
    Ok((answer, Vec::new()))
}
