//! Exit codes of the command, and the words that it says to its user.

use std::io::Write as _;

use maitred_server::printable;

/// The command ended as it should.
pub const EXIT_SUCCESS: u8 = 0;
/// The system refused something, or requests were cut off at the end of the drain timeout.
pub const EXIT_FAILURE: u8 = 1;
/// The user made an error: command line, configuration, application, address in use.
pub const EXIT_USAGE: u8 = 2;

/// Writes lines of an application to standard error, without a prefix.
pub fn say_plain(entry: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", printable(entry)).as_bytes());
}

/// Writes one line to standard error. If standard error is closed, the line is lost: there is no other place for it.
pub fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("maitred: {line}\n").as_bytes());
}

/// Writes output that the user asked for to standard output. A closed pipe is no failure: its reader does not want the rest.
pub fn print(text: &str) -> u8 {
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => EXIT_FAILURE,
        _ => EXIT_SUCCESS,
    }
}
