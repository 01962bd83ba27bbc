//! Descriptors 0 to 2 of a process that was started without some of them.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, IntoRawFd};

use rustix::io::FdFlags;

const LAST: i32 = 2;

/// Opens the null device for each standard stream that is closed. Without it the next socket would get the number of the stream, and output
/// would go to the socket. The caller calls this before it opens anything else. Rust's standard library does the same for a program of Rust.
/// Nothing changes where the null device cannot be opened.
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
