//! For zsh: a function of compsys (zshcompsys(1)).

use std::fmt::Write;

use super::flags::{Takes, flags, questions, summaries};

pub(super) fn script() -> String {
    let mut options = String::new();
    for flag in flags() {
        let action = match &flag.takes {
            Takes::Nothing => String::new(),
            Takes::Words(words) => format!(":value:({})", words.join(" ")),
            Takes::File => ":file:_files".to_owned(),
            Takes::Folder => ":folder:_files -/".to_owned(),
            Takes::Text => ":value: ".to_owned(),
        };
        let value = if flag.takes == Takes::Nothing || !flag.name.starts_with("--") { "" } else { "=" };
        let summary = flag.summary.replace(':', "");
        let _ = writeln!(options, "        '*{}{value}[{summary}]{action}' \\", flag.name);
    }
    let mut commands = String::new();
    for (name, summary) in summaries() {
        let _ = writeln!(commands, "        '{name}:{summary}'");
    }
    format!(
        r#"#compdef maitred
# zsh completion for maitred, made by 'maitred completion zsh'.
_maitred() {{
    local -a commands
    commands=(
{commands}    )
    case "${{words[2]}}" in
        ctl) _arguments '*:question:({questions})' && return ;;
        completion) _arguments '*:shell:(bash zsh fish)' && return ;;
    esac
    if (( CURRENT == 2 )) && [[ "${{words[CURRENT]}}" != -* ]]; then
        _describe command commands
    fi
    _arguments -S \
{options}        '*:application:_files'
}}
compdef _maitred maitred
"#,
        questions = questions().join(" "),
    )
}
