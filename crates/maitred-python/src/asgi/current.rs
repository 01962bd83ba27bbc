//! The request that the loop's thread is running, for the report of a loop that stands still.
//!
//! A pointer that the thread sets before a step of a request and takes back after it. Only that thread reads it: within
//! a signal handler, when a C extension keeps the interpreter. For any other thread the request can end at any time.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering, compiler_fence};

use pyo3::ffi;

use super::channel::Title;
use super::event_loop::{Here, here};
use super::runner::Whereabouts;

static CURRENT: AtomicPtr<Title> = AtomicPtr::new(ptr::null_mut());

/// The system's number of the loop's thread; 0 before there is one.
static THREAD: AtomicI32 = AtomicI32::new(0);

/// The calling thread is the loop's.
pub(super) fn this_is_the_loop() {
    THREAD.store(whereabouts().tid, Ordering::Release);
}

/// Notes that a step of this request begins, until the result is dropped. Does nothing on another thread, where an
/// application can take a step by hand.
pub(super) fn enter(title: &Title) -> Inside<'_> {
    let before = (here() != Here::Elsewhere).then(|| {
        let before = CURRENT.load(Ordering::Relaxed);
        CURRENT.store(ptr::from_ref(title).cast_mut(), Ordering::Relaxed);
        before
    });
    Inside { before, title: PhantomData }
}

/// Whether the calling thread takes a step of this request's own coroutine, and of no other task.
pub(super) fn is_in(title: &Title) -> bool {
    here() != Here::Elsewhere && ptr::eq(CURRENT.load(Ordering::Relaxed), title)
}

pub(super) struct Inside<'a> {
    before: Option<*mut Title>,
    title: PhantomData<&'a Title>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            CURRENT.store(before, Ordering::Relaxed);
            // A signal that comes when the request has gone does not find it.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

pub(super) fn whereabouts() -> Whereabouts {
    Whereabouts {
        // SAFETY: neither call has an argument or can fail.
        ident: unsafe { libc::pthread_self() } as u64,
        // SAFETY: as above.
        tid: unsafe { libc::syscall(libc::SYS_gettid) } as i32,
    }
}

/// Calls `write` with the parts of `GET /path`, if the calling thread, whose number is `tid`, is the loop's and runs a
/// request. May be called in a signal handler, where nothing is allocated, locked or waited for.
pub(crate) fn with_name(tid: i32, write: &mut dyn FnMut(&[u8])) {
    if THREAD.load(Ordering::Acquire) != tid {
        return;
    }
    // SAFETY: set by this thread, the only one that sets it, in a step that has not ended, in which the value is borrowed.
    let Some(title) = (unsafe { CURRENT.load(Ordering::Relaxed).as_ref() }) else { return };
    let (method, path) = title.parts();
    let mut length = 0;
    // SAFETY: a str of ASCII, whose UTF-8 is its own memory; bytes never change. Both are held by `title`.
    let (method, path) = unsafe {
        let method = ffi::PyUnicode_AsUTF8AndSize(method.as_ptr(), &mut length);
        let method = if method.is_null() { &[] } else { bytes(method.cast(), length) };
        let (start, length) = (ffi::PyBytes_AS_STRING(path.as_ptr()), ffi::PyBytes_Size(path.as_ptr()));
        (method, bytes(start.cast(), length))
    };
    write(method);
    write(b" ");
    write(path);
}

/// # Safety
/// So many bytes are there as long as the result is used.
unsafe fn bytes<'a>(start: *const u8, length: isize) -> &'a [u8] {
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(start, length as usize) }
}
