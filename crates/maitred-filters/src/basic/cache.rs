//! Credentials that have been checked, for a while: the tag of each with the result.
//!
//! Promises: bounded in entries and time; wrong ones never push right ones out. No password is in it, and a tag is of
//! no use without the key.

use std::collections::HashMap;
use std::sync::Arc;

use argon2::password_hash::try_generate_salt;
use blake2::{Blake2b256, Digest};

use super::Credentials;

const SECOND: u64 = 1_000_000_000;

/// How long a right password is not checked again, in nanoseconds. A change of the file ends it before.
const RIGHT: u64 = 300 * SECOND;

/// How long a wrong result is known: long enough that a client that repeats itself costs nothing.
const WRONG: u64 = 10 * SECOND;

/// Entries of each kind; one takes about 100 bytes.
const MAX_RIGHT: usize = 4096;
const MAX_WRONG: usize = 1024;

#[derive(Clone, Copy)]
pub(super) struct Tag([u8; 32]);

/// The key of tags: 256 bits that only this process has.
pub(super) struct Key([[u8; 16]; 2]);

impl Key {
    pub(super) fn new() -> Result<Self, String> {
        let random =
            || try_generate_salt().map_err(|error| format!("the system has no random bytes: {error}"));
        Ok(Self([random()?, random()?]))
    }

    /// BLAKE2b with the key first, which is a MAC: its state is not its output (RFC 7693 §2.9 pads a key likewise).
    pub(super) fn tag(&self, credentials: &Credentials) -> Tag {
        let mut state = Blake2b256::new();
        for part in &self.0 {
            Digest::update(&mut state, part);
        }
        // With the length before it a name cannot run into the password.
        Digest::update(&mut state, (credentials.user.len() as u64).to_le_bytes());
        Digest::update(&mut state, &credentials.user);
        Digest::update(&mut state, &credentials.password);
        Tag(state.finalize().into())
    }
}

impl Tag {
    /// Where it is looked for: an eighth, by which nothing is decided.
    fn place(&self) -> u32 {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// Compares in the same time wherever the tags differ.
    pub(super) fn is(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differing) == 0
    }
}

/// The result of a check: the name of the user, or that it was wrong.
pub(crate) type CheckedUser = Option<Arc<str>>;

#[derive(Default)]
pub(super) struct Cache {
    right: Kind,
    wrong: Kind,
}

#[derive(Default)]
struct Kind(HashMap<u32, Entry>);

struct Entry {
    tag: Tag,
    found: CheckedUser,
    /// The end of the entry, in monotonic nanoseconds.
    until: u64,
}

impl Cache {
    pub(super) fn find(&self, tag: &Tag, now: u64) -> Option<CheckedUser> {
        self.right.find(tag, now).or_else(|| self.wrong.find(tag, now))
    }

    pub(super) fn add(&mut self, tag: Tag, found: CheckedUser, now: u64) {
        let (kind, time, most) = match found {
            Some(_) => (&mut self.right, RIGHT, MAX_RIGHT),
            None => (&mut self.wrong, WRONG, MAX_WRONG),
        };
        kind.add(Entry { tag, found, until: now + time }, most, now);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Kind {
    fn find(&self, tag: &Tag, now: u64) -> Option<CheckedUser> {
        let entry = self.0.get(&tag.place()).filter(|entry| entry.tag.is(tag) && now < entry.until)?;
        Some(entry.found.clone())
    }

    fn add(&mut self, entry: Entry, most: usize, now: u64) {
        if self.0.len() >= most {
            self.0.retain(|_, entry| now < entry.until);
        }
        if self.0.len() >= most
            && let Some(oldest) = self.0.iter().min_by_key(|(_, entry)| entry.until).map(|(place, _)| *place)
        {
            self.0.remove(&oldest);
        }
        self.0.insert(entry.tag.place(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials { user: user.as_bytes().into(), password: password.as_bytes().into() }
    }

    #[test]
    fn a_checked_result_is_known_for_its_time() {
        let (key, mut cache) = (Key::new().expect("random"), Cache::default());
        let [right, wrong] = ["a", "b"].map(|password| key.tag(&credentials("u", password)));
        assert!(cache.find(&right, 0).is_none());
        cache.add(right, Some("u".into()), 1);
        cache.add(wrong, None, 1);
        assert_eq!(cache.find(&right, RIGHT), Some(Some("u".into())));
        assert_eq!(cache.find(&wrong, WRONG), Some(None));
        assert_eq!((cache.find(&right, RIGHT + 1), cache.find(&wrong, WRONG + 1)), (None, None));
        cache.clear();
        assert!(cache.find(&right, 1).is_none());
    }

    #[test]
    fn a_tag_is_that_of_one_name_one_password_and_one_key() {
        let (one, other) = (Key::new().expect("random"), Key::new().expect("random"));
        let tag = one.tag(&credentials("ab", "c"));
        assert!(tag.is(&one.tag(&credentials("ab", "c"))));
        for (user, password) in [("a", "bc"), ("abc", ""), ("ab", "C"), ("", "abc")] {
            assert!(!tag.is(&one.tag(&credentials(user, password))), "{user} {password}");
        }
        assert!(!tag.is(&other.tag(&credentials("ab", "c"))));
    }

    #[test]
    fn there_are_never_more_than_it_may_have_and_wrong_ones_push_no_right_one_out() {
        let (key, mut cache) = (Key::new().expect("random"), Cache::default());
        let right = key.tag(&credentials("u", "right"));
        cache.add(right, Some("u".into()), 0);
        for number in 0..3 * MAX_WRONG as u64 {
            cache.add(key.tag(&credentials("u", &number.to_string())), None, number);
        }
        assert!(cache.wrong.0.len() <= MAX_WRONG);
        assert!(cache.find(&right, 1).is_some());
        let last = key.tag(&credentials("u", &(3 * MAX_WRONG - 1).to_string()));
        assert_eq!(cache.find(&last, 1), Some(None), "the newest stay");
        for number in 0..2 * MAX_RIGHT as u64 {
            cache.add(key.tag(&credentials(&number.to_string(), "")), Some("x".into()), number);
        }
        assert!(cache.right.0.len() <= MAX_RIGHT);
    }
}
