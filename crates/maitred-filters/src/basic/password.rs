//! Argon2id (RFC 9106): making and checking the hash of a password. Both take tens of milliseconds and the memory that the
//! hash says, so only the threads of `hasher.rs` and the command `passwd` come here.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};

/// A hash that is checked takes at most so much memory, in KiB, times the threads that check. RFC 9106 §4 recommends 64 MiB
/// where memory is scarce, OWASP 19 MiB.
pub(super) const MAX_MEMORY: u32 = 256 * 1024;

/// Memory times passes, in KiB: about two seconds of one processor.
pub(super) const MAX_WORK: u64 = 4 * 256 * 1024;

/// Lanes, which are computed one after the other here.
pub(super) const MAX_LANES: u32 = 16;

/// Version 1.3, that of RFC 9106.
const VERSION: u32 = 0x13;

/// The hash that is checked for an unknown name when there are no users: as costly as the result of [`hash`].
pub(super) const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a password as a PHC string, with a salt of the system's: 19 MiB, two passes, one lane (OWASP's first choice).
/// Errors: the system has no random bytes or no memory.
pub(super) fn hash(password: &[u8]) -> Result<String, String> {
    let hash: PasswordHash = Argon2::default().hash_password(password).map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

/// Whether this is the password of that hash. The comparison takes the same time wherever they differ.
pub(super) fn verify(hash: &PasswordHash, password: &[u8]) -> bool {
    Argon2::default().verify_password(password, hash).is_ok()
}

/// Reads a PHC string that can be checked.
/// Errors: the fault of the string.
pub(super) fn parse(text: &str) -> Result<PasswordHash, String> {
    let hash = PasswordHash::new(text).map_err(|_| "the hash is no PHC string".to_owned())?;
    if hash.algorithm.as_str() != "argon2id" || hash.version.is_some_and(|version| version != VERSION) {
        return Err("the hash is not one of argon2id, version 19".to_owned());
    }
    let params = Params::try_from(&hash).map_err(|error| format!("the hash: {error}"))?;
    let (memory, lanes) = (params.m_cost(), params.p_cost());
    if memory > MAX_MEMORY || cost(&params) > MAX_WORK || lanes > MAX_LANES {
        return Err(format!(
            "the hash takes too much: at most m={MAX_MEMORY}, p={MAX_LANES}, and m times t {MAX_WORK}"
        ));
    }
    if hash.hash.is_none() || hash.salt.is_none() {
        return Err("the hash is not complete".to_owned());
    }
    Ok(hash)
}

pub(super) fn cost_of(hash: &PasswordHash) -> u64 {
    Params::try_from(hash).map_or(0, |params| cost(&params))
}

fn cost(params: &Params) -> u64 {
    u64::from(params.m_cost()) * u64::from(params.t_cost())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_that_of_its_hash_and_of_no_other() {
        let hash = hash("pässword".as_bytes()).expect("random bytes");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let hash = parse(&hash).expect("one of ours");
        assert!(verify(&hash, "pässword".as_bytes()));
        assert!(!verify(&hash, b"password") && !verify(&hash, b""));
        assert_eq!(cost_of(&hash), cost_of(&parse(NOBODY).expect("valid")));
    }

    #[test]
    fn a_hash_that_others_have_made_is_read() {
        let hash = parse(REFERENCE).expect("valid");
        assert!(verify(&hash, b"password"));
        assert!(!verify(&hash, b"Password"));
    }

    /// A test vector of the reference implementation (its test.c).
    const REFERENCE: &str =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    #[test]
    fn hashes_that_cannot_be_checked_or_cost_too_much_are_errors() {
        for (text, part) in [
            ("", "no PHC string"),
            ("secret", "no PHC string"),
            ("$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe", ""),
            (
                "$argon2i$v=19$m=16,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8",
                "not one of argon2id",
            ),
            (
                "$argon2id$v=16$m=16,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8",
                "not one of argon2id",
            ),
            ("$argon2id$v=19$m=16,t=2,p=1$c29tZXNhbHQ", "is not complete"),
            ("$argon2id$v=19$m=16,t=2,p=1", "is not complete"),
            ("$argon2id$v=19$m=16,t=2,p=1$c29tZQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8", "no PHC string"),
            ("$argon2id$v=19$m=999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8", "too much"),
            ("$argon2id$v=19$m=65536,t=99,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8", "too much"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
