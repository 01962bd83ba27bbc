//! The built binary, as a user meets it: its output and its exit code.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The binary in an empty folder, without the environment of the test run.
fn maitred(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maitred"));
    command.args(arguments).current_dir(folder);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MAITRED_")) {
        command.env_remove(name);
    }
    command
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    maitred(folder, arguments).output().expect("the binary runs")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// Checks an error of the user: one line on standard error, nothing on standard output, exit code 2.
fn usage_error(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert_eq!(stdout(output), "");
    let line = stderr(output).strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "more than one line: {line}");
    line
}

#[test]
fn version_names_the_version_and_the_languages() {
    let output = run(&folder(&[]), &["--version"]);
    assert_eq!(stdout(&output), format!("maitred {} (native)\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn help_goes_to_standard_output() {
    let folder = folder(&[]);
    let short = run(&folder, &["--help"]);
    assert!(stdout(&short).contains("  --listen ADDR  "), "{}", stdout(&short));
    assert!(stdout(&short).lines().count() <= 30);
    for (arguments, says) in [
        (&["-h"][..], "  --listen ADDR  "),
        (&["help"], "  --listen ADDR  "),
        (&["app:app", "--help"], "  --listen ADDR  "),
        (&["--help", "all"], "--listen [https://|http://]ADDR"),
        (&["help", "all"], "  --min-threads N\n"),
        (&["help", "workers"], "How many processes serve"),
        (&["help", "--no-compress"], "  --[no-]compress\n"),
        (&["help", "max_threads"], "  --max-threads N\n"),
        (&["--help", "--workers"], "How many processes serve"),
        (&["help", "bind"], "--bind of other servers is here --listen."),
        (&["help", "-t"], "-t of other servers is no option here: write --worker-timeout"),
        (&["help", "check"], "maitred check [APPLICATION] [OPTIONS]: print the merged configuration"),
        (&["help", "ctl"], "Usage: maitred ctl "),
    ] {
        let output = run(&folder, arguments);
        assert!(stdout(&output).contains(says), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        assert_eq!((stderr(&output), output.status.code()), ("", Some(0)), "{arguments:?}");
    }
}

#[test]
fn every_command_has_help() {
    let folder = folder(&[]);
    let short = run(&folder, &["help"]);
    let (_, words) = stdout(&short).split_once("Commands: ").expect("the commands");
    let (words, _) = words.split_once("\n'").expect("their end");
    let words: Vec<&str> = words.split([',', ' ', '\n']).filter(|word| !word.is_empty()).collect();
    assert!(words.contains(&"ctl") && words.contains(&"check"), "{words:?}");
    for word in words {
        let output = run(&folder, &[word, "--help"]);
        assert!(stdout(&output).contains(&format!("maitred {word}")), "{word}: {}", stdout(&output));
        assert_eq!((stderr(&output), output.status.code()), ("", Some(0)), "{word}");
    }
}

#[test]
fn help_about_nothing_that_there_is_names_the_nearest() {
    let folder = folder(&[]);
    for (name, meant) in [("wrkers", "workers"), ("--bnd", "bind"), ("chek", "check")] {
        let output = run(&folder, &["help", name]);
        let said = format!(
            "maitred: help: there is no option, command or table '{name}'; did you mean 'maitred help {meant}'?"
        );
        assert_eq!(usage_error(&output), said);
    }
}

#[test]
fn logging_needs_python() {
    let folder = folder(&[("site/index.html", "")]);
    for arguments in [
        &["site/", "--listen", "127.0.0.1:0", "--error-log", "logging"][..],
        &["site/", "--listen", "127.0.0.1:0", "--access-log=logging"],
    ] {
        let output = run(&folder, arguments);
        assert!(usage_error(&output).contains("'logging' is Python's, and this program has no Python; "));
    }
}

#[test]
fn a_bad_option_is_one_line_with_the_nearest_one() {
    let output = run(&folder(&[]), &["app:app", "--max-thread", "3"]);
    assert_eq!(usage_error(&output), "maitred: --max-thread: unknown option; did you mean '--max-threads'?");
}

#[test]
fn a_bad_key_names_its_line() {
    let output = run(&folder(&[("maitred.toml", "# mine\nlisten = \":1\"\nmaxbody = 3\n")]), &["app:app"]);
    assert_eq!(
        usage_error(&output),
        "maitred: maitred.toml:3: unknown key 'maxbody'; did you mean 'max-body'?"
    );
}

#[test]
fn without_an_application_there_are_examples() {
    let output = run(&folder(&[]), &[]);
    let line = usage_error(&output);
    assert!(line.starts_with("maitred: nothing to serve: "), "{line}");
    assert!(line.contains("maitred app:app") && line.contains("maitred folder/"), "{line}");
}

#[test]
fn a_file_that_is_no_program_is_sent_to_its_folder() {
    let output = run(&folder(&[("site/index.html", "")]), &["site/index.html"]);
    assert_eq!(
        usage_error(&output),
        "maitred: application: site/index.html is a file, neither a folder nor a Python program; \
         give the folder to serve (site/), or a Python file"
    );
}

#[test]
fn a_program_is_sent_to_the_python_package() {
    let output = run(&folder(&[]), &["nosuch:app"]);
    let line = usage_error(&output);
    assert!(line.contains("this binary has no Python and cannot run 'nosuch:app'; "), "{line}");
    assert!(line.contains("python -m maitred"), "{line}");
    let output = run(&folder(&[]), &["chek"]);
    assert!(usage_error(&output).ends_with("(or did you mean 'maitred check'?)"));
}

#[test]
fn check_prints_the_merged_result_and_where_each_value_came_from() {
    let folder = folder(&[
        (
            "maitred.toml",
            "application = \"app:app\"\nmax-threads = 20\nkeep-alive = 20\nmax-body = \"20m\"\n",
        ),
        ("maitred.toml.d/local.toml", "\nkeep-alive = 5.5\nmax-body = 5\n"),
    ]);
    let output = maitred(&folder, &["check", "--listen", "[::1]:0"]).env("MAITRED_MAX_BODY", "64k").output();
    let output = output.expect("the binary runs");
    assert_eq!((stderr(&output), output.status.code()), ("", Some(0)));
    let text = stdout(&output);
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "# read: maitred.toml, maitred.toml.d/local.toml",
        "application = \"app:app\" # maitred.toml:1",
        "listen = [\"[::1]:0\"] # command line",
        "min-threads = 1 # default",
        "max-threads = 20 # maitred.toml:2",
        "keep-alive = 5.5 # drop-in maitred.toml.d/local.toml:2",
        "max-body = \"64k\" # environment variable MAITRED_MAX_BODY",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in\n{text}");
    }
    // The output is a configuration with the same meaning.
    fs::remove_dir_all(folder.path().join("maitred.toml.d")).expect("the drop-in folder");
    fs::write(folder.path().join("maitred.toml"), text).expect("maitred.toml");
    let again = run(&folder, &["check"]);
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .skip(1)
            .filter_map(|line| Some(line.rsplit_once("  #")?.0.trim_end().to_owned()))
            .collect()
    };
    assert_eq!(values(stdout(&again)), values(text));
}

#[test]
fn check_finds_what_running_would_find() {
    let output = run(&folder(&[("maitred.toml", "static = \"/a=none\"\n")]), &["check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("maitred: maitred.toml:1: static: there is no folder none; "));
    assert!(stdout(&output).contains("[\"/a=none\"]"));
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let output =
        maitred(&folder(&[]), &["check"]).env("MAITRED_LISTN", ":1").output().expect("the binary runs");
    assert_eq!(
        stderr(&output),
        "maitred: warning: MAITRED_LISTN: unknown variable, ignored; did you mean 'MAITRED_LISTEN'?\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_bad_key_in_a_pool_names_file_line_key_and_the_nearest() {
    let text = "application = \"app:app\"\n\n[pool.reports]\nmax-thread = 2\nmatch = [\"/report/*\"]\n";
    let output = run(&folder(&[("maitred.toml", text)]), &[]);
    assert_eq!(
        usage_error(&output),
        "maitred: maitred.toml:4: unknown key 'max-thread' in [pool.reports]; did you mean 'max-threads'?"
    );
}

#[test]
fn check_prints_pools_and_rules_and_where_each_came_from() {
    let text = "max-threads = 20\n\n[pool.reports]\nmax-threads = 2\nmatch = [\n  \"/report/*\",\n  \
                { method = \"GET\", header = \"X-Kind: a*\" },\n]\n";
    let folder = folder(&[("maitred.toml", text)]);
    let arguments = ["check", "--pool=reports,queue=9", "--pool=late,path=/late", "--pool=default,path=/now"];
    let output = run(&folder, &arguments);
    assert_eq!((stderr(&output), output.status.code()), ("", Some(0)));
    let text = stdout(&output);
    let plain = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let lines = plain(text);
    let at = |wanted: &str| {
        lines.iter().position(|line| line == wanted).unwrap_or_else(|| panic!("{wanted} is not in\n{text}"))
    };
    at("max-threads = 20 # maitred.toml:1");
    // The lines in this order.
    let expected = [
        "[pool.default] # command line",
        "match = [",
        "\"/now\", # command line",
        "[pool.reports] # maitred.toml:3",
        "min-threads = 0 # default",
        "max-threads = 2 # maitred.toml:4",
        "queue = 9 # command line",
        "# max-lost-threads is not set # default",
        "strategy = \"adaptive\" # default",
        "\"/report/*\", # maitred.toml:6",
        "{ method = \"GET\", header = \"X-Kind: a*\" }, # maitred.toml:7",
        "[pool.late] # command line",
        "\"/late\", # command line",
    ];
    let mut rest = lines.iter();
    for wanted in expected {
        assert!(rest.any(|line| line == wanted), "{wanted} is not in its place in\n{text}");
    }
    // The output is a configuration with the same meaning.
    fs::write(folder.path().join("maitred.toml"), text).expect("maitred.toml");
    let again = run(&folder, &["check"]);
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .skip(1)
            .map(|line| line.split("  #").next().unwrap_or_default().trim_end().to_owned())
            .collect()
    };
    assert_eq!(values(stdout(&again)), values(text), "{}", stderr(&again));
}

#[test]
fn a_pool_without_rules_is_a_warning() {
    let output = run(&folder(&[("maitred.toml", "[pool.reports]\nmax-threads = 2\n")]), &["check"]);
    assert_eq!(
        stderr(&output),
        "maitred: warning: maitred.toml:1: pool.reports: no rule leads to the pool 'reports'; give it one\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn tools_of_a_language_say_which_program_has_them() {
    for name in ["init", "migrate"] {
        let output = run(&folder(&[]), &[name, "."]);
        let line = usage_error(&output);
        let remedy = format!("run the command of the Python package: python -m maitred {name}");
        assert!(line.starts_with(&format!("maitred: {name}: ")) && line.ends_with(&remedy), "{line}");
    }
}
