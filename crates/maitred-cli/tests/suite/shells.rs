//! The output for shells and for man(1), read by these programs.

use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::maitred;

fn printed(arguments: &[&str]) -> String {
    let folder = TempDir::new().expect("a temporary folder");
    let output = maitred(&folder, arguments).output().expect("the binary runs");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a program of the system with this input, if it is there.
fn given(program: &str, arguments: &[&str], input: &str) -> Option<Output> {
    use std::io::Write;

    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().ok()?;
    let mut stdin = process.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // A thread, since the program may write much before it has read all input.
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = process.wait_with_output().expect("it ends");
    writing.join().expect("no panic").expect("it reads all");
    Some(output)
}

/// The words that bash offers for the last of these words.
fn offered(script: &str, words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let asked = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _maitred; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        words.len() - 1
    );
    let output = given("bash", &["--norc", "-u"], &asked).expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn bash_completes_options_commands_and_values() {
    let script = printed(&["completion", "bash"]);
    if given("bash", &["--version"], "").is_none() {
        return;
    }
    for (words, expected) in [
        (&["maitred", "--max-th"][..], &["--max-threads"][..]),
        (&["maitred", "app:app", "--ssl-keyf"], &["--ssl-keyfile"]),
        (&["maitred", "che"], &["check"]),
        (&["maitred", "check", "app:app", "--log-level", "d"], &["debug"]),
        (&["maitred", "ctl", "sta"], &["stats", "status"]),
        (&["maitred", "help", "worker-r"], &["worker-requests"]),
        (&["maitred", "completion", "z"], &["zsh"]),
    ] {
        let mut offered = offered(&script, words);
        offered.sort();
        offered.dedup();
        // Bash may offer further words, such as `stacks`.
        for word in expected {
            assert!(offered.iter().any(|offer| offer == word), "{words:?}: {offered:?}");
        }
        let start = words.last().expect("a word");
        assert!(offered.iter().all(|offer| offer.starts_with(start)), "{words:?}: {offered:?}");
    }
}

#[test]
fn other_shells_take_their_scripts_if_they_are_there() {
    for shell in ["zsh", "fish"] {
        let script = printed(&["completion", shell]);
        if let Some(output) = given(shell, &["-n"], &script) {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn the_manual_page_is_set_without_a_warning() {
    let page = printed(&["man"]);
    // Plain text: no escape sequences, and no letters that are struck over.
    let plainly = ["-ww", "-man", "-Tascii", "-P-c", "-P-b", "-P-o", "-P-u"];
    let Some(output) = given("groff", &plainly, &page) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    let plain = String::from_utf8_lossy(&output.stdout);
    assert!(plain.contains("max-threads") && plain.contains("EXIT STATUS"), "{plain}");
}
