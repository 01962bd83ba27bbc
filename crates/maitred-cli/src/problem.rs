//! An error of the user's making: one line that says where, what, and what to do.

use std::fmt;

pub(crate) use maitred_control::nearest;

/// An error in the configuration or on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: String,
    what: String,
    remedy: String,
}

impl Problem {
    /// An error at `place` (an option, a variable, `file:line`).
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a file or a system call said may have several lines; an error here has one.
        let text = format!("{}: {}; {}", self.place, self.what, self.remedy);
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line() {
        let problem = Problem::new("a.toml:3", "bad\nvalue", "fix it");
        assert_eq!(problem.to_string(), "a.toml:3: bad value; fix it");
    }
}
