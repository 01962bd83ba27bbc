//! The tables `[host."NAME"]` of a file.

use maitred_server::{HostCondition, HostPattern};
use toml::de::DeValue;

use super::filter_table;
use super::reading::{Named, Reading, Value, Wrong, in_order, named, texts};
use crate::config::FilterConfig;
use crate::hosts::{self, HostPart};
use crate::origins::{Assignment, Source};
use crate::problem::Problem;
use crate::value;

/// The key of the tables.
pub(super) const HOST: &str = "host";

/// The hosts of the tables, and the filters of all hosts.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) hosts: Vec<HostPart>,
    pub(super) filters: Vec<(FilterConfig, Source)>,
}

/// Reads the hosts of the table `host`.
///
/// # Errors
/// The value is no table of tables, or a key in a table is wrong. Values of options are checked where they are merged.
pub(super) fn tables(reading: &Reading<'_>, value: &Value<'_>) -> Result<Tables, Problem> {
    let mut tables = Tables::default();
    for table in named(reading, HOST, ("[host.\"NAME\"]", "[host.\"shop.example\"]"), value)? {
        part(reading, table?, &mut tables)?;
    }
    Ok(tables)
}

fn part(reading: &Reading<'_>, (at, name, table): Named<'_, '_>, tables: &mut Tables) -> Result<(), Problem> {
    let source = reading.source(at);
    let mut part = HostPart { name: name.to_string(), source, names: None, pool: None, values: Vec::new() };
    for (key, value) in in_order(table) {
        let at = key.span().start;
        let source = reading.source(at);
        let place = |at: usize| format!("{}: host.{name}.{}", reading.at(at), key.get_ref());
        let wrong = |(at, what, remedy): Wrong| Problem::new(place(at), what, remedy);
        match key.get_ref().as_ref() {
            "names" => part.names = Some((names(value).map_err(wrong)?, source)),
            "pool" => {
                let DeValue::String(pool) = value.get_ref() else {
                    let what = format!("the value is of the type {}", value.get_ref().type_str());
                    return Err(Problem::new(place(at), what, "expected: the name of a pool"));
                };
                part.pool = Some((pool.to_string(), source));
            }
            "filter" => {
                let of_host = |(mut filter, source): (FilterConfig, Source)| {
                    if filter.rule.when.host.is_some() {
                        let place = source.place_in_filter(Some("host"));
                        let what = "the filter stands in the table of a host".to_owned();
                        return Err(Problem::new(place, what, "leave it out"));
                    }
                    let name = canonical(name);
                    filter.rule.when.host = Some(HostCondition { number: u16::MAX, name: name.into() });
                    Ok((filter, source))
                };
                let filters = filter_table::filters(reading, value)?.into_iter().map(of_host);
                tables.filters.extend(filters.collect::<Result<Vec<_>, _>>()?);
            }
            other => match hosts::keys().find(|known| known.name == other) {
                Some(definition) => {
                    let texts = texts(definition, value).map_err(wrong)?;
                    part.values.push(Assignment { definition, texts, source });
                }
                None => {
                    let what = format!("unknown key '{other}' in [host.\"{name}\"]");
                    return Err(Problem::new(reading.at(at), what, hosts::suggest_key(other)));
                }
            },
        }
    }
    tables.hosts.push(part);
    Ok(())
}

/// The name in its canonical form. An invalid name stays, and is refused where the host is merged.
fn canonical(name: &str) -> String {
    name.parse::<HostPattern>().map_or_else(|_| name.to_owned(), |pattern| pattern.to_string())
}

/// A name, or a list of names.
fn names(value: &Value<'_>) -> Result<Vec<HostPattern>, Wrong> {
    let name = |value: &Value<'_>| {
        let at = value.span().start;
        let DeValue::String(text) = value.get_ref() else {
            let what = format!("the value is of the type {}", value.get_ref().type_str());
            return Err((at, what, "expected: text, or a list of texts".to_owned()));
        };
        value::pattern(text).map_err(|bad| (at, bad.what, bad.remedy))
    };
    match value.get_ref() {
        DeValue::Array(values) => values.iter().map(name).collect(),
        _ => Ok(vec![name(value)?]),
    }
}
