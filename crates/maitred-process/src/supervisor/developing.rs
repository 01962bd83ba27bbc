//! Development: new workers when files of the application change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use maitred_config::problem::folder_of;
use maitred_config::{Checked, Config, Problem, tls};
use maitred_server::listening::Address;

use super::{Happening, Supervisor};
use crate::development::Watch;

/// The path of the page that lets a browser see tracebacks, below the URL of an application. The token follows this path.
const OPEN: &str = "/.maitred/open/";

/// Files that a line names; the others are counted.
const NAMED: usize = 2;

impl Supervisor {
    /// Begins to watch, in development.
    ///
    /// # Errors
    /// The files cannot be watched.
    pub(super) fn develop(&mut self) -> Result<(), Problem> {
        if !self.config.development.on {
            return Ok(());
        }
        let (paths, left_out) = watched(&self.config, &self.checked);
        let sender = self.sender.clone();
        let changed = move |files: &BTreeSet<PathBuf>| _ = sender.send(Happening::Changed(files.clone()));
        let watch = Watch::start(&paths, &left_out, changed).map_err(|error| {
            let what = format!("the files cannot be watched: {error}");
            Problem::new(self.origins.describe("watch"), what, "name fewer folders: --watch FOLDER")
        })?;
        for warning in &watch.warnings {
            self.log.warn(format_args!("{warning}"));
        }
        self.watch = Some(watch);
        Ok(())
    }

    /// Starts a worker with the current code. Clients that connect meanwhile wait for this worker.
    pub(super) fn change(&mut self, files: &BTreeSet<PathBuf>, now: Instant) {
        if self.ending {
            return;
        }
        let names: Vec<String> = files.iter().map(|file| shown(file)).collect();
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = names[..names.len().min(NAMED)].join(", ");
        let is_configuration = |file: &PathBuf| file.extension().is_some_and(|suffix| suffix == "toml");
        if files.iter().any(is_configuration) && !self.read_again(&named, now) {
            return;
        }
        self.log.plain(&format!("changed: {named}{more}"));
        self.changed_at = Some(now);
        self.crew.replace_now(now);
    }

    /// Logs how long a change of files took to be served, when a worker serves it.
    pub(super) fn note_change_served(&mut self, now: Instant) {
        if let Some(at) = self.changed_at.take() {
            let milliseconds = now.saturating_duration_since(at).as_millis();
            self.log.plain(&format!("serving the change after {milliseconds} ms"));
        }
    }

    /// The start-up line of the page with tracebacks.
    pub(super) fn traceback_line(&self, addresses: &[Address]) -> Option<String> {
        let token = self.setup.development.as_deref()?;
        let mut listeners = addresses.iter().zip(&self.checked.listeners);
        let (address, listener) = listeners.find(|(address, _)| matches!(address, Address::Tcp(_)))?;
        let Address::Tcp(socket) = address else { return None };
        let scheme = tls::scheme(address, listener.listen.is_tls(self.checked.tls.is_some(), address));
        let host = match socket.ip() {
            // A listener on all interfaces: a browser on this machine uses the loopback one.
            ip if ip.is_unspecified() => format!("localhost:{}", socket.port()),
            _ => socket.to_string(),
        };
        line(&self.checked, &format!("{scheme}{host}"), token)
    }
}

/// A path as the user knows it: below the current folder, without that folder.
fn shown(file: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let file = file.strip_prefix(&current).unwrap_or(file);
    file.strip_prefix(".").unwrap_or(file).display().to_string()
}

/// The start-up line of the page. `origin` is the scheme and the address of a listener, such as `http://127.0.0.1:8000`.
fn line(checked: &Checked, origin: &str, token: &str) -> Option<String> {
    let program = checked.programs().next()?;
    let prefix = [&program.prefix, &program.root_path].into_iter().find(|path| *path != "/");
    let prefix = prefix.map_or("", String::as_str);
    Some(format!("tracebacks in the browser: {origin}{prefix}{OPEN}{token}"))
}

/// Returns the folders to watch, and the folders in them that are left out: those of static files.
fn watched(config: &Config, checked: &Checked) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut folders = match config.development.watch.as_slice() {
        [] if checked.programs().next().is_none() => Vec::new(),
        [] => {
            let of_files = checked.programs().filter_map(|program| folder_of_file(&program.name));
            let of_modules = checked.programs().filter_map(|program| program.app_dir.clone());
            std::iter::once(PathBuf::from(".")).chain(of_files).chain(of_modules).collect()
        }
        given => given.to_vec(),
    };
    folders.sort();
    folders.dedup();
    let left_out = config.sites().flat_map(|(_, site)| site.mounts).map(|mount| mount.folder);
    (folders, left_out.collect())
}

/// The folder of a program that is named by its file, `path/to/app.py:name`.
fn folder_of_file(name: &str) -> Option<PathBuf> {
    let file = name.split_once(':').map_or(name, |(file, _)| file);
    (file.contains('/') || file.ends_with(".py")).then(|| folder_of(Path::new(file)).to_owned())
}
