//! The page as one file that needs no server: a snapshot in it takes the place of the server's answers.
//!
//! A browser loads no modules from a file, so they are joined into one script. For that they keep to rules that a test
//! checks: a module imports by name and from its own folder only, its exports are written `export function`, `export
//! const` or `export class`, and no two modules have a name at their top in common.

use crate::{ASSETS, Asset};

/// The policy: nothing leaves the file, with any content of the snapshot.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
                      style-src 'unsafe-inline'; img-src data:\">\n";

/// The page with `snapshot`, which is JSON.
pub fn offline(snapshot: &str) -> String {
    let mut page = String::with_capacity(snapshot.len() + 256 * 1024);
    for line in text_of("").lines() {
        if let Some(path) = value_in(line, "stylesheet\" href=\"") {
            page += &format!("<style>\n{}</style>\n", text_of(path));
        } else if let Some(path) = value_in(line, "<script src=\"") {
            page += &format!("<script>\n{}</script>\n", text_of(path));
        } else if line.contains("<script type=\"module\"") {
            // `<` ends no script there, and means the same in JSON.
            let snapshot = snapshot.replace('<', "\\u003c");
            page += &format!("<script type=\"application/json\" id=\"snapshot\">{snapshot}</script>\n");
            page += &format!("<script type=\"module\">\n{}</script>\n", joined());
        } else if !line.contains("rel=\"icon\"") {
            page += line;
            page.push('\n');
        }
        if line.contains("charset") {
            page += POLICY;
        }
    }
    page
}

fn text_of(path: &str) -> &'static str {
    let found = crate::find(path).map(|asset| std::str::from_utf8(asset.bytes));
    found.and_then(Result::ok).unwrap_or_default()
}

fn value_in<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split('"').next()
}

/// All modules as one, in the order of the list: a module stands behind those that it uses.
fn joined() -> String {
    modules().map(|asset| without_imports(text_of(asset.path))).collect()
}

fn modules() -> impl Iterator<Item = &'static Asset> {
    ASSETS.iter().filter(|asset| asset.path.ends_with(".js") && !asset.path.contains('/'))
}

fn without_imports(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for line in text.lines() {
        within |= line.starts_with("import ");
        if within {
            within = !line.ends_with(';');
            continue;
        }
        out += line.strip_prefix("export ").unwrap_or(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn modules_can_be_joined() {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        let mut before: Vec<&str> = Vec::new();
        for module in modules() {
            let text = text_of(module.path);
            let mut imports = String::new();
            for line in text.lines() {
                if let Some(path) = value_in(line, "from \"./") {
                    assert!(
                        before.contains(&path),
                        "{} uses {path}, which the list has behind it",
                        module.path
                    );
                }
                imports += line;
                assert!(!line.starts_with("export {") && !line.starts_with("export default"), "{line}");
                let is_import = line.starts_with("import ") || line.starts_with("} from");
                assert!(!is_import || !line.contains(" as "), "{}: {line}", module.path);
                let words: Vec<&str> = line.strip_prefix("export ").unwrap_or(line).split(' ').collect();
                let words: Vec<&str> = words.into_iter().filter(|word| *word != "async").collect();
                if let ["function" | "const" | "let" | "class", name, ..] = words[..] {
                    let name = name.split('(').next().unwrap_or_default();
                    if let Some(owner) = owners.insert(name, module.path) {
                        panic!("{name} is a name in {owner} and in {}", module.path);
                    }
                }
            }
            before.push(module.path);
        }
    }

    #[test]
    fn a_snapshot_is_in_a_page_that_asks_for_nothing() {
        let page = offline(r#"{"path": "</script><img src=x>"}"#);
        assert!(page.contains(r#"{"path": "\u003c/script>\u003cimg src=x>"}"#));
        assert!(page.contains("uPlot") && page.contains("default-src 'none'"));
        for outside in ["src=\"", "href=\"", "\nimport ", "\nexport "] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    }
}
