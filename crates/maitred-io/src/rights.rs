//! The rights of the process: the user, groups and capabilities of its threads, and giving them up for good.
//!
//! Promises: after [`Identity::assume`] every thread of the process acts as that user, with no capability left; this is
//! checked, and an error if not. Threads and programs that begin later have no more.
//!
//! How: users and groups belong to threads in Linux; the C library's calls change those of all threads (nptl(7)), which system
//! calls by themselves do not. Capabilities go with the change from root to another user, in every thread. Where there is no such
//! change, and in the sets from which programs begun later get theirs (bounding, inheritable, ambient), they are cleared in the
//! calling thread, so it should be the only one. Others that have kept some are found, and an error.
//!
//! Leaves out: names (accounts), and when it is done (maitred-process).

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Names of capabilities by their numbers (capability.h of Linux 6.12).
const CAPABILITIES: &str = "chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable \
    net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio \
    sys_chroot sys_ptrace sys_pacct sys_admin sys_boot sys_nice sys_resource sys_time \
    sys_tty_config mknod lease audit_write audit_control setfcap mac_override mac_admin syslog \
    wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore";
const SETGID: u32 = 6;
const SETUID: u32 = 7;

/// The user and groups of the process after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// All groups of the user, which replace those that the process has.
    pub groups: Vec<u32>,
}

/// Sets of capabilities, a bit for each (capabilities(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Capabilities that a program begun by the thread may keep.
    pub inheritable: u64,
    /// Capabilities that the thread may have.
    pub permitted: u64,
    /// Capabilities that it has.
    pub effective: u64,
    /// Capabilities that a program begun by it can get at most.
    pub bounding: u64,
    /// Capabilities that such a program gets without being marked.
    pub ambient: u64,
}

/// The rights of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The real, the effective and the saved user, and that for files.
    pub users: [u32; 4],
    /// The real, the effective and the saved group, and that for files.
    pub groups: [u32; 4],
    /// Further groups.
    pub further: Vec<u32>,
    /// The capabilities.
    pub capabilities: Capabilities,
}

/// Why the process does not act as another user.
#[derive(Debug)]
pub enum NotAssumed {
    /// The system refuses this change.
    Refused(&'static str, io::Error),
    /// The change seems to have worked, but a thread has kept something.
    Kept {
        /// The thread's number and name.
        thread: String,
        /// The right that it has kept.
        what: String,
    },
    /// The result cannot be checked: there is no /proc.
    Unknown(io::Error),
}

impl fmt::Display for NotAssumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what, error) => write!(f, "the {what} cannot be changed: {error}"),
            Self::Kept { thread, what } => write!(f, "thread {thread} has kept {what}"),
            Self::Unknown(error) => write!(f, "what the threads may do cannot be seen in /proc: {error}"),
        }
    }
}

impl std::error::Error for NotAssumed {}

impl Identity {
    /// Whether the thread acts as this user and group already.
    pub fn is_of(&self, rights: &Rights) -> bool {
        rights.users == [self.uid; 4] && rights.groups == [self.gid; 4]
    }

    /// Whether there is something to give up for a thread with these rights.
    pub fn gives_up(&self, rights: &Rights) -> bool {
        !self.is_of(rights) || (self.uid != 0 && rights.capabilities.held() != 0)
    }

    /// Gives up all other rights, of all threads and for good; to be called while there is one thread. Root keeps its capabilities. A process that acts as this user and group already
    /// keeps its further groups. Programs that the process begins later do not become root.
    ///
    /// Linux then takes the process for one that others of the same user may not look into, unless `fs.suid_dumpable` is 1.
    ///
    /// # Errors
    /// As [`NotAssumed`] says. The process may have lost some of its rights by then, and must not go on.
    pub fn assume(&self) -> Result<(), NotAssumed> {
        let before = Rights::own().map_err(NotAssumed::Unknown)?;
        if self.uid != 0 {
            clear_the_sets_of_programs();
        }
        if !self.is_of(&before) {
            self.change().map_err(|(what, error)| NotAssumed::Refused(what, error))?;
        }
        if self.uid != 0 {
            let empty = CapabilitySet::empty();
            let none = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
            rustix::thread::set_capabilities(None, none)
                .map_err(|error| NotAssumed::Refused("capabilities", error.into()))?;
        }
        for (thread, rights) in Rights::of_all().map_err(NotAssumed::Unknown)? {
            if let Some(what) = self.kept(&before, &rights) {
                return Err(NotAssumed::Kept { thread, what });
            }
        }
        Ok(())
    }

