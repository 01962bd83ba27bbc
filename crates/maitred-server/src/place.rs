//! How an exchange is named from outside its connection.

/// What an event stands for: a slot, and which of the connections that were ever there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Token {
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_u64(value: u64) -> Self {
        Self { slot: value as u32, generation: (value >> 32) as u32 }
    }
}

/// An exchange of a connection of the same group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) token: Token,
    /// Its number within the connection.
    pub(crate) stream: u32,
}

/// Where an exchange is, in all of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The number of the group.
    pub(crate) group: usize,
    /// The [`Token`] of the connection.
    pub(crate) token: u64,
    /// The number of the exchange in its connection; 0 where there is one at a time.
    pub(crate) stream: u32,
}
