//! The option table as text for people: `--help` and docs/operations/configuration.md.

use std::fmt::Write;

use crate::commands::{self, Word};
use crate::options::{self, Definition, Kind, familiar};

/// The text of `maitred --help`.
pub(crate) fn help() -> String {
    let mut text = format!(
        "maitred {}: serves Python applications and static files.\n\n{}\nOptions:\n",
        env!("CARGO_PKG_VERSION"),
        usage()
    );
    for definition in options::all().filter(|definition| !definition.is_positional()) {
        let value =
            if definition.is_switch() { String::new() } else { format!(" {}", definition.placeholder) };
        let more = if definition.is_repeatable() { "  (repeatable)" } else { "" };
        let _ = writeln!(text, "  {}{value}{more}", definition.flags());
        for paragraph in paragraphs(definition) {
            fill(&mut text, &paragraph);
        }
    }
    text.push_str(
        "\nEvery option except --version and --help can also be set as MAITRED_<NAME> in the environment\n\
         and, except --config, as <name> in maitred.toml; the command line wins over the environment, the\n\
         environment over the files. 'maitred check' shows the result.\n",
    );
    text
}

const USAGE: &str = "\
Usage: maitred [COMMAND] [APPLICATION] [OPTIONS]

  maitred app:app            the object app in the module app
  maitred path/to/app.py     the object app or application in a file (or path/to/app.py:name)
  maitred folder/            the static files of a folder
";

/// A line for each command.
fn usage() -> String {
    let mut text = USAGE.to_owned();
    for Word { name, arguments, summary, .. } in commands::WORDS {
        let written = format!("maitred {name} {arguments}");
        let _ = writeln!(text, "  {written:<26} {summary}");
    }
    text
}

fn paragraphs(definition: &Definition) -> Vec<String> {
    let mut all = vec![definition.summary.to_owned()];
    if definition.is_in_file() {
        all.push(format!("Default: {}.", default(definition).unwrap_or_else(|| "none".to_owned())));
        all.push(format!("Cost: {}. Worst case: {}.", definition.cost, definition.worst));
    }
    all
}

fn default(definition: &Definition) -> Option<String> {
    let text = definition.default.join(" ");
    let on_or_off = |text: &str| if text == "true" { "on" } else { "off" };
    (!text.is_empty()).then(|| if definition.is_switch() { on_or_off(&text).to_owned() } else { text })
}

/// Appends `paragraph` in lines of at most 100 characters, indented by ten.
fn fill(text: &mut String, paragraph: &str) {
    const INDENT: &str = "          ";
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count() + 1;
        if width == 0 || width + length > 90 {
            text.push_str(if width == 0 { INDENT } else { "\n          " });
            width = 0;
        } else {
            text.push(' ');
        }
        text.push_str(word);
        width += length;
    }
    text.push('\n');
}

/// The text of docs/operations/configuration.md.
pub(crate) fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(
        "\n## Overview\n\n| Option | Key in maitred.toml | Variable | Default |\n|---|---|---|---|\n",
    );
    for definition in options::all().filter(|definition| definition.is_in_environment()) {
        let key = key(definition).unwrap_or_else(|| "–".to_owned());
        let default = default(definition).map_or("–".to_owned(), |text| format!("`{text}`"));
        let _ = writeln!(
            text,
            "| [`{}`](#{}) | {key} | `{}` | {default} |",
            definition.flag(),
            definition.name,
            definition.variable()
        );
    }
    text.push_str("\n## The options\n");
    for definition in options::all() {
        section(&mut text, definition);
    }
    text.push_str(FAMILIAR);
    for familiar in familiar::all() {
        let names: Vec<String> = familiar.names.iter().map(|name| format!("`{name}`")).collect();
        let _ =
            writeln!(text, "| {} | {} | {} |", names.join(", "), familiar.whose(), cell(&familiar.meaning()));
    }
    text.push_str(END);
    text
}

/// Text in a table of Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What stands for the option in a file.
fn key(definition: &Definition) -> Option<String> {
    match definition.kind {
        Kind::Pools => Some(format!("`[{}.NAME]`", definition.name)),
        _ => definition.is_in_file().then(|| format!("`{}`", definition.name)),
    }
}

