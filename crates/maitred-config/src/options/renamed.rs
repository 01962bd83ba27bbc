//! Names that options had in earlier versions. Earlier names still work, and a warning tells the new name of each, once.

use super::definition::variable;

/// An earlier name, and the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renamed {
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
}

/// The known earlier names. A name in this table works on the command line, in the environment, in files and
/// as the key of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names(pub(crate) &'static [Renamed]);

/// The earlier names of this version: no option has been renamed so far.
pub const NAMES: Names = Names(&[]);

impl Names {
    /// Finds the option or the key of `known` with this name or earlier name.
    pub(crate) fn find<T>(
        self,
        name: &str,
        known: impl Fn(&str) -> Option<T>,
    ) -> Option<(T, Option<Renamed>)> {
        if let Some(found) = known(name) {
            return Some((found, None));
        }
        let renamed = self.0.iter().find(|renamed| renamed.old == name)?;
        Some((known(renamed.new)?, Some(*renamed)))
    }

    /// The earlier name whose variable this is.
    pub(crate) fn of_variable(self, name: &str) -> Option<Renamed> {
        self.0.iter().copied().find(|renamed| variable(renamed.old) == name)
    }
}

/// Earlier names that were used, with their places.
#[derive(Debug, Default)]
pub(crate) struct Used(Vec<(String, Renamed)>);

impl Used {
    /// Notes an earlier name, if one was used; its first place counts.
    pub(crate) fn add(&mut self, place: impl Into<String>, renamed: Option<Renamed>) {
        if let Some(renamed) = renamed
            && !self.0.iter().any(|(_, known)| *known == renamed)
        {
            self.0.push((place.into(), renamed));
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for (place, renamed) in other.0 {
            self.add(place, Some(renamed));
        }
    }

    /// A warning for each name.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(place, Renamed { old, new })| {
            format!("{place}: '{old}' is called '{new}' now; the old name still works")
        })
    }
}
