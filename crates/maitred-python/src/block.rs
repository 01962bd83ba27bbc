//! Blocks of a body as the engine takes them.

use maitred_runtime::{Content, Lend, Owner};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::held::Held;
use crate::releaser;

/// Blocks from this size on are not copied: the engine holds the object until it has left. Below, a
/// copy costs less than keeping the object and taking the interpreter's word for its end.
const SHARED_FROM: usize = 2048;

/// The content of a block. An object of a subclass is copied: its end may run application code, and the engine drops what
/// has left under the lock of its connection.
pub(crate) fn content(block: &Bound<'_, PyBytes>) -> Content {
    let bytes = block.as_bytes();
    if bytes.len() < SHARED_FROM || !block.is_exact_instance_of::<PyBytes>() {
        return Content::Bytes(bytes.to_vec());
    }
    let (start, length) = (bytes.as_ptr(), bytes.len());
    Content::Owned(Owner::new(Shared { start, length, _object: block.clone().into() }))
}

/// A block that is there while it is being sent.
pub(crate) struct Lent<'a, 'py>(pub(crate) &'a Bound<'py, PyBytes>);

impl Lend for Lent<'_, '_> {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn keep(&self) -> Content {
        content(self.0)
    }
}

/// A bytes object, exactly that, which the engine holds.
struct Shared {
    start: *const u8,
    length: usize,
    _object: Held<PyBytes>,
}

// SAFETY: a bytes object never changes and never moves, so that any thread may read it while the
// reference is held, with the interpreter or without.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        releaser::expect(self.length);
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: pointer and length are those of the object referred to, which never changes.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}
