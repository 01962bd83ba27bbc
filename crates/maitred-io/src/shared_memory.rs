//! Memory that several processes see: a file without a name that each of them maps.
//!
//! Promises: it is zero at first; no process can make it smaller, so no access fails; values that a process has written
//! stay when that process is killed. Pages cost memory when they are first written. Leaves out: the meaning of the
//! words, and the order of writes (their users).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// See the module text.
pub struct SharedMemory {
    start: NonNull<AtomicU64>,
    words: usize,
    file: OwnedFd,
}

// SAFETY: the memory is only reached as atomic words, and unmapped after the last reference to it.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// New memory of so many bytes, at least 8, rounded up to whole words.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(size_of::<AtomicU64>());
        let file = rustix::fs::memfd_create("maitred", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::map(file, bytes)
    }

    /// The memory of another process, by its file.
    ///
    /// # Errors
    /// It is no such file: it could be made smaller. Or there is no memory.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        if !rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::other("the file of shared memory is not sealed"));
        }
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        Self::map(file, bytes)
    }

    fn map(file: OwnedFd, bytes: usize) -> io::Result<Self> {
        let words = bytes / size_of::<AtomicU64>();
        if words == 0 {
            return Err(io::Error::other("the file of shared memory is empty"));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place, so nothing that is in use is replaced.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { start, words, file })
    }

    /// All of it.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped there as long as this lives, aligned to a page. The seal keeps the file from becoming
        // shorter. Every bit pattern is a valid atomic word, and all processes use atomic accesses.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl AsRef<[AtomicU64]> for SharedMemory {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words()
    }
}

impl AsFd for SharedMemory {
    /// The file, to be handed to another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<AtomicU64>();
        // SAFETY: mapped by `map`, with this length, and this was the last reference. A failure leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn one_process_reads_values_of_another() {
        let one = SharedMemory::new(20).expect("memory");
        assert_eq!(one.words().len(), 3);
        assert!(one.words().iter().all(|word| word.load(Relaxed) == 0));
        let other = SharedMemory::open(one.as_fd().try_clone_to_owned().expect("a copy")).expect("mapped");
        one.words()[2].store(7, Relaxed);
        drop(one);
        assert_eq!(other.words()[2].load(Relaxed), 7);
    }

    #[test]
    fn a_file_that_could_become_shorter_is_refused() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .expect("a file");
        rustix::fs::ftruncate(&file, 64).expect("longer");
        assert!(SharedMemory::open(file).is_err());
        let one = SharedMemory::new(64).expect("memory");
        assert!(rustix::fs::ftruncate(&one, 8).is_err(), "it is sealed");
    }
}
