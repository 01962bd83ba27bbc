//! The command over real sockets and files. Tests that look at the process are a program of their own (ctl.rs).

mod command;
mod filters;
mod harness;
mod hooks;
mod languages;
mod logs;
mod pools;
mod reload;
mod serving;
mod shells;
