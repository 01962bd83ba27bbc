//! Rooms inside a crate: no circle of imports over its folders.
//!
//! A room is a module at the top of a crate, a file or a folder with all below it. Two files side by side may know each other;
//! a folder and what stands beside it may not, over however many others. Tests are left out: they may look at everything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::purity::{Token, expand, tokens};

/// Which rooms each room names.
#[derive(Default)]
pub(crate) struct Rooms {
    uses: BTreeMap<String, BTreeSet<String>>,
    folders: BTreeSet<String>,
}

impl Rooms {
    /// Adds a file; `path` is below the crate's `src`.
    pub(crate) fn add(&mut self, path: &Path, source: &str) {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let Some(first) = parts.first() else { return };
        let room = first.trim_end_matches(".rs").to_owned();
        if parts.len() > 1 {
            self.folders.insert(room.clone());
        }
        let stem = parts.last().map_or("", |last| last.trim_end_matches(".rs"));
        let is_test = stem == "tests" || stem.ends_with("_tests") || stem.ends_with("_shuttle");
        let uses = self.uses.entry(room.clone()).or_default();
        if is_test || parts.contains(&"tests") {
            return;
        }
        let tokens = without_tests(tokens(source));
        let mut paths = Vec::new();
        for position in 0..tokens.len() {
            let is_inner = position > 0 && tokens[position - 1].text == "::";
            if tokens[position].text == "crate" && !is_inner {
                expand(&tokens, position, "", &mut paths);
            }
        }
        uses.extend(paths.iter().filter_map(|(_, path)| path.split("::").nth(1)).map(str::to_owned));
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

/// Leaves out modules that are there for tests only.
fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    let mut in_attribute = Vec::new();
    let mut depth = 0_usize;
    let mut for_tests = false;
    while let Some(token) = rest.next() {
        if depth > 0 {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            continue;
        }
        if token.text == "#" && rest.peek().is_some_and(|next| next.text == "[") {
            in_attribute.clear();
            for inner in rest.by_ref() {
                let ends = inner.text == "]";
                in_attribute.push(inner.text);
                if ends {
                    break;
                }
            }
            for_tests |= in_attribute.contains(&"cfg") && in_attribute.contains(&"test");
            for_tests &= !in_attribute.windows(3).any(|three| three == ["not", "(", "test"]);
            continue;
        }
        if for_tests && token.text == ";" {
            for_tests = false;
        } else if for_tests && token.text == "{" {
            // The whole of the item.
            for_tests = false;
            depth = 1;
            // Behind what the attribute stands before, such as `mod tests`.
            continue;
        }
        if !for_tests {
            kept.push(token);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(files: &[(&str, &str)]) -> Vec<String> {
        let mut rooms = Rooms::default();
        for (path, source) in files {
            rooms.add(Path::new(path), source);
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
