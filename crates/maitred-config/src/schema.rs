//! Schemas of the tables of `maitred.toml`. A schema lists the keys of a table, and has the functions that merge, show and check tables.
//!
//! Promises: reader, suggestions for misspelt keys, help, JSON schema, `check` and the list of a running server's options know no more of a
//! table than is here. Leaves out: the meaning of each table, which is beside its schema (`filters`, `hosts`, `pools`).

use crate::forms::{Facts, Value};
use crate::options::renamed::{Renamed, Used};
use crate::{BadValue, Config, Definition, Origins, Problem, Source, did_you_mean, options};

/// A kind of tables.
pub(crate) struct Table {
    /// The key in the file, and the word for several tables.
    pub(crate) names: [&'static str; 2],
    /// The head of such a table: `[[filter]]` in a list, `[pool.NAME]` with a name.
    pub(crate) head: &'static str,
    pub(crate) summary: &'static str,
    /// The page of docs/operations about it.
    pub(crate) document: &'static str,
    /// The keys, in the order of the help.
    pub(crate) keys: fn() -> Vec<Key>,
    /// Merges a table of one source into the configuration.
    pub(crate) merge: fn(Part, &mut Config, &mut Origins) -> Result<(), Problem>,
    /// The tables of a configuration.
    pub(crate) show: fn(&Config, &Origins) -> Vec<Shown>,
    /// Checks all tables together, and with the rest of the configuration.
    pub(crate) check: fn(&Config, &Origins) -> Result<(), Problem>,
    /// Warns of tables without effect.
    pub(crate) warnings: fn(&Config, &Origins) -> Vec<String>,
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) takes: Takes,
}

/// The value of a key.
pub(crate) enum Takes {
    /// A value.
    Value(Facts),
    /// Tables in a list.
    Tables(&'static Table),
    /// A table, a text that stands for one, or a list of these. `form` says what may be written.
    Rules { keys: fn() -> Vec<Key>, form: &'static str },
}

/// A key that is no option, of a table that is read into a `C`.
pub(crate) struct Own<C: 'static> {
    pub(crate) name: &'static str,
    pub(crate) value: &'static dyn Value<C>,
    pub(crate) help: &'static str,
}

impl<C> Own<C> {
    pub(crate) const fn new(name: &'static str, value: &'static dyn Value<C>, help: &'static str) -> Self {
        Self { name, value, help }
    }

    pub(crate) fn key(&self) -> Key {
        Key { name: self.name, help: self.help, takes: Takes::Value(self.value.facts()) }
    }

    /// The value as a line, if there is one.
    pub(crate) fn line(&self, of: &C, source: Option<Source>) -> Option<Line> {
        Some(Line { key: self.name, value: Written::Value(Some(self.value.show(of)?)), source })
    }
}

impl Key {
    /// The option as a key of a table.
    pub(crate) fn of_option(option: &Definition) -> Option<Self> {
        Some(Self { name: option.name, help: option.summary, takes: Takes::Value(option.facts()?) })
    }
}

/// A table as one source has it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Empty in a list.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) given: Vec<Given>,
}

/// A key as one source has it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) key: &'static str,
    /// The earlier name of the key that was used, if one was.
    pub(crate) renamed: Option<Renamed>,
    pub(crate) items: Vec<Item>,
    pub(crate) source: Source,
}

/// A value, or one of a list.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Text(String, Source),
    Table(Part),
}

impl Part {
    /// Notes the earlier names of keys in this table.
    pub(crate) fn note_renamed(&self, table: &Table, used: &mut Used) {
        for given in &self.given {
            used.add(given.source.place_in(table.names[0], &self.name, None), given.renamed);
        }
    }
}

impl Given {
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |item: &Item| match item {
            Item::Text(text, _) => Some(text.clone()),
            Item::Table(_) => None,
        };
        self.items.iter().filter_map(text).collect()
    }

    /// Parses the value into `to`. An error has the source of the item that is wrong by itself, or that of the key.
    pub(crate) fn set<C: Clone>(&self, value: &dyn Value<C>, to: &mut C) -> Result<(), (BadValue, Source)> {
        let Err(bad) = value.set(to, &self.texts()) else { return Ok(()) };
        let is_wrong = |item: &&Item| match item {
            Item::Text(text, _) => value.set(&mut to.clone(), std::slice::from_ref(text)).is_err(),
            Item::Table(_) => false,
        };
        let source = match self.items.iter().find(is_wrong) {
            Some(Item::Text(_, source)) if self.items.len() > 1 => source,
            _ => &self.source,
        };
        Err((bad, source.clone()))
    }
}

/// A table as it is shown.
pub(crate) struct Shown {
    /// The line above its keys.
    pub(crate) head: String,
    /// The text before the names of its keys in a list of all options.
    pub(crate) prefix: String,
    pub(crate) source: Source,
    pub(crate) lines: Vec<Line>,
}

/// A key as it is shown.
pub(crate) struct Line {
    pub(crate) key: &'static str,
    pub(crate) value: Written,
    /// None for that of the table, or of the items.
    pub(crate) source: Option<Source>,
}

/// A value as it is shown.
pub(crate) enum Written {
    /// The table's own one; none if it is not set.
    Value(Option<String>),
    /// The one outside of tables, which holds here as well.
    Outside(String),
    /// A list with an origin for each item.
    Items(Vec<(String, Source)>),
}

impl Table {
    /// Whether the tables have no names, but stand in a list.
    pub(crate) fn is_list(&self) -> bool {
        self.head.starts_with("[[")
    }

    /// The head of the table with this name.
    pub(crate) fn head_of(&self, name: &str) -> String {
        self.head.replace("NAME", name)
    }

    /// The remedy for a key that no such table has.
    pub(crate) fn suggest(&self, name: &str, key: &str) -> String {
        let keys = (self.keys)();
        if options::find(key).is_some_and(Definition::is_in_file) {
            let head = self.head_of(name);
            let kind = self.names[0];
            return format!(
                "write it above the first table: behind {head} it belongs to the {kind}, which has no such key"
            );
        }
        let is_inside = |known: &&Key| match known.takes {
            Takes::Rules { keys, .. } => keys().iter().any(|inner| inner.name == key),
            _ => false,
        };
        match keys.iter().find(is_inside) {
            Some(rule) => format!("it is part of a rule: {} = [{{ {key} = \"...\" }}]", rule.name),
            None => suggest(key, &keys, self.names[0]),
        }
    }
}

/// The nearest of the keys, or all of them.
pub(crate) fn suggest(key: &str, keys: &[Key], owner: &str) -> String {
    let names: Vec<&str> = keys.iter().map(|known| known.name).collect();
    did_you_mean(key, names.iter().copied(), format!("a {owner} has {}", names.join(", ")))
}
