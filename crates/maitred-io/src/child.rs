//! Processes that this one has started: start, signal, end.
//!
//! Promises: a signal reaches its process or none, also when the number is used again (pidfd). Each child is waited for
//! by its own descriptor, so that no other child's end is taken. Leaves out: the programs that run.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};

/// A program to start: its command, folder and environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments; a name without a slash is looked for on PATH.
    pub command: Vec<OsString>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// Variables that it gets besides those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables of this process that it does not get.
    pub without: Vec<OsString>,
    /// Whether it stays in the process group of this one, and so at the terminal.
    pub at_terminal: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process has ended by itself, with this code.
    Code(u8),
    /// The process was ended by this signal.
    Signal(u8),
}

/// A process that was started here.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    descriptor: OwnedFd,
}

impl Child {
    /// Starts it with `input` as its standard input, in a process group of its own unless it stays at the terminal:
    /// signals of the terminal to this process's group do not reach it. Output and error are those of this process.
    ///
    /// # Errors
    /// There is no such program or folder, or no process can be made.
    pub fn start(program: &Program, input: OwnedFd) -> io::Result<Self> {
        let Some((name, arguments)) = program.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program"));
        };
        let mut command = Command::new(name);
        command.args(arguments).current_dir(&program.folder).envs(program.environment.iter().cloned());
        program.without.iter().for_each(|name| _ = command.env_remove(name));
        command.stdin(Stdio::from(input));
        if !program.at_terminal {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        match Self::adopt(child.id()) {
            Ok(child) => Ok(child),
            Err(error) => {
                // Without a descriptor it could not be ended later.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// A process that another one has started and that has become a child of this one.
    ///
    /// # Errors
    /// There is no such process, or no descriptor can be had.
    pub fn adopt(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| io::Error::other("the process has no number"))?;
        Ok(Self { pid, descriptor: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal; nothing if the process has ended.
    pub fn signal(&self, signal: Signal) {
        // ESRCH: it has ended.
        let _ = pidfd_send_signal(&self.descriptor, signal);
    }

    /// Asks it to end: SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGKILL.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the child and waits for its end, where no other process can: otherwise it would count against the limit of
    /// processes for ever.
    pub fn end_now(&self) {
        self.kill();
        let _ = self.wait();
    }

    /// Waits for its end. Called once.
    ///
    /// # Errors
    /// Another caller has waited for it.
    pub fn wait(&self) -> io::Result<Ended> {
        use std::os::fd::AsFd;
        loop {
            match waitid(WaitId::PidFd(self.descriptor.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => return Ok(ended(&status)),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn ended(status: &WaitIdStatus) -> Ended {
    let number = |value: i32| u8::try_from(value & 0xff).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Code(number(code)),
        (None, signal) => Ended::Signal(number(signal.unwrap_or(0))),
    }
}

/// Makes orphans among the descendants of this process its children from now on (PR_SET_CHILD_SUBREAPER, prctl(2)). The
/// caller has to call [`reap_others`] now and then.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Has this process killed when the thread that has started it ends (PR_SET_PDEATHSIG, prctl(2)); its own children are
/// not.
pub fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Puts this process into a process group of its own, as [`Child::start`] does for those that it starts.
///
/// # Errors
/// It leads a session.
pub fn lead_group() -> io::Result<()> {
    Ok(rustix::process::setpgid(None, None)?)
}

/// Takes the ends of processes that are not ours and have become children of this one, as those of process 1 do. Those that `is_own` says
/// are waited for elsewhere. Nothing where the kernel does not list children (proc(5)).
pub fn reap_others(is_own: impl Fn(u32) -> bool) {
    let own = std::process::id();
    // Orphans become children of the first thread.
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    let numbers = listed.split_ascii_whitespace().filter_map(|text| text.parse::<u32>().ok());
    for pid in numbers.filter(|pid| !is_own(*pid)) {
        if let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It goes on, or its end is taken.
            let _ = waitid(WaitId::Pid(number), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        Program {
            command,
            folder: "/".into(),
            environment: vec![("GREETING".into(), "hello".into())],
            without: vec!["PATH".into()],
            at_terminal: false,
        }
    }

    fn nothing() -> OwnedFd {
        std::fs::File::open("/dev/null").expect("a null device").into()
    }

    #[test]
    fn the_end_is_told() {
        let child =
            Child::start(&shell("test \"$GREETING\" = hello && ! env | grep ^PATH= && exit 7"), nothing())
                .expect("started");
        assert_eq!(child.wait().expect("ended"), Ended::Code(7));
        // The child is gone; its number may belong to another process now.
        child.kill();
        let child = Child::start(&shell("read line; exit 1"), {
            let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
            std::mem::forget(other);
            one.into()
        })
        .expect("started");
        child.kill();
        assert_eq!(child.wait().expect("ended"), Ended::Signal(9));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let program = Program { command: vec!["/no/such/program".into()], ..shell("") };
        assert_eq!(Child::start(&program, nothing()).expect_err("none").kind(), io::ErrorKind::NotFound);
        let program = Program { folder: "/no/such/folder".into(), ..shell("") };
        assert!(Child::start(&program, nothing()).is_err());
    }
}
