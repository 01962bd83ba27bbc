//! The keys of the table of a host.

use maitred_server::HostPattern;

use crate::forms::{At, Field, Holds, Made, Maybe, POOL_NAME, list};
use crate::options::{self, Kind};
use crate::schema::{Key, Own, Takes};
use crate::{Definition, HostConfig, SiteConfig, filters, value};

pub(super) const HOST: &str = "host";

/// The keys of a host besides those of the options.
pub(super) const OWN: [Own<HostConfig>; 2] = [
    Own::new("names", &NAMES, "More names of the host, such as www.shop.example or *.shop.example."),
    Own::new(
        "pool",
        &At { form: Maybe(POOL_NAME), field: |host: &mut HostConfig| &mut host.pool },
        "The pool of its requests that no rule leads elsewhere.",
    ),
];

/// The names behind the first one, which is that of the table.
const NAMES: Made<HostConfig> = Made {
    read: |host, texts| {
        let names: Vec<HostPattern> =
            texts.iter().map(|text| value::pattern(text)).collect::<Result<_, _>>()?;
        host.names.truncate(1);
        host.names.extend(names);
        Ok(())
    },
    show: |host| Some(list(host.names.iter().skip(1).map(ToString::to_string))),
    holds: Holds::Text,
    is_list: true,
};

/// The key of filters for one host.
pub(super) const FILTER: Key = Key {
    name: "filter",
    help: "[[host.\"NAME\".filter]]: a filter of this host alone ('maitred help filter').",
    takes: Takes::Tables(&filters::TABLE),
};

pub(super) fn keys() -> Vec<Key> {
    OWN.iter().map(Own::key).chain([FILTER]).chain(options().filter_map(Key::of_option)).collect()
}

/// The options that are also the keys of a host: first those that say what it serves.
pub(super) fn options() -> impl Iterator<Item = &'static Definition> {
    let content = options::all().filter(|option| matches!(option.kind, Kind::Content(_)));
    content.chain(options::all().filter(|option| matches!(option.kind, Kind::Manner(_))))
}

pub(super) fn value_of(option: &Definition) -> Option<&'static dyn Field<SiteConfig>> {
    match option.kind {
        Kind::Content(value) | Kind::Manner(value) => Some(value),
        _ => None,
    }
}
