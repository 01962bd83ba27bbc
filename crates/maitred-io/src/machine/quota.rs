//! The processor time that a control group gives this process (cgroups(7)): cpu.max of version 2, cpu.cfs_quota_us of
//! version 1.
//!
//! A container often sees its own group as the root, and a path in /proc that is not there: so every group above is
//! looked at, and a missing file limits nothing.

use std::path::Path;

/// Processors that it is paid for, at least more than zero; none without a limit. `read` gives the text of a file.
pub(super) fn of(read: &dyn Fn(&str) -> Option<String>) -> Option<f64> {
    let groups = read("/proc/self/cgroup")?;
    let own = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let limits = own.filter_map(|(controllers, path)| {
        if controllers.is_empty() {
            return least(path, |group| second(&read(&format!("/sys/fs/cgroup{group}/cpu.max"))?));
        }
        // The folder is called as the controllers that share it, or has a link for each.
        let is_cpu = controllers.split(',').any(|name| name == "cpu");
        let first = |group: &str| {
            [controllers, "cpu"].into_iter().find_map(|folder| first(read, &format!("{folder}{group}")))
        };
        is_cpu.then(|| least(path, first)).flatten()
    });
    limits.min_by(f64::total_cmp)
}

/// The least of a group and of those above it; the root is the empty path.
fn least(path: &str, limit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let above = Path::new(path).ancestors().filter_map(Path::to_str);
    above.filter_map(|group| limit(group.trim_end_matches('/'))).min_by(f64::total_cmp)
}

/// `150000 100000`, or `max 100000`: microseconds in a period of so many.
fn second(text: &str) -> Option<f64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    share(numbers.next()?.ok()?, numbers.next()?.ok()?)
}

/// -1 is no limit.
fn first(read: &dyn Fn(&str) -> Option<String>, group: &str) -> Option<f64> {
    let number = |name: &str| read(&format!("/sys/fs/cgroup/{group}/{name}"))?.trim().parse().ok();
    share(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn share(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(files: &[(&str, &str)]) -> Option<f64> {
        let find = |path: &str| files.iter().find(|(name, _)| *name == path);
        of(&|path| find(path).map(|(_, text)| (*text).to_owned()))
    }

    const GROUP: (&str, &str) = ("/proc/self/cgroup", "0::/system.slice/shop.service\n");

    #[test]
    fn without_a_limit_there_is_none() {
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[GROUP]), None);
        assert_eq!(
            quota(&[GROUP, ("/sys/fs/cgroup/system.slice/shop.service/cpu.max", "max 100000\n")]),
            None
        );
        assert_eq!(quota(&[GROUP, ("/sys/fs/cgroup/system.slice/shop.service/cpu.max", "much\n")]), None);
    }

    #[test]
    fn the_least_of_all_groups_above_counts() {
        let own = ("/sys/fs/cgroup/system.slice/shop.service/cpu.max", "150000 100000\n");
        let above = ("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
        assert_eq!(quota(&[GROUP, own]), Some(1.5));
        assert_eq!(quota(&[GROUP, own, above]), Some(0.5));
        let above = ("/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
        assert_eq!(quota(&[GROUP, own, above]), Some(1.5));
    }

    #[test]
    fn a_container_has_its_own_group_at_the_root() {
        let own = ("/sys/fs/cgroup/cpu.max", "250000 100000\n");
        assert_eq!(quota(&[("/proc/self/cgroup", "0::/\n"), own]), Some(2.5));
        // The kernel names a path that the process cannot see.
        assert_eq!(quota(&[("/proc/self/cgroup", "0::/docker/0123\n"), own]), Some(2.5));
        assert_eq!(quota(&[("/proc/self/cgroup", "0::/../other\n"), own]), Some(2.5));
    }

    #[test]
    fn version_1_has_it_in_two_files_of_one_of_its_hierarchies() {
        let groups = ("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/docker/0123\n1:name=systemd:/s\n");
        let file = |folder: &str, name: &str| format!("/sys/fs/cgroup/{folder}/{name}");
        for (folder, expected) in
            [("cpu,cpuacct/docker/0123", Some(3.0)), ("cpu", Some(3.0)), ("memory/m", None), ("cpuset", None)]
        {
            let (one, other) = (file(folder, "cpu.cfs_quota_us"), file(folder, "cpu.cfs_period_us"));
            assert_eq!(quota(&[groups, (&one, "300000\n"), (&other, "100000\n")]), expected, "{folder}");
            assert_eq!(quota(&[groups, (&one, "-1\n"), (&other, "100000\n")]), None, "{folder}");
        }
    }
}
