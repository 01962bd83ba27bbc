//! A worker, on the supervisor's side: the process, its channel, and open questions.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use maitred_control::{Answered, Question, lock};
use maitred_io::channel::Channel;
use maitred_io::child::{Child, Ended};
use maitred_server::figures::{self, Owner, Retired, SharedMemory, Statistics, Totals};
use maitred_server::limits::{ClientTable, LEDGER_BYTES};
use maitred_supervise::{Exit, WorkerId};

use super::Happening;
use super::message::{FromWorker, Setup, ToWorker, read, to_text, unreadable};

/// Longest wait until a worker reads a message: its listening thread has no other task.
const SEND_LIMIT: Duration = Duration::from_secs(5);

const ANSWER_LIMIT: Duration = Duration::from_secs(4);

pub(crate) struct Process {
    pub(crate) id: WorkerId,
    pub(crate) number: usize,
    figures: SharedMemory,
    /// The worker's counts in the table of clients.
    ledger: SharedMemory,
    page: Mutex<String>,
    child: Child,
    sending: Mutex<Channel>,
    /// Questions without an answer so far, by number.
    asked: Mutex<BTreeMap<u64, Sender<Answered>>>,
    next: AtomicU64,
    is_asked: AtomicBool,
    /// The worker serves, so it handles signals.
    is_ready: AtomicBool,
    /// Log files were opened anew while the worker started: it reopens its own when it is ready.
    is_to_reopen: AtomicBool,
}