    fn change(&self) -> Result<(), (&'static str, io::Error)> {
        let done = |what, result: libc::c_int| match result {
            0 => Ok(()),
            _ => Err((what, io::Error::last_os_error())),
        };
        // SAFETY: the pointer leads to as many numbers as the call is told.
        done("groups", unsafe { libc::setgroups(self.groups.len() as _, self.groups.as_ptr()) })?;
        // SAFETY: these calls take numbers.
        done("group", unsafe { libc::setresgid(self.gid, self.gid, self.gid) })?;
        // SAFETY: as above.
        done("user", unsafe { libc::setresuid(self.uid, self.uid, self.uid) })
    }

    fn kept(&self, before: &Rights, now: &Rights) -> Option<String> {
        let other = |ids: &[u32], own: u32| ids.iter().find(|id| **id != own).copied();
        if let Some(user) = other(&now.users, self.uid) {
            return Some(format!("user {user}"));
        }
        if let Some(group) = other(&now.groups, self.gid) {
            return Some(format!("group {group}"));
        }
        let expected = if self.is_of(before) { &before.further } else { &self.groups };
        if let Some(group) = now.further.iter().find(|group| !expected.contains(group)) {
            return Some(format!("group {group}"));
        }
        let capabilities = now.capabilities.held();
        (self.uid != 0 && capabilities != 0)
            .then(|| format!("the capabilities {}", Capabilities::names(capabilities).join(", ")))
    }
}

impl Capabilities {
    /// All that the thread has or could take, without those that only limit it.
    pub fn held(&self) -> u64 {
        let Self { inheritable, permitted, effective, bounding: _, ambient } = *self;
        inheritable | permitted | effective | ambient
    }

    /// Names for the bits.
    pub fn names(set: u64) -> Vec<String> {
        let is_in = |number: &u32| set >> number & 1 == 1;
        (0..u64::BITS).filter(is_in).map(name_of).collect()
    }
}

fn name_of(number: u32) -> String {
    let known = CAPABILITIES.split(' ').nth(number as usize).map(|name| format!("cap_{name}"));
    known.unwrap_or_else(|| format!("cap_{number}"))
}

impl Rights {
    /// The rights of the calling thread.
    pub fn own() -> io::Result<Self> {
        read(&fs::read_to_string("/proc/thread-self/status")?)
    }

    /// The rights of all threads of the process, each with the number and the name of its thread.
    pub fn of_all() -> io::Result<Vec<(String, Self)>> {
        let mut all = Vec::new();
        for task in crate::tasks::list()? {
            match fs::read_to_string(format!("/proc/self/task/{}/status", task.tid)) {
                Ok(text) => all.push((format!("{} ({})", task.tid, task.name), read(&text)?)),
                // It has ended.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Whether the thread may take any user and group.
    pub fn may_change(&self) -> bool {
        let wanted = 1 << SETGID | 1 << SETUID;
        self.capabilities.effective & wanted == wanted
    }
}

fn read(text: &str) -> io::Result<Rights> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("there is no line {name}")))
    };
    let numbers = |name: &str| -> io::Result<Vec<u32>> {
        let numbers = field(name)?.split_ascii_whitespace().map(str::parse);
        numbers.collect::<Result<_, _>>().map_err(io::Error::other)
    };
    let four = |name: &str| {
        let numbers = numbers(name)?;
        <[u32; 4]>::try_from(numbers).map_err(|_| io::Error::new(ErrorKind::InvalidData, "not four numbers"))
    };
    let set = |name: &str| u64::from_str_radix(field(name)?.trim(), 16).map_err(io::Error::other);
    Ok(Rights {
        users: four("Uid")?,
        groups: four("Gid")?,
        further: numbers("Groups")?,
        capabilities: Capabilities {
            inheritable: set("CapInh")?,
            permitted: set("CapPrm")?,
            effective: set("CapEff")?,
            bounding: set("CapBnd")?,
            // Since Linux 4.3.
            ambient: set("CapAmb").unwrap_or(0),
        },
    })
}

