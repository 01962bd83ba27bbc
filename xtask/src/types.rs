//! How large a type may be: its methods, and the files with `impl` blocks of its own. What is larger is in `types.txt`, which may only shrink.
//!
//! Functions in `impl` blocks without a trait count, those without `self` included. Blocks that macros make are not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::lists;
use crate::modules::Written;
use crate::purity::{Token, expand};
use crate::source::Crate;

/// The list; each line: crate, file below `src` that defines the type, type, methods, files with `impl` blocks.
pub(crate) const FILE: &str = "xtask/types.txt";

/// More methods are several types in one.
const MOST_METHODS: usize = 60;
/// More files with `impl` blocks are modules that share all fields.
const MOST_FILES: usize = 6;

/// The measure of a type: methods, files.
type Size = (usize, usize);

/// A line for each type that is larger than allowed, or smaller than the list says.
pub(crate) fn faults(crates: &[Crate<'_>], list: &str) -> (Vec<String>, usize) {
    let (lines, mut faults) = lists::read(FILE, list, 5);
    let mut sizes: BTreeMap<[String; 3], Size> = BTreeMap::new();
    for each in crates {
        for ((file, name), (methods, files)) in sizes_in(each) {
            let key = [each.name.to_owned(), each.files[file].name.to_owned(), name];
            sizes.insert(key, (methods, files.len()));
        }
    }
    for line in lines {
        let key = [line.words[0], line.words[1], line.words[2]];
        let (Ok(methods), Ok(files)) = (line.words[3].parse(), line.words[4].parse()) else {
            faults.push(format!("{FILE}:{}: the last two words are numbers", line.number));
            continue;
        };
        let size = sizes.remove(&key.map(str::to_owned)).unwrap_or_default();
        faults.extend(
            listed(key, size, (methods, files)).map(|fault| format!("{FILE}:{}: {fault}", line.number)),
        );
    }
    let large = sizes.iter().filter(|(_, size)| is_large(**size));
    faults.extend(large.map(|([owner, file, name], (methods, files))| {
        format!(
            "{owner}: {name} of {file} has {methods} methods in {files} files; at most {MOST_METHODS} in {MOST_FILES}: make several types of it"
        )
    }));
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    (faults, lines)
}

fn is_large((methods, files): Size) -> bool {
    methods > MOST_METHODS || files > MOST_FILES
}

/// A fault if the type is not as large as the list says.
fn listed([owner, file, name]: [&str; 3], size: Size, allowed: Size) -> Option<String> {
    let (methods, files) = size;
    if methods > allowed.0 || files > allowed.1 {
        Some(format!(
            "{name} of {owner} has grown to {methods} methods in {files} files; at most {} in {}",
            allowed.0, allowed.1
        ))
    } else if !is_large(size) {
        Some(format!("{name} of {owner} has {methods} methods in {files} files by now: delete the line"))
    } else if size != allowed {
        Some(format!(
            "{name} has become smaller: change the line to \"{owner} {file} {name} {methods} {files}\""
        ))
    } else {
        None
    }
}

/// Methods, and files with `impl` blocks, of each type of the crate, by the file that defines the type.
fn sizes_in(of: &Crate<'_>) -> BTreeMap<(usize, String), (usize, BTreeSet<usize>)> {
    let mut sizes: BTreeMap<(usize, String), (usize, BTreeSet<usize>)> = BTreeMap::new();
    for (index, file) in of.files.iter().enumerate() {
        for (path, methods) in impls(&file.tokens) {
            let place = of.modules.resolve(index, &path);
            let Some(name) = place.item else { continue };
            let size = sizes.entry((place.file, name.to_owned())).or_default();
            size.0 += methods;
            size.1.insert(index);
        }
    }
    sizes
}

/// The types of the `impl` blocks without a trait, each with the number of its functions.
fn impls(tokens: &[Token<'_>]) -> Vec<(Written, usize)> {
    let mut found = Vec::new();
    for position in 0..tokens.len() {
        let before = position.checked_sub(1).map_or(";", |before| tokens[before].text);
        // Elsewhere it is `impl Trait` in the place of a type.
        if tokens[position].text == "impl" && matches!(before, ";" | "{" | "}" | "]" | "unsafe") {
            found.extend(header(tokens, position + 1).map(|(path, body)| (path, functions(tokens, body))));
        }
    }
    found
}

/// The type behind `impl`, and the position behind the brace that opens the block; none if a trait is implemented.
fn header(tokens: &[Token<'_>], position: usize) -> Option<(Written, usize)> {
    let mut paths = Vec::new();
    let behind = expand(tokens, behind_generics(tokens, position), "", &mut paths);
    let next = tokens.get(behind_generics(tokens, behind))?.text;
    if !matches!(next, "where" | "{") {
        return None;
    }
    let path = Written::at_the_top(paths.first()?);
    let brace = tokens[behind..].iter().position(|token| token.text == "{")?;
    Some((path, behind + brace + 1))
}

/// The position behind `<…>`, if that begins at `position`.
fn behind_generics(tokens: &[Token<'_>], position: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens.iter().enumerate().skip(position) {
        match token.text {
            "<" => depth += 1,
            // Not that of `->`.
            ">" if tokens[offset - 1].text != "-" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if offset == position { position } else { offset + 1 };
        }
    }
    tokens.len()
}

/// The functions of the block whose opening brace is before `position`, without those inside of functions.
fn functions(tokens: &[Token<'_>], position: usize) -> usize {
    let mut depth = 1_usize;
    let mut functions = 0;
    for (offset, token) in tokens.iter().enumerate().skip(position) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            // Without a name it is a type.
            "fn" if depth == 1 && tokens.get(offset + 1).is_some_and(Token::is_word) => functions += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `FILE TYPE METHODS FILES` for each type.
    fn sizes(files: &[(&'static str, &'static str)]) -> Vec<String> {
        let read = Crate::new("it", files.iter().copied());
        let sizes = sizes_in(&read).into_iter();
        sizes
            .map(|((file, name), (methods, files))| {
                format!("{} {name} {methods} {}", read.files[file].name, files.len())
            })
            .collect()
    }

    #[test]
    fn methods_of_a_type_are_counted_over_files() {
        let files = [
            (
                "lib.rs",
                "mod a; pub struct A<T>; impl<T: Fn() -> u8> A<T> where T: X { fn new() {} pub const fn f(self) { fn inner() {} } }",
            ),
            ("a/mod.rs", "mod b; use crate::A; impl A<u8> { fn g(x: fn(u8)) {} type F = fn(u8); }"),
            (
                "a/b.rs",
                "impl crate::A<u8> {} impl super::A<u16> { unsafe fn h() {} } impl super::super::A<u32> { fn i() {} }",
            ),
            ("c.rs", "struct A; impl A { fn of_another_type() {} }"),
        ];
        assert_eq!(sizes(&files), ["lib.rs A 5 3", "c.rs A 1 1"]);
    }

    #[test]
    fn other_blocks_do_not_count() {
        for source in [
            "impl Trait for A { fn f() {} }",
            "impl<T> x::Trait<T> for A { fn f() {} }",
            "fn f() -> impl Trait { fn g() {} }",
            "trait T { fn f() {} }",
            "#[cfg(test)] impl A { fn f() {} }",
            "// impl A { fn f() {} }",
        ] {
            assert_eq!(sizes(&[("lib.rs", source)]), Vec::<String>::new(), "{source}");
        }
    }

    /// The faults of a type with so many methods in each of its files.
    fn found(methods: &[usize], list: &str) -> Vec<String> {
        let mut files = vec![("lib.rs".to_owned(), "pub struct A;".to_owned())];
        for (index, methods) in methods.iter().enumerate() {
            let functions: Vec<String> = (0..*methods).map(|number| format!("fn f{number}() {{}}")).collect();
            files.push((
                format!("a{index}.rs"),
                format!("use crate::A; impl A {{ {} }}", functions.join(" ")),
            ));
        }
        faults(&[Crate::new("it", files.iter().map(|(name, text)| (name.as_str(), text.as_str())))], list).0
    }

    #[test]
    fn a_large_type_is_told() {
        assert_eq!(found(&[60], ""), Vec::<String>::new());
        assert_eq!(found(&[1; 6], ""), Vec::<String>::new());
        assert_eq!(
            found(&[30, 31], ""),
            ["it: A of lib.rs has 61 methods in 2 files; at most 60 in 6: make several types of it"]
        );
        assert_eq!(
            found(&[1; 7], ""),
            ["it: A of lib.rs has 7 methods in 7 files; at most 60 in 6: make several types of it"]
        );
    }

    #[test]
    fn a_listed_type_may_be_as_large_as_listed() {
        assert_eq!(found(&[61], "it lib.rs A 61 1"), Vec::<String>::new());
        assert_eq!(
            found(&[62], "it lib.rs A 61 1"),
            ["xtask/types.txt:1: A of it has grown to 62 methods in 1 files; at most 61 in 1"]
        );
        assert_eq!(
            found(&[60, 1], "it lib.rs A 61 1"),
            ["xtask/types.txt:1: A of it has grown to 61 methods in 2 files; at most 61 in 1"]
        );
    }

    #[test]
    fn a_listed_type_that_has_become_smaller_is_told_with_its_line() {
        let list = "# types\nit lib.rs A 70 1";
        assert_eq!(
            found(&[69], list),
            ["xtask/types.txt:2: A has become smaller: change the line to \"it lib.rs A 69 1\""]
        );
        assert_eq!(
            found(&[60], list),
            ["xtask/types.txt:2: A of it has 60 methods in 1 files by now: delete the line"]
        );
        assert_eq!(
            found(&[], list),
            ["xtask/types.txt:2: A of it has 0 methods in 0 files by now: delete the line"]
        );
        assert_eq!(found(&[], "it lib.rs A x 1"), ["xtask/types.txt:1: the last two words are numbers"]);
    }
}
