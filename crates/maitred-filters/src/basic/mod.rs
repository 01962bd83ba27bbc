//! Basic authentication (RFC 7617) against a file of users with the Argon2 hashes of their passwords.
//!
//! ```text
//! users.rs    the file             cache.rs      results of checks, for a while
//! hasher.rs   the threads          password.rs   the hash
//! ```

mod cache;
pub(crate) mod hasher;
mod password;
mod users;

use std::fmt;
use std::sync::Arc;

use base64ct::{Base64, Encoding};
use maitred_http::{RequestHead, ResponseHead, Status};

use cache::CheckedUser;
use hasher::{Counted, Full, Hasher, Ticket, Wake};
use maitred_match::BadPattern;

pub use users::{BadUsers, MAX_NAME, Users, check_name};

/// A line of a file of users, without its end.
///
/// # Errors
/// The name is not allowed, or the system has no random bytes or no memory for the hash.
pub fn user_line(name: &str, password: &[u8]) -> Result<String, String> {
    check_name(name)?;
    Ok(format!("{name}:{}", password::hash(password)?))
}

/// Whether clients are asked for a name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// Clients are not asked, against any less specific filter.
    Off,
    /// Clients are asked.
    Basic(BasicAuth),
}

/// The users, and the name of the realm that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicAuth {
    users: Arc<Users>,
    realm: Box<str>,
}

impl BasicAuth {
    /// Authentication of these users.
    ///
    /// # Errors
    /// The realm has other characters than those of printable ASCII.
    pub fn new(users: Arc<Users>, realm: &str) -> Result<Self, BadPattern> {
        if realm.is_empty() || !realm.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            let what = format!("'{}' is no realm", realm.escape_debug());
            return Err(BadPattern::new(what, "write printable ASCII, such as \"Staff only\""));
        }
        Ok(Self { users, realm: realm.into() })
    }

    /// The users that are let in.
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// The realm, which clients show when they ask for a password.
    pub fn realm(&self) -> &str {
        &self.realm
    }

    pub(super) fn challenge(&self) -> ResponseHead {
        let realm = self.realm.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        ResponseHead::new(Status::UNAUTHORIZED).with("WWW-Authenticate", value)
    }

    /// Looks at the credentials of a request of a client with this number; `wake` is called when a check that takes time is done,
    /// and `count` counts one for the client, of which there may be so many.
    pub(super) fn ask(
        &self,
        head: &RequestHead,
        (client, now): (Option<u128>, u64),
        hasher: Option<&Hasher>,
        count: &dyn Fn(u32) -> Option<Counted>,
        wake: impl FnOnce() -> Wake,
    ) -> Asked {
        let Some(credentials) = Credentials::of(head) else { return Asked::Nothing };
        let known = self.users.know(&credentials, now);
        if let Some(found) = &known.found
            && !known.stale
        {
            return Asked::Known(found.clone());
        }
        let is_known = known.found.is_some();
        let begun = hasher.map_or(Err(Full::Queue), |hasher| {
            hasher.begin(&self.users, credentials, known.tag, (client, is_known), count, wake())
        });
        match (begun, known.found) {
            (Ok(ticket), _) => Asked::Checking(ticket),
            // A result that was right a moment ago is better than nothing.
            (Err(_), Some(found)) => Asked::Known(found),
            (Err(full), None) => Asked::Busy(full),
        }
    }
}

pub(super) enum Asked {
    /// The user; none where name or password are wrong.
    Known(CheckedUser),
    Nothing,
    Checking(Ticket),
    Busy(Full),
}

pub(super) struct Credentials {
    user: Box<[u8]>,
    password: Box<[u8]>,
}

/// Longer credentials count as wrong: a password has no use for more.
const MAX_CREDENTIALS: usize = 1024;

impl Credentials {
    /// The credentials of a request; none without a field of this kind, or with two.
    fn of(head: &RequestHead) -> Option<Self> {
        let mut fields = head.fields.all("authorization");
        let (field, more) = (fields.next()?, fields.next());
        if more.is_some() { None } else { Self::parse(field) }
    }

    /// `Basic` and the Base64 of `NAME:PASSWORD` (RFC 7617 §2).
    fn parse(field: &[u8]) -> Option<Self> {
        let (scheme, rest) = field.split_at_checked("Basic ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Basic ") {
            return None;
        }
        let text = rest.trim_ascii();
        if text.len() > MAX_CREDENTIALS {
            return None;
        }
        // In a time that does not depend on the characters.
        let decoded = Base64::decode_vec(std::str::from_utf8(text).ok()?).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        if decoded.iter().any(u8::is_ascii_control) {
            return None;
        }
        Some(Self { user: decoded[..colon].into(), password: decoded[colon + 1..].into() })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither belongs into a log.
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(field: &str) -> Option<(String, String)> {
        let text = |bytes: Box<[u8]>| String::from_utf8(bytes.into()).expect("UTF-8");
        Credentials::parse(field.as_bytes()).map(|found| (text(found.user), text(found.password)))
    }

    #[test]
    fn credentials_are_a_name_and_a_password() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        // The examples of RFC 7617 §2 and §2.1.
        assert_eq!(parsed("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), pair("Aladdin", "open sesame"));
        assert_eq!(parsed("basic  dGVzdDoxMjPCow==  "), pair("test", "123£"));
        assert_eq!(parsed("BASIC YTpiOmM="), pair("a", "b:c"));
        assert_eq!(parsed("Basic Og=="), pair("", ""));
        for none in [
            "",
            "Basic",
            "Basic ",
            "BasicYTpi",
            "Bearer YTpi",
            "Basic YWI=",
            "Basic YTpi YTpi",
            "Basic Y",
            "Basic YTpi=",
            "Basic YQA6Yg==",
            "Basic \u{e4}",
        ] {
            assert_eq!(parsed(none), None, "{none}");
        }
        let long = Base64::encode_string(format!("a:{}", "x".repeat(MAX_CREDENTIALS)).as_bytes());
        assert_eq!(parsed(&format!("Basic {long}")), None);
    }

    #[test]
    fn one_field_counts_and_two_do_not() {
        let mut head = RequestHead::default();
        assert!(Credentials::of(&head).is_none());
        head.fields.push("authorization", "Basic YTpi");
        assert!(Credentials::of(&head).is_some());
        head.fields.push("Authorization", "Basic YTpi");
        assert!(Credentials::of(&head).is_none());
    }

    proptest! {
        #[test]
        fn any_field_is_credentials_or_none(bytes: Vec<u8>) {
            let _ = Credentials::parse(&bytes);
            let _ = Credentials::parse(&[b"Basic ".as_slice(), &bytes].concat());
        }

        #[test]
        fn encoded_credentials_are_found(user in "[^:\\p{Cc}]{0,20}", password in "[^\\p{Cc}]{0,20}") {
            let field = format!("Basic {}", Base64::encode_string(format!("{user}:{password}").as_bytes()));
            prop_assert_eq!(parsed(&field), Some((user, password)));
        }
    }
}
