//! How urgent a response is: the `Priority` field (RFC 9218 §4), which a PRIORITY_UPDATE carries, too.

/// The priority of a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 to 7, where 0 is the most urgent.
    pub urgency: u8,
    /// Parts of it are of use, so that it may take turns with others of its urgency.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}
