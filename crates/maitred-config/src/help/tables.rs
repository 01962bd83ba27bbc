//! Help about the tables of maitred.toml: their keys, each with one line.
//!
//! Promises: every key of a table is here, which a test checks. Leaves out: the exact form of values (docs/operations).

use crate::filters;
use crate::hosts;
use crate::options::{self, Definition};
use crate::pools::CONDITIONS;

use super::fill::{INDENT, fill};

/// A table: its names in the help, its first line, its purpose, and its document.
pub(super) struct Table {
    pub(super) names: [&'static str; 2],
    head: &'static str,
    summary: &'static str,
    keys: fn() -> Vec<(&'static str, String)>,
    document: &'static str,
}

pub(super) const TABLES: [Table; 3] = [
    Table {
        names: ["filter", "filters"],
        head: "[[filter]]",
        summary: "A table in maitred.toml for each filter: who may ask, redirects, passwords, limits of bodies, other paths and fields. Conditions come \
                  first; without any it is for every request.",
        keys: of_filter,
        document: "filters.md",
    },
    Table {
        names: ["host", "hosts"],
        head: "[host.\"NAME\"]",
        summary: "A table in maitred.toml for each virtual host. Options that it does not have are those outside of host tables, but for what says what \
                  is served.",
        keys: of_host,
        document: "hosts.md",
    },
    Table {
        names: ["pool", "pools"],
        head: "[pool.NAME]",
        summary: "A table in maitred.toml for each pool of threads: the options of the default pool, and which requests it gets.",
        keys: of_pool,
        document: "threads.md",
    },
];

/// The table with this name.
pub(super) fn find(name: &str) -> Option<&'static Table> {
    let name = name.trim_matches(['[', ']']);
    TABLES.iter().find(|table| table.names.contains(&name))
}

impl Table {
    /// The keys of the table with their purposes.
    pub(super) fn keys(&self) -> Vec<(&'static str, String)> {
        (self.keys)()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.head);
        fill(&mut text, self.summary, "  ");
        text.push('\n');
        for (key, what) in self.keys() {
            text.push_str(&format!("  {key}\n"));
            fill(&mut text, &what, INDENT);
        }
        text.push('\n');
        fill(&mut text, &format!("Examples: docs/operations/{}.", self.document), "");
        text
    }
}

/// The purpose of a filter's key.
pub(crate) fn of_filter_key(key: &str) -> &'static str {
    match key {
        "host" => "Condition: the name of a virtual host.",
        "path" => "Condition: a pattern such as /staff/*, or a list of them.",
        "method" => "Condition: a method, in capitals.",
        "header" => "Condition: 'Name: value'; each * stands for anything.",
        "client" => "Condition: an address or a network.",
        "scheme" => "Condition: 'http' or 'https'.",
        "client-certificate" => "Condition: a name in a verified certificate.",
        "access" => {
            "Who may ask: a list of 'allow' and 'deny', each with an address, a network or 'all'. Others get 403."
        }
        "redirect" => "To a path or a URL; each * is what * in path stands for.",
        "status" => "Of the redirect: 301, 302, 303, 307 or 308, which is the default.",
        "max-body" => "The longest body, in the place of the option max-body.",
        "read-ahead" => "'on': the application runs when the body is there; 'off': with the head.",
        "basic-auth" => "A file of users (maitred passwd), or 'off'. Without a right password: 401.",
        "realm" => "What clients show when they ask for the password.",
        "rewrite" => "Another path for the application and files.",
        "remove-request" => "Names of fields that are taken from the request.",
        "set-request" => "'Name: value': such a field of the request is replaced.",
        "add-request" => "'Name: value': one more field of the request.",
        "response-status" => {
            "Fields of responses are changed for these statuses only, such as \"200, 301-308, 4xx\"."
        }
        "remove-response" => "Names of fields that are taken from every response.",
        "set-response" => "'Name: value': such a field of every response is replaced.",
        "add-response" => "'Name: value': one more field of every response.",
        _ => "",
    }
}

fn of_filter() -> Vec<(&'static str, String)> {
    filters::KEYS.iter().map(|(key, _)| (*key, of_filter_key(key).to_owned())).collect()
}

fn of_option(definition: &'static Definition) -> (&'static str, String) {
    (definition.name, definition.summary.to_owned())
}

fn of_host() -> Vec<(&'static str, String)> {
    let others = hosts::OTHERS.into_iter().map(|key| {
        let what = match key {
            "names" => "More names of the host, such as www.shop.example or *.shop.example.",
            "pool" => "The pool of its requests that no rule leads elsewhere.",
            "filter" => "[[host.\"NAME\".filter]]: a filter of this host alone ('maitred help filter').",
            _ => "",
        };
        (key, what.to_owned())
    });
    others.chain(hosts::keys().map(of_option)).collect()
}

fn of_pool() -> Vec<(&'static str, String)> {
    let rules = format!(
        "Which requests it gets: \"/path\", \"METHOD /path\", or {{ path = \"...\" }} with {}; a list of these.",
        CONDITIONS.join(", ")
    );
    [("match", rules)].into_iter().chain(options::of_pools().map(of_option)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_table_is_there_with_a_sentence() {
        for table in &TABLES {
            let keys = (table.keys)();
            assert!(keys.len() > 6 && keys.iter().all(|(_, what)| !what.is_empty()), "{}", table.head);
            assert!(table.text().lines().all(|line| line.chars().count() <= 110), "{}", table.text());
        }
        assert!(find("filter").is_some() && find("[[filter]]").is_some() && find("pools").is_some());
        assert!(find("filtre").is_none());
    }
}
