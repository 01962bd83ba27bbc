//! Memory of this process that may not be there: the kernel copies it (process_vm_readv(2)), or says that it cannot.
//!
//! May be used in a signal handler: a system call, and values on the stack.

/// Fills `place` with the bytes at the address. `None` if not all of them can be read.
pub(crate) fn copy(address: usize, place: &mut [u8]) -> Option<()> {
    let local = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: place.len() };
    // SAFETY: one vector each. The local one is ours to write, and whether the other can be read, the kernel finds out.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    (usize::try_from(copied) == Ok(place.len())).then_some(())
}

/// The word or pointer at the address.
pub(crate) fn word(address: usize) -> Option<usize> {
    let mut bytes = [0; size_of::<usize>()];
    copy(address, &mut bytes)?;
    Some(usize::from_ne_bytes(bytes))
}

/// The C `int` at the address.
pub(crate) fn int(address: usize) -> Option<i32> {
    let mut bytes = [0; size_of::<i32>()];
    copy(address, &mut bytes)?;
    Some(i32::from_ne_bytes(bytes))
}

/// The bytes from an address on, one after the other, until they end or cannot be read.
pub(crate) struct Bytes {
    address: usize,
    left: usize,
    piece: [u8; 128],
    /// The part of `piece` that has not been given.
    from: usize,
    to: usize,
}

impl Bytes {
    pub(crate) fn new(address: usize, length: usize) -> Self {
        Self { address, left: length, piece: [0; 128], from: 0, to: 0 }
    }
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.from == self.to {
            (self.from, self.to) = (0, self.left.min(self.piece.len()));
            copy(self.address, self.piece.get_mut(..self.to).filter(|piece| !piece.is_empty())?)?;
            self.address = self.address.wrapping_add(self.to);
            self.left -= self.to;
        }
        self.from += 1;
        self.piece.get(self.from - 1).copied()
    }
}
