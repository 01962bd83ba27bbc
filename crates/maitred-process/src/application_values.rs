//! Values of the table `[application]` on their way to the language of the application.
//!
//! The command knows their names and the forms that they may have, so that its errors name the place of a wrong one; the language reads
//! them. A value that a language does not know does not concern it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The values for an application, by their names in the configuration, with the defaults of those that are not set. A value without a
/// default is missing then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationValues(BTreeMap<&'static str, OsString>);

impl ApplicationValues {
    /// The folder of the modules, if one is set, and nothing else.
    pub(crate) fn of_folder(app_dir: Option<&PathBuf>) -> Self {
        let values = Self::default();
        match app_dir {
            Some(folder) => values.with("app-dir", folder),
            None => values,
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    /// The text of a value; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|value| value.to_str()).unwrap_or_default()
    }

    pub(crate) fn with_switch(self, name: &'static str, on: bool) -> Self {
        self.with(name, switch(on))
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == switch(true)
    }

    /// A path, if it is there.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.0.get(name).map(Path::new)
    }
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_finds_values_by_their_names_and_misses_those_that_are_not_set() {
        let folder = PathBuf::from("src");
        let values = ApplicationValues::of_folder(Some(&folder))
            .with("interface", "asgi")
            .with_switch("factory", true)
            .with_switch("pathsend", false);
        assert_eq!((values.text("interface"), values.text("unknown")), ("asgi", ""));
        assert_eq!(["factory", "pathsend", "unknown"].map(|name| values.is_on(name)), [true, false, false]);
        assert_eq!(values.path("app-dir"), Some(Path::new("src")));
        assert_eq!(ApplicationValues::of_folder(None).path("app-dir"), None);
    }
}
