//! An error of the user: one line with the place, the fault and the remedy.

use std::fmt;
use std::path::Path;

pub use maitred_control::{did_you_mean, nearest};

/// An error in the configuration or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: String,
    what: String,
    remedy: String,
}

impl Problem {
    /// An error at `place` (an option, a variable, `file:line`).
    pub fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text of a file or a system call may have several lines; an error has one.
        let text = format!("{}: {}; {}", self.place, self.what, self.remedy);
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl std::error::Error for Problem {}

/// The remedy for a path that does not exist: the nearest name in its folder, or the current folder.
pub fn correct(path: &Path) -> String {
    let entries = std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {}?", path.with_file_name(name).display()),
        None => {
            let current = std::env::current_dir().unwrap_or_default();
            format!("create it or correct the path (the current directory is {})", current.display())
        }
    }
}

/// The folder that holds `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line() {
        let problem = Problem::new("a.toml:3", "bad\nvalue", "fix it");
        assert_eq!(problem.to_string(), "a.toml:3: bad value; fix it");
    }
}
