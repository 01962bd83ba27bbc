//! `maitred completion bash|zsh|fish`: a script for a shell, made of the tables of options and of commands.
//!
//! Promises: every option, familiar name and command, the words of a choice, and files for options that take a path. Leaves out:
//! arguments of commands with arguments of their own, except the names of questions of `ctl`.

mod bash;
mod fish;
mod flags;
mod zsh;

use crate::{Problem, did_you_mean, print};

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

#[cfg(test)]
mod tests {
    use super::flags::{Takes, takes};
    use super::*;
    use crate::commands::WORDS;
    use crate::options;

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
        let words = |words: &[&str]| Takes::Words(words.iter().map(ToString::to_string).collect());
        assert_eq!(of("log-level"), words(&["error", "warn", "info", "debug"]));
        assert_eq!(of("access-log"), words(&["auto", "off", "-"]));
        assert_eq!(of("workers"), words(&["auto"]));
        assert_eq!((of("tls-cert"), of("chdir"), of("spool")), (Takes::File, Takes::Folder, Takes::Folder));
        assert_eq!((of("listen"), of("compress"), of("queue")), (Takes::Text, Takes::Nothing, Takes::Text));
    }
}
