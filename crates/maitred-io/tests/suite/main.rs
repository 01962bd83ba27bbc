//! The edge to the system, against the system.

mod backlog;
mod line_writer;
mod line_writer_killed;
mod line_writer_processes;
mod line_writer_trouble;
mod timers_model;
mod unacknowledged;
