//! The reason why a thread of this process waits, as far as the system call in which it sleeps tells.
//!
//! Promises: costs three system calls, and takes nothing from the thread itself. Leaves out: the owner of a lock or a
//! connection; a thread that sleeps in poll(2) may wait for anything that has a descriptor, and is taken for one that
//! waits for a peer.

use libc::c_long;

use crate::tasks;
use crate::thread_state::{Doing, ThreadState};

/// The reason for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Another thread of this process.
    Lock,
    /// The peer of a socket.
    Peer,
    /// A file.
    Disk,
    /// A time.
    Time,
    /// The interpreter, which another thread has.
    Interpreter,
    /// Anything else.
    Something,
}

impl Waiting {
    /// The reason in words that follow "waits for".
    pub const fn name(self) -> &'static str {
        ["a lock", "a peer", "a disk", "time", "the interpreter", "something"][self as usize]
    }

    /// The reason for the wait of the thread with this number; none if it runs, or if its state is unknown.
    /// `for_interpreter` decides whether a thread that sleeps in this call, with this first argument, waits for the
    /// interpreter.
    pub fn of(tid: i32, for_interpreter: impl FnOnce(i64, u64) -> bool) -> Option<Self> {
        match ThreadState::of(tid).now() {
            Doing::Sleeps { call, argument } if for_interpreter(call, argument) => Some(Self::Interpreter),
            Doing::Sleeps { call, argument } => {
                Self::in_call(call, argument).or_else(|| on_disk(tid)).or(Some(Self::Something))
            }
            Doing::Runs | Doing::Unknown => on_disk(tid),
        }
    }

    fn in_call(call: i64, argument: u64) -> Option<Self> {
        let call = c_long::try_from(call).ok()?;
        if call == libc::SYS_futex {
            return Some(Self::Lock);
        }
        if TIMES.contains(&call) || (SELECTS.contains(&call) && argument == 0) {
            return Some(Self::Time);
        }
        if PEERS.contains(&call) || OLD_PEERS.contains(&call) || SELECTS.contains(&call) {
            return Some(Self::Peer);
        }
        if FILES.contains(&call) {
            return Some(Self::Disk);
        }
        if TRANSFERS.contains(&call) { of_descriptor(argument) } else { None }
    }
}

/// Sleep, and nothing else.
const TIMES: [c_long; 2] = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// Their first argument is the highest descriptor; without one they are a sleep.
#[cfg(target_arch = "x86_64")]
const SELECTS: [c_long; 2] = [libc::SYS_select, libc::SYS_pselect6];
#[cfg(not(target_arch = "x86_64"))]
const SELECTS: [c_long; 1] = [libc::SYS_pselect6];

const PEERS: [c_long; 10] = [
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ppoll,
    libc::SYS_epoll_pwait,
];

#[cfg(target_arch = "x86_64")]
const OLD_PEERS: [c_long; 2] = [libc::SYS_poll, libc::SYS_epoll_wait];
#[cfg(not(target_arch = "x86_64"))]
const OLD_PEERS: [c_long; 0] = [];

const FILES: [c_long; 11] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_openat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_getdents64,
];

/// Calls whose first argument is a descriptor; its type decides the answer.
const TRANSFERS: [c_long; 8] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
];

fn of_descriptor(number: u64) -> Option<Waiting> {
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    let name = link.to_str()?;
    match name {
        _ if name.starts_with("socket:") => Some(Waiting::Peer),
        _ if name.starts_with('/') => Some(Waiting::Disk),
        _ => None,
    }
}

/// A thread that cannot be interrupted waits for a disk, as proc(5) has it: in a call that usually waits for none, or in a page fault.
fn on_disk(tid: i32) -> Option<Waiting> {
    tasks::read(tid).filter(|task| task.state == 'D').map(|_| Waiting::Disk)
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex, mpsc};

    use super::*;

    /// The reason why a thread waits that runs `act`, once it sleeps.
    fn found(act: impl FnOnce() + Send + 'static) -> Waiting {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            tell.send(tasks::own()).expect("the test listens");
            act();
        });
        let tid = told.recv().expect("a thread");
        loop {
            let waiting = Waiting::of(tid, |_, _| false);
            // On its way there it may sleep for memory.
            if let Some(waiting) = waiting.filter(|waiting| *waiting != Waiting::Something) {
                return waiting;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_thread_that_sleeps_tells_for_what() {
        assert_eq!(found(|| std::thread::sleep(std::time::Duration::from_secs(60))), Waiting::Time);
        let lock = Arc::new(Mutex::new(()));
        let (held, other) = (lock.lock().expect("free"), Arc::clone(&lock));
        let (tell, told) = mpsc::channel();
        let locks = move || {
            tell.send(tasks::own()).expect("the test listens");
            drop(other.lock());
        };
        assert_eq!(found(locks), Waiting::Lock);
        let tid = told.recv().expect("a thread");
        let of_futex = |call: i64, _| c_long::try_from(call) == Ok(libc::SYS_futex);
        assert_eq!(Waiting::of(tid, of_futex), Some(Waiting::Interpreter));
        drop(held);
        let (mut here, _there) = UnixStream::pair().expect("sockets");
        assert_eq!(found(move || drop(here.read(&mut [0]))), Waiting::Peer);
    }

    #[test]
    fn a_call_and_its_descriptor_tell_of_files() {
        assert_eq!(Waiting::in_call(libc::SYS_fsync, 7), Some(Waiting::Disk));
        let file = tempfile::tempfile_in("/tmp").expect("a file");
        let number = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        assert_eq!(Waiting::in_call(libc::SYS_read, number), Some(Waiting::Disk));
        assert_eq!(Waiting::in_call(libc::SYS_read, u64::MAX), None);
        assert_eq!(Waiting::in_call(libc::SYS_pselect6, 0), Some(Waiting::Time));
        assert_eq!(Waiting::in_call(libc::SYS_pselect6, 5), Some(Waiting::Peer));
        assert_eq!(Waiting::in_call(libc::SYS_getpid, 0), None);
        assert_eq!(Waiting::of(i32::MAX, |_, _| true), None);
    }
}
