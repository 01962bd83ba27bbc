//! Checks before a unit is written: the application and the files exist, and the service's user may read them.
//!
//! Leaves out: what the server can know only when it runs (nothing is imported), and access control lists.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use maitred_config::{Config, Loaded, LogPlace, Problem, validation};
use maitred_process::host::Host;
use maitred_process::loading;
use maitred_server::rights::Identity;

use super::unit::{Service, problem};

/// Looks whether the service could start. The current folder is that of the service from then on.
///
/// # Errors
/// The first reason why it could not.
pub(super) fn look(service: &Service, loaded: &Loaded, host: &dyn Host) -> Result<(), Problem> {
    let mut config = loaded.config.clone();
    let folder = config.chdir.as_ref().map_or(service.folder.clone(), |inner| service.folder.join(inner));
    // The application is named from there.
    std::env::set_current_dir(&folder).map_err(|error| {
        let what = format!("the folder {} cannot be entered: {error}", folder.display());
        problem(what, "run it as root, or name another one with --folder")
    })?;
    (config.user, config.group) = (service.user.clone(), service.group.clone());
    // systemd makes the folders of these when the service starts.
    config.site.access_log = LogPlace::Auto;
    config.hosts.iter_mut().for_each(|host| host.site.access_log = LogPlace::Auto);
    config.client_log = LogPlace::Off;
    (config.error_log, config.spool) = (Config::with_defaults().error_log, std::env::temp_dir());
    let checked = validation::check(&config, &loaded.origins)?;
    checked.programs().try_for_each(|program| loading::look(program, &config, &checked, host))?;
    let sites = config
        .sites()
        .flat_map(|(_, site)| [&site.keys[..], &site.certificates, site.app_dir.as_slice()].concat());
    let settings = loaded.files.iter().map(|file| service.folder.join(file));
    let files = sites.chain(config.env_file.clone()).chain(settings);
    let all = [folder.clone()].into_iter().chain(files).chain(program(&service.command, host));
    let identity = checked.wanted.as_ref().map(|wanted| &wanted.identity);
    // What is not there has had its message.
    let mut real = all.filter_map(|path| fs::canonicalize(path).ok());
    real.try_for_each(|path| readable(&path, service, identity))
}

/// The program, and the folders that it reads while it runs.
pub(super) fn program(command: &[String], host: &dyn Host) -> Vec<PathBuf> {
    let words = command.iter().take(2).map(PathBuf::from).filter(|word| word.is_absolute());
    words.chain(host.folders().into_iter().map(|(_, folder)| folder)).collect()
}

/// Whether the service's user may read it, by owner, group and mode of itself and of the folders on the way.
fn readable(path: &Path, service: &Service, identity: Option<&Identity>) -> Result<(), Problem> {
    // The user that systemd makes owns nothing.
    let uid = identity.filter(|_| service.user.is_some()).map(|identity| identity.uid);
    let groups = identity.map_or(&[][..], |identity| &identity.groups);
    let may = |step: &&Path| {
        let Ok(found) = fs::metadata(step) else { return true };
        let is_member = groups.contains(&found.gid());
        let shift = if uid == Some(found.uid()) { 6 } else { 3 * u32::from(is_member) };
        let need = if *step == path { 4 | u32::from(found.is_dir()) } else { 1 };
        uid == Some(0) || found.mode() >> shift & need == need
    };
    let way: Vec<&Path> = path.ancestors().collect();
    let Some(step) = way.into_iter().rev().find(|step| !may(step)) else { return Ok(()) };
    let user =
        service.user.as_ref().map_or("the user that systemd makes".to_owned(), |user| format!("user {user}"));
    let (step, path) = (step.display(), path.display());
    let (lead, group) = match identity {
        Some(identity) => ("", identity.gid.to_string()),
        None => ("give the service a group with --group GROUP and ", "GROUP".to_owned()),
    };
    Err(problem(
        format!("{user} may not read {step}, and the service needs {path}"),
        format!(
            "{lead}chgrp {group} '{step}' && chmod g+rX '{step}', or move it out of a home to /srv or /opt; --unchecked writes the unit \
             all the same"
        ),
    ))
}
