//! The user and group of the process after it listens (`--user`, `--group`): from names to numbers.
//!
//! Leaves out: the time of the change (early), and the system calls (rights of maitred-io).

use maitred_control::local;
use maitred_server::accounts::{self, User};
use maitred_server::rights::{Identity, Rights};

use crate::accounts::{shown_group, shown_user};
use crate::{Account, BadValue, Config, Origins, Problem};

/// The user and group that the process becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The numbers.
    pub identity: Identity,
    /// None for a number without an entry, and where only a group is asked for.
    user: Option<User>,
}

/// Looks up the configured user and group; none if the configuration has neither.
pub fn wanted(config: &Config, origins: &Origins) -> Result<Option<Wanted>, Problem> {
    let at = |name: &'static str| move |bad: BadValue| bad.at(origins.describe(name));
    let group = config.group.as_ref().map(Account::gid).transpose().map_err(at("group"))?;
    let Some(account) = &config.user else {
        let identity = |gid| Identity { uid: local::user(), gid, groups: vec![gid] };
        return Ok(group.map(|gid| Wanted { identity: identity(gid), user: None }));
    };
    let user = account.user().map_err(at("user"))?;
    let uid = account.uid().map_err(at("user"))?;
    let own = (uid == local::user()).then(local::group);
    let Some(gid) = group.or(user.as_ref().map(|user| user.gid)).or(own) else {
        let what = format!("user {uid} has no entry on this machine, so its group is not known");
        return Err(at("user")(BadValue::new(what, "give it with --group")));
    };
    let groups = match &user {
        Some(user) => accounts::groups_of(&user.name, gid).map_err(|error| {
            let what = format!("the groups of '{}' cannot be looked up: {error}", user.name);
            at("user")(BadValue::new(what, "see the name service of this machine (/etc/nsswitch.conf)"))
        })?,
        None => vec![gid],
    };
    Ok(Some(Wanted { identity: Identity { uid, gid, groups }, user }))
}

impl Wanted {
    /// Whether the process has other rights than these so far.
    pub fn differs(&self) -> bool {
        let Identity { uid, gid, .. } = self.identity;
        Rights::own()
            .map_or((uid, gid) != (local::user(), local::group()), |own| self.identity.gives_up(&own))
    }

    /// Environment variables with the user's name and home.
    pub fn environment(&self) -> Vec<(String, String)> {
        let Some(User { name, home, .. }) = &self.user else { return Vec::new() };
        let home = home.display().to_string();
        [("HOME", home), ("USER", name.clone()), ("LOGNAME", name.clone())]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }

    /// The start-up line of a process that has become this user.
    pub fn acts(&self) -> String {
        let capabilities = if self.identity.uid == 0 { "" } else { ", with no capability" };
        format!("acts as {}{capabilities}", self.shown())
    }

    /// `user www-data (33), group www-data (33)`.
    pub fn shown(&self) -> String {
        let Identity { uid, gid, .. } = self.identity;
        format!("user {}, group {}", shown_user(uid), shown_group(gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted_of(user: Option<&str>, group: Option<&str>) -> Result<Option<Identity>, String> {
        let account = |text: Option<&str>| text.map(|text| crate::accounts::account(text).expect(text));
        let config = Config { user: account(user), group: account(group), ..Config::with_defaults() };
        let wanted = wanted(&config, &Origins::default());
        wanted.map(|wanted| wanted.map(|wanted| wanted.identity)).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_user_comes_with_its_groups_and_a_number_with_the_one_that_is_given() {
        assert_eq!(wanted_of(None, None), Ok(None));
        let root = wanted_of(Some("root"), None).expect("known").expect("asked for");
        assert_eq!((root.uid, root.gid, root.groups.contains(&0)), (0, 0, true));
        let other = wanted_of(Some("root"), Some("12345")).expect("known").expect("asked for");
        assert_eq!((other.uid, other.gid, other.groups.contains(&12_345)), (0, 12_345, true));
        let numbers = Identity { uid: 4_000_000_000, gid: 7, groups: vec![7] };
        assert_eq!(wanted_of(Some("4000000000"), Some("7")), Ok(Some(numbers)));
        let only_group = Identity { uid: local::user(), gid: 7, groups: vec![7] };
        assert_eq!(wanted_of(None, Some("7")), Ok(Some(only_group)));
        // The process is this user already, whatever the machine knows of it.
        let own = wanted_of(Some(&local::user().to_string()), None).expect("own").expect("asked for");
        assert_eq!(own.uid, local::user());
    }

    #[test]
    fn unknown_users_and_groups_are_named_with_the_remedy() {
        assert_eq!(
            wanted_of(Some("4000000000"), None).expect_err("no group"),
            "--user: user 4000000000 has no entry on this machine, so its group is not known; give it with --group"
        );
        assert_eq!(
            wanted_of(Some("rooot"), None).expect_err("no user"),
            "--user: there is no user 'rooot' on this machine; did you mean 'root'?"
        );
        assert!(
            wanted_of(None, Some("no such group")).expect_err("no group").starts_with("--group: there is no")
        );
    }

    #[test]
    fn programs_are_told_who_they_are() {
        let config = Config { user: Some(Account::Number(0)), ..Config::with_defaults() };
        let wanted = wanted(&config, &Origins::default()).expect("known").expect("asked for");
        let [(home, _), user, name] = &wanted.environment()[..] else { panic!("three") };
        assert_eq!((&**home, &*user.1, &*name.0, &*name.1), ("HOME", "root", "LOGNAME", "root"));
        assert!(wanted.shown().starts_with("user root (0), group "));
        assert!(
            !Wanted {
                identity: Identity { uid: local::user(), gid: local::group(), groups: vec![] },
                user: None
            }
            .differs()
                || local::user() != 0
        );
    }
}
