//! The requests that are sent, in order, again and again: one made of a path, or those of a file.
//!
//! The file is a sequence of records; each is a head of three little-endian 32-bit numbers and the request as it goes
//! over the wire. The numbers: the request's size, the length of the body its answer must have, and 1 if it is a
//! background request, whose latency is not among the measured ones (0 otherwise).

use std::io::{self, ErrorKind};
use std::path::Path;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// The body length the answer must have; `None` takes any.
    pub(crate) length: Option<usize>,
    pub(crate) background: bool,
}

/// The records of a file, at least one.
pub(crate) fn from_file(path: &Path) -> io::Result<Vec<Request>> {
    parse(&std::fs::read(path)?)
}

fn parse(mut bytes: &[u8]) -> io::Result<Vec<Request>> {
    let wrong = || io::Error::new(ErrorKind::InvalidData, "the file of requests is cut short");
    let mut requests = Vec::new();
    while !bytes.is_empty() || requests.is_empty() {
        let mut number = || {
            let (first, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
            bytes = rest;
            Ok::<_, io::Error>(u32::from_le_bytes(*first) as usize)
        };
        let (size, length, background) = (number()?, number()?, number()?);
        let (request, rest) = bytes.split_at_checked(size).ok_or_else(wrong)?;
        bytes = rest;
        requests.push(Request { bytes: request.to_vec(), length: Some(length), background: background == 1 });
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_a_cut_file_is_refused() {
        let mut file = Vec::new();
        for (text, length, background) in [("GET /a", 13_u32, 0_u32), ("GET /bc", 14, 1)] {
            file.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
            file.extend(length.to_le_bytes());
            file.extend(background.to_le_bytes());
            file.extend(text.as_bytes());
        }
        let requests = parse(&file).expect("two records");
        assert_eq!(requests.len(), 2);
        let expected = Request { bytes: b"GET /bc".to_vec(), length: Some(14), background: true };
        assert_eq!(requests.last(), Some(&expected));
        assert!(parse(file.get(..file.len() - 1).expect("a part")).is_err());
        assert!(parse(&[]).is_err());
    }
}
