//! A terminal in raw mode with its alternate screen.
//!
//! Promises: at the end it is as it was, also after an error or a panic. The sequences are those that xterm and its followers know (ECMA-48; modes of
//! DEC). Leaves out: what wide characters take. The terminal does not wrap lines, so they cost no more than their own line.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::panic;
use std::thread;
use std::time::Duration;

use maitred_control::local;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The alternate screen, no cursor, no wrapping.
const BEGIN: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const END: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// Of one that does not tell its size.
const USUAL: (usize, usize) = (80, 24);

pub(super) const ESCAPE: u8 = 0x1b;

/// It is restored when this is dropped.
pub(super) struct Terminal(Termios);

impl Terminal {
    /// # Errors
    /// The input or the output is no terminal, or has hung up.
    pub(super) fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let terminal = Self(before.clone());
        // What a panic says would be gone with the alternate screen.
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore(&before);
            report(panic);
        }));
        write(BEGIN)?;
        Ok(terminal)
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> (usize, usize) {
        let size =
            tcgetwinsize(io::stdout()).map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        size.ok().filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(USUAL)
    }

    /// Draws these lines, as many as the terminal has, in the place of those that are there.
    ///
    /// # Errors
    /// The terminal has hung up.
    pub(super) fn show(&self, lines: &[String]) -> io::Result<()> {
        // Erased first: behind a full line the cursor stands on its last character.
        let drawn = (1..).zip(lines).map(|(row, line)| format!("\u{1b}[{row}H\u{1b}[K{line}"));
        write(&drawn.collect::<String>())
    }

    /// What has been typed, at most after `limit`: the bytes of keys.
    ///
    /// # Errors
    /// The terminal has hung up.
    pub(super) fn typed(&self, limit: Duration) -> io::Result<Vec<u8>> {
        if !local::wait_typed(io::stdin().as_fd(), limit)? {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 64];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut bytes[..]))?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(keys(&bytes[..length]))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a panic it has been restored, and has its message: a second time could move the cursor there.
        if !thread::panicking() {
            restore(&self.0);
        }
    }
}

/// The bytes of keys that send one. A key that sends a sequence, such as an arrow (ECMA-48 §5.4), is none of ours; one that is pressed with Alt is itself.
fn keys(mut bytes: &[u8]) -> Vec<u8> {
    let mut keys = Vec::new();
    while let [first, behind @ ..] = bytes {
        bytes = match (*first, behind) {
            (ESCAPE, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                &sequence[end.map_or(sequence.len(), |end| end + 1)..]
            }
            (ESCAPE, [_, ..]) => behind,
            (key, _) => {
                keys.push(key);
                behind
            }
        };
    }
    keys
}

fn restore(before: &Termios) {
    // One that is gone needs nothing.
    let _ = write(END);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

/// # Errors
/// Nobody reads any more.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_bytes_is_not_escape() {
        for (typed, expected) in [
            ("q", "q"),
            ("\u{1b}", "\u{1b}"),
            ("\u{1b}[A", ""),
            ("r\u{1b}[1;5Bxp", "rxp"),
            ("\u{1b}OPn\u{1b}", "n\u{1b}"),
            ("\u{1b}q", "q"),
            ("p\u{1b}[", "p"),
        ] {
            assert_eq!(keys(typed.as_bytes()), expected.as_bytes(), "{typed:?}");
        }
    }
}
