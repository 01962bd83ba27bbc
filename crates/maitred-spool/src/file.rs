//! Files without a name, and the folder they are made in.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FsWord, Mode, OFlags, fstatfs, unlink};
use rustix::io::Errno;

/// Where the bytes of a folder's files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The folder is on a disk, or elsewhere outside this machine's memory.
    Disk,
    /// The folder is in memory (and perhaps in swap).
    Memory,
}

/// Makes a file that no name leads to, for this user only. It is gone with its last descriptor, also when the process is killed.
///
/// # Errors
/// The folder or its disk refuses it.
pub fn open(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        // EISDIR: a kernel, EOPNOTSUPP: a file system that does not know such files (open(2)).
        Err(Errno::ISDIR | Errno::OPNOTSUPP) => open_and_unlink(folder),
        result => Ok(File::from(result?)),
    }
}

/// Opens a file and removes its name, in two steps.
pub(super) fn open_and_unlink(folder: &Path) -> io::Result<File> {
    /// More than other processes with the same number (of other containers) leave behind when they are killed in between.
    const MAX_TRIES: u32 = 1_000;
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut tries = 0;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".maitred-{}-{number}", std::process::id()));
        match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                unlink(&path)?;
                return Ok(File::from(file));
            }
            Err(Errno::EXIST) if tries < MAX_TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether files can be made in `folder`, and where their bytes are.
///
/// # Errors
/// None can be made.
pub fn probe(folder: &Path) -> io::Result<Medium> {
    Ok(medium(fstatfs(open(folder)?)?.f_type))
}

/// The file systems that live in memory (statfs(2)).
fn medium(kind: FsWord) -> Medium {
    const TMPFS: FsWord = 0x0102_1994;
    const RAMFS: FsWord = 0x8584_58f6;
    if kind == TMPFS || kind == RAMFS { Medium::Memory } else { Medium::Disk }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn files_have_no_name_whichever_way_they_are_made() {
        for make in [open, open_and_unlink] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut file = make(folder.path()).expect("a file");
            file.write_all(b"abc").expect("room");
            assert_eq!(folder.path().read_dir().expect("readable").count(), 0);
            file.rewind().expect("seekable");
            let mut text = String::new();
            file.read_to_string(&mut text).expect("readable");
            assert_eq!(text, "abc");
        }
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..50 {
            let name = format!(".maitred-{}-{number}", std::process::id());
            std::fs::write(folder.path().join(name), "of another").expect("room");
        }
        open_and_unlink(folder.path()).expect("a file");
        assert_eq!(folder.path().read_dir().expect("readable").count(), 50);
    }

    #[test]
    fn a_folder_in_memory_is_recognised() {
        // Linux has one wherever POSIX shared memory works (shm_overview(7)).
        assert_eq!(probe(Path::new("/dev/shm")).expect("a folder"), Medium::Memory);
        assert_eq!(medium(0xef53), Medium::Disk, "ext4");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = probe(&folder.path().join("missing")).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
