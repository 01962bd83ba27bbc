//! The tools of the command: they ask a running server, or prepare one, and serve nothing.
//!
//! Leaves out: questions and answers (maitred-control), and the report of access logs (maitred-report).

pub mod check;
pub mod ctl;
pub mod health;
pub mod install_service;
pub mod passwd;
mod tool_line;
pub mod top;
