//! Source files as the checks read them: tokens without tests, and the lines that remain.

use crate::modules::Modules;
use crate::purity::{Token, tokens};

/// A crate as the checks of circles and sizes read it.
pub(crate) struct Crate<'a> {
    pub(crate) name: &'a str,
    pub(crate) files: Vec<File<'a>>,
    pub(crate) modules: Modules<'a>,
}

impl<'a> Crate<'a> {
    /// `files` are names below the crate's `src`, such as `group/mod.rs`, each with its text.
    pub(crate) fn new(name: &'a str, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files: Vec<File<'a>> = files.into_iter().map(|(name, text)| File::new(name, text)).collect();
        let modules = Modules::new(&files);
        Self { name, files, modules }
    }
}

/// One file of a crate.
pub(crate) struct File<'a> {
    /// Below the crate's `src`.
    pub(crate) name: &'a str,
    /// All lines, tests included.
    pub(crate) lines: usize,
    /// Lines beside tests; none in a file of tests.
    pub(crate) lines_beside_tests: usize,
    /// Tokens beside tests; none in a file of tests.
    pub(crate) tokens: Vec<Token<'a>>,
}

impl<'a> File<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        let lines = text.lines().count();
        if is_test(name) {
            return Self { name, lines, lines_beside_tests: 0, tokens: Vec::new() };
        }
        let (tokens, lines_of_tests) = without_tests(tokens(text));
        Self { name, lines, lines_beside_tests: lines - lines_of_tests, tokens }
    }
}

/// Whether the file of this name has only tests.
fn is_test(name: &str) -> bool {
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rs");
    name.split('/').any(|part| part == "tests")
        || stem == "tests"
        || stem.ends_with("_tests")
        || stem.ends_with("_shuttle")
}

/// Leaves out items that are compiled for tests only, and every attribute; with the number of lines of those items.
fn without_tests(tokens: Vec<Token<'_>>) -> (Vec<Token<'_>>, usize) {
    let mut kept = Vec::with_capacity(tokens.len());
    let (mut lines, mut last) = (0, 0);
    let mut position = 0;
    while position < tokens.len() {
        let Some(behind) = attribute_end(&tokens, position) else {
            kept.push(tokens[position]);
            position += 1;
            continue;
        };
        if is_for_tests(&tokens[position..behind]) {
            let end = item_end(&tokens, behind);
            // A line counts once.
            let first = tokens[position].line.max(last + 1);
            last = tokens[end - 1].line;
            lines += (last + 1).saturating_sub(first);
            position = end;
        } else {
            position = behind;
        }
    }
    (kept, lines)
}

/// The position behind the attribute that begins at `position`, if one does.
fn attribute_end(tokens: &[Token<'_>], position: usize) -> Option<usize> {
    if tokens.get(position)?.text != "#" || tokens.get(position + 1)?.text != "[" {
        return None;
    }
    let mut depth = 0_usize;
    for (offset, token) in tokens.iter().enumerate().skip(position + 1) {
        match token.text {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(offset + 1);
        }
    }
    Some(tokens.len())
}

/// Whether the attribute says `cfg(test)` or `cfg(all(test, …))`.
fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word: &str| attribute.iter().any(|token| token.text == word);
    let negated = attribute
        .windows(3)
        .any(|three| [three[0].text, three[1].text, three[2].text] == ["not", "(", "test"]);
    has("cfg") && has("test") && !negated
}

/// The position behind the item that begins at `position`: behind its `;`, or behind its braces.
fn item_end(tokens: &[Token<'_>], mut position: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(position) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            // The end of what has the item: a field or a variant.
            ")" | "]" | "}" if depth == 0 => return position,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                let goes_on = tokens.get(position + 1).is_some_and(|next| next.text == ";");
                if depth == 0 && !goes_on {
                    return position + 1;
                }
            }
            ";" if depth == 0 => return position + 1,
            _ => {}
        }
        position += 1;
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(source: &str) -> String {
        let file = File::new("a.rs", source);
        file.tokens.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn items_for_tests_are_left_out_and_nothing_behind_them() {
        let items = [
            "#[cfg(test)] mod tests { fn f() { g() } }",
            "#[cfg(all(test, not(shuttle)))] #[path = \"x.rs\"] mod tests;",
            "#[cfg(test)] use a::{b, c};",
            "#[cfg(test)] fn f<A, B>(x: [u8; 3]) -> A { x }",
            "#[cfg(test)] const A: B = B { c: 1 };",
        ];
        for item in items {
            assert_eq!(kept(&format!("{item} struct S;")), "struct S ;", "{item}");
        }
        assert_eq!(
            kept("struct S { a: u8, #[cfg(test)] b: u8 } fn f() {}"),
            "struct S { a : u8 , } fn f ( ) { }"
        );
    }

    #[test]
    fn items_for_the_product_stay() {
        for attribute in
            ["#[cfg(not(test))]", "#[cfg_attr(test, allow(x))]", "#[cfg(unix)]", "#[test_like([1])]"]
        {
            assert_eq!(kept(&format!("{attribute} fn f() {{}}")), "fn f ( ) { }", "{attribute}");
        }
    }

    #[test]
    fn lines_of_tests_are_not_counted() {
        let file =
            File::new("a.rs", "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n// the end\n");
        assert_eq!((file.lines, file.lines_beside_tests), (7, 3));
    }

    #[test]
    fn a_file_of_tests_has_nothing() {
        for name in ["tests.rs", "a/tests.rs", "a/tests/kit.rs", "a/b_tests.rs", "b_shuttle.rs"] {
            let file = File::new(name, "fn f() {}\n");
            assert_eq!((file.lines, file.lines_beside_tests, file.tokens.len()), (1, 0, 0), "{name}");
        }
        assert_eq!(File::new("testing.rs", "fn f() {}\n").lines_beside_tests, 1);
    }
}
