//! The spool: the part of a request body beyond memory is written to a file without a name, by a thread of its own.
//!
//! ```text
//!   connection                                     spooler
//!   gather a chunk ──── chunk, queue ────────────► write(2) to the connection's file
//!      │ gather on                                    │
//!      ├─ another one, chunk not written: pause       │
//!      ◄───────────── wake ───────────────────────────┘
//!   complete, all written: the file is the body
//! ```
//! Promises: a thread that polls never opens, writes or closes a file here. A connection has at most one chunk in the
//! queue and one it gathers, so the memory of an upload does not depend on its size. An upload that ends early leaves
//! nothing behind: a chunk that has not been written is dropped at once, its file by the spooler. Leaves out: the
//! choice of bodies (`pipeline.rs` of maitred-exchange).

mod file;
mod memory;
#[cfg(test)]
mod tests;
mod unused;

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_runtime::{Body, CloseFile};

use maitred_io::work_queue::WorkQueue;

pub use file::{Medium, open, probe};
pub use memory::{BodyMemory, BodyMemoryFigures, Kept, Share};

/// Bytes written at once where memory for more is not to be had. Each upload holds up to two chunks.
pub const CHUNK: usize = 128 * 1024;

/// The size of a chunk where the budget of all bodies has room for two: a fourth of the hand-overs.
const LARGE_CHUNK: usize = 512 * 1024;

/// The size of a chunk while memory is short: gathered bytes of an upload count against the budget of all, and the disk
/// gets them soon.
const SMALL_CHUNK: usize = 4 * 1024;

/// Chunks that may wait. Each connection has at most one, so that this is reached only while the disk stands still for
/// longer than uploads wait for it.
const MAX_WAITING: usize = 16 * 1024;

/// How nice the threads are (setpriority(2)): beside a thread that computes they get a tenth of a processor.
const NICE: i32 = 10;

/// Makes a file.
pub type Open = Box<dyn FnMut() -> io::Result<File> + Send>;

/// The threads that write, and their queue.
pub struct Spooler {
    queue: Arc<WorkQueue<Job>>,
    close: CloseFile,
    open: Arc<Mutex<Open>>,
}

enum Job {
    Write(Arc<Upload>),
    Close(File),
    Other(Box<dyn FnOnce() + Send>),
}

/// The state of one body that a connection and the spooler share.
struct Upload {
    state: Mutex<State>,
    /// Tells the connection that the chunk is written or has failed.
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// A chunk is in the queue or being written.
    busy: bool,
    /// The chunk, until the spooler takes it.
    chunk: Vec<u8>,
    /// None before the first chunk and while the spooler writes.
    file: Option<File>,
    error: Option<io::Error>,
    /// The first chunk's share of the budget of all.
    share: Option<Share>,
    /// The memory of a written chunk.
    spare: Vec<u8>,
    /// No memory of a written chunk is kept.
    frugal: bool,
    abandoned: bool,
}

impl Spooler {
    /// Starts so many threads. They do not survive a fork(2).
    ///
    /// # Errors
    /// The process has no thread left.
    pub fn start(open: Open, threads: usize) -> io::Result<Self> {
        let queue = Arc::new(WorkQueue::new(MAX_WAITING));
        let open = Arc::new(Mutex::new(open));
        for _ in 0..threads {
            let (own, make) = (Arc::clone(&queue), Arc::clone(&open));
            let work = move || {
                let _ = be_nice();
                own.work(|job: Job| job.run(&make));
            };
            // Those that have begun end with the queue.
            std::thread::Builder::new()
                .name("maitred-spool".to_owned())
                .spawn(work)
                .inspect_err(|_| queue.end())?;
        }
        let own = Arc::clone(&queue);
        let close: CloseFile = Arc::new(move |file| {
            own.push(Job::Close(file));
        });
        Ok(Self { queue, close, open })
    }

    /// Makes a file, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn open_file(&self) -> io::Result<File> {
        open_with(&self.open)
    }

    /// The number of items that wait for the disk or are being written, and of those written: two looks show whether
    /// the queue moves.
    pub fn progress(&self) -> (u64, u64) {
        self.queue.progress()
    }

    /// Returns the function that closes a file of the folder on the spooler's thread.
    pub fn closer(&self) -> CloseFile {
        Arc::clone(&self.close)
    }

    /// Has the spooler's thread do something. False when it cannot: too much waits, or the server ends.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) -> bool {
        self.queue.push(Job::Other(Box::new(work)))
    }

    /// A body of which `bytes` have come so far, which hold `share` until they are written. Its chunks are large if `memory` has
    /// room for two. `wake` is called, on the spooler's thread, whenever
    /// [`advance`](Spool::advance) may find something new.
    pub fn begin(
        &self,
        bytes: Vec<u8>,
        share: Option<Share>,
        memory: &Arc<BodyMemory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Spool {
        let chunks = memory.hold(2 * LARGE_CHUNK as u64);
        let usual = if chunks.is_some() { LARGE_CHUNK } else { CHUNK };
        let state = Mutex::new(State { share, ..State::default() });
        let upload = Arc::new(Upload { state, wake: Box::new(wake) });
        Spool {
            upload,
            queue: Arc::clone(&self.queue),
            close: Arc::clone(&self.close),
            length: bytes.len() as u64,
            gathered: bytes,
            enough: usual,
            usual,
            _chunks: chunks,
            complete: false,
        }
    }

    /// Ends the thread after its present write; waiting items are dropped.
    pub fn end(&self) {
        self.queue.end();
    }
}

