//! Which file of a crate defines a name: paths are followed through modules, imports and re-exports.
//!
//! It reads tokens, not types. A name that no `use` binds and no item defines belongs to the file in which it is looked up, and so
//! does a re-export from another crate. An inline module belongs to its file.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::purity::{Found, Token, expand};
use crate::source::File;

/// Imports that are followed from one to the next; more of them name each other.
const MOST_STEPS: usize = 8;

/// Keywords before the name of an item.
const DEFINING: &[&str] = &["struct", "enum", "union", "trait", "type", "fn", "const", "static"];

/// The modules of a crate that have files of their own; each has the number of its file.
pub(crate) struct Modules<'a> {
    modules: Vec<Module<'a>>,
    parents: Vec<usize>,
    children: HashMap<(usize, &'a str), usize>,
    root: usize,
}

/// One file.
#[derive(Default)]
struct Module<'a> {
    uses: Vec<Use>,
    /// Positions in `uses` by the name that each binds.
    names: HashMap<String, usize>,
    defined: HashSet<&'a str>,
    /// Paths in the code, imports excepted.
    paths: Vec<Written>,
    /// Words in the code, imports excepted.
    words: HashSet<&'a str>,
}

/// An import.
struct Use {
    path: Written,
    /// The name that it binds; none for `*`.
    name: Option<String>,
    /// It says `pub`, whatever stands in brackets behind that.
    reexports: bool,
}

/// A path as it is written.
pub(crate) struct Written {
    line: usize,
    /// How many inline modules it stands in: so many `super` stay in the file.
    nested: usize,
    segments: Vec<String>,
}

/// Where a path leads: to an item of a file, or to a file's module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place<'s> {
    pub(crate) file: usize,
    pub(crate) item: Option<&'s str>,
}

impl Written {
    fn new(found: &Found<'_>, nested: usize) -> Self {
        let mut segments: Vec<String> = found.path.split("::").map(str::to_owned).collect();
        // `a::{self, b}`
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self" || last == "*") {
            segments.pop();
        }
        Self { line: found.line, nested, segments }
    }

    /// A path outside of inline modules.
    pub(crate) fn at_the_top(found: &Found<'_>) -> Self {
        Self::new(found, 0)
    }
}

