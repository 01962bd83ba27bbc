//! The table of all queries and changes: answers, refusals and the help come from it.

use serde_json::Value;

use super::given::{option, optional, required, unless_given};
use super::{
    Argument, Done, Given, QueryContext, Refusal, WORKER, change, deliveries, did_you_mean, explain, finding,
    history, http2, logs, memory, otlp, over_time, pool, recent, requests, stats, status, threads, tls,
    upstreams, websockets,
};

/// A query or a change.
pub struct Command {
    /// One word or two. Over HTTP the path is made of it: `/deliveries/end`.
    pub name: &'static str,
    /// Its arguments, in this order.
    pub arguments: &'static [Argument],
    /// Whether it changes something, or disturbs: then it is asked with POST only.
    pub change: bool,
    /// One sentence.
    pub help: &'static str,
    pub(super) run: Run,
}

pub(super) enum Run {
    Query(fn(&QueryContext<'_>, &Given) -> Result<Value, Refusal>),
    Change(fn(&QueryContext<'_>, &Given) -> Result<Done, Refusal>),
    /// The answers of all other queries.
    Snapshot,
}

const fn query(
    name: &'static str,
    arguments: &'static [Argument],
    help: &'static str,
    run: fn(&QueryContext<'_>, &Given) -> Result<Value, Refusal>,
) -> Command {
    Command { name, arguments, change: false, help, run: Run::Query(run) }
}

const fn change(
    name: &'static str,
    arguments: &'static [Argument],
    help: &'static str,
    run: fn(&QueryContext<'_>, &Given) -> Result<Done, Refusal>,
) -> Command {
    Command { name, arguments, change: true, help, run: Run::Change(run) }
}

/// The query for all answers at one time.
pub const SNAPSHOT: &str = "snapshot";

const POOL: Argument = option(pool::NAME, "the name of a pool");

const HISTORY: [Argument; 8] = {
    let [last, since, until, resolution, figure, routes, route] = history::ARGUMENTS;
    [last, since, until, resolution, figure, routes, route, POOL]
};

const COMMANDS: &[Command] = &[
    query(
        "status",
        &[POOL],
        "Version, process, listeners, threads of each role, what was changed at run time.",
        status::status,
    ),
    query(
        "stats",
        &[option("route", "a route that stats shows: its spans alone"), POOL],
        "What has been counted since the start.",
        stats::stats,
    ),
    query(
        finding::FINDING,
        &[POOL],
        "What stands in the way now, with its reason and what to look at next.",
        over_time::finding,
    ),
    query("active", &[POOL], "Requests in the application, the longest first.", requests::active),
    query("queued", &[POOL], "Requests that wait for a thread.", requests::queued),
    query("all", &[POOL], "Requests in the application, and those that wait for a thread.", requests::all),
    query(
        "history",
        &HISTORY,
        "The figures of each second of the last hour, 10 seconds of a day, 10 minutes of 30 days; the routes of each minute of two days.",
        over_time::history,
    ),
    query(
        recent::RECENT,
        &[option("route", "a route that stats shows"), POOL],
        "The slowest requests of the last two minutes, and the last that failed, with where their time has gone.",
        recent::recent,
    ),
    query(
        upstreams::UPSTREAMS,
        &[POOL],
        "Servers that the application calls: how often, how long, how it ended, bytes, connections used again.",
        upstreams::upstreams,
    ),
    query(
        "otlp",
        &[POOL],
        "Spans, figures and records for a collector of OpenTelemetry: sent, waiting, lost, and why.",
        otlp::otlp,
    ),
    query(
        logs::LOGS,
        &[
            option("which", "error or access"),
            option("last", "how many lines of each, 1 to 1000; 50 without it"),
            option("request", "the id of a request"),
            option("level", change::LEVELS),
            POOL,
        ],
        "The last lines of the error log, and of the access log if it is a file.",
        logs::logs,
    ),
    query("connections", &[POOL], "Connections by what they are doing.", requests::connections),
    query("threads", &[POOL], "Threads with role, CPU time and request; CPU time by role.", threads::threads),
    query("pools", &[POOL], "Pools with their limits and counts.", status::pools),
    query(
        "map",
        &[POOL],
        "The rules that lead requests to pools, in the order in which they are asked.",
        status::map,
    ),
    query(
        "filters",
        &[POOL],
        "What requests meet before they are answered, in this order, with how often.",
        status::filters,
    ),
    query(
        "traces",
        &[POOL],
        "How the last requests got their threads, while dispatch-trace is on; filters that see ended requests.",
        requests::traces,
    ),
    query("handlers", &[POOL], "What answers which paths.", status::handlers),
    query(
        "explain",
        &[
            unless_given("method", "a method; GET without it", explain::METHOD),
            required("url", "a path with its query, or a URL"),
            option("from", "the client's address"),
            option("certificate", "a name in the client's certificate"),
            option("header", "'Name: value', any number of times"),
            POOL,
        ],
        "Where a request would be led, and why. It is not made.",
        explain::explain,
    ),
    query("locks", &[POOL], "Locks with how often they were waited for.", status::locks),
    query("caches", &[POOL], "Caches with what they hold and save.", status::caches),
    query(
        "deliveries",
        &[POOL],
        "Connections with something to send, and how fast it leaves.",
        deliveries::deliveries,
    ),
    change(
        "deliveries end",
        &[required("id", "an id that deliveries shows")],
        "Ends a delivery: the connection is closed.",
        deliveries::end,
    ),
    query(
        "http2",
        &[POOL],
        "What connections of HTTP/2 have done: frames, resets, waits, sizes of heads.",
        http2::http2,
    ),
    query(
        "websockets",
        &[POOL],
        "WebSockets: how many were accepted and how they ended, messages, and those that are open.",
        websockets::websockets,
    ),
    query(
        "tls",
        &[POOL],
        "Certificates with their names, files, ends and orders, what clients are asked for, and handshakes.",
        tls::tls,
    ),
    change("tls reload", &[], "Loads the files of TLS as they are now.", change::reload_tls),
    query(
        "settings",
        &[POOL],
        "What can be set at run time: present and configured value, range.",
        status::settings,
    ),
    query(
        "configuration",
        &[POOL],
        "Every option as it holds now, and where it was written.",
        status::configuration,
    ),
    query(
        memory::MEMORY,
        &[POOL],
        "What each process takes, and what the engine holds of it.",
        memory::memory,
    ),
    Command {
        name: SNAPSHOT,
        arguments: &[POOL],
        change: false,
        help: "All these answers at one time; 'maitred ctl snapshot FILE' makes a page of them that needs no server.",
        run: Run::Snapshot,
    },
    change(
        "set",
        &[
            required("name", "a name that settings shows"),
            required("value", "a value that settings shows"),
            POOL,
        ],
        "Changes a setting until it is changed again, or the configuration is read again.",
        change::set,
    ),
    change(
        "map add",
        &[required("rule", "POOL,path=/x/*,method=POST,header=...,client=...")],
        "Leads further requests to a pool.",
        change::add_rule,
    ),
    change(
        "map remove",
        &[required("number", "a number that map shows")],
        "Removes a rule.",
        change::remove_rule,
    ),
    change(
        "log-level",
        &[required("level", change::LEVELS)],
        "How much the error log says.",
        change::log_level,
    ),
    change("reopen", &[], "Opens log files anew, after they were renamed.", change::reopen),
    change(
        "stacks",
        &[optional("tid", "the number of one thread, as threads shows it"), POOL],
        "The stacks of the threads that run application code.",
        threads::stacks,
    ),
    change("drain", &[], "Ends the server gracefully, as SIGTERM does.", change::drain),
];

/// All commands, in the order of the help.
pub fn commands() -> &'static [Command] {
    COMMANDS
}

/// The command with this name, its words separated by one space.
///
/// # Errors
/// There is none: the line says which may be meant.
pub fn find(name: &str) -> Result<&'static Command, Refusal> {
    COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let remedy = did_you_mean(name, names.iter().copied(), format!("there are {}", names.join(", ")));
        Refusal::unknown(format!("there is no command '{name}'; {remedy}"))
    })
}

impl Command {
    /// Whether these are its arguments.
    ///
    /// # Errors
    /// One is missing or unknown.
    pub fn check(&self, given: &Given) -> Result<(), Refusal> {
        for (name, _) in &given.0 {
            if name == WORKER {
                return Err(Refusal::wrong("this server is one process: leave the number of a worker out"));
            }
            if !self.arguments.iter().any(|argument| argument.name == name) {
                let own = self.arguments.iter().map(|argument| argument.name);
                let remedy = did_you_mean(name, own, format!("it is written {}", self.usage()));
                return Err(Refusal::wrong(format!("{} takes no '{name}'; {remedy}", self.name)));
            }
        }
        let missing =
            self.arguments.iter().find(|argument| argument.required && given.value(argument.name).is_none());
        match missing {
            Some(Argument { name, takes, .. }) => Err(Refusal::wrong(format!(
                "{} needs {name}: {takes}; it is written {}",
                self.name,
                self.usage()
            ))),
            None => Ok(()),
        }
    }

    /// How it is written: `explain METHOD URL [--from FROM]`.
    pub fn usage(&self) -> String {
        self.written(|_| true)
    }

    /// The usage without the pool, which every query takes.
    pub fn brief_usage(&self) -> String {
        self.written(|argument| self.change || *argument != POOL)
    }

    fn written(&self, is_shown: impl Fn(&Argument) -> bool) -> String {
        let mut text = self.name.to_owned();
        for Argument { name, required, option, .. } in self.arguments.iter().filter(|each| is_shown(each)) {
            let placeholder = name.to_uppercase();
            text += &match (required, option) {
                (true, _) => format!(" {placeholder}"),
                (false, false) => format!(" [{placeholder}]"),
                (false, true) => format!(" [--{name} {placeholder}]"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: &str, given: &[(&str, &str)]) -> String {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let refusal = find(command).and_then(|command| command.check(&Given(given)));
        refusal.expect_err("refused").text
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest_known_ones() {
        assert_eq!(refused("treads", &[]), "there is no command 'treads'; did you mean 'threads'?");
        assert!(refused("cucumber", &[]).contains("there are status, stats, finding"));
        assert_eq!(
            refused("set", &[("name", "x")]),
            "set needs value: a value that settings shows; it is written set NAME VALUE [--pool POOL]"
        );
        assert_eq!(
            refused("explain", &[("methd", "GET")]),
            "explain takes no 'methd'; did you mean 'method'?"
        );
        let all = [("method", "GET"), ("url", "/"), ("colour", "red")];
        let usage =
            "explain [METHOD] URL [--from FROM] [--certificate CERTIFICATE] [--header HEADER] [--pool POOL]";
        assert_eq!(refused("explain", &all), format!("explain takes no 'colour'; it is written {usage}"));
    }

    #[test]
    fn names_are_words_of_a_path_and_every_command_has_a_help_sentence() {
        for (position, command) in COMMANDS.iter().enumerate() {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b' ';
            assert!(command.name.bytes().all(plain), "{}", command.name);
            assert!(command.help.ends_with('.'), "{}", command.name);
            assert!(command.change || command.arguments.contains(&POOL), "{}", command.name);
            assert!(COMMANDS[..position].iter().all(|other| other.name != command.name), "{}", command.name);
        }
    }
}
