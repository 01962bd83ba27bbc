//! The words of the scripts: options with their values, commands, questions.

use crate::Definition;
use crate::commands::WORDS;
use crate::forms::Holds;
use crate::options::familiar::{self, Familiar, Is};
use crate::options::{self, Kind};

/// The value of an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Words(Vec<String>),
    File,
    Folder,
    /// A text that no shell can complete.
    Text,
}

/// An option as it is written, with its value and a few words about it.
pub(super) struct Flag {
    pub(super) name: String,
    pub(super) takes: Takes,
    pub(super) summary: String,
}

/// All options, each with the names that it has, and switches also with `no-`.
pub(super) fn flags() -> Vec<Flag> {
    let own = options::all().filter(|option| !option.is_positional()).flat_map(|option| {
        let off = option.can_be_off().then(|| format!("--no-{}", option.name));
        [Some(option.flag()), off].into_iter().flatten().map(|name| Flag {
            name,
            takes: takes(option),
            summary: brief(option.summary),
        })
    });
    own.chain(familiar::taken().filter_map(of_familiar)).collect()
}

fn of_familiar(familiar: Familiar) -> Option<Flag> {
    let Is::Option(option, fixed) = familiar.is else { return None };
    let takes = if fixed.is_some() { Takes::Nothing } else { takes(option) };
    Some(Flag { name: familiar.name.to_owned(), takes, summary: format!("as {}", option.flag()) })
}

pub(super) fn takes(option: &Definition) -> Takes {
    match option.facts().map(|facts| facts.holds) {
        _ if option.is_switch() => Takes::Nothing,
        Some(Holds::Folder) => Takes::Folder,
        Some(Holds::File) => Takes::File,
        None if matches!(option.kind, Kind::File) => Takes::File,
        _ => match words(&option.shown_placeholder()) {
            words if words.is_empty() => Takes::Text,
            words => Takes::Words(words),
        },
    }
}

/// The literal words of a placeholder such as `auto|off|PATH`.
fn words(placeholder: &str) -> Vec<String> {
    let is_word = |part: &&str| !part.contains([',', ':', '[', '=', '/']) && **part == part.to_lowercase();
    if !placeholder.contains('|') || placeholder.contains('[') {
        return Vec::new();
    }
    placeholder.split('|').filter(is_word).map(ToOwned::to_owned).collect()
}

/// The first sentence, without characters that shells interpret.
fn brief(summary: &str) -> String {
    const MOST: usize = 70;
    let end = summary.find([':', ';', '.', '(']).unwrap_or(summary.len());
    let mut text: String = summary[..end].chars().filter(|sign| !"'`\"\\$[]".contains(*sign)).collect();
    if text.chars().count() > MOST {
        text = text.chars().take(MOST).collect();
        text.truncate(text.rfind(' ').unwrap_or(text.len()));
    }
    text.trim().to_owned()
}

/// The commands with a few words about each.
pub(super) fn summaries() -> impl Iterator<Item = (&'static str, String)> {
    WORDS.iter().map(|word| (word.name, brief(word.summary)))
}

/// The names of the questions of `maitred ctl`.
pub(super) fn questions() -> Vec<&'static str> {
    let mut names: Vec<&str> = maitred_control::commands().iter().map(|command| command.name).collect();
    // Only the first word of a name.
    names.iter_mut().for_each(|name| *name = name.split(' ').next().unwrap_or_default());
    names.dedup();
    names
}
