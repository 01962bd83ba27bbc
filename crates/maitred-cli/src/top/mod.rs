//! `maitred top`: a running server at a glance, on a terminal or as plain text.
//!
//! ```text
//! mod.rs    the command line, keys, the end      look.rs      what is asked of the server
//! data.rs   the view, made of answers            sentence.rs  what is wrong, in a sentence
//! lines.rs  its parts as text                    shown.rs     numbers as text
//! screen.rs on a terminal                        plain.rs     as plain text
//! ```
//! Promises: the terminal is as it was at the end: by a key, by a signal, by a panic. Leaves out: changes, which `maitred ctl` makes.

mod data;
mod lines;
mod look;
mod plain;
mod screen;
mod sentence;
mod shown;

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use maitred_control::local;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::ctl::client::Failed;
use crate::ctl::named::{self, Named};
use crate::host::{Host, Signal, Signals};
use crate::problem::Problem;
use crate::tool_line::{Given, Known};
use crate::{EXIT_FAILURE, EXIT_SUCCESS, EXIT_USAGE, print, say};
use data::{Memory, View};
use lines::Order;
use look::Looker;
use screen::Shown;

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

/// A signal is noticed within this time while keys are waited for.
const KEYS: Duration = Duration::from_millis(200);

/// Runs the command; the exit code.
pub(crate) fn top(arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    let Some(asked) = parse(arguments)? else { return Ok(print(HELP)) };
    let mut looker = Looker::new(asked.named);
    if asked.once {
        return Ok(match looker.look() {
            Ok(answers) => print(&plain::block(&Memory::default().view(&answers), Order::default())),
            Err(failed) => told(failed),
        });
    }
    let mut signals = host.signals().map_err(|error| {
        let what = format!("signals cannot be handled: {error}");
        Problem::new("top", what, "see what limits this process (ulimit)")
    })?;
    if asked.plain || !has_terminal() {
        return Ok(plainly(&mut looker, asked.interval, &mut *signals));
    }
    // A mistake is told before the screen is another one.
    let first = match looker.look() {
        Ok(answers) => answers,
        Err(failed) => return Ok(told(failed)),
    };
    let mut memory = Memory::default();
    let view = memory.view(&first);
    // Restores the terminal on a panic, too.
    let mut terminal = ratatui::try_init().map_err(|error| no_terminal(&error))?;
    let shown = Shown { interval: asked.interval, ..Shown::default() };
    let screen = Screen { looker, memory, view, shown, looked: Instant::now() };
    let ended = screen.run(&mut terminal, &mut *signals);
    ratatui::restore();
    ended.map_err(|error| no_terminal(&error))
}

fn no_terminal(error: &std::io::Error) -> Problem {
    Problem::new("top", format!("the terminal cannot be used: {error}"), "take --plain")
}

fn has_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !is_dumb
}

/// The command line.
struct Asked {
    named: Named,
    /// Seconds from one look to the next.
    interval: f64,
    plain: bool,
    once: bool,
}

