//! `maitred check`: the merged configuration, in the form of a valid configuration file, with the origin
//! of each value.

use std::fmt::Write;

use crate::log_values::is_on_terminal;
use crate::options::{self, Kind};
use crate::schema::{self, Shown, Written};
use crate::{Loaded, LogPlace, Source, tables};

/// A line, and the origin of its value.
type Line = (String, Option<Source>);

/// Greatest width of lines that are aligned; a longer line does not move the origins of the others to the right.
const MAX_ALIGNED: usize = 60;

/// The merged configuration in the form of `maitred.toml`.
pub fn report(loaded: &Loaded) -> String {
    let mut text = match loaded.files.as_slice() {
        [] => "# no configuration file\n".to_owned(),
        files => format!("# read: {}\n", files.join(", ")),
    };
    let mut lines: Vec<Line> = options::all()
        .filter(|definition| definition.is_in_file() && !matches!(definition.kind, Kind::Table))
        .map(|definition| {
            let source = loaded.origins.of(definition.name).clone();
            (line(definition.name, definition.show(&loaded.config)), Some(source))
        })
        .collect();
    if loaded.config.site.access_log == LogPlace::Auto {
        let here =
            if is_on_terminal() { "is a terminal, which gets it" } else { "is no terminal: there is none" };
        lines.push((format!("# access-log auto: standard output {here}"), None));
    }
    lines.extend(tables::shown(&loaded.config, &loaded.origins).flat_map(table));
    let lengths = lines.iter().filter(|(_, source)| source.is_some()).map(|(line, _)| line.chars().count());
    let width = lengths.filter(|length| *length <= MAX_ALIGNED).max().unwrap_or(0);
    for (line, source) in lines {
        // Writing to a String does not fail.
        let _ = match source {
            Some(source) => writeln!(text, "{line:<width$}  # {source}"),
            None => writeln!(text, "{line}"),
        };
    }
    text
}

fn line(key: &str, value: Option<String>) -> String {
    match value {
        Some(value) => format!("{key:<16} = {value}"),
        None => format!("# {key:<14} is not set"),
    }
}

/// The lines of a table. A value from outside of tables is a comment: written as a key it would become the table's own.
fn table(shown: Shown) -> Vec<Line> {
    let mut lines = vec![(String::new(), None), (shown.head, Some(shown.source))];
    for schema::Line { key, value, source } in shown.lines {
        match value {
            Written::Value(value) => lines.push((line(key, value), source)),
            Written::Outside(value) => lines.push((format!("# {key:<14} = {value}"), source)),
            Written::Items(items) => {
                lines.push((format!("{key} = ["), None));
                lines.extend(items.into_iter().map(|(text, source)| (format!("  {text},"), Some(source))));
                lines.push(("]".to_owned(), None));
            }
        }
    }
    lines
}
