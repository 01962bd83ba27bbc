//! The command over real sockets and files. What looks at the process is a program of its own (ctl.rs).

mod command;
mod filters;
mod harness;
mod hooks;
mod logs;
mod pools;
mod reload;
mod serving;
mod shells;
