//! What a request is called in logs: by the id it brought, or by one of ours.

use std::cell::Cell;
use std::fmt;
use std::sync::LazyLock;

use maitred_http::FieldSet;
use maitred_io::random;
use maitred_io::sync::atomic::{AtomicU64, Ordering};

/// The longest id that is taken over: a UUID has 36 characters, a trace of Amazon's 35, and there is room for a prefix.
const MAX_ID: usize = 64;

/// Requests numbered by one thread: a trillion.
const THREAD_SHIFT: u32 = 40;

/// Tells the requests of this process from those of others whose lines go to the same place.
static PROCESS: LazyLock<u32> = LazyLock::new(|| random::words()[0] as u32);

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NEXT: Cell<u64> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) << THREAD_SHIFT);
}

/// A number that no other request of this process has.
pub fn next_number() -> u64 {
    NEXT.with(|next| {
        next.set(next.get() + 1);
        next.get()
    })
}

/// The id of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestId<'a> {
    /// It brought `X-Request-ID`, or the id of its trace (W3C Trace Context §3.2, `traceparent`).
    Given(&'a [u8]),
    /// This is its number.
    Made(u64),
}

impl<'a> RequestId<'a> {
    /// Of the request with these fields and this number.
    pub fn of(fields: &'a FieldSet, number: u64) -> Self {
        let given = fields.first("x-request-id").filter(|id| is_id(id));
        let given = given.or_else(|| trace_of(fields));
        given.map_or(Self::Made(number), Self::Given)
    }
}

impl<'a> RequestId<'a> {
    /// The given id, if there is one, or the one that is made of this number.
    pub fn named(given: Option<&'a [u8]>, number: u64) -> Self {
        given.map_or(Self::Made(number), Self::Given)
    }

    /// The id that the request has brought.
    pub fn given(self) -> Option<&'a [u8]> {
        match self {
            Self::Given(id) => Some(id),
            Self::Made(_) => None,
        }
    }
}

impl fmt::Display for RequestId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Printable ASCII, as it was looked at.
            Self::Given(id) => id.iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte))),
            Self::Made(number) => write!(f, "{:08x}-{number:012x}", *PROCESS),
        }
    }
}

fn is_id(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
    (1..=MAX_ID).contains(&id.len()) && id.iter().all(is_plain)
}

/// The id of the trace that a request has brought.
pub(crate) fn trace_of(fields: &FieldSet) -> Option<&[u8]> {
    let value = fields.first("traceparent")?;
    maitred_http::trace::parse_parent(value).and_then(|_| value.get(3..35))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(fields: &[(&str, &str)]) -> String {
        let mut all = FieldSet::default();
        for (name, value) in fields {
            all.push(name, value);
        }
        RequestId::of(&all, 0x2a).to_string()
    }

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_given_id_is_taken_over() {
        assert_eq!(id_of(&[("X-Request-ID", "7b44-a.b:c"), ("traceparent", TRACE)]), "7b44-a.b:c");
        assert_eq!(id_of(&[("traceparent", TRACE)]), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(id_of(&[("X-Request-ID", &"x".repeat(MAX_ID))]), "x".repeat(MAX_ID));
    }

    #[test]
    fn what_is_no_id_is_not() {
        let made = format!("{:08x}-00000000002a", *PROCESS);
        let long = "x".repeat(MAX_ID + 1);
        for id in ["", "a b", "a\"b", "\x1b[31m", "ä", &long] {
            assert_eq!(id_of(&[("X-Request-ID", id)]), made, "{id:?}");
        }
        let zeros = TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        for trace in [
            "",
            "00-",
            &TRACE[..30],
            &TRACE.replace("4b", "4B"),
            &TRACE.replacen("00", "ff", 1),
            &TRACE.replace("-01", "-zz"),
            &zeros,
        ] {
            assert_eq!(id_of(&[("traceparent", trace)]), made, "{trace:?}");
        }
    }

    #[test]
    fn numbers_are_told_apart_across_threads() {
        let mine = [next_number(), next_number()];
        let theirs = std::thread::spawn(next_number).join().unwrap();
        assert!(mine[0] != mine[1] && !mine.contains(&theirs));
    }
}
