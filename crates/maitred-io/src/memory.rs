//! Memory of the machine: hints to its caches, and giving back memory that the allocator keeps.

/// Bytes of a cache line on the processors this runs on.
const LINE: usize = 64;

/// Asks the processor to load `value` into its caches, without waiting for it.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of::<T>()).step_by(LINE) {
            // SAFETY: a prefetch reads nothing and never faults at any address; this one is inside `value`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}

/// Gives memory back to the system that the allocator keeps for the next use, such as freed blocks between used ones.
/// That takes some milliseconds for each hundred megabytes. Without effect where the C library has no such call.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