/// Empties the sets from which a program begun later gets capabilities, of the calling thread, as far as it may.
fn clear_the_sets_of_programs() {
    // An old kernel has no such set.
    let _ = rustix::thread::clear_ambient_capability_set();
    for number in 0..u64::BITS {
        // SAFETY: this operation takes a number.
        let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
        if done != 0 {
            // The last one, or it may not: then there is little that could be got.
            return;
        }
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;

    use std::process::Command;
    use std::sync::mpsc;

    const STATUS: &str = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\nGroups:\t7 8 \nCapInh:\t0000000000000000\n\
                          CapPrm:\t0000000000000400\nCapEff:\t0000000000000001\nCapBnd:\t000001ffffffffff\n\
                          CapAmb:\t0000000000000000\n";

    #[test]
    fn rights_are_read_as_the_kernel_writes_them() {
        let rights = read(STATUS).unwrap();
        assert_eq!((rights.users, rights.groups, &*rights.further), ([1, 2, 3, 4], [5; 4], &[7, 8][..]));
        let held = rights.capabilities.held();
        assert_eq!(Capabilities::names(held), ["cap_chown", "cap_net_bind_service"]);
        assert_eq!(Capabilities::names(1 << 63), ["cap_63"]);
        assert!(!rights.may_change());
        assert!(read("Uid:\t1\n").is_err() && read(&STATUS.replace("\t4\n", "\n")).is_err());
        assert_eq!(read(&STATUS.replace("7 8 ", "")).unwrap().further, []);
        assert_eq!(Rights::own().unwrap().users[1], crate::local::user());
    }

    #[test]
    fn kept_rights_are_named() {
        let identity = Identity { uid: 1, gid: 5, groups: vec![5, 7] };
        let mut now = read(STATUS).unwrap();
        let before = now.clone();
        let mut kept = |change: fn(&mut Rights)| {
            change(&mut now);
            identity.kept(&before, &now)
        };
        assert_eq!(kept(|_| {}).as_deref(), Some("user 2"));
        assert_eq!(kept(|now| now.users = [1; 4]).as_deref(), Some("group 8"));
        let text = kept(|now| now.further = vec![5]);
        assert_eq!(text.as_deref(), Some("the capabilities cap_chown, cap_net_bind_service"));
        assert_eq!(
            kept(|now| now.capabilities = Capabilities { bounding: 1, ..Capabilities::default() }),
            None
        );
        assert_eq!(kept(|now| now.groups[2] = 0).as_deref(), Some("group 0"));
    }

    #[test]
    fn nothing_is_given_up_where_nothing_is_to_give() {
        let mut rights = read(STATUS).unwrap();
        rights.users = [1; 4];
        let identity = Identity { uid: 1, gid: 5, groups: vec![5] };
        assert!(identity.is_of(&rights) && identity.gives_up(&rights));
        rights.capabilities = Capabilities::default();
        assert!(!identity.gives_up(&rights));
        assert!(Identity { gid: 6, ..identity.clone() }.gives_up(&rights));
        // Root without anything given up stays root.
        let root = Rights { users: [0; 4], groups: [0; 4], ..read(STATUS).unwrap() };
        assert!(!Identity { uid: 0, gid: 0, groups: vec![0] }.gives_up(&root));
    }

    /// Runs in a process of its own, which `the_rights_of_all_threads_are_given_up` begins.
    #[test]
    #[ignore = "changes the process"]
    fn gives_them_up() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let other = std::thread::Builder::new().name("other".to_owned()).spawn(move || {
            tell.send(()).unwrap();
            let _ = ended.recv();
            Rights::own().unwrap()
        });
        told.recv().unwrap();
        Identity { uid: 65_534, gid: 65_533, groups: vec![65_532, 65_533] }.assume().unwrap();
        drop(end);
        let begun = std::thread::spawn(|| Rights::own().unwrap()).join().unwrap();
        let other = other.unwrap().join().unwrap();
        for rights in [Rights::own().unwrap(), begun.clone(), other] {
            assert_eq!((rights.users, rights.groups), ([65_534; 4], [65_533; 4]));
            assert_eq!(rights.further, [65_532, 65_533]);
            assert_eq!(rights.capabilities.held(), 0);
        }
        assert_eq!(begun.capabilities.bounding, 0);
        // SAFETY: the call takes a number.
        assert_eq!(unsafe { libc::setuid(0) }, -1);
        let nobody = Identity { uid: 1, gid: 1, groups: vec![1] };
        assert!(matches!(nobody.assume(), Err(NotAssumed::Refused("groups", _))));
    }

    /// Only root has rights to give up.
    #[test]
    fn the_rights_of_all_threads_are_given_up() {
        if !Rights::own().unwrap().may_change() {
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "rights::tests::gives_them_up", "--ignored"]);
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}