impl Process {
    /// Starts a worker: `launch` makes the process with the given descriptor as its standard input. Messages of the worker and its end go to
    /// `happenings`.
    ///
    /// # Errors
    /// There is no such program, or no process, thread or descriptor can be had.
    pub(crate) fn start(
        launch: impl FnOnce(OwnedFd) -> io::Result<Child>,
        (id, number): (WorkerId, usize),
        setup: &Setup,
        descriptors: &[BorrowedFd<'_>],
        happenings: &Sender<Happening>,
    ) -> io::Result<Arc<Self>> {
        let (own, other) = Channel::pair()?;
        own.set_send_limit(Some(SEND_LIMIT))?;
        let receiving = own.try_clone()?;
        let figures = SharedMemory::new(figures::MEMORY_BYTES)?;
        let ledger = SharedMemory::new(LEDGER_BYTES)?;
        // Sent before the process exists, so that the setup is there at its first read.
        let descriptors: Vec<BorrowedFd<'_>> =
            descriptors.iter().copied().chain([figures.as_fd(), ledger.as_fd()]).collect();
        own.send(&to_text(setup), &descriptors)?;
        let child = launch(other.into_descriptor())?;
        let process = Arc::new(Self {
            id,
            number,
            figures,
            ledger,
            page: Mutex::default(),
            child,
            sending: Mutex::new(own),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            is_asked: AtomicBool::new(false),
            is_ready: AtomicBool::new(false),
            is_to_reopen: AtomicBool::new(false),
        });
        let (listener, told) = (Arc::clone(&process), happenings.clone());
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let listens = named("maitred-channel").spawn(move || listener.listen(&receiving, &told));
        let listens = listens.inspect_err(|_| process.child.end_now())?;
        let (waiter, told) = (Arc::clone(&process), happenings.clone());
        let waits = named("maitred-child").spawn(move || {
            let exit = match waiter.child.wait() {
                Ok(Ended::Code(code)) => Exit::Code(code),
                Ok(Ended::Signal(signal)) => Exit::Signal(signal),
                // No other thread waits for this child, so an error means that it has ended.
                Err(_) => Exit::Code(1),
            };
            // The last messages of the worker are handled before its end.
            waiter.hang_up();
            let _ = listens.join();
            let _ = told.send(Happening::Exit(id, exit));
        });
        waits.inspect_err(|_| process.child.end_now())?;
        Ok(process)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Reads the worker's figures. The caller first asks the worker to bring its memory up to date.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics::read(self.figures.words(), Owner::Runs).unwrap_or_default()
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals::read(self.figures.words(), Owner::Runs).unwrap_or_default()
    }

    /// Calls `visit` with each counter of the worker, by series.
    pub(crate) fn each_counter(&self, visit: impl FnMut(&str, u64)) {
        figures::each_counter(self.figures.words(), visit);
    }

    /// Keeps the last page of figures, for the time after the worker's end.
    pub(crate) fn keep_page(&self, page: &str) {
        page.clone_into(&mut lock(&self.page));
    }

    /// Takes the worker's connections out of the table of clients after its end. Called once.
    pub(crate) fn give_back_clients(&self, clients: &ClientTable) {
        clients.give_back(&self.ledger);
    }

    /// Adds the worker's figures to those of all ended workers, after its end. Called once.
    pub(crate) fn retire(&self, retired: &mut Retired) {
        retired.add(self.figures.words(), &lock(&self.page));
    }

    /// Notes a request to end, and returns whether this is the first one.
    pub(crate) fn is_first_request(&self) -> bool {
        !self.is_asked.swap(true, Ordering::Relaxed)
    }

    /// Asks the worker to end: SIGTERM.
    pub(crate) fn terminate(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
        self.child.terminate();
    }

    pub(crate) fn kill(&self) {
        self.child.kill();
    }

    /// Has the worker reopen its log files: SIGUSR1. A starting worker may not handle the signal yet, so it gets the signal when it is ready.
    pub(crate) fn reopen_logs(&self) {
        if self.is_ready.load(Ordering::Relaxed) {
            self.child.signal(rustix::process::Signal::USR1);
        } else {
            self.is_to_reopen.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the worker serves, and sends it a signal that was held back.
    pub(crate) fn becomes_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
        if self.is_to_reopen.swap(false, Ordering::Relaxed) {
            self.reopen_logs();
        }
    }

    pub(crate) fn send(&self, message: &ToWorker) {
        self.send_with(message, &[]);
    }

    pub(crate) fn send_with(&self, message: &ToWorker, descriptors: &[BorrowedFd<'_>]) {
        // An error means that the worker has ended, which the thread that waits for it tells.
        let _ = lock(&self.sending).send(&to_text(message), descriptors);
    }

    /// Puts a question; the answer comes later, or never.
    pub(crate) fn ask(&self, question: &Question, caller: &str) -> Pending {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = mpsc::channel();
        lock(&self.asked).insert(id, sender);
        self.send(&ToWorker::Ask(id, question.clone(), caller.to_owned()));
        Pending { answer }
    }

    fn listen(&self, channel: &Channel, told: &Sender<Happening>) {
        while let Ok(message) = channel.receive() {
            match read(&message.text) {
                Some(FromWorker::Answer(id, answer)) => {
                    if let Some(sender) = lock(&self.asked).remove(&id) {
                        // The asking thread may have given up.
                        let _ = sender.send(answer);
                    }
                }
                Some(said) => {
                    let _ = told.send(Happening::Said(self.id, said));
                }
                None => {
                    let _ = told.send(Happening::Said(self.id, FromWorker::Failed(unreadable())));
                    // By SIGTERM, since the worker may have accepted clients.
                    self.child.terminate();
                }
            }
        }
        // No answer can come any more.
        lock(&self.asked).clear();
    }

    /// Closes the channel after the process has ended: messages before that are still read. Without this, children of the application that hold
    /// the other side would keep the channel open.
    fn hang_up(&self) {
        lock(&self.sending).shut_down();
    }
}

pub(crate) struct Pending {
    answer: mpsc::Receiver<Answered>,
}

impl Pending {
    /// Waits for the answer; none if the worker has ended or takes too long.
    pub(crate) fn wait(self) -> Option<Answered> {
        self.answer.recv_timeout(ANSWER_LIMIT).ok()
    }

    /// Waits until the deadline. Err if the answer may still come.
    pub(crate) fn wait_until(self, deadline: Instant) -> Result<Option<Answered>, Self> {
        match self.answer.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use maitred_io::child::Program;

    use super::*;

    #[test]
    fn a_worker_with_an_unreadable_message_fails() {
        let launch = |input: OwnedFd| {
            let text = br#"{"Later":1}"#;
            let header = [text.len() as u32, 0].map(u32::to_le_bytes).concat();
            rustix::io::write(&input, &[&header[..], text].concat())?;
            let program = Program {
                command: vec!["sleep".into(), "20".into()],
                folder: "/".into(),
                environment: Vec::new(),
                without: Vec::new(),
                at_terminal: false,
            };
            Child::start(&program, input)
        };
        let (sender, happenings) = mpsc::channel();
        let process = Process::start(launch, (WorkerId(1), 1), &Setup::default(), &[], &sender);
        process.expect("a process");
        match happenings.recv() {
            Ok(Happening::Said(WorkerId(1), FromWorker::Failed(cause))) => {
                assert!(cause.contains("another version") && cause.contains("SIGUSR2"), "{cause}");
            }
            _ => panic!("the message has vanished"),
        }
        assert!(matches!(happenings.recv(), Ok(Happening::Exit(WorkerId(1), Exit::Signal(15)))));
    }
}