/// The names that it has in other servers.
fn also(definition: &Definition) -> Option<String> {
    let names: Vec<String> = familiar::of_option(definition.name).map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn section(text: &mut String, definition: &Definition) {
    let value = if definition.is_switch() || definition.is_positional() {
        String::new()
    } else {
        format!(" {}", definition.placeholder)
    };
    let _ = write!(text, "\n### {}\n\n`{}{value}`", definition.name, definition.flags());
    if definition.is_repeatable() {
        text.push_str(", repeatable");
    }
    if let Some(also) = also(definition) {
        let _ = write!(text, "; also: {also}");
    }
    let _ = writeln!(text, "\n\n{}\n", definition.summary);
    if !definition.is_in_environment() {
        return;
    }
    let _ = writeln!(text, "- Value: {}", definition.takes());
    if definition.is_in_file() {
        let default = default(definition).map_or("none".to_owned(), |text| format!("`{text}`"));
        let _ = writeln!(text, "- Default: {default}");
    }
    if !definition.cost.is_empty() {
        let _ = writeln!(text, "- Cost: {}", definition.cost);
        let _ = writeln!(text, "- Worst case: {}", definition.worst);
    }
    if let Some(key) = key(definition) {
        let _ = writeln!(text, "- In maitred.toml: {key}");
    }
    let _ = writeln!(text, "- In the environment: `{}`", definition.variable());
}

const INTRODUCTION: &str = "\
<!-- Generated by `maitred reference` from crates/maitred-cli/src/options/. Do not edit. -->

# Configuration

maitred needs no configuration: `maitred app:app` serves on 127.0.0.1:8000 with 1 to 10 threads,
or an event loop. The value of an option comes from these places; a later one wins over an earlier one,
and lists are replaced whole, never joined:

1. the default;
2. `maitred.toml` in the current directory, or the file named by `--config` or `MAITRED_CONFIG`;
3. the files `maitred.toml.d/*.toml` beside it (`FILE.d/*.toml` for another file), sorted by name;
4. the environment, `MAITRED_NAME`;
5. the command line, `--name VALUE` or `--name=VALUE`; of an option given twice the last one counts,
   repeatable ones are collected.

A pool of threads, `[pool.NAME]`, is merged key by key; its rules are a list. See [threads](threads.md). Filters,
`[[filter]]`, stand in files only, and those of all files count. See [filters](filters.md).

`maitred check`, with the same arguments, prints the merged configuration and where each value came from. `maitred report` reads
[access logs](logs.md#reports).

```toml
# maitred.toml
application = \"app:app\"
listen = [\"127.0.0.1:8000\", \"[::1]:8000\"]
max-threads = 20
static = \"/assets=./public\"
max-body = \"64m\"

[pool.reports]
max-threads = 2
match = [\"/report/*\", \"POST /jobs/*\"]
```

Relative paths are relative to the current directory, wherever they are written. In the environment,
lists are separated by commas, and an empty variable counts as not set. A switch takes `true`, `on`,
`yes` or `1`, and `false`, `off`, `no` or `0`; on the command line `--name` switches it on and `--no-name`
switches it off.

A value that is not valid is an error wherever it stands, also when a later place replaces it; so is an
unknown option or key. An unknown `MAITRED_*` variable is only a warning: Kubernetes, for example, sets
`MAITRED_PORT` and `MAITRED_SERVICE_HOST` by itself beside a service named `maitred`.
";

const FAMILIAR: &str = "
## If you know uvicorn, gunicorn or granian

Their options work on the command line where they mean the same: \
`uvicorn main:app --host 0.0.0.0 --port 80 --workers 4` runs when the name of the program is `maitred`. What means something else here is an \
error that says what to write. `maitred check` names the option that a value came from. In `maitred.toml` and in the environment the \
names are maitred's own, except that `log-level` and `interface` take the words of other servers on the command line, too: `warning` is \
`warn`, `critical` is `error`, `trace` is `debug`, and `asgi3` is `asgi`.

Where two of them are spelt alike and one is maitred's own, the own one counts: `--access-log` has a value (`-` is standard output, and \
`--no-access-log` works), and so has `--http2`.

| Option | Of | Here |
|---|---|---|
";

const END: &str = "
## Signals

| Signal | What it does |
|---|---|
| SIGTERM, SIGINT | the first one: no further connections, running requests are answered, then the process ends; a second one \
ends it at once. With `drain-delay`, SIGTERM waits before that |
| SIGHUP | reads the configuration again: [what is applied](threads.md#changes-while-it-runs); as SIGINT if the terminal that the \
process was started in has [hung up](deploy.md#terminals) |
| SIGUSR1 | opens log files anew, after something else has renamed them |

## Exit codes

| Code | Meaning |
|---|---|
| 0 | ended by a first SIGTERM or SIGINT, or with its terminal, after all running requests were answered |
| 1 | requests were still running at the end of `drain-timeout` and were cut off, or the system refused something |
| 2 | an error in the command line, the configuration or the application; a port in use |
| 130, 143 | ended at once by a second SIGINT or SIGTERM |
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_reference_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/configuration.md");
        let committed = std::fs::read_to_string(path).expect("docs/operations/configuration.md");
        assert_eq!(
            committed,
            markdown(),
            "run: cargo run -p maitred-cli -- reference > docs/operations/configuration.md"
        );
    }

    #[test]
    fn a_switch_that_is_on_is_said_to_be_on() {
        for definition in options::all().filter(|definition| definition.can_be_off()) {
            let is_on = definition.show(&crate::Config::default()).as_deref() == Some("true");
            assert_eq!(default(definition).as_deref() == Some("on"), is_on, "{}", definition.name);
        }
        assert!(help().contains("--[no-]statistics\n"));
    }

    #[test]
    fn the_help_text_names_every_option_and_fits_a_terminal() {
        let text = help();
        for definition in options::all().filter(|definition| !definition.is_positional()) {
            assert!(text.contains(&format!("  {}", definition.flags())), "{}", definition.name);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn the_example_in_the_reference_is_valid() {
        let text = markdown();
        let (_, example) = text.split_once("```toml\n").expect("an example");
        let (example, _) = example.split_once("```").expect("its end");
        let table: toml::Table = example.parse().expect("TOML");
        for key in table.keys() {
            assert!(crate::options::find(key).is_some(), "{key}");
        }
    }
}
