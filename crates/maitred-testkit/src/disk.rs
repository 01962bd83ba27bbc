//! Disks as tests need them: each makes the files that a spooler asks for.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};

/// Makes a file.
pub type MakeFile = Box<dyn FnMut() -> io::Result<File> + Send>;

/// A disk that works.
pub fn on_disk() -> MakeFile {
    Box::new(tempfile::tempfile)
}

/// A disk that is full.
pub fn full() -> MakeFile {
    Box::new(|| File::options().write(true).open("/dev/full"))
}

/// A disk that stands still until the sender is dropped; the receiver gets a message when a thread waits for it.
pub fn standing_still() -> (MakeFile, Receiver<()>, Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let open = move || {
        // The test may have seen enough.
        let _ = tell.send(());
        // Ends with an error, when the sender is gone.
        let _ = released.recv();
        tempfile::tempfile()
    };
    (Box::new(open), told, release)
}
