//! Where values come from, and how they are merged: default < `PORT` and `WEB_CONCURRENCY` < file < drop-in files < environment
//! < command line. A later value replaces an earlier one, key by key also in named pools and hosts; lists are replaced whole, and
//! filters are collected.

pub(crate) mod command_line;
pub mod environment;
pub mod file;
mod reading;
mod table;

use std::path::PathBuf;

use crate::commands::Command;
use crate::options::renamed::Names;
use crate::options::{self, Kind};
use crate::origins::Assignment;
use crate::{BadValue, Config, Origins, Problem, Source, acme, development, hosts, listen, pools, tables};
use file::SourceFile;
pub(crate) use reading::utf8;

/// What the process was started with.
pub struct Inputs {
    /// Without the name of the program.
    pub arguments: Vec<String>,
    /// The variables that [`environment::is_read`].
    pub environment: Vec<(String, String)>,
    /// The folder in which `maitred.toml` is looked for.
    pub folder: PathBuf,
    /// The folder in which the process was started.
    pub started_in: PathBuf,
    /// Earlier names of options.
    pub earlier: Names,
    /// The configuration files as the supervisor has read them, if this is a worker.
    pub files: Option<Vec<SourceFile>>,
    /// How many workers there are, if this is one of them: it has its part of what is for all together.
    pub workers: Option<usize>,
}

/// The merged configuration and how it came about.
#[derive(Debug)]
pub struct Loaded {
    /// The action that was asked for.
    pub command: Command,
    /// What help is wanted about; nothing for the short text.
    pub topic: Vec<String>,
    /// `check --acme`: what an authority would meet is looked at, too.
    pub looks: bool,
    /// The merged options.
    pub config: Config,
    /// The origins of their values.
    pub origins: Origins,
    /// The files that were read, in order.
    pub files: Vec<String>,
    /// The same with what was in them.
    pub gathered: Vec<SourceFile>,
    /// Lines for the user about what was ignored.
    pub warnings: Vec<String>,
}

/// Reads all sources and merges them. Every value is checked, also one that is replaced later.
pub fn load(inputs: &Inputs) -> Result<Loaded, Problem> {
    let line = command_line::parse(&inputs.arguments, inputs.earlier)?;
    let mut loaded = Loaded {
        command: line.command,
        topic: line.topic,
        looks: line.looks,
        config: Config::with_defaults(),
        origins: Origins::default(),
        files: Vec::new(),
        gathered: Vec::new(),
        warnings: Vec::new(),
    };
    if !matches!(loaded.command, Command::Run | Command::Check) {
        return Ok(loaded);
    }
    let variables = environment::parse(&inputs.environment, inputs.earlier, &mut loaded.warnings);
    let named = line
        .config_file
        .map(|path| ("--config".to_owned(), path))
        .or(variables.config_file.map(|path| ("MAITRED_CONFIG".to_owned(), path)));
    loaded.gathered = match &inputs.files {
        Some(files) => files.clone(),
        None => file::gather(&inputs.folder, named)?,
    };
    let files = file::parse(&loaded.gathered, inputs.earlier)?;
    loaded.files = files.names;
    let mut renamed = files.renamed;
    renamed.extend(variables.renamed);
    renamed.extend(line.renamed);
    for (table, part) in files.tables {
        part.note_renamed(table, &mut renamed);
        (table.merge)(part, &mut loaded.config, &mut loaded.origins)?;
    }
    let assignments = variables.suggested.into_iter().chain(files.assignments);
    for assignment in assignments.chain(variables.assignments).chain(line.assignments) {
        let Assignment { definition, texts, source } = assignment;
        let wrong = |bad: BadValue| bad.at(source.place(definition));
        if matches!(definition.kind, Kind::Table) {
            for part in pools::parts(&texts, &source, inputs.earlier).map_err(wrong)? {
                part.note_renamed(&pools::TABLE, &mut renamed);
                (pools::TABLE.merge)(part, &mut loaded.config, &mut loaded.origins)?;
            }
        } else {
            definition.set(&mut loaded.config, &texts).map_err(wrong)?;
        }
        loaded.origins.set(definition.name, source);
    }
    development::settle(&mut loaded.config, &mut loaded.origins);
    if loaded.looks {
        acme::ask_for(&mut loaded.config);
    }
    acme::settle(&mut loaded.config, &mut loaded.origins);
    hosts::resolve(&mut loaded.config, &loaded.origins)?;
    // `check` shows what was written.
    if loaded.command == Command::Run {
        let hosts = loaded.config.hosts.iter_mut().map(|host| &mut host.site);
        std::iter::once(&mut loaded.config.site).chain(hosts).for_each(|site| site.access_log.settle());
    }
    if let Some(workers) = inputs.workers {
        loaded.config.share(workers);
    }
    loaded.warnings.extend(renamed.warnings());
    loaded.warnings.extend(without_effect(&loaded));
    loaded.warnings.extend(listen::warnings(&loaded.config.listen));
    loaded.warnings.extend(tables::warnings(&loaded.config, &loaded.origins));
    Ok(loaded)
}

/// Options of workers where there is one: it is the only process, which nobody replaces.
fn without_effect(loaded: &Loaded) -> Option<String> {
    const OF_SEVERAL: [&str; 4] = ["worker-requests", "worker-lifetime", "worker-memory", "worker-timeout"];
    if loaded.config.workers.number() > 1 {
        return None;
    }
    let is_set = |name: &&str| {
        let zero =
            options::find(name).and_then(|option| option.show(&loaded.config)).is_none_or(|text| text == "0");
        !zero && *loaded.origins.of(name) != Source::Default
    };
    let name = OF_SEVERAL.into_iter().find(is_set)?;
    let place = loaded.origins.describe(name);
    Some(format!(
        "{place}: no effect with one worker, which no supervisor replaces; write --workers 2 or more"
    ))
}

#[cfg(test)]
mod tests;
