//! What would keep the service from starting, or from serving: what its user cannot read, an application that is not there, databases
//! where it may not write.
//!
//! Leaves out: what only the server can know when it runs; nothing is imported.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::host::Host;
use crate::loading;
use crate::log_values::LogPlace;
use crate::problem::Problem;
use crate::sources::Loaded;
use crate::validation;

use super::access::Reader;
use super::problem;
use super::unit::{Service, is_in_home};

/// Something that the service reads.
struct Read {
    what: String,
    path: PathBuf,
    is_folder: bool,
    /// Not everybody should read it.
    is_secret: bool,
    /// It belongs to the interpreter.
    is_program: bool,
}

/// All problems. The current folder is that of the service from then on.
pub(super) fn problems(service: &Service, loaded: &Loaded, host: &dyn Host) -> Vec<Problem> {
    let mut problems = Vec::new();
    let folder = match &loaded.config.chdir {
        Some(inner) => service.folder.join(inner),
        None => service.folder.clone(),
    };
    // The application is named from there.
    match std::env::set_current_dir(&folder) {
        Ok(()) => problems.extend(missing(loaded, host)),
        Err(error) => problems.push(problem(
            format!("the folder {} cannot be entered: {error}", folder.display()),
            "run it as root, or name another one with --folder",
        )),
    }
    match Reader::of(service.user.as_deref(), service.group.as_deref()) {
        Ok(reader) => {
            let (program, read): (Vec<_>, Vec<_>) =
                all(service, &folder, loaded, host).into_iter().partition(|read| read.is_program);
            // One line: its parts are in one environment.
            problems.extend(program.iter().find_map(|read| closed(&reader, read)));
            problems.extend(read.iter().filter_map(|read| closed(&reader, read)));
        }
        Err((option, bad)) => problems.push(problem(format!("--{option}: {}", bad.what), bad.remedy)),
    }
    problems
}

/// What a server that is started so would not find.
fn missing(loaded: &Loaded, host: &dyn Host) -> Option<Problem> {
    let mut config = loaded.config.clone();
    // systemd makes the folders of these when the service starts.
    let no_log = |place: &mut LogPlace| *place = LogPlace::Auto;
    no_log(&mut config.site.access_log);
    config.hosts.iter_mut().for_each(|host| no_log(&mut host.site.access_log));
    let default = Config::default();
    (config.error_log, config.spool) = (default.error_log, std::env::temp_dir());
    let checked = match validation::check(&config, &loaded.origins) {
        Ok(checked) => checked,
        Err(problem) => return Some(problem),
    };
    checked.programs().find_map(|program| loading::look(program, &config, &checked, host).err())
}

fn all(service: &Service, folder: &Path, loaded: &Loaded, host: &dyn Host) -> Vec<Read> {
    let config = &loaded.config;
    let mut all = Vec::new();
    let mut add = |what: &str, path: &Path, is_folder, is_secret, is_program| {
        let path = folder.join(path).components().collect();
        all.push(Read { what: what.to_owned(), path, is_folder, is_secret, is_program });
    };
    for word in service.command.iter().take(2).map(Path::new).filter(|word| word.is_absolute()) {
        add("the program", word, false, false, true);
    }
    for (what, path) in host.folders() {
        add(what, &path, true, false, true);
    }
    add("the folder that it runs in", folder, true, false, false);
    for (_, site) in config.sites() {
        let named = site
            .application
            .iter()
            .map(Path::new)
            .chain(site.mounted.iter().map(|one| Path::new(&one.application)));
        for file in named.filter(|name| name.to_string_lossy().contains('/')) {
            let is_folder = folder.join(file).is_dir();
            let place = if is_folder { file } else { file.parent().unwrap_or(file) };
            add("the application's folder", place, true, false, false);
        }
        for place in site.app_dir.iter().chain(site.mounted.iter().filter_map(|one| one.app_dir.as_ref())) {
            add("the application's folder", place, true, false, false);
        }
        for mount in &site.mounts {
            add("a folder of files (static)", &mount.folder, true, false, false);
        }
        site.certificates
            .iter()
            .for_each(|path| add("the certificate (tls-cert)", path, false, false, false));
        site.keys.iter().for_each(|path| add("the key (tls-key)", path, false, true, false));
        for path in site.client_ca.iter().chain(&site.client_crl) {
            add("a file of TLS", path, false, false, false);
        }
    }
    for path in config.tls.key_passwords.iter().filter(|path| !path.to_string_lossy().starts_with("env:")) {
        add("the password of the key (tls-key-password)", path, false, true, false);
    }
    config.tls.ticket_key.iter().for_each(|path| add("tls-ticket-key", path, false, true, false));
    config.env_file.iter().for_each(|path| add("the env-file", path, false, true, false));
    loaded.files.iter().for_each(|path| add("the configuration", Path::new(path), false, true, false));
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all.dedup_by(|one, other| one.path == other.path);
    all
}

fn closed(reader: &Reader, read: &Read) -> Option<Problem> {
    let Read { what, path, is_folder, is_secret, is_program } = read;
    if !path.exists() {
        // Of what the server would refuse there is a line already; a folder that cannot be entered hides the rest.
        return None;
    }
    let closed = reader.closed(path, *is_folder);
    let (first, _) = closed.first()?;
    let text =
        format!("{} may not read {}, and {what} is {}", reader.shown(), first.display(), path.display());
    let remedy = match is_in_home(first) {
        true if *is_program => "make the virtual environment anew outside of homes with a Python that everybody may read, such as \
                                /usr/bin/python3 -m venv /opt/NAME"
            .to_owned(),
        true => "move it to where everybody may read, such as /srv or /opt, or give --user with the user of that home".to_owned(),
        false => reader.cure(&closed, *is_secret),
    };
    Some(problem(text, remedy))
}

/// Links of the program into homes, which the unit therefore shows to the service.
pub(super) fn linked_homes(service: &Service) -> Option<String> {
    let real = service.links.iter().find(|path| is_in_home(path))?;
    if service.written().any(is_in_home) {
        // The unit shows homes anyway.
        return None;
    }
    Some(format!(
        "the program's links lead to {}: the unit shows homes to the service for that (ProtectHome=read-only); to have them hidden, make the \
         virtual environment anew with a Python outside of homes, such as /usr/bin/python3 -m venv",
        real.display()
    ))
}
