//! How an exchange is named from outside its connection.

use std::fmt;
use std::str::FromStr;

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

/// Where a connection is, or an exchange of it, in all of a server. As text `GROUP.SLOT.GENERATION`, with `.STREAM` where a
/// connection has several exchanges at a time. A place is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the group.
    pub(crate) group: usize,
    /// The [`Token`] of the connection.
    pub(crate) token: u64,
    /// The number of the exchange in its connection; 0 where there is one at a time.
    pub(crate) stream: u32,
}

impl Place {
    /// The number of the exchange in its connection; 0 where there is one at a time.
    pub fn stream(self) -> u32 {
        self.stream
    }

    /// The exchange with this number of the same connection.
    #[must_use]
    pub fn with_stream(self, stream: u32) -> Self {
        Self { stream, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { slot, generation } = Token::from_u64(self.token);
        write!(f, "{}.{slot}.{generation}", self.group)?;
        match self.stream {
            0 => Ok(()),
            stream => write!(f, ".{stream}"),
        }
    }
}

/// What is not the text of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok()).ok_or(NoPlace);
        let mut parts = text.split('.');
        let group = number(parts.next())? as usize;
        let token = Token { slot: number(parts.next())?, generation: number(parts.next())? }.to_u64();
        let stream = match parts.next() {
            None => 0,
            stream => Some(number(stream)?).filter(|stream| *stream > 0).ok_or(NoPlace)?,
        };
        if parts.next().is_some() { Err(NoPlace) } else { Ok(Self { group, token, stream }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_shown() {
        let place = Place { group: 3, token: Token { slot: 70_000, generation: 9 }.to_u64(), stream: 0 };
        assert_eq!(place.to_string(), "3.70000.9");
        assert_eq!("3.70000.9".parse(), Ok(place));
        let of_several = place.with_stream(7);
        assert_eq!(of_several.to_string(), "3.70000.9.7");
        assert_eq!("3.70000.9.7".parse(), Ok(of_several));
        for wrong in ["", "1", "1.2", "1.2.3.0", "1.2.3.4.5", "1.x.3", "1.2.-3"] {
            assert_eq!(wrong.parse::<Place>(), Err(NoPlace), "{wrong}");
        }
    }
}
