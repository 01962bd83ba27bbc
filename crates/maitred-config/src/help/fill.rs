//! Paragraphs in lines of a width that fits a terminal.

/// The blanks before the text about an option.
pub(super) const INDENT: &str = "          ";

/// Appends `paragraph` in lines of at most 100 characters, each behind `indent`.
pub(super) fn fill(text: &mut String, paragraph: &str, indent: &str) {
    const WIDTH: usize = 90;
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count() + 1;
        if width == 0 || width + length > WIDTH {
            text.push_str(if width == 0 { "" } else { "\n" });
            text.push_str(indent);
            width = 0;
        } else {
            text.push(' ');
        }
        text.push_str(word);
        width += length;
    }
    text.push('\n');
}