impl<'a> Modules<'a> {
    pub(crate) fn new(files: &[File<'a>]) -> Self {
        let has_library = files.iter().any(|file| file.name == "lib.rs");
        let paths: Vec<Vec<&'a str>> = files.iter().map(|file| module_path(file.name, has_library)).collect();
        let by_path: HashMap<&[&str], usize> =
            paths.iter().enumerate().map(|(index, path)| (path.as_slice(), index)).collect();
        let root = paths.iter().position(Vec::is_empty).unwrap_or(0);
        let mut parents = vec![root; files.len()];
        let mut children = HashMap::new();
        for (index, path) in paths.iter().enumerate() {
            let Some((name, above)) = path.split_last() else { continue };
            let Some(&parent) = by_path.get(above) else { continue };
            parents[index] = parent;
            children.insert((parent, *name), index);
        }
        let modules = files.iter().map(|file| Module::read(&file.tokens)).collect();
        Self { modules, parents, children, root }
    }

    /// The files that each file imports, each with the first line that does.
    ///
    /// A path counts for the file that defines the item. The import of a module counts where something of the module is named,
    /// and a re-export where its name is used in the same file.
    pub(crate) fn imports(&self) -> Vec<BTreeMap<usize, usize>> {
        self.modules.iter().enumerate().map(|(index, module)| self.imports_of(index, module)).collect()
    }

    fn imports_of(&self, index: usize, module: &Module<'_>) -> BTreeMap<usize, usize> {
        let mut imports = BTreeMap::new();
        let mut add = |file: usize, line: usize| {
            if file != index {
                let first = imports.entry(file).or_insert(line);
                *first = line.min(*first);
            }
        };
        for import in &module.uses {
            let place = self.resolve(index, &import.path);
            let counts = match &import.name {
                None => !import.reexports,
                Some(name) => {
                    place.item.is_some() && (!import.reexports || module.words.contains(name.as_str()))
                }
            };
            if counts {
                add(place.file, import.path.line);
            }
        }
        for path in &module.paths {
            let place = self.resolve(index, path);
            if place.item.is_some() {
                add(place.file, path.line);
            }
        }
        imports
    }

    /// Where a path of the file `from` leads.
    pub(crate) fn resolve<'s>(&'s self, from: usize, path: &'s Written) -> Place<'s> {
        self.follow(from, path, 0)
    }

    fn follow<'s>(&'s self, from: usize, path: &'s Written, steps: usize) -> Place<'s> {
        let segments = path.segments.as_slice();
        match segments.first().map(String::as_str) {
            Some("crate") => self.walk(self.root, &segments[1..], steps),
            Some("self") => self.walk(from, &segments[1..], steps),
            Some("super") => {
                let supers = segments.iter().take_while(|segment| *segment == "super").count();
                let above = (path.nested..supers).fold(from, |at, _| self.parents[at]);
                self.walk(above, &segments[supers..], steps)
            }
            _ => self.walk(from, segments, steps),
        }
    }

    fn walk<'s>(&'s self, mut at: usize, segments: &'s [String], steps: usize) -> Place<'s> {
        for name in segments {
            match self.look_up(at, name, steps) {
                Some(Place { file, item: None }) => at = file,
                Some(place) => return place,
                None => return Place { file: at, item: Some(name) },
            }
        }
        Place { file: at, item: None }
    }

    /// The meaning of `name` in the module; none if neither a file, an import nor an item has it.
    fn look_up<'s>(&'s self, at: usize, name: &'s str, steps: usize) -> Option<Place<'s>> {
        if let Some(&file) = self.children.get(&(at, name)) {
            return Some(Place { file, item: None });
        }
        if steps == MOST_STEPS {
            return None;
        }
        let module = &self.modules[at];
        if let Some(&import) = module.names.get(name) {
            return Some(self.follow(at, &module.uses[import].path, steps + 1));
        }
        if module.defined.contains(name) {
            return Some(Place { file: at, item: Some(name) });
        }
        module.uses.iter().filter(|import| import.name.is_none()).find_map(|all| {
            let place = self.follow(at, &all.path, steps + 1);
            if place.item.is_some() { None } else { self.look_up(place.file, name, steps + 1) }
        })
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`. `main.rs` beside `lib.rs` is a module of its own that nothing imports.
fn module_path(name: &str, has_library: bool) -> Vec<&str> {
    let stem = name.trim_end_matches(".rs");
    if stem == "lib" || stem == "main" && !has_library {
        return Vec::new();
    }
    stem.strip_suffix("/mod").unwrap_or(stem).split('/').collect()
}

impl<'a> Module<'a> {
    fn read(tokens: &[Token<'a>]) -> Self {
        let mut module = Self::default();
        let text =
            |position: Option<usize>| position.and_then(|at| tokens.get(at)).map_or("", |token| token.text);
        let mut depth = 0_usize;
        // The depths at which inline modules began.
        let mut nested = Vec::new();
        let mut position = 0;
        while let Some(token) = tokens.get(position) {
            let before = text(position.checked_sub(1));
            // Two dots are a range, or the rest of a value.
            let is_member = before == "." && text(position.checked_sub(2)) != ".";
            let after = text(Some(position + 1));
            position += 1;
            match token.text {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if nested.last() == Some(&depth) {
                        nested.pop();
                    }
                }
                "mod" => {
                    position += 1;
                    if text(Some(position)) == "{" {
                        nested.push(depth);
                    }
                }
                // `use<'a>` is a bound.
                "use" if after != "<" => {
                    position = module.read_use(tokens, position, nested.len(), matches!(before, "pub" | ")"));
                }
                word if token.is_word() && before != "::" && !is_member => {
                    if DEFINING.contains(&before) {
                        module.defined.insert(word);
                    }
                    if before != "fn" {
                        module.words.insert(word);
                    }
                    if after == "::" {
                        let mut found = Vec::new();
                        position = expand(tokens, position - 1, "", &mut found);
                        module.paths.extend(found.iter().map(|found| Written::new(found, nested.len())));
                    }
                }
                _ => {}
            }
        }
        module
    }

    /// Reads the import behind `use` and returns the position behind it.
    fn read_use(&mut self, tokens: &[Token<'a>], position: usize, nested: usize, reexports: bool) -> usize {
        let mut found = Vec::new();
        // A path that begins with `::` is one of another crate.
        if tokens.get(position).is_some_and(|token| token.text != "::") {
            expand(tokens, position, "", &mut found);
        }
        for found in &found {
            let path = Written::new(found, nested);
            let name = match found.alias {
                _ if found.path.ends_with('*') => None,
                Some(alias) => Some(alias.to_owned()),
                None => path.segments.last().cloned(),
            };
            if let Some(name) = &name {
                self.names.entry(name.clone()).or_insert(self.uses.len());
            }
            self.uses.push(Use { path, name, reexports });
        }
        let rest = tokens.get(position..).unwrap_or_default();
        rest.iter().position(|token| token.text == ";").map_or(tokens.len(), |end| position + end + 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Crate;

    /// The imports between these files, one `FILE:LINE FILE` each.
    fn imports(files: &[(&'static str, &'static str)]) -> Vec<String> {
        let read = Crate::new("it", files.iter().copied());
        let mut told = Vec::new();
        for (from, imports) in read.modules.imports().iter().enumerate() {
            for (to, line) in imports {
                told.push(format!("{}:{line} {}", read.files[from].name, read.files[*to].name));
            }
        }
        told
    }

    #[test]
    fn every_way_to_name_an_item_leads_to_its_file() {
        let ways = [
            "use crate::a::b::Thing;",
            "use super::b::Thing;",
            "use super::{b::{self, Thing as Other}};",
            "use crate::a::b; fn f() { b::g() }",
            "use crate::a; fn f() { a::b::g() }",
            "fn f() { crate::a::b::g::<u8>() }",
            "fn f() { x[..super::b::LIMIT] }",
            "fn f() -> super::b::Thing {}",
            "fn f() { use super::b::g; g() }",
            "use super::b::Kind::*;",
            "mod inner { use super::super::b::Thing; }",
        ];
        for way in ways {
            let files =
                [("lib.rs", "mod a;"), ("a/mod.rs", "mod b; mod c;"), ("a/b.rs", ""), ("a/c.rs", way)];
            assert_eq!(imports(&files), ["a/c.rs:1 a/b.rs"], "{way}");
            let beside = [("lib.rs", ""), ("a.rs", "mod b; mod c;"), ("a/b.rs", ""), ("a/c.rs", way)];
            assert_eq!(imports(&beside), ["a/c.rs:1 a/b.rs"], "{way}");
        }
    }

    #[test]
    fn other_words_are_no_imports() {
        let ways = [
            "mod b;",
            "use ::b::Thing;",
            "use std::b::Thing; fn f() { Thing::b() }",
            "fn f(b: u8) { b.g(); x.b::<u8>() }",
            "pub(in crate::b) fn f() {}",
            "use crate::b;",
            "fn f() { \"crate::b::g()\" } // crate::b::g()",
            "mod inner { fn f() { super::g() } }",
        ];
        for way in ways {
            let files = [("lib.rs", ""), ("b.rs", ""), ("a.rs", way)];
            assert_eq!(imports(&files), Vec::<String>::new(), "{way}");
        }
    }

    #[test]
    fn a_child_module_is_named_without_a_prefix() {
        let files =
            [("lib.rs", "mod a;\n\nuse a::f;"), ("a/mod.rs", "mod b; fn f() { b::g() }"), ("a/b.rs", "")];
        assert_eq!(imports(&files), ["lib.rs:3 a/mod.rs", "a/mod.rs:1 a/b.rs"]);
    }

    #[test]
    fn an_import_through_a_reexport_is_one_of_the_defining_file() {
        for reexport in [
            "pub use b::Thing;",
            "pub(crate) use self::b::*;",
            "pub use b::{Other as Thing};",
            "use b::Thing;",
        ] {
            let a = format!("mod b; {reexport}").leak();
            let files = [
                ("lib.rs", ""),
                ("a/mod.rs", a),
                ("a/b.rs", "pub struct Thing;"),
                ("c.rs", "use crate::a::Thing;"),
            ];
            let found = imports(&files);
            assert!(found.contains(&"c.rs:1 a/b.rs".to_owned()), "{reexport}: {found:?}");
            assert!(!found.contains(&"c.rs:1 a/mod.rs".to_owned()), "{reexport}: {found:?}");
        }
    }

    #[test]
    fn a_reexport_counts_where_its_name_is_used() {
        let files = |source: &'static str| [("lib.rs", source), ("b.rs", "")];
        assert_eq!(imports(&files("mod b; pub use b::Thing;")), Vec::<String>::new());
        assert_eq!(imports(&files("mod b;\npub use b::Thing;\nfn f(x: Thing) {}")), ["lib.rs:2 b.rs"]);
        assert_eq!(imports(&files("mod b; use b::Trait as _;")), ["lib.rs:1 b.rs"]);
        assert_eq!(
            imports(&files("mod b; pub use b::run; impl A { fn run() { x.run() } }")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_item_of_another_crate_is_one_of_the_reexporting_file() {
        let files =
            [("lib.rs", ""), ("sync.rs", "pub use std::sync::Arc;"), ("a.rs", "use crate::sync::Arc;")];
        assert_eq!(imports(&files), ["a.rs:1 sync.rs"]);
    }

    #[test]
    fn imports_that_name_each_other_end() {
        let files = [
            ("lib.rs", ""),
            ("a.rs", "pub use super::b::X;"),
            ("b.rs", "pub use super::a::X; pub use crate::a::*;"),
            ("c.rs", "use crate::a::X;"),
        ];
        assert_eq!(imports(&files).len(), 1);
    }

    #[test]
    fn tests_may_import_everything() {
        let source = "#[cfg(test)] mod tests { use crate::b::X; } #[cfg(test)] use crate::b::X;";
        assert_eq!(
            imports(&[("lib.rs", source), ("a/tests.rs", "use crate::b::X;"), ("b.rs", "")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_program_beside_a_library_is_not_its_root() {
        let files = [("lib.rs", ""), ("main.rs", "fn f() {}"), ("a.rs", "use crate::f;")];
        assert_eq!(imports(&files), ["a.rs:1 lib.rs"]);
        assert_eq!(imports(&files[1..]), ["a.rs:1 main.rs"]);
    }
}
