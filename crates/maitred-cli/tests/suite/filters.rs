//! Filters: the example of docs/operations/filters.md with its table of requests and answers, users and
//! their passwords, SIGHUP, and the answers of the control.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::{Serving, maitred};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/filters.md");

/// Longest wait; reached only by a defect.
const PATIENCE: Duration = Duration::from_secs(30);

/// `ann:open sesame` (RFC 4648).
const ANN: &str = "Authorization: Basic YW5uOm9wZW4gc2VzYW1l\r\n";

fn passwd(folder: &TempDir, user: &str, password: &str) -> Output {
    let mut command = maitred(folder, &["passwd", "users.txt", user]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary runs");
    let mut stdin = process.stdin.take().expect("a pipe");
    // The command may have ended before it read.
    let _ = writeln!(stdin, "{password}");
    drop(stdin);
    process.wait_with_output().expect("it ends")
}

/// A folder with the files of the page's example, and this `maitred.toml`.
fn folder(file: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("site")).expect("a folder");
    for name in ["a.txt", "logo.svg"] {
        fs::write(folder.path().join("site").join(name), "content").expect("a file");
    }
    let made = passwd(&folder, "ann", "open sesame");
    assert!(made.status.success(), "{made:?}");
    assert_eq!(String::from_utf8_lossy(&made.stdout), "users.txt: ann: added\n");
    fs::write(folder.path().join("maitred.toml"), file).expect("a file");
    folder
}

/// The head of the answer to a request on a connection of its own.
fn ask(serving: &Serving, request: &str, fields: &str, body: &[u8]) -> String {
    let mut stream = serving.connect();
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{length}{fields}\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).expect("sent");
    let mut answer = String::new();
    // The server closes the connection after a refusal before the body, so this may fail.
    let _ = stream.shutdown(Shutdown::Write);
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split_once("\r\n\r\n").expect("a head").0.to_owned() + "\r\n"
}

fn status(serving: &Serving, path: &str, fields: &str) -> String {
    ask(serving, &format!("GET {path}"), fields, b"")[9..12].to_owned()
}

/// The parts in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_example_of_the_page_does_what_its_table_says() {
    let page = fs::read_to_string(PAGE).expect("docs/operations/filters.md");
    let example =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let folder = folder(example);
    let serving = Serving::start(&folder, &[]);
    let rows = page.lines().skip_while(|line| *line != "| request | answer |").skip(2);
    let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 9, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').splitn(2, " | ").map(str::trim).collect();
        let (request, rest) = (quoted(cells[0])[0], cells[0].rsplit('`').next().expect("the rest"));
        let fields = if rest.contains("as ann") { ANN } else { "" };
        let bytes = rest.trim().strip_prefix("with ").and_then(|rest| rest.split(' ').next()?.parse().ok());
        let head = ask(&serving, request, fields, &vec![b'x'; bytes.unwrap_or(0)]);
        let (status, _) = cells[1].split_at(3);
        assert_eq!(&head[9..12], status, "{row}: {head}");
        for field in quoted(cells[1]) {
            assert!(head.contains(&format!("\r\n{field}\r\n")), "{row}: {head}");
        }
    }
}

#[test]
fn every_example_of_the_page_is_valid() {
    let page = fs::read_to_string(PAGE).expect("docs/operations/filters.md");
    for example in page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let folder = folder(example);
        let checked = maitred(&folder, &["check"]).output().expect("the binary runs");
        let (text, error) =
            (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
        assert!(checked.status.success() && error.is_empty(), "{error}");
        // The output is a configuration with the same meaning.
        fs::write(folder.path().join("maitred.toml"), text.as_bytes()).expect("a file");
        let again = maitred(&folder, &["check"]).output().expect("the binary runs");
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
        let values = |text: &str| {
            let without_source = |line: &str| line.split("  # ").next().unwrap_or_default().trim().to_owned();
            text.lines().skip(1).map(without_source).collect::<Vec<_>>()
        };
        assert_eq!(values(&text), values(&String::from_utf8_lossy(&again.stdout)));
    }
}

