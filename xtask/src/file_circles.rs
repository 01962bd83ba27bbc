//! Files of a crate that import each other in a circle: none but those in `circles.txt`, which may only shrink.
//!
//! A circle is all files that reach each other by imports, over whatever other files. A new import between two files of a listed
//! circle passes unseen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::lists::{self, Line};
use crate::source::Crate;

/// The list; each line: crate, number of the circle in the crate, file below `src`.
pub(crate) const FILE: &str = "xtask/circles.txt";

/// The files that each file imports, with the line of the first import.
type Imports = [BTreeMap<usize, usize>];

/// Circles and files in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) circles: usize,
    pub(crate) files: usize,
}

/// One line for each difference between the circles of the crates and those of the list.
pub(crate) fn faults(crates: &[Crate<'_>], list: &str) -> (Vec<String>, Count) {
    let (lines, mut faults) = lists::read(FILE, list, 3);
    let mut count = Count::default();
    for line in lines.iter().filter(|line| !crates.iter().any(|known| known.name == line.words[0])) {
        faults.push(format!("{FILE}:{}: there is no crate {}: delete the line", line.number, line.words[0]));
    }
    for each in crates {
        let imports = each.modules.imports();
        let circles = circles(&imports);
        count.circles += circles.len();
        count.files += circles.iter().map(Vec::len).sum::<usize>();
        let listed: Vec<&Line<'_>> = lines.iter().filter(|line| line.words[0] == each.name).collect();
        let check = Check { of: each, imports: &imports, circles: &circles, listed: &listed };
        faults.extend(circles.iter().filter_map(|circle| check.grown(circle)));
        faults.extend(check.shrunk());
    }
    (faults, count)
}

/// The sets of files that reach each other, of two files and more.
fn circles(imports: &Imports) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..imports.len()).map(|from| reached(imports, from)).collect();
    let mut circles = Vec::new();
    for (file, others) in reached.iter().enumerate() {
        let circle: Vec<usize> =
            others.iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        // Each is found from all of its files; the first one tells.
        if circle.len() > 1 && circle.first() == Some(&file) {
            circles.push(circle);
        }
    }
    circles
}

/// The files that `from` imports, itself or by others; `from` is one of them if it is part of a circle.
fn reached(imports: &Imports, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        next.extend(imports[file].keys().copied().filter(|import| reached.insert(*import)));
    }
    reached
}

/// One crate beside its lines of the list.
struct Check<'c> {
    of: &'c Crate<'c>,
    imports: &'c Imports,
    circles: &'c [Vec<usize>],
    listed: &'c [&'c Line<'c>],
}

