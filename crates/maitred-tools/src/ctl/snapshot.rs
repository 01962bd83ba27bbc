//! A snapshot becomes a file: a page that needs no server, or its JSON.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use maitred_config::{EXIT_FAILURE, print, say};
use maitred_control::{snapshot_name, snapshot_page};
use serde_json::Value;

/// Standard output.
const STDOUT: &str = "-";

/// Writes a snapshot to `file`. Without `file`, a page goes to a file in the current folder that is named after the snapshot's time, and JSON
/// to standard output. Returns the exit code.
pub(super) fn write(snapshot: &Value, file: Option<&Path>, json: bool) -> u8 {
    let text = if json { format!("{snapshot:#}\n") } else { snapshot_page(snapshot) };
    let path = match file {
        Some(path) if path == Path::new(STDOUT) => return print(&text),
        Some(path) => path.to_owned(),
        None if json => return print(&text),
        None => PathBuf::from(snapshot_name(snapshot, "html")),
    };
    match save(&path, &text) {
        Ok(()) => print(&format!("{}\n", path.display())),
        Err(error) => {
            say(&format!("the snapshot cannot be written to {}: {error}", path.display()));
            EXIT_FAILURE
        }
    }
}

/// Writes a file that only its user may read: it has addresses of clients and lines of logs.
fn save(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
