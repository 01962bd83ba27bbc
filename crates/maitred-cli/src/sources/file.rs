//! `maitred.toml` and the files of its drop-in folder `maitred.toml.d/`, in the order of their
//! names. Errors name the file and the line.

use std::io::ErrorKind;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::options::{self, Definition};
use crate::problem::Problem;

use super::{Assignment, Source, suggest};

/// The file that is read when none is named.
pub(crate) const NAME: &str = "maitred.toml";

/// What the files say.
#[derive(Default)]
pub(crate) struct Files {
    /// The files that were read, in order, as they are shown to the user.
    pub(crate) names: Vec<String>,
    pub(crate) assignments: Vec<Assignment>,
}

/// Reads the files below `folder`. A `named` file (who named it, and its path) must exist;
/// `maitred.toml` need not.
pub(crate) fn read(folder: &Path, named: Option<(String, String)>) -> Result<Files, Problem> {
    let mut files = Files::default();
    let (who, name) = named.map_or((None, NAME.to_owned()), |(who, path)| (Some(who), path));
    match std::fs::read(folder.join(&name)) {
        Ok(bytes) => files.add(&name, &bytes, |path, line| Source::File { path, line })?,
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
        files.add(&name, &bytes, |path, line| Source::DropIn { path, line })?;
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
    fn add(&mut self, name: &str, bytes: &[u8], source: fn(String, usize) -> Source) -> Result<(), Problem> {
        let line_of = |offset: usize| 1 + bytes[..offset].iter().filter(|byte| **byte == b'\n').count();
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let place = format!("{name}:{}", line_of(error.valid_up_to()));
            Problem::new(place, "the text is not UTF-8", "save the file as UTF-8")
        })?;
        let table = DeTable::parse(text).map_err(|error| {
            let place = match error.span() {
                Some(span) => format!("{name}:{}", line_of(span.start.min(text.len()))),
                None => name.to_owned(),
            };
            Problem::new(place, error.message(), "write name = value, with texts in double quotes")
        })?;
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let line = line_of(key.span().start);
            let definition = find(name, line, key.get_ref())?;
            let texts = texts(definition, value).map_err(|(span, what, remedy)| {
                Problem::new(format!("{name}:{}: {}", line_of(span), definition.name), what, remedy)
            })?;
            self.assignments.push(Assignment { definition, texts, source: source(name.to_owned(), line) });
        }
        self.names.push(name.to_owned());
        Ok(())
    }
}

fn find(name: &str, line: usize, key: &str) -> Result<&'static Definition, Problem> {
    options::find(key).filter(|definition| definition.is_in_file()).ok_or_else(|| {
        let remedy = suggest(key, |known| known.is_in_file().then(|| known.name.to_owned()));
        Problem::new(format!("{name}:{line}"), format!("unknown key '{key}'"), remedy)
    })
}

/// Where in the file, what is wrong, and the remedy.
type Wrong = (usize, String, String);

/// The value as it would be written on the command line.
fn texts(definition: &Definition, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Wrong> {
    match value.get_ref() {
        DeValue::Array(values) if definition.is_repeatable() => {
            values.iter().map(|value| text(definition, value)).collect()
        }
        _ => Ok(vec![text(definition, value)?]),
    }
}

fn text(definition: &Definition, value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
    let at = value.span().start;
    Ok(match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => number.as_str().to_owned(),
        },
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        other => {
            let what = format!("the value is of the type {}", other.type_str());
            return Err((at, what, format!("expected: {}", definition.takes())));
        }
    })
}
