//! Descriptors 0 to 2 of a process that was started without some of them.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, IntoRawFd};

use rustix::io::FdFlags;

/// The last of them: standard error.
const LAST: i32 = 2;

/// Puts the null device where a standard stream is closed: otherwise the next file or socket that is opened would get its number, and what is
/// printed. Called first; the standard library does it in a program of its own. Where there is no null device, nothing changes.
pub fn fill() {
    while let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        // The kernel gives the lowest number that is free (open(2)).
        if null.as_raw_fd() > LAST {
            return;
        }
        // Programs that are started inherit standard streams. One that does not gets a null device of its own.
        let _ = rustix::io::fcntl_setfd(&null, FdFlags::empty());
        // Open until the process ends.
        let _ = null.into_raw_fd();
    }
}
