//! The stamp, which tells one content of a file from another, and the validators made of it.
//!
//! Promises: two loads with equal stamps of a settled file saw the same bytes. Leaves out: reading
//! clocks; the time is an argument.

use maitred_http::coding::Coding;
use rustix::fs::Stat;

/// How long after its last change a file may still change again without a new stamp, in seconds.
///
/// Linux takes file times from the clock tick (1 to 10 ms), and some file systems keep whole seconds
/// (ext3, HFS+) or two (FAT). Two seconds cover all of them; nginx and Apache assume one.
pub(crate) const YOUTH_SECONDS: i64 = 2;

/// The last modification time that says nothing about the content: 1980-01-02T00:00:00Z.
///
/// Tools for reproducible builds set every file to 0, 1 (Nix) or 1980-01-01 (the first date a ZIP
/// archive can hold). Two builds then differ in content and agree in time, often in size too.
const NORMALISED_UNTIL: i64 = 315_619_200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    /// The size in bytes.
    pub(crate) size: u64,
    /// Seconds and nanoseconds of the last modification of the content. Programs may set it.
    pub(crate) modified: (i64, u32),
    /// Seconds and nanoseconds of the last change of anything. Only the kernel sets it.
    changed: (i64, u32),
}

impl Stamp {
    #[expect(clippy::unnecessary_cast, reason = "the fields of Stat differ in width between architectures")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }

    /// Whether the file changed so recently that another change could leave the stamp as it is.
    /// The change time decides, because a program can set the modification time to anything. A
    /// change time in the future (a clock that was set back) counts as recent.
    pub(crate) fn is_young(&self, unix_seconds: u64) -> bool {
        let now = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
        now.saturating_sub(self.changed.0) < YOUTH_SECONDS
    }

    /// The entity tag (RFC 9110 §8.8.3), quotes included.
    ///
    /// Strong, from modification time in nanoseconds and size, so that equal copies on several machines agree; where
    /// the modification time is a normalised one, the change time joins. A young file gets a weak tag that differs from
    /// its later strong one: a copy that is stored under it is fetched once more after the file has settled.
    pub(crate) fn entity_tag(&self, coding: Coding, young: bool) -> Box<str> {
        let mut tag = String::with_capacity(48);
        tag.push_str(if young { "W/\"" } else { "\"" });
        tag.push_str(&format!("{:x}.{:x}-{:x}", self.modified.0, self.modified.1, self.size));
        if self.is_normalised() {
            tag.push_str(&format!("-{:x}.{:x}", self.changed.0, self.changed.1));
        }
        if let Some(token) = coding.token() {
            tag.push('-');
            tag.push_str(token);
        }
        tag.push_str(if young { "-y\"" } else { "\"" });
        tag.into()
    }

    /// The modification time for `Last-Modified`, in seconds since 1970; none where a comparison by
    /// whole seconds would confuse two contents: for a young file, a normalised time, and a time
    /// that is not in the past (RFC 9110 §8.8.2.1 forbids one later than `Date`).
    pub(crate) fn last_modified(&self, young: bool, unix_seconds: u64) -> Option<u64> {
        let seconds = u64::try_from(self.modified.0).ok()?;
        (!young && !self.is_normalised() && seconds < unix_seconds).then_some(seconds)
    }

    fn is_normalised(&self) -> bool {
        self.modified.0 < NORMALISED_UNTIL
    }

    /// Whether this compressed sibling is not older than `original`. Compressors copy the time of
    /// the original, some of them cut to microseconds or seconds; that still counts as equal.
    pub(crate) fn is_as_new_as(&self, original: &Stamp) -> bool {
        let (seconds, nanoseconds) = original.modified;
        let cut = match self.modified.1 {
            0 => 0,
            own if own % 1000 == 0 => nanoseconds - nanoseconds % 1000,
            _ => nanoseconds,
        };
        self.modified >= (seconds, cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(modified: (i64, u32), changed: i64) -> Stamp {
        Stamp { device: 1, inode: 2, size: 0x10, modified, changed: (changed, 7) }
    }

    #[test]
    fn a_settled_file_has_a_strong_tag_and_a_young_one_another_weak_one() {
        let settled = stamp((0x7000_0000, 0xab), 0x7000_0000);
        assert_eq!(&*settled.entity_tag(Coding::Identity, false), "\"70000000.ab-10\"");
        assert_eq!(&*settled.entity_tag(Coding::Gzip, false), "\"70000000.ab-10-gzip\"");
        assert_eq!(&*settled.entity_tag(Coding::Identity, true), "W/\"70000000.ab-10-y\"");
    }

    #[test]
    fn youth_follows_the_change_time_not_the_modification_time() {
        let file = stamp((1000, 0), 5000);
        assert!(file.is_young(5000));
        assert!(file.is_young(5001));
        assert!(!file.is_young(5002));
        assert!(file.is_young(4000), "a change time in the future is recent");
    }

    #[test]
    fn builds_that_normalise_times_still_differ_in_their_tags() {
        for seconds in [0, 1, 315_532_800] {
            let old = stamp((seconds, 0), 5000);
            let new = stamp((seconds, 0), 6000);
            assert_ne!(old.entity_tag(Coding::Identity, false), new.entity_tag(Coding::Identity, false));
            assert_eq!(old.last_modified(false, 9000), None);
        }
    }

    #[test]
    fn last_modified_is_withheld_while_it_could_mislead() {
        let file = stamp((0x7000_0000, 0), 0x7000_0000);
        assert_eq!(file.last_modified(false, 0x7000_0010), Some(0x7000_0000));
        assert_eq!(file.last_modified(true, 0x7000_0010), None);
        assert_eq!(file.last_modified(false, 0x6fff_ffff), None);
    }

    #[test]
    fn a_sibling_counts_as_new_when_the_compressor_cut_the_time() {
        let original = stamp((1000, 123_456_789), 0);
        for (time, expected) in [
            ((1000, 123_456_789), true),
            ((1000, 123_456_000), true),
            ((1000, 0), true),
            ((1001, 5), true),
            ((1000, 123_455_000), false),
            ((1000, 123_456_788), false),
            ((999, 999_999_999), false),
            ((999, 0), false),
        ] {
            assert_eq!(stamp(time, 0).is_as_new_as(&original), expected, "{time:?}");
        }
    }
}
