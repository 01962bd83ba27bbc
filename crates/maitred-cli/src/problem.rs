//! An error of the user's making: one line that says where, what, and what to do.

use std::fmt;

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

/// The candidate nearest to `name`, unless all are too far away to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase().replace('_', "-");
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| {
            let plain = candidate.to_lowercase().replace('_', "-");
            (strsim::damerau_levenshtein(&wanted, &plain), candidate)
        })
        .min_by_key(|(distance, _)| *distance)?;
    let longest = wanted.chars().count().max(candidate.chars().count());
    // A third of the letters wrong is still a typing error; more is another word.
    (distance * 3 <= longest).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_forgives_typing_errors_and_nothing_else() {
        let names = ["min-threads", "max-threads", "listen"];
        assert_eq!(nearest("max-thread", names), Some("max-threads"));
        assert_eq!(nearest("MIN_THREADS", names), Some("min-threads"));
        assert_eq!(nearest("lsiten", names), Some("listen"));
        assert_eq!(nearest("colour", names), None);
    }

    #[test]
    fn a_problem_is_one_line() {
        let problem = Problem::new("a.toml:3", "bad\nvalue", "fix it");
        assert_eq!(problem.to_string(), "a.toml:3: bad value; fix it");
    }
}
