//! `maitred man`: the manual page in roff (man(7)), made of the tables of options and of commands.
//!
//! Promises: every option with its default, its variable and its other names. Leaves out: cost and worst case, which the
//! reference has.

use std::fmt::Write;

use crate::commands::WORDS;
use crate::options::{self, familiar};
use crate::reference::default;
use crate::{Definition, Problem, print};

const HELP: &str = "\
maitred man: prints the manual page.

Usage: maitred man

  maitred man | man -l -                          shows it
  maitred man > /usr/local/share/man/man1/maitred.1   for 'man maitred'
";

/// Prints the page.
///
/// # Errors
/// There are arguments.
pub fn run(arguments: &[String]) -> Result<u8, Problem> {
    match arguments {
        [] => Ok(print(&page())),
        [help] if help == "--help" || help == "-h" => Ok(print(HELP)),
        [other, ..] => Err(Problem::new("man", format!("'{other}' is too much"), "write maitred man")),
    }
}

fn page() -> String {
    let mut text = format!(
        ".TH MAITRED 1 \"\" \"maitred {}\" \"User Commands\"\n.ad l\n.nh\n\
         .SH NAME\nmaitred \\- serves Python applications (WSGI, ASGI) and static files\n\
         .SH SYNOPSIS\n.B maitred\n[\\fICOMMAND\\fR] [\\fIAPPLICATION\\fR] [\\fIOPTIONS\\fR]\n\
         .SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION")
    );
    paragraph(
        &mut text,
        "APPLICATION is module:attr, path/to/app.py or a folder of static files. Without options it is served on 127.0.0.1:8000.",
    );
    text.push_str(".SH COMMANDS\n");
    for word in WORDS {
        let arguments = if word.arguments == "..." { "" } else { word.arguments };
        tagged(&mut text, word.name, arguments);
        paragraph(&mut text, &format!("{}.", capital(word.summary)));
    }
    text.push_str(".SH OPTIONS\n");
    for definition in options::all().filter(|definition| !definition.is_positional()) {
        option(&mut text, definition);
    }
    text.push_str(".SH FILES\n");
    tagged(&mut text, "maitred.toml", "");
    paragraph(
        &mut text,
        "The configuration of the current directory; each option but config is a key of it.",
    );
    tagged(&mut text, "maitred.toml.d/*.toml", "");
    paragraph(&mut text, "Read after it, in the order of their names.");
    text.push_str(".SH ENVIRONMENT\n");
    tagged(&mut text, "MAITRED_NAME", "");
    paragraph(
        &mut text,
        "The option of that name, with underscores for hyphens; the command line wins over it.",
    );
    text.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in [
        ("0", "Ended by a first signal, after all running requests were answered."),
        ("1", "Requests were cut off, or the system refused something."),
        ("2", "An error in the command line, the configuration or the application."),
        ("130, 143", "Ended at once by a second SIGINT or SIGTERM."),
    ] {
        tagged(&mut text, code, "");
        paragraph(&mut text, meaning);
    }
    text
}

fn option(text: &mut String, definition: &Definition) {
    let value = if definition.is_switch() { String::new() } else { definition.shown_placeholder() };
    tagged(text, &definition.flags(), &value);
    paragraph(text, definition.summary);
    let mut more = Vec::new();
    if definition.is_in_file() {
        more.push(format!("Default: {}.", default(definition).unwrap_or_else(|| "none".to_owned())));
    }
    if definition.is_in_environment() {
        more.push(format!("Variable: {}.", definition.variable()));
    }
    if definition.is_repeatable() {
        more.push("Repeatable.".to_owned());
    }
    let also = familiar::of_option(definition.name);
    if !also.is_empty() {
        more.push(format!("Also: {}.", also.join(", ")));
    }
    if !more.is_empty() {
        text.push_str(".br\n");
        paragraph(text, &more.join(" "));
    }
}

/// Adds a paragraph with a tag: a name in bold, and its value in italics.
fn tagged(text: &mut String, name: &str, value: &str) {
    let value = if value.is_empty() { String::new() } else { format!(" \\fI{}\\fR", escape(value)) };
    let _ = writeln!(text, ".TP\n\\fB{}\\fR{value}", escape(name));
}

/// Adds lines of a moderate length. A line that begins with a period or an apostrophe would be a request of roff.
fn paragraph(text: &mut String, words: &str) {
    const WIDTH: usize = 100;
    let mut line = String::new();
    for word in words.split_whitespace() {
        if line.len() + word.len() > WIDTH {
            let _ = writeln!(text, "{}", guarded(&line));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(text, "{}", guarded(&line));
    }
}

fn guarded(line: &str) -> String {
    let escaped = escape(line);
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Escapes backslashes, literal hyphens, and signs beyond ASCII.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '\u{a7}' => escaped.push_str("section "),
            '~' => escaped.push_str("\\(ti"),
            sign if sign.is_ascii() => escaped.push(sign),
            sign => {
                let _ = write!(escaped, "\\[u{:04X}]", u32::from(sign));
            }
        }
    }
    escaped
}

/// The text with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map(|first| first.to_uppercase().chain(signs).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_every_command_is_there() {
        let text = page();
        for definition in options::all().filter(|definition| !definition.is_positional()) {
            assert!(
                text.contains(&format!("\\fB{}\\fR", escape(&definition.flags()))),
                "{}",
                definition.name
            );
        }
        for word in WORDS {
            assert!(text.contains(&format!("\\fB{}\\fR", escape(word.name))), "{}", word.name);
        }
        assert!(text.is_ascii());
    }

    #[test]
    fn no_line_of_text_is_taken_for_a_request() {
        let mut text = String::new();
        paragraph(&mut text, ".5 and 'this' \\ that");
        assert_eq!(text, "\\&.5 and \\(aqthis\\(aq \\e that\n");
    }
}
