//! Lines in one piece of memory, and how far they are written.

use super::Severity;

/// Most bytes handed to one write(2), unless a single line is longer. It bounds what one call can keep blocked, and is
/// the size of a pipe's buffer (pipe(7)).
pub(super) const MAX_CHUNK: usize = 64 * 1024;

#[derive(Clone, Copy)]
struct End {
    at: usize,
    /// 0 for a line; for a notice the number of lines it tells of, or as many as there are numbers.
    missing: u32,
    severity: Severity,
}

/// Lines to be written in order. `sent` bytes are written, and with them the first `done` lines entirely.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    ends: Vec<End>,
    sent: usize,
    done: usize,
}

pub(super) struct Lost {
    pub(super) entries: u64,
    pub(super) lines: u64,
    /// Lines that the lost notices would have told of.
    pub(super) unreported: u64,
}

impl Batch {
    pub(super) fn cost(line: &[u8]) -> usize {
        line.len() + 1 + size_of::<End>()
    }

    pub(super) fn remaining_cost(&self) -> usize {
        self.bytes.len() - self.line_start() + (self.ends.len() - self.done) * size_of::<End>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.done == self.ends.len()
    }

    pub(super) fn push(&mut self, severity: Severity, line: &[u8]) {
        self.append(line, 0, severity);
    }

    pub(super) fn push_notice(&mut self, line: &[u8], missing: u64) {
        self.append(line, u32::try_from(missing).unwrap_or(u32::MAX), Severity::Warning);
    }

    fn append(&mut self, line: &[u8], missing: u32, severity: Severity) {
        self.bytes.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        self.ends.push(End { at: self.bytes.len(), missing, severity });
    }

    /// What to write next: whole lines (the first perhaps begun already), at most `MAX_CHUNK` bytes if that is at
    /// least one line.
    pub(super) fn chunk(&self) -> &[u8] {
        self.chunk_within(MAX_CHUNK)
    }

    /// The same with at most `room` bytes, if that is at least one line.
    pub(super) fn chunk_within(&self, room: usize) -> &[u8] {
        let (left, most) = (&self.ends[self.done..], room.min(MAX_CHUNK));
        let fitting = left.partition_point(|end| end.at - self.sent <= most);
        let end = left.get(fitting.max(1) - 1).map_or(self.sent, |end| end.at);
        &self.bytes[self.sent..end]
    }

    pub(super) fn next_line(&self) -> (Severity, &[u8]) {
        self.ends
            .get(self.done)
            .map_or((Severity::Info, &[]), |end| (end.severity, &self.bytes[self.line_start()..end.at]))
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// How many of the first `length` bytes of the [rest](Self::rest) are in lines that end there.
    pub(super) fn whole_lines_in(&self, length: usize) -> usize {
        let left = &self.ends[self.done..];
        let whole = left.partition_point(|end| end.at - self.sent <= length);
        left[..whole].last().map_or(0, |end| end.at - self.sent)
    }

    pub(super) fn is_between_lines(&self) -> bool {
        self.sent == self.line_start()
    }

    pub(super) fn advance(&mut self, written: usize) -> u64 {
        self.sent += written;
        let done = self.ends[self.done..].partition_point(|end| end.at <= self.sent);
        self.done += done;
        done as u64
    }

    pub(super) fn rewind(&mut self) {
        self.sent = self.line_start();
    }

    pub(super) fn lose(&mut self) -> Lost {
        let left = &self.ends[self.done..];
        let entries = left.len() as u64;
        let lines = left.iter().filter(|end| end.missing == 0).count() as u64;
        let unreported = left.iter().map(|end| u64::from(end.missing)).sum();
        self.clear();
        Lost { entries, lines, unreported }
    }

    /// Empties it. Keeps its memory while batches of this size come, and gives back that of a burst after the next small one.
    pub(super) fn clear(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 4 {
            self.bytes.clear();
            self.bytes.shrink_to(MAX_CHUNK);
            self.ends.clear();
            self.ends.shrink_to(MAX_CHUNK / size_of::<End>());
        }
        self.bytes.clear();
        self.ends.clear();
        (self.sent, self.done) = (0, 0);
    }

    fn line_start(&self) -> usize {
        self.done.checked_sub(1).map_or(0, |last| self.ends[last].at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_at_line_ends() {
        let mut batch = Batch::default();
        let line = vec![b'x'; MAX_CHUNK / 2 - 1];
        for _ in 0..3 {
            batch.push(Severity::Info, &line);
        }
        assert_eq!(batch.chunk().len(), MAX_CHUNK);
        assert_eq!(batch.advance(MAX_CHUNK), 2);
        assert_eq!(batch.chunk().len(), MAX_CHUNK / 2);
        assert_eq!(batch.advance(MAX_CHUNK / 2), 1);
        assert!(batch.is_empty() && batch.chunk().is_empty());
        assert_eq!(batch.remaining_cost(), 0);
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_one_chunk() {
        let mut batch = Batch::default();
        batch.push(Severity::Info, &vec![b'x'; 3 * MAX_CHUNK]);
        batch.push(Severity::Info, b"y");
        assert_eq!(batch.chunk().len(), 3 * MAX_CHUNK + 1);
    }

    #[test]
    fn a_partly_written_line_is_repeated_after_a_rewind() {
        let mut batch = Batch::default();
        batch.push(Severity::Info, b"one");
        batch.push(Severity::Info, b"two\n");
        assert_eq!(batch.advance(6), 1);
        assert_eq!(batch.chunk(), b"o\n");
        assert_eq!((batch.whole_lines_in(1), batch.whole_lines_in(2)), (0, 2));
        batch.rewind();
        assert_eq!(batch.chunk(), b"two\n");
    }

    #[test]
    fn what_is_lost_is_counted_once() {
        let mut batch = Batch::default();
        batch.push(Severity::Info, b"one");
        batch.push_notice(b"12 missing", 12);
        batch.push(Severity::Info, b"two");
        assert_eq!(batch.advance(5), 1);
        let lost = batch.lose();
        assert_eq!((lost.entries, lost.lines, lost.unreported), (2, 1, 12));
        assert!(batch.is_empty());
    }
}
