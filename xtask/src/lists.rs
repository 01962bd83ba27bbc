//! Lists of exceptions: text files beside `src`, with one line for each exception. They are edited by hand, and may only shrink.

/// A line that is no comment.
pub(crate) struct Line<'a> {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) words: Vec<&'a str>,
}

/// The lines of a list that have `count` words each, and a fault for every line that has not or stands at a wrong place.
pub(crate) fn read<'a>(file: &str, text: &'a str, count: usize) -> (Vec<Line<'a>>, Vec<String>) {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let mut faults = Vec::new();
    let mut last = "";
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line <= last {
            faults.push(format!(
                "{file}:{number}: the lines are sorted, and each is there once: move or delete it"
            ));
        }
        last = line;
        let words: Vec<&str> = line.split(' ').collect();
        if words.len() == count {
            lines.push(Line { number, words });
        } else {
            faults.push(format!("{file}:{number}: a line has {count} words with one space between them"));
        }
    }
    (lines, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_skipped_and_lines_keep_their_numbers() {
        let (lines, faults) = read("list", "# what it is\n\na b\na c\n", 2);
        let told: Vec<_> = lines.iter().map(|line| (line.number, line.words.join("-"))).collect();
        assert_eq!(told, [(3, "a-b".to_owned()), (4, "a-c".to_owned())]);
        assert_eq!(faults, Vec::<String>::new());
    }

    #[test]
    fn order_and_form_are_checked() {
        let told = |text| read("list", text, 2).1;
        assert_eq!(
            told("b c\na c\n"),
            ["list:2: the lines are sorted, and each is there once: move or delete it"]
        );
        assert_eq!(told("a b\na b\n").len(), 1);
        assert_eq!(told("a b c\n"), ["list:1: a line has 2 words with one space between them"]);
        assert_eq!(told("a  b\n").len(), 1);
    }
}
