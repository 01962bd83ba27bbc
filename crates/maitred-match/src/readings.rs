//! The readings of a path: an application may understand the path that it gets in another way than the rules before it.
//!
//! Promises: a rule decides on a path only if all readings of it lead to the same decision. Leaves out: a second decoding, `;` and case:
//! an application for which these make no difference has to say so in its patterns.

use maitred_http::target::{self, PathByte};

/// Why a path decides nothing. The answer is 400; only this request dies with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A segment `.` or `..`. A router takes it as it is, a file system resolves it, and a handler that resolves only
    /// the path behind its own prefix may stop at that: there are as many readings as segments.
    DotSegment,
    /// A backslash or NUL: some take it for a slash, or for the end.
    Foreign,
    /// Rules differ on readings of slashes: each of several in a row as one or as itself, an encoded one as a slash or as data.
    Slashes,
}

impl Ambiguity {
    /// The reason for the log and for the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DotSegment => "rules or filters ask for the path, and it has a segment '.' or '..'",
            Self::Foreign => "rules or filters ask for the path, and it has a backslash or NUL",
            Self::Slashes => {
                "rules or filters lead to different ends for different readings of the slashes in the path"
            }
        }
    }
}

/// The result of `decide` for a path that was sent as `raw`, if it is the same for all readings. `room` becomes the
/// reading that [`normalise_decoded`](target::normalise_decoded) gives.
///
/// # Errors
/// See [`Ambiguity`].
pub fn decide<T: PartialEq>(
    raw: &[u8],
    room: &mut Vec<u8>,
    decide: impl Fn(&[u8]) -> T,
) -> Result<T, Ambiguity> {
    if target::is_plain(raw) {
        room.clear();
        room.extend_from_slice(raw);
        return Ok(decide(raw));
    }
    target::percent_decode(raw, room);
    if room.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b"..")) {
        return Err(Ambiguity::DotSegment);
    }
    if room.iter().any(|byte| matches!(byte, b'\\' | 0)) {
        return Err(Ambiguity::Foreign);
    }
    let decided = decide(room);
    let is_encoded = target::bytes(raw).any(|byte| byte == PathByte { decoded: b'/', encoded: true });
    let is_doubled = room.windows(2).any(|pair| pair == b"//");
    let ways = [
        (is_encoded, Slashes { data: true, merged: false }),
        (is_encoded && is_doubled, Slashes { data: true, merged: true }),
        (is_doubled, Slashes { data: false, merged: true }),
    ];
    for (_, way) in ways.into_iter().filter(|(differs, _)| *differs) {
        way.read(raw, room);
        if decide(room) != decided {
            return Err(Ambiguity::Slashes);
        }
    }
    target::normalise_decoded(raw, room);
    Ok(decided)
}

/// A way to read the slashes of a path.
struct Slashes {
    /// Encoded ones belong to their segment.
    data: bool,
    /// Several in a row are one.
    merged: bool,
}

impl Slashes {
    /// A path that has no NUL.
    fn read(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.clear();
        for byte in target::bytes(raw) {
            match byte {
                // No pattern has this byte: it can only match a `*`.
                PathByte { decoded: b'/', encoded: true } if self.data => out.push(0),
                PathByte { decoded: b'/', .. } if self.merged && out.last() == Some(&b'/') => {}
                PathByte { decoded, .. } => out.push(decoded),
            }
        }
    }
}

#[cfg(test)]
mod tests;
