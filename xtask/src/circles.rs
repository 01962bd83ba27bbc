//! Rooms inside a crate: no circle of imports over its folders.
//!
//! A room is a module at the top of a crate, a file or a folder with all below it. Two files side by side may know each other;
//! a folder and what stands beside it may not, over however many others. Tests are left out: they may look at everything.

use std::collections::{BTreeMap, BTreeSet};

use crate::purity::expand;
use crate::source::File;

/// Which rooms each room names.
#[derive(Default)]
pub(crate) struct Rooms {
    uses: BTreeMap<String, BTreeSet<String>>,
    folders: BTreeSet<String>,
}

impl Rooms {
    /// Adds a file.
    pub(crate) fn add(&mut self, file: &File<'_>) {
        let first = file.name.split('/').next().unwrap_or(file.name);
        let room = first.trim_end_matches(".rs").to_owned();
        if first != file.name {
            self.folders.insert(room.clone());
        }
        let uses = self.uses.entry(room.clone()).or_default();
        let mut paths = Vec::new();
        for position in 0..file.tokens.len() {
            let is_inner = position > 0 && file.tokens[position - 1].text == "::";
            if file.tokens[position].text == "crate" && !is_inner {
                expand(&file.tokens, position, "", &mut paths);
            }
        }
        uses.extend(paths.iter().filter_map(|found| found.path.split("::").nth(1)).map(str::to_owned));
        uses.remove(&room);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.uses.len()
    }

    /// One line for every circle that a folder has a part in.
    pub(crate) fn faults(&self, name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut told: BTreeSet<&str> = BTreeSet::new();
        for room in self.folders.iter().filter(|room| *room != "lib" && *room != "main") {
            let circle: Vec<&str> = self
                .uses
                .keys()
                .map(String::as_str)
                .filter(|other| self.reaches(room, other) && self.reaches(other, room))
                .collect();
            if circle.len() > 1 && !told.contains(room.as_str()) {
                faults.push(format!("{name}: a circle of rooms: {}", circle.join(", ")));
                told.extend(circle);
            }
        }
        faults
    }

    /// Whether `from` uses `to`, itself or by others.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(room) = next.pop() {
            for used in self.uses.get(room).into_iter().flatten() {
                if used == to {
                    return true;
                }
                if self.uses.contains_key(used) && seen.insert(used) {
                    next.push(used);
                }
            }
        }
        from == to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(files: &[(&str, &str)]) -> Vec<String> {
        let mut rooms = Rooms::default();
        for (path, source) in files {
            rooms.add(&File::new(path, source));
        }
        rooms.faults("it")
    }

    #[test]
    fn a_circle_with_a_folder_is_found_over_others() {
        let files = [
            ("pool/mod.rs", "use crate::log::Log;"),
            ("log.rs", "use crate::{time::Now, x};"),
            ("time.rs", "fn f() { crate::pool::g() }"),
            ("x.rs", ""),
        ];
        assert_eq!(rooms(&files), ["it: a circle of rooms: log, pool, time"]);
        assert_eq!(rooms(&files[..2]), Vec::<String>::new());
    }

    #[test]
    fn two_files_side_by_side_may_know_each_other() {
        assert_eq!(rooms(&[("a.rs", "use crate::b;"), ("b.rs", "use crate::a;")]), Vec::<String>::new());
    }

    #[test]
    fn tests_may_look_at_everything() {
        let source = "use crate::b; #[cfg(all(test, not(shuttle)))] mod tests { use crate::c; fn f() {} } use crate::d;";
        let back = "use crate::a;";
        let files = [("a/mod.rs", source), ("b.rs", ""), ("c.rs", back), ("a/tests.rs", "use crate::c;")];
        assert_eq!(rooms(&files), Vec::<String>::new());
        let with_d = [("a/mod.rs", source), ("d.rs", back)];
        assert_eq!(rooms(&with_d), ["it: a circle of rooms: a, d"]);
    }

    #[test]
    fn one_function_for_tests_hides_nothing_behind_it() {
        let source = "#[cfg(test)] fn only() { crate::c::x() } use crate::d;";
        assert_eq!(rooms(&[("a/mod.rs", source), ("c.rs", "use crate::a;")]), Vec::<String>::new());
        assert_eq!(rooms(&[("a/mod.rs", source), ("d.rs", "use crate::a;")]).len(), 1);
    }
}
