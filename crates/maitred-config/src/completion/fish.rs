//! For fish: one `complete` for each option (fish-completions).

use std::fmt::Write;

use super::flags::{Takes, flags, questions, summaries};

pub(super) fn script() -> String {
    let mut text = "# fish completion for maitred, made by 'maitred completion fish'.\n".to_owned();
    for (name, summary) in summaries() {
        let _ = writeln!(text, "complete -c maitred -n __fish_use_subcommand -a {name} -d '{summary}'");
    }
    let asks = "'__fish_seen_subcommand_from ctl'";
    let _ = writeln!(text, "complete -c maitred -n {asks} -f -a '{}'", questions().join(" "));
    text.push_str("complete -c maitred -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
    for flag in flags() {
        let name = match flag.name.strip_prefix("--") {
            Some(name) => format!("-l {name}"),
            None => format!("-s {}", flag.name.trim_start_matches('-')),
        };
        let takes = match &flag.takes {
            Takes::Nothing => String::new(),
            Takes::Words(words) => format!(" -x -a '{}'", words.join(" ")),
            Takes::File | Takes::Folder => " -r".to_owned(),
            Takes::Text => " -x".to_owned(),
        };
        let _ = writeln!(text, "complete -c maitred {name}{takes} -d '{}'", flag.summary);
    }
    text
}