impl Check<'_> {
    /// A fault if the circle has files that the list does not name, or joins two circles of the list.
    fn grown(&self, circle: &[usize]) -> Option<String> {
        let numbers: BTreeMap<usize, &str> =
            circle.iter().filter_map(|file| Some((*file, self.number(*file)?))).collect();
        let new: Vec<&str> =
            circle.iter().filter(|file| !numbers.contains_key(file)).map(|file| self.name(*file)).collect();
        let joined: BTreeSet<&str> = numbers.values().copied().collect();
        let name = self.of.name;
        let (told, example) = if !new.is_empty() {
            let told = format!("{name}: {FILE} names no circle with {}", new.join(", "));
            // Any import of a new file closes the circle.
            (told, self.example(circle, |from, _| !numbers.contains_key(&from)))
        } else if joined.len() > 1 {
            let joined: Vec<&str> = joined.into_iter().collect();
            let told = format!("{name}: the circles {} of {FILE} have become one", joined.join(", "));
            (told, self.example(circle, |from, to| numbers[&from] != numbers[&to]))
        } else {
            return None;
        };
        Some(format!("{told}: {example}"))
    }

    /// The shortest circle over an import for which `is_wanted` holds: `a.rs:3 → b.rs:7 → a.rs`.
    fn example(&self, circle: &[usize], is_wanted: impl Fn(usize, usize) -> bool) -> String {
        let mut shortest: Option<Vec<usize>> = None;
        for &from in circle {
            for &to in self.imports[from].keys().filter(|to| circle.contains(to) && is_wanted(from, **to)) {
                let Some(back) = self.way(to, from) else { continue };
                if shortest.as_ref().is_none_or(|found| back.len() + 1 < found.len()) {
                    shortest = Some([vec![from], back].concat());
                }
            }
        }
        let files = shortest.unwrap_or_default();
        let told = files.iter().enumerate().map(|(position, file)| {
            let line = files.get(position + 1).and_then(|next| self.imports[*file].get(next));
            line.map_or_else(|| self.name(*file).to_owned(), |line| format!("{}:{line}", self.name(*file)))
        });
        told.collect::<Vec<_>>().join(" → ")
    }

    /// The shortest way by imports, both ends included.
    fn way(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut before = BTreeMap::from([(from, from)]);
        let mut next = VecDeque::from([from]);
        while let Some(file) = next.pop_front() {
            if file == to {
                let mut way = vec![to];
                while let Some(&last) = way.last().filter(|last| **last != from) {
                    way.push(before[&last]);
                }
                way.reverse();
                return Some(way);
            }
            for &import in self.imports[file].keys() {
                before.entry(import).or_insert_with(|| {
                    next.push_back(import);
                    file
                });
            }
        }
        None
    }

    /// Lines of the list that are to go or to change, as circles have become smaller.
    fn shrunk(&self) -> Vec<String> {
        let mut faults = Vec::new();
        // For each number of the list: the circles that its files are in, and the lines of each.
        let mut parts: BTreeMap<&str, BTreeMap<usize, Vec<String>>> = BTreeMap::new();
        for line in self.listed {
            let (number, file) = (line.words[1], line.words[2]);
            let circle =
                self.circles.iter().position(|circle| circle.iter().any(|member| self.name(*member) == file));
            match circle {
                Some(circle) => {
                    parts.entry(number).or_default().entry(circle).or_default().push(line.number.to_string());
                }
                None => {
                    let at = line.number;
                    faults.push(format!(
                        "{FILE}:{at}: {file} is in no circle of {} any more: delete the line",
                        self.of.name
                    ));
                }
            }
        }
        for (number, circles) in parts {
            let mut circles: Vec<Vec<String>> = circles.into_values().collect();
            // The largest keeps the number.
            circles.sort_by_key(|lines| usize::MAX - lines.len());
            for lines in circles.iter().skip(1) {
                let (at, name) = (lines.join(", "), self.of.name);
                faults.push(format!(
                    "{FILE}:{at}: they have left circle {number} of {name} and are a circle of their own: change {number} to a number that {name} does not have"
                ));
            }
        }
        faults
    }

    fn number(&self, file: usize) -> Option<&str> {
        self.listed.iter().find(|line| line.words[2] == self.name(file)).map(|line| line.words[1])
    }

    fn name(&self, file: usize) -> &str {
        self.of.files[file].name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files `a.rs` and so on, each of which imports those in its word, such as `b>ca`.
    fn found(edges: &str, list: &str) -> (Vec<String>, Count) {
        let mut files = vec![("lib.rs".to_owned(), String::new())];
        for edge in edges.split(' ') {
            let (from, to) = edge.split_once('>').expect("an edge");
            let imports: Vec<String> =
                to.chars().map(|to| format!("use crate::{to}::{};\n", to.to_uppercase())).collect();
            files.push((format!("{from}.rs"), imports.concat()));
        }
        let read = Crate::new("it", files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        faults(&[read], list)
    }

    #[test]
    fn a_circle_that_the_list_does_not_name_is_told_with_an_example() {
        let (faults, count) = found("a>b b>xc c>ad d>", "");
        assert_eq!(
            faults,
            ["it: xtask/circles.txt names no circle with a.rs, b.rs, c.rs: a.rs:1 → b.rs:2 → c.rs:1 → a.rs"]
        );
        assert_eq!(count, Count { circles: 1, files: 3 });
    }

    #[test]
    fn files_without_a_circle_have_no_fault() {
        assert_eq!(found("a>bc b>c c>d d>", ""), (Vec::new(), Count::default()));
    }

    #[test]
    fn a_circle_of_the_list_is_allowed() {
        let (faults, count) = found("a>b b>a c>d d>c", "it 1 a.rs\nit 1 b.rs\nit 2 c.rs\nit 2 d.rs\n");
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(count, Count { circles: 2, files: 4 });
    }

    #[test]
    fn a_file_that_joins_a_circle_is_told() {
        let (faults, _) = found("a>bc b>a c>b", "it 1 a.rs\nit 1 b.rs\n");
        assert_eq!(
            faults,
            ["it: xtask/circles.txt names no circle with c.rs: c.rs:1 → b.rs:1 → a.rs:2 → c.rs"]
        );
    }

    #[test]
    fn two_circles_that_become_one_are_told() {
        let (faults, _) = found("a>bc b>a c>d d>cb", "it 1 a.rs\nit 1 b.rs\nit 2 c.rs\nit 2 d.rs\n");
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("it: the circles 1, 2 of xtask/circles.txt have become one: a.rs:2 → c.rs"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_line_of_a_file_that_is_in_no_circle_has_to_go() {
        let (faults, _) = found("a>b b>a c>a", "it 1 a.rs\nit 1 b.rs\nit 1 c.rs\nit 1 gone.rs\n");
        assert_eq!(
            faults,
            [
                "xtask/circles.txt:3: c.rs is in no circle of it any more: delete the line",
                "xtask/circles.txt:4: gone.rs is in no circle of it any more: delete the line",
            ]
        );
    }

    #[test]
    fn a_circle_that_has_become_two_has_two_numbers() {
        let list = "# circles\nit 1 a.rs\nit 1 b.rs\nit 1 c.rs\nit 1 d.rs\nit 1 e.rs\n";
        let (faults, _) = found("a>b b>a c>d d>e e>c", list);
        assert_eq!(
            faults,
            [
                "xtask/circles.txt:2, 3: they have left circle 1 of it and are a circle of their own: change 1 to a number that it does not have"
            ]
        );
    }

    #[test]
    fn a_line_of_a_crate_that_is_gone_has_to_go() {
        assert_eq!(
            found("a>", "other 1 a.rs\n").0,
            ["xtask/circles.txt:1: there is no crate other: delete the line"]
        );
    }
}