impl Drop for Spooler {
    fn drop(&mut self) {
        self.end();
    }
}

impl Job {
    fn run(self, open: &Mutex<Open>) {
        match self {
            Self::Write(upload) => upload.write(open),
            Self::Close(file) => drop(file),
            Self::Other(work) => work(),
        }
    }
}

/// Leaves the processor to threads that serve: a request that waits for a disk can wait a little longer.
fn be_nice() -> io::Result<()> {
    Ok(rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE)?)
}

fn open_with(open: &Mutex<Open>) -> io::Result<File> {
    (open.lock().unwrap_or_else(PoisonError::into_inner))()
}

impl Upload {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the chunk, on the spooler's thread.
    fn write(&self, open: &Mutex<Open>) {
        let mut state = self.lock();
        if state.abandoned {
            return;
        }
        let mut chunk = std::mem::take(&mut state.chunk);
        let file = state.file.take();
        drop(state);
        let written = file
            .map_or_else(|| open_with(open), Ok)
            .and_then(|mut file| file.write_all(&chunk).map(|()| file));
        let mut state = self.lock();
        state.busy = false;
        match written {
            // Closed here, where it may take its time.
            Ok(file) if state.abandoned => {
                drop(state);
                drop(file);
                return;
            }
            Ok(file) => state.file = Some(file),
            Err(error) => state.error = Some(error),
        }
        // The first one may be as large as the part of a body that memory keeps.
        if chunk.capacity() <= 2 * LARGE_CHUNK && !state.frugal {
            chunk.clear();
            state.spare = chunk;
        } else {
            drop(chunk);
        }
        let share = state.share.take();
        drop(state);
        drop(share);
        (self.wake)();
    }
}

/// The connection's side of a body that is being written.
pub struct Spool {
    upload: Arc<Upload>,
    queue: Arc<WorkQueue<Job>>,
    close: CloseFile,
    /// Bytes for the next chunk.
    gathered: Vec<u8>,
    /// How many gathered bytes are written, and how many while memory is not short.
    enough: usize,
    usual: usize,
    /// The share of its chunks in the budget of all.
    _chunks: Option<Share>,
    length: u64,
    complete: bool,
}

/// How far a body is.
pub enum Progress {
    /// More of it can be taken.
    Open,
    /// The body has to wait until the spooler wakes the connection.
    Waiting,
    /// The body is complete and written.
    Written,
    /// The body cannot be kept.
    Failed(io::Error),
}

impl Spool {
    /// How many bytes have come so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether it takes no more bytes before the present ones are written.
    pub fn is_full(&self) -> bool {
        self.complete || self.gathered.len() >= self.enough
    }

    /// Bytes of it in memory, those that are being written at this moment not counted.
    pub fn held(&self) -> u64 {
        (self.gathered.len() + self.upload.lock().chunk.len()) as u64
    }

    /// Gathers little while memory is short.
    pub fn be_frugal(&mut self, frugal: bool) {
        let enough = if frugal { SMALL_CHUNK } else { self.usual };
        if enough != self.enough {
            self.enough = enough;
            let mut state = self.upload.lock();
            state.frugal = frugal;
            if frugal {
                state.spare = Vec::new();
            }
        }
    }

    /// Has `receive` put bytes behind those for the next chunk, as many as it may take at most; then call
    /// [`advance`](Self::advance). None if it takes no more before the present ones are written.
    pub fn receive<T>(&mut self, receive: impl FnOnce(&mut Vec<u8>, usize) -> T) -> Option<T> {
        let room = self.enough.checked_sub(self.gathered.len()).filter(|room| *room > 0 && !self.complete)?;
        let before = self.gathered.len();
        self.gathered.reserve_exact(room);
        let received = receive(&mut self.gathered, room);
        self.length += (self.gathered.len() - before) as u64;
        Some(received)
    }

    /// Takes bytes; call [`advance`](Self::advance) then.
    pub fn push(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
    }

    /// All bytes have come; call [`advance`](Self::advance) then.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// Hands on the gathered bytes, if the spooler has written its chunk, and tells how far the body is.
    pub fn advance(&mut self) -> Progress {
        let mut state = self.upload.lock();
        if let Some(error) = state.error.take() {
            return Progress::Failed(error);
        }
        let full = self.gathered.len() >= self.enough;
        if state.busy {
            return if full || self.complete { Progress::Waiting } else { Progress::Open };
        }
        if self.complete && self.gathered.is_empty() {
            return Progress::Written;
        }
        if !full && !self.complete {
            return Progress::Open;
        }
        state.chunk = std::mem::replace(&mut self.gathered, std::mem::take(&mut state.spare));
        state.busy = true;
        drop(state);
        if !self.queue.push(Job::Write(Arc::clone(&self.upload))) {
            return Progress::Failed(io::Error::other("too many bodies wait for the disk"));
        }
        if self.complete { Progress::Waiting } else { Progress::Open }
    }

    /// The body, after [`Progress::Written`].
    pub fn take_body(&mut self) -> Body {
        match self.upload.lock().file.take() {
            Some(file) => Body::in_file(file, self.length, Arc::clone(&self.close)),
            // Nothing has been written: nothing has come.
            None => Body::default(),
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let mut state = self.upload.lock();
        state.abandoned = true;
        let (chunk, file) = (std::mem::take(&mut state.chunk), state.file.take());
        // A chunk that is being written keeps its share.
        let share = if state.busy && chunk.is_empty() { None } else { state.share.take() };
        drop(state);
        drop((chunk, share));
        if let Some(file) = file {
            (self.close)(file);
        }
    }
}
