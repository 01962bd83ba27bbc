//! `maitred completion bash|zsh|fish`: a script for a shell, made of the tables of options and of commands.
//!
//! Promises: every option, familiar name and command, the words of a choice, and files for options that take a path. Leaves out:
//! arguments of commands with arguments of their own, except the names of questions of `ctl`.

mod bash;
mod fish;
mod zsh;

use crate::commands::WORDS;
use crate::options::familiar::{self, Familiar, Is};
use crate::options::{self, Definition, Kind};
use crate::output::print;
use crate::problem::{Problem, did_you_mean};

/// A shell and its script.
type Shell = (&'static str, fn() -> String);

const SHELLS: [Shell; 3] = [("bash", bash::script), ("zsh", zsh::script), ("fish", fish::script)];

const HELP: &str = "\
maitred completion: prints a script with which a shell completes options and commands.

Usage: maitred completion bash|zsh|fish

  bash   source <(maitred completion bash)        in ~/.bashrc
  zsh    source <(maitred completion zsh)         in ~/.zshrc, behind compinit
  fish   maitred completion fish | source         in ~/.config/fish/config.fish
";

/// Prints the script for the shell that the arguments name.
///
/// # Errors
/// The arguments name no shell.
pub fn run(arguments: &[String]) -> Result<u8, Problem> {
    let names = || SHELLS.into_iter().map(|(name, _)| name);
    match arguments {
        [help] if help == "--help" || help == "-h" => Ok(print(HELP)),
        [wanted] => match SHELLS.into_iter().find(|(name, _)| name == wanted) {
            Some((_, script)) => Ok(print(&script())),
            None => {
                let remedy = did_you_mean(wanted, names(), "write bash, zsh or fish");
                Err(Problem::new("completion", format!("there is none for '{wanted}'"), remedy))
            }
        },
        _ => Err(Problem::new("completion", "it takes the name of a shell", "write bash, zsh or fish")),
    }
}

/// The value of an option.
#[derive(Debug, PartialEq, Eq)]
enum Takes {
    /// No value.
    Nothing,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A path.
    File,
    /// A path of a folder.
    Folder,
    /// A text that no shell can complete.
    Text,
}

/// An option as it is written, with its value and a few words about it.
struct Flag {
    name: String,
    takes: Takes,
    summary: String,
}

/// All options, each with the names that it has, and switches also with `no-`.
fn flags() -> Vec<Flag> {
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

fn takes(option: &Definition) -> Takes {
    match option.kind {
        _ if option.is_switch() => Takes::Nothing,
        Kind::Folder(_) => Takes::Folder,
        Kind::Path(_) if option.placeholder == "DIR" => Takes::Folder,
        Kind::Path(_) | Kind::Files(_) | Kind::File => Takes::File,
        _ => match words(option.placeholder) {
            words if words.is_empty() => Takes::Text,
            words => Takes::Words(words),
        },
    }
}

/// The literal words of a placeholder such as `auto|off|PATH`.
fn words(placeholder: &'static str) -> Vec<&'static str> {
    let is_word = |part: &&str| !part.contains([',', ':', '[', '=', '/']) && **part == part.to_lowercase();
    if !placeholder.contains('|') || placeholder.contains('[') {
        return Vec::new();
    }
    placeholder.split('|').filter(is_word).collect()
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
fn summaries() -> impl Iterator<Item = (&'static str, String)> {
    WORDS.iter().map(|word| (word.name, brief(word.summary)))
}

/// The names of the questions of `maitred ctl`.
fn questions() -> Vec<&'static str> {
    let mut names: Vec<&str> = maitred_control::commands().iter().map(|command| command.name).collect();
    // Only the first word of a name.
    names.iter_mut().for_each(|name| *name = name.split(' ').next().unwrap_or_default());
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_every_command_is_in_every_script() {
        for (shell, script) in SHELLS {
            let text = script();
            for option in options::all().filter(|option| !option.is_positional()) {
                assert!(text.contains(option.name), "{shell}: {}", option.name);
            }
            for word in WORDS {
                assert!(text.contains(word.name), "{shell}: {}", word.name);
            }
            assert!(text.contains("ssl-keyfile") && text.contains("deliveries"), "{shell}");
        }
    }

    #[test]
    fn choices_are_words_and_paths_are_paths() {
        let of = |name: &str| takes(options::find(name).expect("an option"));
        assert_eq!(of("log-level"), Takes::Words(vec!["error", "warn", "info", "debug"]));
        assert_eq!(of("access-log"), Takes::Words(vec!["auto", "off", "-"]));
        assert_eq!(of("workers"), Takes::Words(vec!["auto"]));
        assert_eq!((of("tls-cert"), of("chdir"), of("spool")), (Takes::File, Takes::Folder, Takes::Folder));
        assert_eq!((of("listen"), of("compress"), of("queue")), (Takes::Text, Takes::Nothing, Takes::Text));
    }
}
