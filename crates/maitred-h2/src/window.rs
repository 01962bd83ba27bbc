//! A window: how many bytes the peer may send, and those that it is to be given again (RFC 9113 §6.9).

#[derive(Clone, Debug)]
pub(crate) struct Window {
    size: i64,
    /// Bytes that the peer may send now; negative only where it learns of a smaller size late (§6.9.2).
    left: i64,
    /// Bytes that the peer is to be given, and that no WINDOW_UPDATE has carried yet.
    owed: i64,
    /// Bytes for which the peer has got credit in all, with those that no WINDOW_UPDATE has carried yet.
    given: u64,
    /// The bytes a second for which it was [wider](Self::lacks) last; 0 at first.
    rate: u64,
}

impl Window {
    pub(crate) fn new(size: u32) -> Self {
        let size = i64::from(size);
        Self { size, left: size, owed: 0, given: 0, rate: 0 }
    }

    /// Changes the bytes that the peer may send, for a new size that it does not know yet.
    pub(crate) fn change(&mut self, bytes: i64) {
        self.left += bytes;
    }

    pub(crate) fn left(&self) -> u32 {
        // Below 2^31.
        u32::try_from(self.left).unwrap_or(0)
    }

    /// Takes so many bytes of the peer into account. Returns false, and changes nothing, if the peer may not send as many.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        let bytes = i64::from(bytes);
        let fits = bytes <= self.left;
        if fits {
            self.left -= bytes;
        }
        fits
    }

    /// Gives the peer so many bytes more. Returns the bytes for a WINDOW_UPDATE, which are at least a quarter of the
    /// window. No window stays closed: each unread byte comes back when its reader takes it, so the quarter is reached.
    pub(crate) fn give(&mut self, bytes: u32) -> Option<u32> {
        self.given = self.given.saturating_add(bytes.into());
        let most = (self.size - self.left).max(0);
        self.owed = self.owed.saturating_add(i64::from(bytes)).min(most);
        if self.owed == 0 || self.owed * 4 < self.size {
            return None;
        }
        self.left += self.owed;
        // At most the size.
        u32::try_from(std::mem::take(&mut self.owed)).ok()
    }

    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The bytes by which the window is too small, after `bytes` were given in `time` nanoseconds, the way to the peer
    /// and back: the window's own size if that was half of it or more. If it was wider before, only if that has made
    /// the peer faster: else something else holds the peer back. 0 where the window cannot be larger than `most`.
    pub(crate) fn lacks(&mut self, bytes: u64, time: u64, most: u32) -> u32 {
        let more = self.size.min(i64::from(most) - self.size).max(0);
        let rate = bytes.saturating_mul(1_000_000_000) / time.max(1);
        let is_filled = i64::try_from(bytes).is_ok_and(|bytes| bytes >= self.size / 2);
        if more == 0 || !is_filled || rate < self.rate.saturating_add(self.rate / 4) {
            return 0;
        }
        self.rate = rate;
        // At most the size.
        u32::try_from(more).unwrap_or(0)
    }

    /// The window is wider by so many bytes, which the peer gets at once.
    pub(crate) fn widen(&mut self, bytes: u32) {
        self.size += i64::from(bytes);
        self.left += i64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_gathered_up_to_a_quarter() {
        let mut window = Window::new(100);
        assert!(!window.take(101));
        assert!(window.take(100));
        assert!(!window.take(1) && window.take(0));
        assert_eq!(window.give(24), None);
        assert!(!window.take(1), "it does not know yet");
        assert_eq!(window.give(1), Some(25));
        assert!(window.take(25) && !window.take(1));
        assert_eq!(window.give(u32::MAX), Some(100), "never more than its size");
        assert_eq!(window.give(100), None);
    }

    #[test]
    fn a_window_is_too_small_while_it_is_filled_and_more_of_it_helps() {
        const MS: u64 = 1_000_000;
        let mut window = Window::new(1000);
        assert_eq!(window.lacks(499, 100 * MS, 8000), 0, "the peer sends less");
        assert_eq!(window.lacks(900, 100 * MS, 8000), 1000);
        assert_eq!(window.lacks(900, 100 * MS, 8000), 0, "as fast as before");
        assert!(window.take(900));
        window.widen(1000);
        assert_eq!(window.left(), 1100, "nobody has taken anything");
        assert_eq!((window.lacks(1800, 200 * MS, 8000), window.lacks(1800, 100 * MS, 8000)), (0, 2000));
        window.widen(2000);
        assert_eq!(window.lacks(4000, 100 * MS, 5000), 1000);
        window.widen(1000);
        assert_eq!(window.lacks(5000, MS, 5000), 0, "it is as wide as it may be");
    }

    #[test]
    fn a_window_without_room_gives_no_credit() {
        let mut window = Window::new(0);
        assert!(window.take(0) && !window.take(1));
        assert_eq!(window.give(1), None);
    }

    #[test]
    fn a_window_that_shrinks_late_may_be_negative() {
        let mut window = Window::new(10);
        window.change(90);
        assert!(window.take(50));
        window.change(-90);
        assert!(!window.take(1));
        assert_eq!(window.give(50), Some(50));
        assert!(window.take(10) && !window.take(1));
    }
}
