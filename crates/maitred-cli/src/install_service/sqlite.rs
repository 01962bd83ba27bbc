//! Whether a site has a database of SQLite in a folder where its service may not write.
//!
//! Promises: nothing is run; a file that ends so, or a Python file that names one, is enough. Leaves out: databases that are named at run time.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders below that of the site in which files are looked at.
const DEPTH: usize = 2;

/// What is looked at in all, and of a file.
const MAX_FILES: usize = 2000;
const MAX_BYTES: u64 = 64 * 1024;

const ENDINGS: [&str; 3] = [".sqlite3", ".sqlite", ".db"];

/// A database, or the file that names one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it was seen.
    pub(super) place: PathBuf,
    /// Where it is, or is going to be.
    pub(super) folder: PathBuf,
}

/// The first one in this folder.
pub(super) fn find(folder: &Path) -> Option<Found> {
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut looked = 0;
    let mut named = None;
    while let Some((current, depth)) = folders.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten().flatten() {
            looked += 1;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if looked > MAX_FILES || name.starts_with('.') || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                if depth < DEPTH && !path.join("pyvenv.cfg").exists() {
                    folders.push((path, depth + 1));
                }
            } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                return Some(Found { place: path, folder: current });
            } else if named.is_none() && name.ends_with(".py") && names_one(&path) {
                // Settings name it from the folder of the site (BASE_DIR).
                named = Some(Found { place: path, folder: folder.to_owned() });
            }
        }
    }
    named
}

/// Whether the text has the name of a database in quotation marks.
fn names_one(path: &Path) -> bool {
    if fs::metadata(path).is_ok_and(|found| found.len() > MAX_BYTES) {
        return false;
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let ends = |ending: &str| ['"', '\''].iter().any(|mark| text.contains(&format!("{ending}{mark}")));
    ENDINGS.iter().any(|ending| ends(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_found_by_its_file_or_its_name() {
        let folder = std::env::temp_dir().join(format!("maitred-sqlite-{}", std::process::id()));
        fs::create_dir_all(folder.join("shop")).expect("a folder");
        fs::create_dir_all(folder.join("venv/lib")).expect("a folder");
        fs::write(folder.join("venv/pyvenv.cfg"), "").expect("a file");
        fs::write(folder.join("venv/lib/a.db"), "").expect("a file");
        fs::write(folder.join("shop/models.py"), "from django.db import models\nx = 'a.dbm'\n")
            .expect("a file");
        assert_eq!(find(&folder), None);
        let settings = folder.join("shop/settings.py");
        fs::write(&settings, "'NAME': BASE_DIR / 'db.sqlite3',\n").expect("a file");
        assert_eq!(find(&folder), Some(Found { place: settings, folder: folder.clone() }));
        let file = folder.join("shop/shop.db");
        fs::write(&file, "").expect("a file");
        assert_eq!(find(&folder), Some(Found { place: file, folder: folder.join("shop") }));
        fs::remove_dir_all(&folder).expect("own");
    }
}
