//! `maitred.toml` and the files of its drop-in folder `maitred.toml.d/`, in the order of their
//! names. Errors name the file and the line.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::reading::{Reading, in_order, texts, utf8};
use super::table;
use crate::options::renamed::{Names, Renamed, Used};
use crate::origins::Assignment;
use crate::schema::{Part, Table};
use crate::{Definition, Problem, Source, nearest, options, tables};

/// The file that is read when none is named.
pub(crate) const NAME: &str = "maitred.toml";

/// The options from the files.
#[derive(Default)]
pub(crate) struct Files {
    /// The files that were read, in order, as they are shown to the user.
    pub(crate) names: Vec<String>,
    pub(crate) assignments: Vec<Assignment>,
    /// The known earlier names of options; `renamed` has those in the files.
    earlier: Names,
    pub(crate) renamed: Used,
    /// The tables, in order.
    pub(crate) tables: Vec<(&'static Table, Part)>,
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// The name as messages have it.
    pub name: String,
    /// The content.
    pub text: String,
    /// Whether it is in the drop-in folder.
    pub is_drop_in: bool,
}

/// Reads the files below `folder`. A `named` file (the source of the name, and the path) must exist;
/// `maitred.toml` need not.
pub(crate) fn gather(folder: &Path, named: Option<(String, String)>) -> Result<Vec<SourceFile>, Problem> {
    let mut files = Vec::new();
    let (who, name) = named.map_or((None, NAME.to_owned()), |(who, path)| (Some(who), path));
    match std::fs::read(folder.join(&name)) {
        Ok(bytes) => {
            files.push(SourceFile { text: utf8(&name, bytes)?, name: name.clone(), is_drop_in: false })
        }
        Err(error) if error.kind() == ErrorKind::NotFound && who.is_none() => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let place = who.unwrap_or_default();
            return Err(Problem::new(
                place,
                format!("there is no file {name}"),
                "create it or correct the path",
            ));
        }
        Err(error) => {
            return Err(Problem::new(name, format!("cannot be read: {error}"), "it must be a readable file"));
        }
    }
    for name in drop_ins(folder, &format!("{name}.d"))? {
        let bytes = std::fs::read(folder.join(&name)).map_err(|error| {
            Problem::new(&name, format!("cannot be read: {error}"), "allow it or remove it")
        })?;
        files.push(SourceFile { text: utf8(&name, bytes)?, name, is_drop_in: true });
    }
    Ok(files)
}

/// Parses the files in their order.
pub(crate) fn parse(gathered: &[SourceFile], earlier: Names) -> Result<Files, Problem> {
    let mut files = Files { earlier, ..Files::default() };
    for SourceFile { name, text, is_drop_in } in gathered {
        let source: fn(String, usize) -> Source = if *is_drop_in {
            |path, line| Source::DropIn { path, line }
        } else {
            |path, line| Source::File { path, line }
        };
        files.add(name, text, source)?;
    }
    Ok(files)
}

/// The `.toml` files of the drop-in folder, sorted by name. Others and hidden ones (those an
/// editor leaves behind) are not configuration.
fn drop_ins(folder: &Path, name: &str) -> Result<Vec<String>, Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(name, format!("cannot be read: {error}"), "it must be a folder that can be read")
    };
    let entries = match std::fs::read_dir(folder.join(name)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if file.ends_with(".toml") && !file.starts_with('.') {
            names.push(format!("{name}/{file}"));
        }
    }
    names.sort();
    Ok(names)
}

impl Files {
    fn add(&mut self, name: &str, text: &str, source: fn(String, usize) -> Source) -> Result<(), Problem> {
        let reading = Reading { name, text, source, earlier: self.earlier };
        let table = DeTable::parse(text).map_err(|error| {
            let place = match error.span() {
                Some(span) => reading.at(span.start.min(text.len())),
                None => name.to_owned(),
            };
            Problem::new(place, error.message(), "write name = value, with texts in double quotes")
        })?;
        for (key, value) in in_order(table.get_ref()) {
            let at = key.span().start;
            if let Some(table) = tables::find(key.get_ref()) {
                let parts = table::parts(&reading, table, value)?;
                self.tables.extend(parts.into_iter().map(|part| (table, part)));
                continue;
            }
            let (definition, renamed) = find(&reading, at, key.get_ref())?;
            self.renamed.add(reading.at(at), renamed);
            let texts = texts(definition, value).map_err(|(at, what, remedy)| {
                Problem::new(format!("{}: {}", reading.at(at), definition.name), what, remedy)
            })?;
            self.assignments.push(Assignment { definition, texts, source: reading.source(at) });
        }
        self.names.push(name.to_owned());
        Ok(())
    }
}

/// An option, and the earlier name of it that was used, if one was.
type Found = (&'static Definition, Option<Renamed>);

fn find(reading: &Reading<'_>, at: usize, key: &str) -> Result<Found, Problem> {
    let known = |name: &str| options::find(name).filter(|definition| definition.is_in_file());
    reading.earlier.find(key, known).ok_or_else(|| {
        let of_tables = tables::ALL.into_iter().filter(|table| options::find(table.names[0]).is_none());
        let meant = nearest(key, of_tables.map(|table| table.names[0])).and_then(tables::find);
        let remedy = match meant {
            Some(table) => format!("did you mean '{}'?", table.head),
            None => options::suggest(key, |known| known.is_in_file().then(|| known.name.to_owned())),
        };
        Problem::new(reading.at(at), format!("unknown key '{key}'"), remedy)
    })
}