/// None for help.
fn parse(arguments: &[String]) -> Result<Option<Asked>, Problem> {
    let given = KNOWN.parse(arguments)?;
    if given.wants_help {
        return Ok(None);
    }
    let mut named = Named::default();
    for name in named::OPTIONS {
        if let Some(value) = given.value(name) {
            let wrong = |what: String| Problem::new("top", what, "'maitred top --help' lists the options");
            named.set(name, value.to_owned()).map_err(wrong)?;
        }
    }
    let interval = interval(&given)?;
    Ok(Some(Asked { named, interval, plain: given.has("plain"), once: given.has("once") }))
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

fn told(failed: Failed) -> u8 {
    let (text, code) = match failed {
        Failed::Refused(text) => (text, EXIT_FAILURE),
        Failed::Mistaken(text) => (text, EXIT_USAGE),
    };
    say(&text);
    code
}

/// The exit code after a signal that ends the command, as a shell has it.
fn ended(signal: Option<Signal>) -> Option<u8> {
    signal
        .filter(|signal| !matches!(signal, Signal::Reopen | Signal::ForSupervisor(_)))
        .map(|signal| 128 + signal.number())
}

/// A block for each look, until a signal, or until nobody reads.
fn plainly(looker: &mut Looker, interval: f64, signals: &mut dyn Signals) -> u8 {
    let mut memory = Memory::default();
    loop {
        match looker.look() {
            Ok(answers) => {
                if !written(&plain::block(&memory.view(&answers), Order::default())) {
                    return EXIT_SUCCESS;
                }
            }
            Err(failed) => return told(failed),
        }
        if let Some(code) = ended(signals.wait(Some(Duration::from_secs_f64(interval)))) {
            return code;
        }
    }
}

fn written(text: &str) -> bool {
    use std::io::Write;
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// What is on the terminal, and where it comes from.
struct Screen {
    looker: Looker,
    memory: Memory,
    view: View,
    shown: Shown,
    /// When the last look was.
    looked: Instant,
}

impl Screen {
    fn run(mut self, terminal: &mut DefaultTerminal, signals: &mut dyn Signals) -> std::io::Result<u8> {
        loop {
            terminal.draw(|frame| screen::draw(frame, &self.view, &self.shown))?;
            loop {
                if let Some(code) = ended(signals.wait(Some(Duration::ZERO))) {
                    return Ok(code);
                }
                let interval = Duration::from_secs_f64(self.shown.interval);
                let left = interval.saturating_sub(self.looked.elapsed());
                if left.is_zero() && !self.shown.is_paused {
                    self.look();
                    break;
                }
                let wait = if self.shown.is_paused { KEYS } else { left.min(KEYS) };
                // A terminal that has hung up would keep the library reading nothing, where SIGHUP is ignored.
                local::wait_typed(std::io::stdin().as_fd(), Duration::ZERO)?;
                if !event::poll(Duration::ZERO)? {
                    local::wait_typed(std::io::stdin().as_fd(), wait)?;
                    continue;
                }
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if self.press(key) {
                            return Ok(EXIT_SUCCESS);
                        }
                        break;
                    }
                    Event::Resize(..) => break,
                    _ => {}
                }
            }
        }
    }

    /// What the server has not answered stays as it was, with why.
    fn look(&mut self) {
        self.shown.problem = match self.looker.look() {
            Ok(answers) => {
                self.view = self.memory.view(&answers);
                None
            }
            Err(Failed::Refused(text) | Failed::Mistaken(text)) => Some(text),
        };
        self.looked = Instant::now();
    }

    /// Whether the key means the end.
    fn press(&mut self, key: KeyEvent) -> bool {
        let shown = &mut self.shown;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return true,
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('p' | ' ') => shown.is_paused = !shown.is_paused,
            KeyCode::Char('t') => shown.order = Order::Time,
            KeyCode::Char('r') => shown.order = Order::Requests,
            KeyCode::Char('m') => shown.order = Order::Mean,
            KeyCode::Char('9') => shown.order = Order::P99,
            KeyCode::Char('n') => shown.order = Order::Name,
            KeyCode::Char('+') => shown.interval = (shown.interval * 2.0).min(*INTERVALS.end()),
            KeyCode::Char('-') => shown.interval = (shown.interval / 2.0).max(*INTERVALS.start()),
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        parse(&words).err().expect("a mistake").to_string()
    }

    #[test]
    fn what_is_not_understood_is_said() {
        assert!(mistake("--plan").contains("did you mean '--plain'?"));
        assert!(mistake("--interval 0").contains("is no number from 0.5 to 3600"));
        assert!(mistake("--pid 1 --url x:1").contains("name two servers"));
        assert!(mistake("--port x").contains("is no port"));
    }

    #[test]
    fn keys_change_what_is_shown() {
        let shown = Shown { interval: INTERVAL, ..Shown::default() };
        let (memory, view) = (Memory::default(), View::default());
        let mut screen =
            Screen { looker: Looker::new(Named::default()), memory, view, shown, looked: Instant::now() };
        let mut press = |letter: char, modifiers: KeyModifiers| {
            let ends = screen.press(KeyEvent::new(KeyCode::Char(letter), modifiers));
            (ends, screen.shown.clone())
        };
        let none = KeyModifiers::NONE;
        for (letter, order) in
            [('r', Order::Requests), ('m', Order::Mean), ('9', Order::P99), ('n', Order::Name)]
        {
            assert_eq!(press(letter, none).1.order, order);
        }
        assert!(press('p', none).1.is_paused && !press('p', none).1.is_paused);
        assert_eq!(press('+', none).1.interval, 4.0);
        assert_eq!((press('-', none).1.interval, press('-', none).1.interval), (2.0, 1.0));
        assert!(!press('c', none).0);
        assert!(press('q', none).0 && press('c', KeyModifiers::CONTROL).0);
    }
}
