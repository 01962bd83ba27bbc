//! Every option of a running server with its value and its origin, for the control.
//!
//! Promises: no value is a secret. Passwords, tokens and keys are in files, and only the paths are shown; values of header fields in
//! filters and rules are left out, since such a field may be a secret. The list has every key of the files: a key without an option is an
//! error when the file is read.

use maitred_control::{Configured, HIDDEN};

use crate::options::{self, Kind};
use crate::schema::{Line, Shown, Written};
use crate::{Config, Origins, tables};

/// Keys of filters and conditions of rules that have values of header fields.
const FIELDS: [&str; 6] =
    ["header", "set-request", "add-request", "set-response", "add-response", "remove-request"];

/// Returns all options of this configuration, with their origins.
pub fn of(config: &Config, origins: &Origins) -> Vec<Configured> {
    let plain = |value: Option<String>| value.map(|value| unquoted(&value));
    let mut all: Vec<Configured> = options::all()
        .filter(|option| !matches!(option.kind, Kind::Table | Kind::Action))
        .map(|option| Configured {
            name: option.name.to_owned(),
            value: plain(option.show(config)),
            from: origins.of(option.name).to_string(),
        })
        .collect();
    for Shown { prefix, source: of_table, lines, .. } in tables::shown(config, origins) {
        for Line { key, value, source } in lines {
            let from = source.unwrap_or_else(|| of_table.clone()).to_string();
            let name = format!("{prefix}{key}");
            match value {
                Written::Value(value) => {
                    let value = if FIELDS.contains(&key) { Some(HIDDEN.to_owned()) } else { plain(value) };
                    all.push(Configured { name, value, from });
                }
                Written::Outside(_) => {}
                Written::Items(items) => all.extend(items.into_iter().map(|(text, source)| Configured {
                    name: name.clone(),
                    value: Some(without_fields(&text)),
                    from: source.to_string(),
                })),
            }
        }
    }
    all
}

/// Hides the value of the header field in the text of a rule.
fn without_fields(rule: &str) -> String {
    match rule.split_once("header = ") {
        Some((before, rest)) => {
            let behind = rest.split_once("\", ").map_or(" }", |(_, behind)| behind);
            format!("{before}header = {HIDDEN}, {}", behind.trim_start())
        }
        None => rule.to_owned(),
    }
}

fn unquoted(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::Source;

    #[test]
    fn every_option_has_a_value_and_a_place() {
        let mut origins = Origins::default();
        origins.set("max-threads", Source::File { path: "maitred.toml".to_owned(), line: 3 });
        let all = of(&Config::with_defaults(), &origins);
        let found = |name: &str| all.iter().find(|option| option.name == name).expect(name);
        assert_eq!(found("max-threads").from, "maitred.toml:3");
        assert_eq!(
            found("log-level"),
            &Configured { name: "log-level".into(), value: Some("info".into()), from: "default".into() }
        );
        assert_eq!(found("admin-token-file").value, None);
        let names: std::collections::BTreeSet<_> = all.iter().map(|option| &option.name).collect();
        assert_eq!(names.len(), all.len());
    }
}
