//! The steps that need the rights of the start, and giving these rights up (`--user`, `--group`).
//!
//! ```text
//! as root        log files are made, listeners, the control's named socket and its address are opened
//! for good       the process becomes the user; connections wait
//! as the user    logs are opened, the application is loaded, requests are served
//! ```
//! Promises: application code never runs with the rights of the start. Files that the user cannot read or write later are named at the
//! start, with a remedy.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use maitred_config::accounts::shown_user;
use maitred_config::{Checked, Config, Loaded, Problem, Wanted, tls};
use maitred_control::Doors;
use maitred_control::local;
use maitred_server::rights::{NotAssumed, Rights};
use maitred_server::{BoundListeners, Log};
use rustix::fs::Access;
use rustix::io::Errno;

use crate::host::Host;
use crate::sockets::Sockets;
use crate::{certificates, control, logs};

/// Listeners and doors that were opened before the process became its user, or before its hooks ran.
pub(crate) struct Early {
    /// The process has become another user.
    pub(crate) became: bool,
    pub(crate) listeners: Sockets,
    pub(crate) doors: Doors,
    /// Warnings about files that the user cannot read or write.
    pub(crate) warnings: Vec<String>,
}

/// Takes the steps that need rights, and gives the rights up, if another user is asked for. These steps cannot be repeated later.
///
/// # Errors
/// A step has failed; nothing has been served.
pub(crate) fn give_up(
    loaded: &Loaded,
    folder: &Path,
    checked: &Checked,
    host: &dyn Host,
    sockets: &mut Option<Vec<Option<OwnedFd>>>,
) -> Result<Option<Early>, Problem> {
    let Some(wanted) = checked.wanted.as_ref().filter(|wanted| wanted.differs()) else { return Ok(None) };
    let (config, origins) = (&loaded.config, &loaded.origins);
    let identity = &wanted.identity;
    let place = origins.describe(if config.user.is_some() { "user" } else { "group" });
    if let Ok(own) = Rights::own()
        && !identity.is_of(&own)
        && !own.may_change()
    {
        let present = shown_user(local::user());
        return Err(Problem::new(
            place,
            format!("this process runs as {present} and may not become {}", wanted.shown()),
            "start it as root, or leave the option out",
        ));
    }
    logs::give(config, identity);
    certificates::give(config, identity);
    let handed = sockets.take().unwrap_or_default();
    let handed = handed.into_iter().map(|socket| socket.into_iter().collect()).collect();
    let listeners = Sockets::bind(config, checked, origins, handed)?;
    let doors = control::open_named(config, origins, Some(identity))?;
    identity.assume().map_err(|error| {
        let remedy = match &error {
            NotAssumed::Refused(..) => {
                "start it as root, where this user and group exist (in a container: are mapped)"
            }
            NotAssumed::Kept { .. } => "start it as root, and without what has begun that thread",
            NotAssumed::Unknown(_) => "mount /proc",
        };
        Problem::new(&*place, format!("the process cannot become {}: {error}", wanted.shown()), remedy)
    })?;
    if let Some(problem) = unreadable_program(checked, wanted, host, &place) {
        return Err(problem);
    }
    let mut warnings = unreadable_sources(loaded, folder, wanted);
    warnings.extend(unreadable_certificates(config, wanted));
    warnings.extend(unwritable_folders(config, wanted));
    Ok(Some(Early { became: true, listeners, doors, warnings }))
}

/// Listens, unless `bound` has sockets, and opens the doors. If an address is in use by another server, nothing else has been done.
///
/// # Errors
/// A listener or a door cannot be opened.
pub(crate) fn listen(
    loaded: &Loaded,
    checked: &Checked,
    bound: Option<BoundListeners>,
) -> Result<Early, Problem> {
    let (config, origins) = (&loaded.config, &loaded.origins);
    let listeners = match bound {
        Some(bound) => Sockets::Shared(bound),
        None => Sockets::bind(config, checked, origins, Vec::new())?,
    };
    let doors = control::open_named(config, origins, None)?;
    Ok(Early { became: false, listeners, doors, warnings: Vec::new() })
}

