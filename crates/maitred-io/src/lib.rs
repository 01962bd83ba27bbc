//! The edge to the operating system: waiting, sending, sleeping and time.
//!
//! Promises: no call of a socket waits; a readiness queue that any number of threads share; deadlines that cost one
//! store to extend; lines that are written without a thread that waits for the disk. Everything that a test has to
//! schedule is behind [`sync`] and [`poller`], which have a second form under `--cfg shuttle`.
//!
//! Leaves out: HTTP, and the work of threads (maitred-server). Sockets of connections are TCP or Unix streams; no
//! served file is mapped into memory.
//!
//! | module | |
//! |---|---|
//! | [`poller`] | one edge-triggered readiness queue, its wakers and its timer descriptor (epoll, eventfd, timerfd) |
//! | [`listener`] | listen on TCP and on Unix sockets, with options; accept |
//! | [`transport`] | a connection's bytes: receive, send, send a file; by a socket, or in memory for tests |
//! | [`timers`] | the deadlines of a poll group; no clock and no system call |
//! | [`parker`] | where one thread sleeps until it is called |
//! | [`parking`] | the sleeping threads of a pool, the last to sleep on top |
//! | [`line_writer`] | a bounded buffer of log lines and the thread that writes them |
//! | [`accounts`] | users and groups by name and by number |
//! | [`thread_state`] | the present activity of another thread of this process |
//! | [`channel`] | messages between two processes of one server, with descriptors |
//! | [`child`] | processes that this one has started |
//! | [`clock`] | monotonic time and dates |
//! | [`forked`] | listening sockets that processes forked by an application do not keep |
//! | [`local`] | a Unix socket for its owner alone, and the process on the other side |
//! | [`machine`] | processors and descriptors this process may use |
//! | [`memory`] | hints to the processor's caches; memory that the allocator gives back |
//! | [`pid_file`] | the file with the number of a server's process |
//! | [`process`] | the resources of the process |
//! | [`rights`] | the user and the capabilities of the process, and giving them up for good |
//! | [`service_manager`] | sockets that systemd has handed to this process, and reports to systemd |
//! | [`tasks`] | the threads of this process, their state and processor time |
//! | [`terminal`] | whether the terminal in which the process was started is still there |
//! | [`private_memory`] | memory of this process that costs nothing until it is written |
//! | [`shared_memory`] | memory that several processes see |
//! | [`standard_streams`] | descriptors 0 to 2 of a process that was started without them |
//! | [`sync`] | the standard library's primitives, or shuttle's |
//! | [`waiting`] | the reason why a thread sleeps |
//! | [`work_queue`] | work for threads of its own, bounded |

pub mod accounts;
pub mod background;
pub mod channel;
pub mod child;
pub mod clock;
pub mod forked;
pub mod line_writer;
#[cfg(not(shuttle))]
pub mod listener;
pub mod local;
pub mod machine;
pub mod memory;
pub mod parker;
pub mod parking;
pub mod pid_file;
pub mod poller;
pub mod private_memory;
pub mod process;
pub mod rights;
#[cfg(not(shuttle))]
pub mod service_manager;
pub mod shared_memory;
pub mod standard_streams;
pub mod sync;
pub mod tasks;
pub mod terminal;
pub mod thread_state;
pub mod timers;
#[cfg(not(shuttle))]
pub mod transport;
mod usage;
#[cfg(not(shuttle))]
pub mod waiting;
pub mod work_queue;
