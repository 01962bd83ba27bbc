//! No crate grows into a hall: the part that one may have of all lines. How many lines all crates have beside tests.

use crate::source::Crate;

/// One over this part of all lines is the most a crate may have. One that grows beyond it has become two rooms.
const PART: usize = 5;

/// The lines beside tests that the crates are to have together at most.
const GOAL: usize = 97_000;

/// One line for every crate that is too large; `lines` are those of its `src`, tests beside the code included.
pub(crate) fn faults(crates: &[(String, usize)]) -> Vec<String> {
    let all: usize = crates.iter().map(|(_, lines)| lines).sum();
    let most = all / PART;
    let large = crates.iter().filter(|(_, lines)| *lines > most);
    large
        .map(|(name, lines)| {
            format!("{name} has {lines} of {all} lines, more than one in {PART}: move a room into a crate of its own")
        })
        .collect()
}

/// The lines of all crates beside tests, and the goal for them.
pub(crate) fn summary(crates: &[Crate<'_>]) -> String {
    let lines: usize = crates.iter().flat_map(|each| &each.files).map(|file| file.lines_beside_tests).sum();
    format!("{lines} lines beside tests (goal {GOAL})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_not_counted() {
        let crates = [
            Crate::new(
                "a",
                [("lib.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n}\n"), ("tests.rs", "fn g() {}\n")],
            ),
            Crate::new("b", [("lib.rs", "fn f() {}\n")]),
        ];
        assert_eq!(summary(&crates), "2 lines beside tests (goal 97000)");
    }

    #[test]
    fn a_hall_is_told() {
        let crates = |lines: &[usize]| -> Vec<(String, usize)> {
            lines.iter().enumerate().map(|(number, lines)| (format!("maitred-{number}"), *lines)).collect()
        };
        assert_eq!(faults(&crates(&[20, 20, 20, 20, 20])), Vec::<String>::new());
        assert_eq!(
            faults(&crates(&[21, 19, 20, 20, 20])),
            ["maitred-0 has 21 of 100 lines, more than one in 5: move a room into a crate of its own"]
        );
    }
}
