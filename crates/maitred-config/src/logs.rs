//! Checks of the logs that the configuration names.
//!
//! Leaves out: opening them.

use std::path::Path;

use maitred_server::Rotation;

use crate::{BadValue, Config, LogPlace, Origins, Problem};

/// Whether the server itself begins new files in the place of this one.
pub fn is_rotated(config: &Config, path: &Path) -> bool {
    let is_pattern = path.file_name().and_then(|name| name.to_str()).is_some_and(Rotation::is_pattern);
    is_pattern || config.log_rotate_size > 0 || config.log_rotate.is_some()
}

/// Checks what no single option can know.
pub fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let logs = [
        ("access-log", &config.site.access_log),
        ("error-log", &config.error_log),
        ("client-log", &config.client_log),
    ];
    for (name, place) in logs {
        if let LogPlace::File(path) = place {
            check_file(path).map_err(|bad| bad.at(origins.describe(name)))?;
        }
    }
    for host in config.hosts.iter().filter(|host| host.has_log()) {
        let wrong = |bad: BadValue| bad.at(origins.describe_host(&host.name, Some("access-log")));
        let LogPlace::File(path) = &host.site.access_log else { continue };
        check_file(path).map_err(wrong)?;
        let others = config.hosts.iter().take_while(|other| other.name != host.name);
        let mut taken = others.filter(|other| other.has_log()).map(|other| &other.site.access_log);
        if host.site.access_log == config.site.access_log || taken.any(|other| *other == host.site.access_log)
        {
            let what = format!("{} is the access log of another host, too", path.display());
            let remedy =
                "leave it out for the common log, where $host tells them apart, or name another file";
            return Err(wrong(BadValue::new(what, remedy)));
        }
    }
    Ok(())
}

fn check_file(path: &Path) -> Result<(), BadValue> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() {
        Err(BadValue::new(format!("{} is a folder", path.display()), "name a file in it"))
    } else if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let what = format!("there is no folder {} for the file {}", folder.display(), path.display());
        Err(BadValue::new(what, "create it or correct the path"))
    } else {
        Ok(())
    }
}
