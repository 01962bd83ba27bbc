//! `maitred top`: a running server at a glance, on a terminal or as plain text.
//!
//! ```text
//! mod.rs    the command line, keys, the end      look.rs      what is asked of the server
//! data.rs   the view, made of answers            lines.rs     its parts as text
//! page.rs   all of it, for screens and plain     shown.rs     numbers as text
//! terminal.rs  raw mode, drawing, what is typed
//! ```
//! Promises: the terminal is as it was at the end: by a key, by a signal, by a panic. Leaves out: changes, which `maitred ctl` makes.

mod data;
mod lines;
mod look;
mod page;
mod shown;
mod terminal;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use maitred_config::{EXIT_SUCCESS, Problem, print};
use maitred_process::host::{Host, Signal, Signals};

use crate::ctl::client::Failed;
use crate::ctl::named::Named;
use crate::tool_line::{Given, Known};
use data::{Memory, View};
use lines::{BY_TIME, COLUMNS};
use look::Looker;
use page::Shown;
use terminal::{ESCAPE, Terminal};

const KNOWN: Known = Known {
    command: "top",
    values: &["socket", "server", "pid", "port", "url", "token-file", "interval"],
    switches: &["plain", "once"],
    takes_rest: false,
};

const HELP: &str = "maitred top: a running server at a glance.\n\n\
    Usage: maitred top [--pid N | --port N | --server WHICH | --socket PATH | --url URL [--token-file FILE]]\n\
    \x20                  [--interval SECONDS] [--plain] [--once]\n\n\
    \x20 --interval SECONDS  from one look to the next, from 0.5 to 3600; 2 without it\n\
    \x20 --plain             plain text, a block for each look; also where the output is no terminal\n\
    \x20 --once              one block, then the end\n\
    The others say which server is meant, as for 'maitred ctl'; without them it is the only one of this user.\n\n\
    Keys: q and Ctrl-C leave, p stops and goes on, + and - change the interval; t, r, m, 9 and n put routes\n\
    in the order of time, requests, mean, 99th percentile, name.\n";

/// Seconds from one look to the next.
const INTERVAL: f64 = 2.0;
const INTERVALS: std::ops::RangeInclusive<f64> = 0.5..=3600.0;

/// A signal and a new size are noticed within this time while keys are waited for.
const KEYS: Duration = Duration::from_millis(200);

/// In raw mode it is a key.
const CONTROL_C: u8 = 3;

/// Runs the command; the exit code.
///
/// # Errors
/// An option is wrong, or the terminal cannot be used.
pub fn top(arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    let given = KNOWN.parse(arguments)?;
    if given.wants_help {
        return Ok(print(HELP));
    }
    let mut top = Top::new(&given)?;
    if given.has("once") {
        return Ok(top.look().map_or_else(Failed::told, |()| print(&page::plain(&top.view))));
    }
    let mut signals = host.signals().map_err(|error| {
        let what = format!("signals cannot be handled: {error}");
        Problem::new("top", what, "see what limits this process (ulimit)")
    })?;
    // A mistake is told before the screen is another one.
    if let Err(failed) = top.look() {
        return Ok(failed.told());
    }
    if given.has("plain") || !has_terminal() {
        return Ok(top.plainly(&mut *signals));
    }
    let unusable = |error: std::io::Error| {
        Problem::new("top", format!("the terminal cannot be used: {error}"), "take --plain")
    };
    let terminal = Terminal::begin().map_err(unusable)?;
    top.run(&terminal, &mut *signals).map_err(unusable)
}

fn has_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !is_dumb
}

fn interval(given: &Given) -> Result<f64, Problem> {
    let Some(text) = given.value("interval") else { return Ok(INTERVAL) };
    text.parse().ok().filter(|seconds| INTERVALS.contains(seconds)).ok_or_else(|| {
        Problem::new(
            "top",
            format!("--interval: '{text}' is no number from 0.5 to 3600"),
            "write seconds, such as 2",
        )
    })
}

/// The exit code after a signal that ends the command, as a shell has it.
fn ended(signal: Option<Signal>) -> Option<u8> {
    signal
        .filter(|signal| !matches!(signal, Signal::Reopen | Signal::ForSupervisor(_)))
        .map(|signal| 128 + signal.number())
}