/// Warns that the application runs as root, unless `--user` is given.
pub(crate) fn warn_of_root(config: &Config, log: &Log) {
    if local::user() == 0 && config.user.is_none() {
        log.warn(format_args!(
            "the application runs as root: --user NAME gives its rights up; --user root says it is meant"
        ));
    }
}

/// Finds a folder of the language or the application that the user cannot read: imports would fail one by one, each with another error.
fn unreadable_program(checked: &Checked, wanted: &Wanted, host: &dyn Host, place: &str) -> Option<Problem> {
    // A module is searched in a folder; the name of a file has its own folder.
    let mut applications = checked.programs().map(|program| {
        let named = Path::new(&program.name).parent().filter(|_| program.name.contains('/'));
        let folder = named.map(Path::to_owned).or_else(|| program.app_dir.clone());
        ("the application", folder.unwrap_or_else(|| PathBuf::from(".")))
    });
    let first = applications.next()?;
    host.folders().into_iter().chain([first]).chain(applications).find_map(|(what, folder)| {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let closed = closed(&folder)?;
        let user = shown_user(wanted.identity.uid);
        let shown = folder.display();
        let what = format!("user {user} may not read {}, and {what} is in {shown}", closed.display());
        let remedy = "let that user read it, or move it to where everybody may read, such as /opt or /srv";
        Some(Problem::new(place, what, remedy))
    })
}

/// The first folder on the path that cannot be entered, or `folder` if it cannot be read.
fn closed(folder: &Path) -> Option<&Path> {
    let is_closed =
        |path: &Path, access| rustix::fs::access(path, access).is_err_and(|error| error == Errno::ACCESS);
    let mut ancestors: Vec<&Path> = folder.ancestors().collect();
    ancestors.reverse();
    let entered = ancestors.into_iter().find(|path| is_closed(path, Access::EXEC_OK));
    entered.or_else(|| is_closed(folder, Access::READ_OK | Access::EXEC_OK).then_some(folder))
}

/// Warns of configuration files that SIGHUP could not read. Their names begin at `folder`.
fn unreadable_sources(loaded: &Loaded, folder: &Path, wanted: &Wanted) -> Vec<String> {
    let files = loaded.files.iter().map(|name| folder.join(name));
    let files = files.chain(loaded.config.env_file.clone());
    let warning = |path: PathBuf| {
        let error = std::fs::File::open(&path).err()?;
        let (user, shown) = (shown_user(wanted.identity.uid), path.display());
        let group = wanted.identity.gid;
        Some(format!(
            "user {user} cannot read {shown} ({error}), so SIGHUP will change nothing; chgrp {group} {shown} && chmod \
             g+r {shown}"
        ))
    };
    files.filter_map(warning).collect()
}

/// Warns of files of TLS that cannot be loaded again after a change.
fn unreadable_certificates(config: &Config, wanted: &Wanted) -> Option<String> {
    let is_closed = |path: &&Path| std::fs::File::open(path).is_err();
    let closed: Vec<&Path> = tls::named_files(config).filter(is_closed).collect();
    let (first, more) = closed.split_first()?;
    let (user, shown, group) = (shown_user(wanted.identity.uid), first.display(), wanted.identity.gid);
    let others = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(format!(
        "user {user} cannot read {shown}{others}, so what has been read stays until a restart, also when files change; chgrp \
         {group} {shown} && chmod g+r {shown}, and let that user into its folder"
    ))
}

/// Warns of folders of log files in which the user cannot make files.
fn unwritable_folders(config: &Config, wanted: &Wanted) -> Vec<String> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in logs::folders(config) {
        let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
        let writes = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
        if !writes && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let (user, uid) = (shown_user(wanted.identity.uid), wanted.identity.uid);
    let warning = |folder: PathBuf| {
        let folder = folder.display();
        format!(
            "user {user} cannot make files in {folder}: logs there are not rotated, and SIGUSR1 opens only files that are \
             made for that user before; chown {uid} {folder}, or have logrotate create them"
        )
    };
    folders.into_iter().map(warning).collect()
}
