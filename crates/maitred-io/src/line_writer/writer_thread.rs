//! The thread that writes.
//!
//! ```text
//!   take ── nothing to do ──► wait for work
//!    │ ▲
//!    ▼ └──────────── all written ◄──┐
//!   send ──► rotate ──► write(2) ───┤ written in part: again
//!    ▲                    ├─ EAGAIN: poll(2), then again
//!    │                    ├─ EPIPE: lose the batch, pause
//!    └─────── pause ◄─────┴─ other errors
//! ```

use super::batch::Batch;
use super::sink::Sink;
use super::state::State;
use super::{Notice, Shared, Trouble};
use crate::background;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// First and longest pause after an error; doubled each time. The longest bounds both the load of a broken target
/// (one call a second) and the time until a repaired one is noticed.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long to wait for a non-blocking descriptor before the requests of others are looked at again.
const POLL_LIMIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

pub(super) fn start(shared: Arc<Shared>, sink: Sink) -> io::Result<()> {
    let thread = WriterThread { shared, sink, batch: Batch::default(), pause: PAUSE_MIN };
    let began = std::thread::Builder::new().name("maitred-log".into()).spawn(move || thread.run());
    // Else it reads as an error of the file.
    began.map(drop).map_err(|error| io::Error::new(error.kind(), format!("no thread can be made: {error}")))
}

struct WriterThread {
    shared: Arc<Shared>,
    sink: Sink,
    batch: Batch,
    pause: Duration,
}

impl WriterThread {
    fn run(mut self) {
        // Who waits for a line waits for milliseconds anyway, and others run application code.
        background::interrupt_nobody();
        while self.take() {
            self.send();
        }
    }

    fn take(&mut self) -> bool {
        self.batch.clear();
        let mut lingered = false;
        loop {
            self.reopen_if_asked();
            self.remind_if_due();
            let mut state = self.shared.lock();
            state.in_flight = 0;
            if state.unreported > 0 && state.failure.is_none() && state.pending.is_empty() {
                state.push_notice();
            }
            if !state.pending.is_empty() && !lingered && !state.linger.is_zero() {
                let asks = |state: &mut State| {
                    !(state.closing || state.hurry || state.is_much() || state.reopened != state.reopen_asked)
                };
                let linger = state.linger;
                // One wait, however it ends.
                lingered = true;
                drop(
                    self.shared
                        .work
                        .wait_timeout_while(state, linger, asks)
                        .unwrap_or_else(PoisonError::into_inner),
                );
                continue;
            }
            if !state.pending.is_empty() {
                std::mem::swap(&mut state.pending, &mut self.batch);
                state.in_flight = self.batch.remaining_cost();
                return true;
            }
            if state.closing {
                return false;
            }
            // Whoever was in a hurry has what it waited for.
            state.hurry = false;
            if state.reopened == state.reopen_asked {
                let work = &self.shared.work;
                match state.remind_at.map(|at| at.saturating_duration_since(Instant::now())) {
                    None => drop(work.wait(state).unwrap_or_else(PoisonError::into_inner)),
                    Some(left) => {
                        drop(work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
                    }
                }
            }
        }
    }

    /// Calls the reminder when its time has come, or at the end; without the lock, as it has one of its own.
    fn remind_if_due(&self) {
        let Some(reminder) = &self.shared.reminder else { return };
        {
            let mut state = self.shared.lock();
            let is_due = |at: Instant| state.closing || at <= Instant::now();
            if !state.remind_at.is_some_and(is_due) {
                return;
            }
            state.remind_at = None;
        }
        let again = reminder(&mut |severity, line| {
            self.shared.lock().accept(severity, line);
        });
        let mut state = self.shared.lock();
        state.remind_at = match (state.remind_at, again) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if state.closing {
            state.remind_at = None;
        }
    }

    fn send(&mut self) {
        let mut said_writable = false;
        while !self.batch.is_empty() {
            self.prepare();
            let result = self.sink.write(&self.batch);
            self.shared.writes.fetch_add(1, Relaxed);
            match result {
                Ok(written @ 1..) => {
                    said_writable = false;
                    self.note_written(written);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !said_writable => said_writable = self.wait_writable(),
                Err(Errno::AGAIN) => {
                    said_writable = false;
                    self.pause();
                }
                Ok(_) => self.note_failure(Errno::IO),
                Err(error) => self.note_failure(error),
            }
            self.reopen_if_asked();
        }
        self.tell_that_it_is_over();
    }

    /// Between two lines a file may be rotated; what cannot be goes on as it is, and the log says so.
    fn prepare(&mut self) {
        if self.batch.is_between_lines()
            && let Err(error) = self.sink.prepare(self.batch.next_line().1.len())
        {
            self.shared.lock().push_text_of(Notice::NotRotated(error.raw_os_error()), 0);
        }
    }

    fn note_written(&mut self, written: usize) {
        self.pause = PAUSE_MIN;
        let mut state = self.shared.lock();
        state.failure = None;
        state.settled += self.batch.advance(written);
        state.in_flight = self.batch.remaining_cost();
        self.shared.settled.notify_all();
    }

    /// After EPIPE, or when nobody will repair the target any more, the batch is lost; else it is kept.
    fn note_failure(&mut self, error: Errno) {
        let mut state = self.shared.lock();
        state.failure = Some(error);
        let begins = state.trouble_begins(0);
        if error == Errno::PIPE || state.closing {
            let lost = self.batch.lose();
            state.in_flight = 0;
            state.settled += lost.entries;
            state.dropped += lost.lines;
            state.unreported += lost.lines + lost.unreported;
            self.shared.settled.notify_all();
        }
        drop(state);
        if begins {
            self.shared.tell(Trouble::Fails(error.into()));
        }
        self.pause();
    }

    /// A batch that was lost is no end of trouble, nor is one behind which as much waits again: under a constant overload it
    /// would begin and end all the time.
    fn tell_that_it_is_over(&self) {
        let mut state = self.shared.lock();
        if state.failure.is_none()
            && !state.is_much()
            && let Some(before) = state.trouble_since.take()
        {
            let dropped = state.dropped - before;
            drop(state);
            self.shared.tell(Trouble::Over { dropped });
        }
    }

    fn pause(&mut self) {
        let asleep = |state: &mut State| !state.hurry && state.reopened == state.reopen_asked;
        let (mut state, _) = self
            .shared
            .work
            .wait_timeout_while(self.shared.lock(), self.pause, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        state.hurry = false;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// Waits until a non-blocking descriptor takes bytes or has an error, or a second is over. Whether it does.
    fn wait_writable(&self) -> bool {
        let Some(descriptor) = self.sink.descriptor() else { return false };
        let mut descriptors = [PollFd::new(descriptor, PollFlags::OUT)];
        rustix::event::poll(&mut descriptors, Some(&POLL_LIMIT)) != Ok(0)
    }

    /// Opens the target again when asked to; without the lock, because opening a file can take long.
    fn reopen_if_asked(&mut self) {
        let asked = {
            let state = self.shared.lock();
            if state.reopened == state.reopen_asked {
                return;
            }
            state.reopen_asked
        };
        let opened = self.sink.reopen();
        let mut state = self.shared.lock();
        match opened {
            Ok(false) => {}
            Ok(true) => {
                self.batch.rewind();
                self.pause = PAUSE_MIN;
                state.failure = None;
            }
            Err(error) => state.failure = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        state.reopened = asked;
        self.shared.settled.notify_all();
    }
}
