//! The file that keeps the history over a restart.
//!
//! Promises: the file is complete at any moment: a new one is written beside it and moved there. A file that is
//! damaged, or of another version, is reported and begun anew; a file that is no history is not overwritten. Leaves
//! out: the format, which maitred-history defines.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use maitred_history::{Damage, History};
use maitred_server::Log;

use crate::lock;

pub(super) struct HistoryFile {
    path: PathBuf,
    log: Arc<Log>,
    writing: Mutex<()>,
    /// The last write has failed; that is logged once.
    has_failed: AtomicBool,
}

/// Opens the file and reads its history; none for a file that is to be begun.
/// Errors: the reason: the file is something else, or cannot be read or written.
pub(super) fn open(path: &Path, log: &Arc<Log>) -> Result<(HistoryFile, Option<History>), String> {
    let shown = path.display();
    let history = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(format!("'{shown}' cannot be read: {error}")),
        // As made by mktemp(1), or cut off by a full disk.
        Ok(bytes) if bytes.is_empty() => None,
        Ok(bytes) => match History::from_bytes(&bytes) {
            Ok(history) => Some(history),
            Err(Damage::NotOne) => return Err(format!("'{shown}' is something else than a history")),
            Err(damage) => {
                log.warn(format_args!("history: {shown}: {damage}; it is begun anew"));
                None
            }
        },
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("there is no folder '{}'", folder.display()));
    }
    let place = HistoryFile {
        path: path.to_owned(),
        log: Arc::clone(log),
        writing: Mutex::default(),
        has_failed: AtomicBool::default(),
    };
    Ok((place, history))
}

impl HistoryFile {
    pub(super) fn write(&self, bytes: &[u8]) {
        let _one = lock(&self.writing);
        match self.try_write(bytes) {
            Ok(()) => self.has_failed.store(false, Ordering::Relaxed),
            Err(error) if !self.has_failed.swap(true, Ordering::Relaxed) => {
                let shown = self.path.display();
                self.log.error(format_args!("history: {shown} cannot be written: {error}"));
            }
            Err(_) => {}
        }
    }

    fn try_write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        let written = (|| {
            // One that a killed server has left may be there; a link would lead elsewhere.
            let _ = fs::remove_file(&beside);
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        })();
        written.inspect_err(|_| _ = fs::remove_file(&beside))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use maitred_server::{Level, LogTarget};

    use super::*;

    #[test]
    fn a_foreign_file_is_not_overwritten_and_a_damaged_one_is_begun_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, kept) = (folder.path().join("kept"), folder.path().join("log"));
        let log = Log::open(Level::Warn, LogTarget::Path(kept.clone()), None).expect("a log");
        let log = Arc::new(log);
        let (place, history) = open(&path, &log).expect("a new one");
        assert!(history.is_none());
        place.write(&History::default().to_bytes());
        assert!(open(&path, &log).expect("one").1.is_some());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left beside it");
        let bytes = fs::read(&path).expect("bytes");
        fs::write(&path, &bytes[..bytes.len() - 3]).expect("cut");
        assert!(open(&path, &log).expect("begun anew").1.is_none());
        log.finish(Duration::from_secs(5));
        let told = fs::read_to_string(&kept).expect("the log");
        assert!(told.ends_with("kept: it was cut off or changed; it is begun anew\n"), "{told}");
        fs::write(&path, "import maitred\n").expect("a program");
        assert!(open(&path, &log).err().expect("refused").ends_with("is something else than a history"));
        assert!(
            open(&folder.path().join("a/b"), &log).err().expect("refused").starts_with("there is no folder")
        );
        assert!(open(folder.path(), &log).err().expect("refused").contains("cannot be read"));
    }
}
