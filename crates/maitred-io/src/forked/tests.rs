use std::os::unix::net::UnixStream;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::*;

/// Runs `act` in a child process, where it makes system calls and nothing else: whether it holds there.
fn holds_in_child(act: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls and ends.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(!act());
            // SAFETY: no argument is a pointer.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the status lives as long as the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status == 0
        }
    }
}

/// The file behind a number.
fn file(descriptor: RawFd) -> Option<(u64, u64)> {
    // SAFETY: the number is only asked about.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
    rustix::fs::fstat(borrowed).ok().map(|found| (found.st_dev, found.st_ino))
}

fn sockets() -> Vec<UnixStream> {
    let pairs = (0..3).map(|_| UnixStream::pair().expect("two sockets"));
    pairs.flat_map(|(one, other)| [one, other]).collect()
}

/// Whether all numbers lead to other files than before.
fn replaces(sockets: &[UnixStream]) -> bool {
    let places = [const { AtomicI32::new(NONE) }; 6];
    let mut before = [None; 6];
    for ((socket, place), before) in sockets.iter().zip(&places).zip(&mut before) {
        place.store(socket.as_raw_fd(), Ordering::Relaxed);
        *before = file(socket.as_raw_fd());
    }
    replace(&places);
    sockets.iter().zip(before).all(|(socket, before)| {
        let now = file(socket.as_raw_fd());
        before.is_some() && now.is_some() && now != before
    })
}

#[test]
fn sockets_of_the_parent_lead_nowhere_in_a_child() {
    let sockets = sockets();
    assert!(holds_in_child(|| replaces(&sockets)));
    assert!(sockets.iter().all(|socket| file(socket.as_raw_fd()).is_some()));
}

#[test]
fn no_number_is_left_free_where_no_further_file_can_be_opened() {
    let sockets = sockets();
    let most = sockets.iter().map(AsRawFd::as_raw_fd).max().expect("six") as u64 + 1;
    assert!(holds_in_child(|| {
        let limit = rustix::process::Rlimit { current: Some(most), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).is_ok()
            && loop {
                match rustix::io::dup(&sockets[0]) {
                    Ok(other) => _ = other.into_raw_fd(),
                    Err(_) => break replaces(&sockets),
                }
            }
    }));
}

#[test]
fn no_number_is_left_free_where_there_is_no_null_device() {
    let (sockets, folder) = (sockets(), tempfile::tempdir().expect("a folder"));
    // Only root may change the root folder.
    assert!(holds_in_child(|| rustix::process::chroot(folder.path()).is_err() || replaces(&sockets)));
}

#[test]
fn children_of_a_parent_have_random_numbers_of_their_own() {
    let generation = crate::random::generation();
    // Keys of the thread, which children copy.
    let _ = std::hash::RandomState::new();
    let [one, other] = [(); 2].map(|()| {
        let (mine, theirs) = UnixStream::pair().expect("two sockets");
        let tell = || rustix::io::write(&theirs, crate::random::words().map(u64::to_ne_bytes).as_flattened());
        assert!(holds_in_child(|| crate::random::generation() != generation && tell() == Ok(16)));
        let mut words = [0; 16];
        assert_eq!(rustix::io::read(&mine, &mut words), Ok(16));
        words
    });
    assert_ne!(one, other);
}
