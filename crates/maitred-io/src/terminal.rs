//! The terminal that a process was started in, and whether it is still there.
//!
//! SIGHUP has two meanings: the terminal has hung up (termios(3), setsid(2)), or an operator asks a daemon to read its
//! configuration again. A process without a terminal, or one that was started with SIGHUP ignored (nohup(1)), is a
//! daemon.

use std::fs;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};

/// How often it is looked whether the terminal has gone, and how long after another. When its first process ends, the kernel sends the
/// signal to the others a moment before it takes the terminal from them.
const LOOKS: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(10);

/// SIGHUP's bit in the sets of proc_pid_status(5).
const HANGUP: u64 = 1;

/// The terminal when the process began; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    is_there: bool,
    ignores_hangup: bool,
}

impl Terminal {
    /// The terminal now. To be called before SIGHUP is handled.
    pub fn at_start() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self { is_there: opens(), ignores_hangup: ignored(&status) & HANGUP != 0 }
    }

    /// Whether the process had a controlling terminal.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Whether a SIGHUP that has come means that the terminal has hung up: the process had one, and was not started to
    /// outlive it. Takes up to 50 ms where the terminal is still there.
    pub fn has_hung_up(&self) -> bool {
        self.is_there
            && !self.ignores_hangup
            && (0..LOOKS).any(|look| {
                if look > 0 {
                    std::thread::sleep(BETWEEN);
                }
                !opens()
            })
    }
}

/// Makes the controlling terminal the standard input, for a debugger, if this process is in its foreground: others are stopped when they
/// read from it (SIGTTIN). Whether it is.
pub fn become_standard_input() -> bool {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(terminal) = rustix::fs::openat(CWD, "/dev/tty", flags, Mode::empty()) else { return false };
    let is_ours =
        rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp());
    is_ours && rustix::stdio::dup2_stdin(&terminal).is_ok()
}

/// Whether the process has a controlling terminal (tty(4)).
fn opens() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, "/dev/tty", flags, Mode::empty()).is_ok()
}

fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        assert_eq!(ignored("SigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored("") | ignored("SigIgn:\tx\n"), 0);
    }

    #[test]
    fn a_process_without_a_terminal_is_a_daemon() {
        assert!(!Terminal { is_there: false, ignores_hangup: false }.has_hung_up());
        assert!(!Terminal { is_there: true, ignores_hangup: true }.has_hung_up());
    }
}
