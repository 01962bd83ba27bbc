//! Which application thread runs which request, and since when.
//!
//! A thread writes into a slot of its own and waits for nobody: a few stores for each request. A reader
//! takes what it finds and looks whether it was changed meanwhile (a sequence lock; the sequence is the
//! time of entry, which differs between two requests that are both long in the application).

use std::cell::{OnceCell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_http::RequestHead;

/// Bytes of method and path that are kept, with a zero behind them.
const TEXT: usize = 160;
const WORDS: usize = TEXT / 8;

static WATCHED: AtomicBool = AtomicBool::new(false);
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

/// What one application thread is doing.
pub(super) struct Slot {
    pub(super) name: String,
    /// The system's number of the thread.
    pub(super) tid: i32,
    /// Python's number of the thread (`threading.get_ident()`).
    pub(super) ident: u64,
    /// When the request came, by [`now`]; zero while there is none.
    since: AtomicU64,
    /// `since` of the request that was reported last.
    reported: AtomicU64,
    text: [AtomicU64; WORDS],
}

/// Whether requests are entered at all.
pub(super) fn watch(on: bool) {
    WATCHED.store(on, Ordering::Relaxed);
}

/// The slots of all threads that have run a request.
pub(super) fn slots() -> Vec<Arc<Slot>> {
    all().clone()
}

/// Says how the current thread is called in reports. Before its first request.
pub(super) fn name_thread(name: String) {
    NAME.set(name);
}

/// Notes that the current thread runs this request, until the result is dropped.
#[must_use]
pub(crate) fn enter(head: &RequestHead) -> Inside {
    let watched = WATCHED.load(Ordering::Relaxed);
    if watched {
        OWN.with(|own| own.get_or_init(Own::new).0.begin(head.method.as_str(), head.path()));
    }
    Inside { watched, not_send: PhantomData }
}

/// The current thread runs a request.
pub(crate) struct Inside {
    watched: bool,
    // It must end on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.watched {
            OWN.with(|own| {
                if let Some(own) = own.get() {
                    own.0.since.store(0, Ordering::Relaxed);
                }
            });
        }
    }
}

/// Nanoseconds of a clock that never goes back and steps every few milliseconds: reading it costs a
/// fifth of reading an exact one.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Slot {
    fn begin(&self, method: &str, path: &[u8]) {
        let mut text = [0; TEXT];
        let mut length = 0;
        for part in [method.as_bytes(), b" ", path] {
            let part = &part[..part.len().min(TEXT - 1 - length)];
            text[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        // A reader that sees any of the words also sees that the earlier request has ended.
        fence(Ordering::Release);
        let (words, _) = text.as_chunks::<8>();
        for (word, bytes) in self.text.iter().zip(&words[..=length / 8]) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.since.store(now(), Ordering::Release);
    }

    /// Since when it runs which request, if it runs one: `GET /path`, as printable ASCII.
    pub(super) fn running(&self) -> Option<(u64, String)> {
        let since = self.since.load(Ordering::Acquire);
        let bytes: Vec<u8> =
            self.text.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        fence(Ordering::Acquire);
        if since == 0 || self.since.load(Ordering::Relaxed) != since {
            return None;
        }
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let more = if text.len() == TEXT - 1 { "..." } else { "" };
        Some((since, format!("{}{more}", text.escape_ascii())))
    }

    /// Whether the request that came then has not been reported yet; from now on it has.
    pub(super) fn report_once(&self, since: u64) -> bool {
        self.reported.swap(since, Ordering::Relaxed) != since
    }
}

/// The slot of a thread, in the list as long as the thread lives.
struct Own(Arc<Slot>);

impl Own {
    fn new() -> Self {
        let slot = Arc::new(Slot {
            name: NAME.take(),
            // SAFETY: neither call has an argument or can fail.
            tid: unsafe { libc::syscall(libc::SYS_gettid) } as i32,
            // SAFETY: as above.
            ident: unsafe { libc::pthread_self() } as u64,
            since: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            text: [const { AtomicU64::new(0) }; WORDS],
        });
        all().push(slot.clone());
        Self(slot)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        all().retain(|slot| !Arc::ptr_eq(slot, &self.0));
    }
}

/// A panic elsewhere cannot leave the list half-changed.
fn all() -> MutexGuard<'static, Vec<Arc<Slot>>> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}
