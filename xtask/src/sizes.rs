//! No crate grows into a hall: the part that one may have of all lines.

/// One over this part of all lines is the most a crate may have. One that grows beyond it has become two rooms.
const PART: usize = 5;

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

#[cfg(test)]
mod tests {
    use super::*;

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
