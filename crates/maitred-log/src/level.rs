//! The levels of the error log.

use maitred_io::line_writer::Severity;

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Something was lost or is wrong.
    Error,
    /// Something is not as it should be, but nothing was lost.
    Warn,
    /// What an operator wants to know.
    #[default]
    Info,
    /// Every refused byte.
    Debug,
}

impl Level {
    /// From the least to the most.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// As in the log and in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warn => Severity::Warning,
            Self::Info => Severity::Info,
            Self::Debug => Severity::Debug,
        }
    }
}