/// What is shown, and where it comes from.
struct Top {
    looker: Looker,
    memory: Memory,
    view: View,
    shown: Shown,
    /// When the last look was.
    looked: Instant,
}

impl Top {
    fn new(given: &Given) -> Result<Self, Problem> {
        let named = Named::of(given, "top")?;
        let is_colored = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let shown = Shown { order: BY_TIME, is_colored, interval: interval(given)?, ..Shown::default() };
        let (memory, view) = (Memory::default(), View::default());
        Ok(Self { looker: Looker::new(named), memory, view, shown, looked: Instant::now() })
    }

    /// A block for each look, until a signal, or until nobody reads.
    fn plainly(mut self, signals: &mut dyn Signals) -> u8 {
        loop {
            if terminal::write(&page::plain(&self.view)).is_err() {
                return EXIT_SUCCESS;
            }
            if let Some(code) = ended(signals.wait(Some(Duration::from_secs_f64(self.shown.interval)))) {
                return code;
            }
            if let Err(failed) = self.look() {
                return failed.told();
            }
        }
    }

    /// On the screen, until a signal or a key.
    fn run(mut self, terminal: &Terminal, signals: &mut dyn Signals) -> std::io::Result<u8> {
        let mut drawn = None;
        loop {
            let size = terminal.size();
            if drawn != Some(size) {
                terminal.show(&page::screen(&self.view, &self.shown, size))?;
                drawn = Some(size);
            }
            if let Some(code) = ended(signals.wait(Some(Duration::ZERO))) {
                return Ok(code);
            }
            let interval = Duration::from_secs_f64(self.shown.interval);
            let left = interval.saturating_sub(self.looked.elapsed());
            if left.is_zero() && !self.shown.is_paused {
                // What the server has not answered stays as it was, with why.
                self.shown.problem = self.look().err().map(Failed::text);
                drawn = None;
                continue;
            }
            for key in terminal.typed(if self.shown.is_paused { KEYS } else { left.min(KEYS) })? {
                if self.press(key) {
                    return Ok(EXIT_SUCCESS);
                }
                drawn = None;
            }
        }
    }

    fn look(&mut self) -> Result<(), Failed> {
        let answers = self.looker.look();
        self.looked = Instant::now();
        self.view = self.memory.view(answers?);
        Ok(())
    }

    /// Whether the key means the end.
    fn press(&mut self, key: u8) -> bool {
        let shown = &mut self.shown;
        match key {
            CONTROL_C | ESCAPE | b'q' => return true,
            b'p' | b' ' => shown.is_paused = !shown.is_paused,
            b'+' => shown.interval = (shown.interval * 2.0).min(*INTERVALS.end()),
            b'-' => shown.interval = (shown.interval / 2.0).max(*INTERVALS.start()),
            _ => shown.order = COLUMNS.iter().position(|(own, _)| *own == key).unwrap_or(shown.order),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(words: &[&str]) -> Result<Top, Problem> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        KNOWN.parse(&words).and_then(|given| Top::new(&given))
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let mistake = |words: &[&str]| made(words).err().expect("a mistake").to_string();
        assert!(mistake(&["--plan"]).contains("did you mean '--plain'?"));
        assert!(mistake(&["--interval", "0"]).contains("is no number from 0.5 to 3600"));
        assert!(mistake(&["--pid", "1", "--url", "x:1"]).contains("name two servers"));
        assert!(mistake(&["--port", "x"]).contains("is no port"));
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut top = made(&[]).expect("no mistake");
        let mut press = |key: u8| {
            let ends = top.press(key);
            (ends, top.shown.clone())
        };
        assert_eq!(b"rm9tnx".map(|key| press(key).1.order), [0, 1, 2, 3, 4, 4]);
        assert!(press(b'p').1.is_paused && !press(b' ').1.is_paused);
        assert_eq!(press(b'+').1.interval, 4.0);
        assert_eq!((press(b'-').1.interval, press(b'-').1.interval), (2.0, 1.0));
        assert!(!press(b'c').0);
        assert!([b'q', CONTROL_C, ESCAPE].into_iter().all(|key| press(key).0));
    }
}