#[test]
fn errors_name_file_line_key_and_remedy() {
    let folder = folder("");
    let error = |file: &str| {
        fs::write(folder.path().join("maitred.toml"), file).expect("a file");
        let checked = maitred(&folder, &["check"]).output().expect("the binary runs");
        assert_eq!(checked.status.code(), Some(2), "{file}");
        String::from_utf8_lossy(&checked.stderr).lines().last().unwrap_or_default().to_owned()
    };
    for (file, expected) in [
        (
            "[[filter]]\npath = \"/a\"\nbasic_auth = \"x\"\n",
            "maitred.toml:3: unknown key 'basic_auth' in [[filter]]; did you mean 'basic-auth'?",
        ),
        (
            "[[filter]]\nkeep-alive = 1\n",
            "maitred.toml:2: unknown key 'keep-alive' in [[filter]]; write it above the first table",
        ),
        ("[[filters]]\n", "maitred.toml:1: unknown key 'filters'; did you mean '[[filter]]'?"),
        (
            "[filter]\npath = \"/a\"\n",
            "maitred.toml:1: filter: the value is of the type table; begin each filter with [[filter]]",
        ),
        (
            "[[filter]]\npath = \"/a\"\n",
            "maitred.toml:2: filter: the filter does nothing; give it one of access",
        ),
        (
            "[[filter]]\nredirect = \"/*\"\n",
            "maitred.toml:2: filter.redirect: '/*' has 1 '*', and the path 0; ",
        ),
        (
            "[[filter]]\n\naccess = [\"deny all\", \"allow ::1\"]\n",
            "maitred.toml:3: filter.access: 'allow ::1' stands behind 'all'",
        ),
        (
            "[[filter]]\naccess = [1.5]\n",
            "maitred.toml:2: filter.access: the value is of the type float; expected: text, or a list of texts",
        ),
        (
            "[[filter]]\nbasic-auth = \"none.txt\"\n",
            "maitred.toml:2: filter.basic-auth: none.txt: No such file",
        ),
    ] {
        let found = error(file);
        assert!(found.starts_with(&format!("maitred: {expected}")), "{found}");
    }
    fs::write(folder.path().join("bad.txt"), "ann:secret\n").expect("a file");
    let found = error("[[filter]]\nbasic-auth = \"bad.txt\"\n");
    assert!(found.contains("bad.txt: line 1: the hash is no PHC string; correct the line"), "{found}");
}

#[test]
fn passwords_are_changed_while_the_server_runs() {
    let folder = folder("static = \"/=site\"\n[[filter]]\nbasic-auth = \"users.txt\"\n");
    let mut serving = Serving::start(&folder, &[]);
    assert_eq!([status(&serving, "/a.txt", ANN), status(&serving, "/a.txt", "")], ["200", "401"]);
    let changed = passwd(&folder, "ann", "another");
    assert_eq!(String::from_utf8_lossy(&changed.stdout), "users.txt: ann: the password is another one now\n");
    serving.signal("HUP");
    serving.wait_for("users.txt has been read again: 1 users");
    assert_eq!(status(&serving, "/a.txt", ANN), "401");
    // Without a signal the change is seen at the next request with a password.
    passwd(&folder, "ann", "open sesame");
    let begun = Instant::now();
    while status(&serving, "/a.txt", ANN) != "200" {
        assert!(begun.elapsed() < PATIENCE, "the file is not read again");
        // The server remembers a wrong password longer than the time between two looks at the file.
        std::thread::sleep(Duration::from_millis(100));
    }
    for (user, part) in [("a b", "is no name of a user"), ("", "is no name of a user")] {
        let refused = passwd(&folder, user, "x");
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && error.contains(part), "{error}");
    }
    let empty = passwd(&folder, "bob", "");
    assert!(String::from_utf8_lossy(&empty.stderr).contains("the password is empty"), "{empty:?}");
}

