//! Whether a killed process has written the lines that it was about to write: they are where it noted, or not.
//!
//! Only as much as it noted is looked at: what others have written behind may be equal to the next lines. A line of which only a part is
//! there (the kernel ends a write of several pages between two of them when the process is killed) is completed if nothing stands
//! behind it.

use super::batch::Batch;
use super::kept::Place;
use super::tail::{Tail, write_all};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// So many names of a folder are looked at in the search of a file that was renamed.
const MOST: usize = 100_000;

/// How many bytes of `batch` stand at `place`, in the file that has this path or had it; up to the end of a line. What cannot be found or
/// read counts as not written.
pub(super) fn found_at(path: &Path, place: Place, batch: &Batch) -> usize {
    let Some(file) = find(path, place).and_then(|path| open(&path, place)) else { return 0 };
    // The next processes write behind it if this one does not complete it now.
    let mut tail = Tail::new(None);
    tail.begin(&file);
    let noted = usize::try_from(place.length).unwrap_or(usize::MAX).min(batch.rest().len());
    let common = common(&file, place.offset, &batch.rest()[..noted]);
    let (whole, end) = batch.line_around(common);
    let length = rustix::fs::fstat(&file).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0));
    let is_last = tail.is_held() && place.offset.checked_add(common as u64) == Some(length);
    let mut found = whole;
    if common > whole && is_last {
        // What the disk does not take now is written with the whole line later, behind a line feed.
        let (_, error) = write_all(&file, &batch.rest()[common..end]);
        if error.is_none() {
            found = end;
        }
    }
    tail.end(&file);
    found
}

/// The path of the file, which another process may have renamed.
fn find(path: &Path, place: Place) -> Option<PathBuf> {
    let is_it = |found: fs::Metadata| (found.dev(), found.ino()) == (place.device, place.inode);
    if fs::metadata(path).is_ok_and(is_it) {
        return Some(path.to_owned());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::read_dir(folder)
        .ok()?
        .take(MOST)
        .flatten()
        .find(|entry| entry.metadata().is_ok_and(is_it))
        .map(|entry| entry.path())
}

/// To be read, and appended to if that is allowed.
fn open(path: &Path, place: Place) -> Option<OwnedFd> {
    let options = |append| {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        fs::OpenOptions::new().read(true).append(append).custom_flags(flags).open(path)
    };
    let file = options(true).or_else(|_| options(false)).ok()?;
    let found = file.metadata().ok()?;
    ((found.dev(), found.ino()) == (place.device, place.inode)).then(|| file.into())
}

/// How many of `bytes` are in the file from `offset` on.
fn common(file: &OwnedFd, offset: u64, bytes: &[u8]) -> usize {
    let mut read = vec![0; bytes.len()];
    let mut length = 0;
    while length < read.len() {
        let Some(at) = offset.checked_add(length as u64) else { break };
        match rustix::io::pread(file, &mut read[length..], at) {
            Ok(more @ 1..) => length += more,
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    read[..length].iter().zip(bytes).take_while(|(one, other)| one == other).count()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    use super::super::Severity;

    fn place(path: &Path, offset: u64, length: usize) -> Place {
        let found = fs::metadata(path).expect("file");
        Place { device: found.dev(), inode: found.ino(), offset, length: length as u64 }
    }

    fn batch(lines: &[&str]) -> Batch {
        let mut batch = Batch::default();
        lines.iter().for_each(|line| batch.push(Severity::Info, line.as_bytes()));
        batch
    }

    #[test]
    fn only_what_was_noted_is_looked_at() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, renamed) = (folder.path().join("log"), folder.path().join("log.1"));
        // The third line is the same and of another process.
        fs::write(&path, "before\nline\nline\nline\nbehind\n").expect("file");
        let (here, batch) = (place(&path, 7, 10), batch(&["line"; 3]));
        assert_eq!(found_at(&path, here, &batch), 10);
        assert_eq!(found_at(&path, place(&path, 8, 10), &batch), 0, "it is not there");
        assert_eq!(found_at(&path, place(&path, u64::MAX, 10), &batch), 0);
        assert_eq!(found_at(&path, place(&path, 7, usize::MAX), &batch), 15, "no more than there is");
        fs::rename(&path, &renamed).expect("renamed");
        fs::write(&path, "before\n").expect("file");
        assert_eq!(found_at(&path, here, &batch), 10, "in the file that was renamed");
        fs::remove_file(&renamed).expect("removed");
        assert_eq!(found_at(&path, here, &batch), 0);
    }

    /// An entry of the error log may be of several lines.
    #[test]
    fn a_line_that_is_there_in_part_is_completed_if_nothing_is_behind_it() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("log");
        let batch = batch(&["one", "two\n  more", "three"]);
        for part in ["one\ntw", "one\ntwo\n", "one\ntwo\n  m"] {
            let found = |behind| {
                fs::write(&path, format!("before\n{part}{behind}")).expect("file");
                let found = found_at(&path, place(&path, 7, 21), &batch);
                (found, fs::read_to_string(&path).expect("file"))
            };
            assert_eq!(found(""), (15, "before\none\ntwo\n  more\n".to_owned()));
            assert_eq!(found("\nbehind\n"), (4, format!("before\n{part}\nbehind\n")));
        }
    }
}
