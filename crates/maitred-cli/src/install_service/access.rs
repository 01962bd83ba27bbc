//! Whether the user of a service may read a file or a folder, by owner, group and mode.
//!
//! Promises: what is told to be closed is closed by the mode of a folder on the way, or by its own. Leaves out: access control lists; a file
//! or folder that has one counts as open.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use maitred_server::accounts;

use crate::accounts::{account, shown_user};
use crate::value::BadValue;

/// Who reads.
#[derive(Debug)]
pub(super) struct Reader {
    /// None of a user that systemd makes when the service starts.
    uid: Option<u32>,
    groups: Vec<u32>,
    /// For commands: whom a file is given to.
    group: Option<String>,
}

/// A path that the user may not use, and the permission that is missing: `r`, `x` or `rx`.
pub(super) type Closed = (PathBuf, &'static str);

impl Reader {
    /// The user and group of the unit.
    ///
    /// # Errors
    /// One of them does not exist here, with the option and the reason.
    pub(super) fn of(user: Option<&str>, group: Option<&str>) -> Result<Self, (&'static str, BadValue)> {
        let gid = group.map(|name| account(name).and_then(|group| group.gid()));
        let gid = gid.transpose().map_err(|bad| ("group", bad))?;
        let group = group.map(ToOwned::to_owned);
        let Some(name) = user else {
            return Ok(Self { uid: None, groups: gid.into_iter().collect(), group });
        };
        let wrong = |bad| ("user", bad);
        let account = account(name).map_err(wrong)?;
        let (uid, user) = (account.uid().map_err(wrong)?, account.user().map_err(wrong)?);
        let mut groups: Vec<u32> = gid.or(user.as_ref().map(|user| user.gid)).into_iter().collect();
        if let (Some(user), Some(gid)) = (&user, groups.first()) {
            // Who cannot be looked up has at least its own group.
            groups.extend(accounts::groups_of(&user.name, *gid).unwrap_or_default());
        }
        let own = || groups.first().and_then(|gid| accounts::group_numbered(*gid).ok().flatten());
        let group = group.or_else(|| Some(own()?.name));
        Ok(Self { uid: Some(uid), groups, group })
    }

    /// What is closed on the way to this file or folder, and of the ways of links in it.
    pub(super) fn closed(&self, path: &Path, is_folder: bool) -> Vec<Closed> {
        let real = fs::canonicalize(path).ok().filter(|real| real != path);
        let mut closed = Vec::new();
        for way in [Some(path), real.as_deref()].into_iter().flatten() {
            let mut steps: Vec<&Path> = way.ancestors().collect();
            steps.reverse();
            for step in steps {
                let need = match (step == way, is_folder) {
                    (false, _) => "x",
                    (true, true) => "rx",
                    (true, false) => "r",
                };
                let is_known = closed.iter().any(|(known, _)| known == step);
                if !is_known && !self.may(step, need) {
                    closed.push((step.to_owned(), need));
                }
            }
        }
        closed
    }

    /// Also true of what cannot be looked at.
    fn may(&self, path: &Path, need: &str) -> bool {
        let Ok(found) = fs::metadata(path) else { return true };
        if self.uid == Some(0) || has_acl(path) {
            return true;
        }
        let shift = match () {
            () if self.uid == Some(found.uid()) => 6,
            () if self.groups.contains(&found.gid()) => 3,
            () => 0,
        };
        let wanted = need.bytes().map(|letter| if letter == b'r' { 4 } else { 1 }).sum::<u32>();
        found.mode() >> shift & wanted == wanted
    }

    /// `user www-data (33)`.
    pub(super) fn shown(&self) -> String {
        match self.uid {
            Some(uid) => format!("user {}", shown_user(uid)),
            None => "the user that systemd makes".to_owned(),
        }
    }

    /// The commands that open what is closed.
    pub(super) fn cure(&self, closed: &[Closed], is_secret: bool) -> String {
        let quoted = |path: &Path| match path.to_string_lossy() {
            text if text.chars().all(|letter| letter.is_alphanumeric() || "/._-".contains(letter)) => {
                text.into_owned()
            }
            text => format!("'{}'", text.replace('\'', "'\\''")),
        };
        let modes = |who: char| {
            let each = closed.iter().map(|(path, need)| format!("chmod {who}+{need} {}", quoted(path)));
            each.collect::<Vec<_>>().join(" && ")
        };
        let paths: Vec<String> = closed.iter().map(|(path, _)| quoted(path)).collect();
        match &self.group {
            Some(group) => format!("chgrp {group} {} && {}", paths.join(" "), modes('g')),
            None if is_secret => format!(
                "give the service a group with --group NAME, then: chgrp NAME {} && {}",
                paths.join(" "),
                modes('g')
            ),
            None => modes('o'),
        }
    }
}

/// Whether there are more rules than the mode.
fn has_acl(path: &Path) -> bool {
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0_u8; 0][..]).is_ok_and(|length| length > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn modes_say_who_may_read() {
        let folder = std::env::temp_dir().join(format!("maitred-access-{}", std::process::id()));
        fs::create_dir_all(folder.join("keys")).expect("a folder");
        let file = folder.join("keys/a.key");
        fs::write(&file, "").expect("a file");
        let set =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own");
        set(&folder, 0o755);
        set(&folder.join("keys"), 0o750);
        set(&file, 0o640);
        let found = fs::metadata(&file).expect("a file");
        let dynamic = Reader { uid: None, groups: vec![], group: None };
        let closed = dynamic.closed(&file, false);
        assert_eq!(closed, [(folder.join("keys"), "x"), (file.clone(), "r")]);
        assert!(dynamic.cure(&closed, true).starts_with("give the service a group with --group NAME"));
        assert!(dynamic.cure(&closed, false).starts_with("chmod o+x "));
        let member =
            Reader { uid: Some(4_000_000), groups: vec![found.gid()], group: Some("web".to_owned()) };
        assert!(member.closed(&file, false).is_empty());
        set(&file, 0o600);
        let closed = member.closed(&file, false);
        assert_eq!(member.cure(&closed, true), format!("chgrp web {0} && chmod g+r {0}", file.display()));
        let owner = Reader { uid: Some(found.uid()), groups: vec![], group: None };
        assert!(owner.closed(&file, false).is_empty());
        // The way of a link counts as well as the link.
        std::os::unix::fs::symlink(&file, folder.join("link")).expect("a link");
        set(&file, 0o644);
        assert_eq!(dynamic.closed(&folder.join("link"), false), [(folder.join("keys"), "x")]);
        fs::remove_dir_all(&folder).expect("own");
    }
}
