//! `maitred check`: the merged configuration, as a file that could be used as it is, and behind
//! each value where it came from.

use std::fmt::Write;

use crate::options::OPTIONS;
use crate::sources::Loaded;

/// The merged configuration in the form of `maitred.toml`.
pub(crate) fn report(loaded: &Loaded) -> String {
    let mut text = match loaded.files.as_slice() {
        [] => "# no configuration file\n".to_owned(),
        files => format!("# read: {}\n", files.join(", ")),
    };
    let lines: Vec<(String, String)> = OPTIONS
        .iter()
        .filter(|definition| definition.is_in_file())
        .map(|definition| {
            let line = match definition.show(&loaded.config) {
                Some(value) => format!("{:<13} = {value}", definition.name),
                None => format!("# {:<11} is not set", definition.name),
            };
            (line, loaded.origins.of(definition.name).to_string())
        })
        .collect();
    let width =
        lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    for (line, source) in lines {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{line:<width$}  # {source}");
    }
    text
}
