//! For bash: programmable completion (bash(1)), without the package bash-completion.

use std::fmt::Write;

use super::flags::{Takes, flags, questions, summaries};

pub(super) fn script() -> String {
    let flags = flags();
    let names: Vec<&str> = flags.iter().map(|flag| flag.name.as_str()).collect();
    let commands: Vec<&str> = summaries().map(|(name, _)| name).collect();
    let mut cases = String::new();
    for (takes, action) in [(true, "-f"), (false, "-d")] {
        let wanted = if takes { Takes::File } else { Takes::Folder };
        let of: Vec<&str> =
            flags.iter().filter(|flag| flag.takes == wanted).map(|flag| flag.name.as_str()).collect();
        if !of.is_empty() {
            let _ = writeln!(
                cases,
                "        {}) COMPREPLY=($(compgen {action} -- \"$word\")); return ;;",
                of.join("|")
            );
        }
    }
    let of_text: Vec<&str> =
        flags.iter().filter(|flag| flag.takes == Takes::Text).map(|flag| flag.name.as_str()).collect();
    let _ = writeln!(cases, "        {}) return ;;", of_text.join("|"));
    for flag in &flags {
        if let Takes::Words(choice) = &flag.takes {
            let words = choice.join(" ");
            let _ = writeln!(
                cases,
                "        {}) COMPREPLY=($(compgen -W \"{words}\" -- \"$word\")); return ;;",
                flag.name
            );
        }
    }
    format!(
        r#"# bash completion for maitred, made by 'maitred completion bash'.
_maitred() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}"
    COMPREPLY=()
    case "${{COMP_WORDS[1]}}" in
        ctl) COMPREPLY=($(compgen -W "--pid --port --server --socket --url --token-file --json {questions}" -- "$word")); return ;;
        help) COMPREPLY=($(compgen -W "all {commands} {bare}" -- "$word")); return ;;
        completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return ;;
    esac
    case "$before" in
{cases}    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "{names}" -- "$word")); return ;;
    esac
    COMPREPLY=($(compgen -f -- "$word"))
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY+=($(compgen -W "{commands}" -- "$word"))
    fi
}}
complete -o filenames -F _maitred maitred
"#,
        questions = questions().join(" "),
        commands = commands.join(" "),
        bare = names.iter().filter_map(|name| name.strip_prefix("--")).collect::<Vec<_>>().join(" "),
        names = names.join(" "),
    )
}
