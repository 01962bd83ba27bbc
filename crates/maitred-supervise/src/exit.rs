//! How a process came to its end.

use std::fmt;

/// The system's status of a process that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process has ended by itself, with this code.
    Code(u8),
    /// The process was ended by the signal with this number.
    Signal(u8),
}

impl Exit {
    /// Whether it ended as it should.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Whether it ended as it should for a process that was asked to: also by SIGTERM itself. A worker handles that until it has
    /// answered everything, and a service manager may send it once more when it has (KillMode=control-group of systemd).
    pub fn is_as_asked(self) -> bool {
        self.is_success() || self == Self::Signal(15)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(9) => f.write_str(
                "was killed by SIGKILL (by somebody, or by the kernel for want of memory: see its log, dmesg)",
            ),
            Self::Signal(number) => match name(number) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {number}"),
            },
        }
    }
}

fn name(number: u8) -> Option<&'static str> {
    let names = [(1, "SIGHUP"), (2, "SIGINT"), (3, "SIGQUIT"), (4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS")];
    let more =
        [(8, "SIGFPE"), (11, "SIGSEGV"), (13, "SIGPIPE"), (15, "SIGTERM"), (24, "SIGXCPU"), (31, "SIGSYS")];
    names.into_iter().chain(more).find_map(|(own, name)| (own == number).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_cause_is_told() {
        assert_eq!(Exit::Code(3).to_string(), "ended with exit code 3");
        assert_eq!(Exit::Signal(11).to_string(), "was killed by SIGSEGV");
        assert_eq!(Exit::Signal(40).to_string(), "was killed by signal 40");
        assert!(Exit::Signal(9).to_string().contains("want of memory"));
        assert!(
            Exit::Signal(15).is_as_asked() && Exit::Code(0).is_as_asked() && !Exit::Code(1).is_as_asked()
        );
        assert!(!Exit::Signal(9).is_as_asked() && !Exit::Signal(15).is_success());
        assert!(Exit::Code(0).is_success() && !Exit::Signal(0).is_success());
    }
}