#[test]
fn filters_change_at_a_signal_and_a_wrong_one_changes_nothing() {
    let folder = folder("static = \"/=site\"\n");
    let mut serving = Serving::start(&folder, &[]);
    let mut reload = |file: &str, line: &str| {
        fs::write(folder.path().join("maitred.toml"), format!("static = \"/=site\"\n{file}"))
            .expect("a file");
        serving.signal("HUP");
        serving.wait_for(line);
        [status(&serving, "/a.txt", ""), status(&serving, "/a.txt", ANN)]
    };
    let filter = "[[filter]]\nbasic-auth = \"users.txt\"\n";
    assert_eq!(reload(filter, "info filters: 1 in the place of 0"), ["401", "200"]);
    assert_eq!(reload("[[filter]]\nstatus = 301\n", "error SIGHUP: "), ["401", "200"]);
    let file = format!("{filter}[[filter]]\npath = \"*.txt\"\naccess = \"deny all\"\n");
    assert_eq!(reload(&file, "info filters: 2 in the place of 1"), ["403", "403"]);
    assert_eq!(reload("", "info filters: 0 in the place of 2"), ["200", "200"]);
}

#[test]
fn the_control_lists_the_chain_and_explains_it() {
    let page = fs::read_to_string(PAGE).expect("docs/operations/filters.md");
    let example =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let folder = folder(&format!("control = \"ctl.sock\"\n{example}"));
    let serving = Serving::start(&folder, &[]);
    let ctl = |arguments: &[&str]| {
        let all = [&["ctl", "--socket", "ctl.sock"], arguments].concat();
        let asked = maitred(&folder, &all).output().expect("the binary runs");
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        String::from_utf8_lossy(&asked.stdout).into_owned()
    };
    assert_eq!([status(&serving, "/staff/a.txt", ANN), status(&serving, "/staff/a.txt", "")], ["200", "401"]);
    assert_eq!(status(&serving, "/old/x", ""), "308");
    let row = |kind: &str, path: &str| {
        let list = ctl(&["filters"]);
        let mut rows = list.lines().filter(|line| line.contains(kind) && line.contains(path));
        let row = rows.next().unwrap_or_else(|| panic!("{kind} {path} in {list}"));
        row.split_whitespace().rev().take(2).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    // Answered requests, and hits.
    assert_eq!(row(" basic-auth ", "/staff/*"), ["1", "2"]);
    assert_eq!(row(" redirect ", "/old/*"), ["1", "1"]);
    assert_eq!(row(" access ", "/staff/*"), ["0", "2"]);
    assert_eq!(row(" rewrite ", "/p/*/text"), ["0", "0"]);
    let explained = ctl(&["explain", "GET", "/staff/a.txt", "--from", "192.0.2.7"]);
    assert!(explained.contains("does not allow 192.0.2.7") && explained.contains("403"), "{explained}");
    let explained = ctl(&["explain", "GET", "/staff/a.txt"]);
    assert!(
        explained.contains("(basic-auth) asks who it is") && explained.contains("static files"),
        "{explained}"
    );
    let explained = ctl(&["explain", "GET", "/old/a?b"]);
    assert!(explained.contains("/new/a?b") && explained.contains("308"), "{explained}");
    let explained = ctl(&["explain", "GET", "/p/a/text"]);
    assert!(explained.contains("makes it /pages/a.txt") && explained.contains("static files"), "{explained}");
    let explained = ctl(&["explain", "GET", "/p/..%2fstaff/a.txt"]);
    assert!(explained.contains("ask for the path") && explained.contains("400"), "{explained}");
    assert_eq!(row(" access ", "/staff/*"), ["0", "2"], "explaining counts nothing");
}
