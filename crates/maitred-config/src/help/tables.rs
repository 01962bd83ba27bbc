//! Help about the tables of maitred.toml: their keys, each with its purpose.
//!
//! Leaves out: the exact form of values (docs/operations).

use super::fill::{INDENT, fill};
use crate::schema::Table;
use crate::tables::ALL;

pub(super) fn find(name: &str) -> Option<&'static Table> {
    let name = name.trim_matches(['[', ']']);
    ALL.into_iter().find(|table| table.names.contains(&name))
}

pub(super) fn text(table: &Table) -> String {
    let mut text = format!("{}\n", table.head);
    fill(&mut text, table.summary, "  ");
    text.push('\n');
    for key in (table.keys)() {
        text.push_str(&format!("  {}\n", key.name));
        fill(&mut text, key.help, INDENT);
    }
    text.push('\n');
    fill(&mut text, &format!("Examples: docs/operations/{}.", table.document), "");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_table_is_there_with_a_sentence() {
        for table in ALL {
            let keys = (table.keys)();
            assert!(keys.len() > 6 && keys.iter().all(|key| !key.help.is_empty()), "{}", table.head);
            assert!(text(table).lines().all(|line| line.chars().count() <= 110), "{}", text(table));
        }
        assert!(find("filter").is_some() && find("[[filter]]").is_some() && find("pools").is_some());
        assert!(find("filtre").is_none());
    }
}
