//! `maitred passwd`: the password of a user, in a file for basic authentication.
//!
//! Promises: the file is replaced as a whole, so that a server that reads it meanwhile finds a complete file; the password is on no
//! command line, and not shown while it is typed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use maitred_config::Problem;
use maitred_filters::{check_name, user_line};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

const HELP: &str = "\
maitred passwd: writes the password of a user to a file for basic authentication.

Usage: maitred passwd FILE USER

The password is asked for twice on a terminal; otherwise it is the first line of standard input. The user's line in FILE is
replaced, or added; the file is made if there is none, readable by its owner only. To remove a user, remove the line. A
server that uses the file sees the change within two seconds of the next request.
";

/// Longest password: clients send no longer ones.
const MAX_PASSWORD: usize = 512;

/// Runs the command with the arguments behind `passwd`. Returns the text to print.
///
/// # Errors
/// The arguments are wrong, or the file cannot be read or written.
pub fn passwd(arguments: &[String]) -> Result<String, Problem> {
    let (file, user) = match arguments {
        [help] if help == "--help" || help == "-h" => return Ok(HELP.to_owned()),
        [file, user] if !file.is_empty() => (Path::new(file), user),
        _ => {
            return Err(Problem::new(
                "passwd",
                "it takes a file and a user",
                "write maitred passwd FILE USER",
            ));
        }
    };
    check_name(user).map_err(|what| Problem::new("passwd", what, "choose another one"))?;
    let unread = |error: io::Error| {
        Problem::new(
            file.display().to_string(),
            format!("cannot be read: {error}"),
            "it must be a readable file",
        )
    };
    let before = match fs::read(file) {
        Ok(bytes) => Some(String::from_utf8(bytes).map_err(|error| unread(io::Error::other(error)))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unread(error)),
    };
    let password = read_password()?;
    let line = user_line(user, password.as_bytes())
        .map_err(|error| Problem::new("passwd", format!("the hash cannot be made: {error}"), "try again"))?;
    let (text, replaced) = with_line(before.as_deref().unwrap_or_default(), user, &line);
    replace(file, &text).map_err(|error| {
        let what = format!("cannot be written: {error}");
        Problem::new(file.display().to_string(), what, "allow it, or name another file")
    })?;
    let done = if replaced { "the password is another one now" } else { "added" };
    Ok(format!("{}: {user}: {done}\n", file.display()))
}

/// Replaces the user's line in the text, or adds the line at the end. Returns the text, and whether the user had a line.
fn with_line(text: &str, user: &str, line: &str) -> (String, bool) {
    let is_of_user = |other: &str| other.trim().split_once(':').is_some_and(|(name, _)| name == user);
    let mut replaced = false;
    let mut out = String::with_capacity(text.len() + line.len() + 1);
    for other in text.lines() {
        let kept = match is_of_user(other) {
            true if replaced => continue,
            true => {
                replaced = true;
                line
            }
            false => other,
        };
        out.push_str(kept);
        out.push('\n');
    }
    if !replaced {
        out.push_str(line);
        out.push('\n');
    }
    (out, replaced)
}

/// Writes a new file with the permissions and the owner of the old one, and renames it to the old name.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    // A link stays, and the file behind it is replaced.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = file.with_file_name(name);
    let written = write(&new, &file, text).and_then(|()| fs::rename(&new, &file));
    if written.is_err() {
        // A file that does not exist cannot be removed.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(new: &Path, old: &Path, text: &str) -> io::Result<()> {
    let mut out: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    if let Ok(metadata) = fs::metadata(old) {
        // Only root can give the file away. Otherwise it stays the caller's, whose server can read it.
        let _ = std::os::unix::fs::fchown(&out, Some(metadata.uid()), Some(metadata.gid()));
        out.set_permissions(fs::Permissions::from_mode(metadata.permissions().mode() & 0o777))?;
    }
    out.write_all(text.as_bytes())?;
    out.sync_all()
}

fn read_password() -> Result<String, Problem> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return checked(read_line().map_err(failed)?);
    }
    let quiet = Quiet::begin().map_err(|error| failed(error.into()))?;
    let first = ask("Password: ").and_then(checked)?;
    let second = ask("Again: ")?;
    drop(quiet);
    if first == second { Ok(first) } else { Err(Problem::new("passwd", "the two differ", "try again")) }
}

fn ask(prompt: &str) -> Result<String, Problem> {
    let mut stderr = io::stderr();
    stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush()).map_err(failed)?;
    let line = read_line().map_err(failed)?;
    // The terminal has not shown the line end.
    let _ = stderr.write_all(b"\n");
    Ok(line)
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn checked(password: String) -> Result<String, Problem> {
    if password.is_empty() {
        let remedy = "type one, or give it as the first line of the input";
        return Err(Problem::new("passwd", "the password is empty", remedy));
    }
    if password.len() > MAX_PASSWORD || password.chars().any(char::is_control) {
        let what = format!("the password has control characters, or more than {MAX_PASSWORD} bytes");
        return Err(Problem::new("passwd", what, "choose another one"));
    }
    Ok(password)
}

fn failed(error: io::Error) -> Problem {
    let what = format!("the password cannot be read: {error}");
    Problem::new("passwd", what, "give it as the first line of the input")
}

/// A terminal without echo; holds the settings to restore.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_user_is_replaced_or_added_and_others_stay() {
        let text = "# people\nann:1\n\nbob:2";
        assert_eq!(with_line(text, "ann", "ann:9"), ("# people\nann:9\n\nbob:2\n".to_owned(), true));
        assert_eq!(with_line(text, "bo", "bo:9"), ("# people\nann:1\n\nbob:2\nbo:9\n".to_owned(), false));
        assert_eq!(with_line("", "bo", "bo:9"), ("bo:9\n".to_owned(), false));
        assert_eq!(with_line("a:1\na:2\n", "a", "a:9"), ("a:9\n".to_owned(), true));
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_a_new_one_is_the_owner_s() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users.txt");
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        replace(&path, "one\n").expect("written");
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mine");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("users.txt", &link).expect("a link");
        replace(&link, "two\n").expect("written");
        assert_eq!((fs::read_to_string(&path).expect("there"), mode()), ("two\n".to_owned(), 0o640));
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing else is left");
    }
}
