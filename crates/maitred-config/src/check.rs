//! `maitred check`: the merged configuration, in the form of a valid configuration file, with the origin
//! of each value.

use std::fmt::Write;

use maitred_server::DEFAULT_POOL;

use crate::config::{Config, HostConfig, NamedPool};
use crate::filters;
use crate::forms::quoted;
use crate::hosts;
use crate::log_values::{LogPlace, is_on_terminal};
use crate::options::{self, Definition, Kind};
use crate::origins::Source;
use crate::pools;
use crate::sources::Loaded;

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
            (line(definition, definition.show(&loaded.config)), Some(source))
        })
        .collect();
    if loaded.config.site.access_log == LogPlace::Auto {
        let here =
            if is_on_terminal() { "is a terminal, which gets it" } else { "is no terminal: there is none" };
        lines.push((format!("# access-log auto: standard output {here}"), None));
    }
    // The default pool may have rules, exceptions from those of others, but has no table otherwise.
    if loaded.config.rules.iter().any(|rule| rule.pool == DEFAULT_POOL) {
        lines.extend(table(loaded, DEFAULT_POOL, None));
    }
    for pool in &loaded.config.pools {
        lines.extend(table(loaded, &pool.name, Some(pool)));
    }
    for host in &loaded.config.hosts {
        lines.extend(host_table(loaded, host));
    }
    for (position, filter) in loaded.config.filters.iter().enumerate() {
        let source = loaded.origins.of_filter(position).clone();
        lines.extend([(String::new(), None), ("[[filter]]".to_owned(), Some(source))]);
        lines.extend(filters::show(filter).into_iter().map(|line| (line, None)));
    }
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

fn line(definition: &Definition, value: Option<String>) -> String {
    match value {
        Some(value) => format!("{:<16} = {value}", definition.name),
        None => format!("# {:<14} is not set", definition.name),
    }
}

/// The table of a host. Options from the default host are comments: written as keys they would become the host's own.
fn host_table(loaded: &Loaded, host: &HostConfig) -> Vec<Line> {
    let (origins, name) = (&loaded.origins, host.name.as_str());
    let of = |key: &str| Some(origins.hosts.of(name, Some(key)).clone());
    let head = format!("[host.{}]", quoted(name));
    let mut lines = vec![(String::new(), None), (head, Some(origins.hosts.of(name, None).clone()))];
    if host.given.contains("names") {
        let names: Vec<String> = host.names[1..].iter().map(|name| quoted(&name.to_string())).collect();
        lines.push((format!("{:<16} = [{}]", "names", names.join(", ")), of("names")));
    }
    if let Some(pool) = &host.pool {
        lines.push((format!("{:<16} = {}", "pool", quoted(pool)), of("pool")));
    }
    let merged = Config { site: host.effective(&loaded.config.site), ..loaded.config.clone() };
    for definition in hosts::keys() {
        let value = definition.show(&merged);
        if host.given.contains(definition.name) {
            lines.push((line(definition, value), of(definition.name)));
        } else if let Some(value) = value.filter(|_| !hosts::is_content(definition)) {
            let source = origins.of(definition.name).clone();
            lines.push((format!("# {:<14} = {value}", definition.name), Some(source)));
        }
    }
    lines
}

/// The table of a pool: the values of a named one, and the rules.
fn table(loaded: &Loaded, name: &str, pool: Option<&NamedPool>) -> Vec<Line> {
    let origins = &loaded.origins;
    let mut lines =
        vec![(String::new(), None), (format!("[pool.{name}]"), Some(origins.pools.of(name, None).clone()))];
    for (pool, definition) in
        pool.into_iter().flat_map(|pool| options::of_pools().map(move |key| (pool, key)))
    {
        let source = origins.of_pool(Some(name), definition.name).clone();
        lines.push((line(definition, pools::show(definition, &pool.threads)), Some(source)));
    }
    let rules: Vec<Line> = (0..)
        .zip(&loaded.config.rules)
        .filter(|(_, rule)| rule.pool == name)
        .map(|(position, rule)| {
            (format!("  {},", pools::show_rule(rule)), Some(origins.of_rule(position).clone()))
        })
        .collect();
    if !rules.is_empty() {
        lines.push(("match = [".to_owned(), None));
        lines.extend(rules);
        lines.push(("]".to_owned(), None));
    }
    lines
}
