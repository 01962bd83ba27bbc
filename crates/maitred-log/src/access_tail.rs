//! The end of an access log, where it is a file that can be read back.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use maitred_io::line_writer::{Rotation, Target, present_path};

/// How much of the file is read.
const MOST: u64 = 1024 * 1024;

pub(crate) enum Place {
    File(PathBuf),
    Rotated(PathBuf, Rotation),
    /// In words.
    Elsewhere(&'static str),
}

/// The end of an access log, or why there is none to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTail {
    /// The file, or where the lines go.
    pub place: String,
    /// The last lines, the oldest first; none where the place is no file that can be read.
    pub lines: Vec<String>,
    /// Why they cannot be shown.
    pub trouble: Option<String>,
}

impl Place {
    pub(crate) fn of(target: &Target) -> Self {
        match target {
            Target::Stdout => Self::Elsewhere("standard output"),
            Target::Stderr => Self::Elsewhere("standard error"),
            Target::Syslog(_) | Target::SyslogUdp(_) => Self::Elsewhere("syslog"),
            Target::File(_) => Self::Elsewhere("a descriptor"),
            Target::Path(path) => Self::File(path.clone()),
            Target::Rotated(path, rotation) => Self::Rotated(path.clone(), *rotation),
        }
    }

    /// The last `most` lines that `wanted` says, of the last [`MOST`] bytes.
    pub(crate) fn tail(&self, most: usize, wanted: &dyn Fn(&str) -> bool) -> AccessTail {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Rotated(path, rotation) => present_path(path, *rotation),
            Self::Elsewhere(place) => {
                let trouble = Some(format!("it goes to {place}, which nobody can read back"));
                return AccessTail { place: (*place).to_owned(), lines: Vec::new(), trouble };
            }
        };
        let (lines, trouble) = match read_end(&path) {
            Ok(text) => {
                let mut lines: Vec<String> =
                    text.lines().rev().filter(|line| wanted(line)).take(most).map(str::to_owned).collect();
                lines.reverse();
                (lines, None)
            }
            Err(error) => (Vec::new(), Some(format!("it cannot be read: {error}"))),
        };
        AccessTail { place: path.display().to_string(), lines, trouble }
    }
}

/// Whole lines of the end of a file. A FIFO is not opened: whoever reads it would miss lines.
fn read_end(path: &Path) -> io::Result<String> {
    let is_file = || std::fs::metadata(path).map(|found| found.is_file());
    if !is_file()? {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = File::options().read(true).open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(MOST);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let begin =
        if from == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
    // A line that is being written is not whole.
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(begin, |at| at.max(begin));
    Ok(String::from_utf8_lossy(&bytes[begin..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_file_are_shown_and_nothing_else_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access");
        let text: String = (0..60_000).map(|number| format!("line {number} of the log\n")).collect();
        std::fs::write(&path, format!("{text}half a li")).expect("written");
        let tail = |place: Place| place.tail(3, &|_| true);
        let found = tail(Place::File(path.clone()));
        assert_eq!(found.lines, ["line 59997 of the log", "line 59998 of the log", "line 59999 of the log"]);
        let old = Place::File(path.clone()).tail(3, &|line| line.starts_with("line 1 "));
        assert_eq!((old.lines.len(), old.trouble), (0, None), "more than a mebibyte before the end");
        let folder = tail(Place::File(folder.path().to_owned()));
        assert_eq!(folder.trouble.as_deref(), Some("it cannot be read: it is no regular file"));
        let stdout = tail(Place::of(&Target::Stdout));
        assert_eq!(stdout.trouble.as_deref(), Some("it goes to standard output, which nobody can read back"));
    }
}
