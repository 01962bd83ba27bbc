//! Words of memory of this process alone that cost nothing until they are written, however many there are.
//!
//! Promises: it is zero at first; each page of 4 KiB takes memory when it is first written. A forked process has a copy of its own.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// See the module text.
pub struct PrivateMemory {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is only reached as atomic words, and unmapped after the last reference to it.
unsafe impl Send for PrivateMemory {}
// SAFETY: as above.
unsafe impl Sync for PrivateMemory {}

impl PrivateMemory {
    /// Maps so many bytes, at least 8, rounded up to whole words.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let words = bytes.div_ceil(size_of::<AtomicU64>()).max(1);
        let bytes = words * size_of::<AtomicU64>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place, so nothing that is in use is replaced.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }?;
        // SAFETY: just mapped, with this length; the advice changes no content. Without it a page would be 2 MiB on some systems; a kernel that
        // does not know such pages refuses the advice, which does not matter.
        let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxNoHugepage) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { start, words })
    }
}

impl AsRef<[AtomicU64]> for PrivateMemory {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped there as long as this lives, aligned to a page, and every bit pattern is a valid atomic word.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for PrivateMemory {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<AtomicU64>();
        // SAFETY: mapped by `new`, with this length, and this was the last reference. A failure leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn it_is_zero_and_keeps_written_values() {
        let memory = PrivateMemory::new(100_001).expect("memory");
        assert_eq!(memory.as_ref().len(), 12_501);
        assert!(memory.as_ref().iter().all(|word| word.load(Relaxed) == 0));
        memory.as_ref().iter().for_each(|word| word.store(7, Relaxed));
        assert!(memory.as_ref().iter().all(|word| word.load(Relaxed) == 7));
    }
}
