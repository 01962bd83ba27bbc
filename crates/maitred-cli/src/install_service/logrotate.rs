//! The stanza for logrotate(8) where the service's logs are files that it does not rotate itself.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::log_values::LogPlace;
use crate::logs;

/// The files that nobody rotates.
pub(super) fn files(config: &Config, folder: &Path) -> Vec<PathBuf> {
    let access = config.sites().map(|(_, site)| site.access_log.clone());
    let mut files: Vec<PathBuf> = access
        .chain([config.error_log.clone()])
        .filter_map(|place| match place {
            LogPlace::File(path) if !logs::is_rotated(config, &path) => Some(folder.join(path)),
            _ => None,
        })
        // Not a device or a pipe.
        .filter(|path| path.is_file() || !path.exists())
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The server makes the new file itself, with its own rights, when it gets SIGUSR1; the signal is for the main process, which tells workers.
pub(super) fn stanza(name: &str, files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|path| format!("\"{}\"", path.display())).collect();
    format!(
        "{} {{\n    daily\n    rotate 14\n    missingok\n    notifempty\n    compress\n    delaycompress\n    nocreate\n    sharedscripts\n    \
         postrotate\n        systemctl kill --kill-who=main --signal=SIGUSR1 {name}.service\n    endscript\n}}\n",
        files.join(" ")
    )
}
