//! Users and groups as they are written, by name or by number, and their entries on this machine.
//!
//! Leaves out: asking the system (accounts of maitred-io).

use std::fmt;
use std::io;

use maitred_server::accounts::{self, User};

use crate::{BadValue, did_you_mean};

/// A user or a group as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// By its number.
    Number(u32),
    /// By its name, which the name service of the machine knows or does not know.
    Name(String),
}

/// A number, or else a name.
pub fn account(text: &str) -> Result<Account, BadValue> {
    let wrong = |why: &str| {
        BadValue::new(format!("'{text}' {why}"), "write a name such as www-data, or a number such as 33")
    };
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // The kernel reads the greatest number as "no user".
        let number = text.parse().ok().filter(|number| *number != u32::MAX);
        return number
            .map(Account::Number)
            .ok_or_else(|| wrong("is too great for the number of a user or a group"));
    }
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, ':' | ',' | '/');
    if text.trim().is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err(wrong("is no name of a user or a group"));
    }
    Ok(Account::Name(text.to_owned()))
}

impl Account {
    pub(crate) fn uid(&self) -> Result<u32, BadValue> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => user_named(name).map(|user| user.uid),
        }
    }

    pub(crate) fn gid(&self) -> Result<u32, BadValue> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => match accounts::group_named(name) {
                Ok(Some(group)) => Ok(group.gid),
                found => Err(unknown("group", name, found.err(), &accounts::local_groups())),
            },
        }
    }

    /// The system's entry of this user; none for a number without an entry.
    pub(crate) fn user(&self) -> Result<Option<User>, BadValue> {
        match self {
            Self::Number(number) => accounts::user_numbered(*number)
                .map_err(|error| unknown("user", &number.to_string(), Some(error), &[])),
            Self::Name(name) => user_named(name).map(Some),
        }
    }
}

fn user_named(name: &str) -> Result<User, BadValue> {
    match accounts::user_named(name) {
        Ok(Some(user)) => Ok(user),
        found => Err(unknown("user", name, found.err(), &accounts::local_users())),
    }
}

fn unknown(kind: &str, name: &str, error: Option<io::Error>, known: &[String]) -> BadValue {
    if let Some(error) = error {
        let what = format!("the {kind} '{name}' cannot be looked up: {error}");
        return BadValue::new(
            what,
            "see the name service of this machine (/etc/nsswitch.conf), or write a number",
        );
    }
    let remedy = did_you_mean(
        name,
        known.iter().map(String::as_str),
        format!(
            "make it, or take one that 'getent {}' lists",
            if kind == "user" { "passwd" } else { "group" }
        ),
    );
    BadValue::new(format!("there is no {kind} '{name}' on this machine"), remedy)
}

/// `www-data (33)`, or the number alone if there is no name.
pub fn shown_user(uid: u32) -> String {
    let name = accounts::user_numbered(uid).ok().flatten().map(|user| user.name);
    shown(name, uid)
}

/// The name and number of a group, like [`shown_user`].
pub fn shown_group(gid: u32) -> String {
    let name = accounts::group_numbered(gid).ok().flatten().map(|group| group.name);
    shown(name, gid)
}

fn shown(name: Option<String>, number: u32) -> String {
    name.map_or_else(|| number.to_string(), |name| format!("{name} ({number})"))
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_a_number_and_the_rest_is_a_name() {
        assert_eq!(account("33"), Ok(Account::Number(33)));
        for name in ["www-data", "_http", "3com", "DOMAIN\\user name", "café"] {
            assert_eq!(account(name).expect(name).to_string(), name);
        }
        for text in ["", " ", "-1", "a:b", "a,b", "a/b", "a\nb", "4294967295", "99999999999"] {
            assert!(account(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_are_looked_up_and_unknown_ones_named_with_the_nearest() {
        let root = account("root").expect("a name");
        assert_eq!((root.uid(), root.user().map(|user| user.map(|user| user.uid))), (Ok(0), Ok(Some(0))));
        assert_eq!(Account::Number(7).gid(), Ok(7));
        let bad = account("roots").and_then(|account| account.uid()).expect_err("none");
        assert_eq!(
            (bad.what.as_str(), bad.remedy.as_str()),
            ("there is no user 'roots' on this machine", "did you mean 'root'?")
        );
        let bad = account("no such group").and_then(|account| account.gid()).expect_err("none");
        assert_eq!(bad.remedy, "make it, or take one that 'getent group' lists");
        assert_eq!(shown_user(0), "root (0)");
        assert_eq!(shown_group(u32::MAX), u32::MAX.to_string());
    }
}
