//! Random numbers of the system, and the forks after which a generator needs new ones.

use std::hash::{BuildHasher, RandomState};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Random numbers of the system.
#[must_use]
pub fn words() -> [u64; 2] {
    let mut bytes = [0; 16];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) == Ok(bytes.len()) {
        let number = u128::from_ne_bytes(bytes);
        return [(number >> 64) as u64, number as u64];
    }
    // A sandbox may refuse the call. The keys alone are the same in all children of a thread.
    let random = RandomState::new();
    [0, 1].map(|number: u8| random.hash_one((number, std::process::id())))
}

/// Another number in each child of fork(2), which has the parent's memory. One load.
#[must_use]
pub fn generation() -> u32 {
    static REGISTERED: Once = Once::new();
    // SAFETY: a function without arguments that may be called in a child at any time: it changes a number.
    REGISTERED.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    FORKS.load(Ordering::Relaxed)
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
