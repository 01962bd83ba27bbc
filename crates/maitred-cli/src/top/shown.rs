//! Numbers as people read them, in few columns.

/// `1.2 ms`, `3.4 s`, `2.5 h`.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.000_95 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.0995 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 100.0 => format!("{seconds:.1} s"),
        _ if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// `0`, `0.4`, `12`, `34.5k`.
pub(super) fn count(number: f64) -> String {
    match number {
        // An empty sum is -0.
        _ if number == 0.0 => "0".to_owned(),
        _ if number.fract() == 0.0 && number < 9999.5 => format!("{number:.0}"),
        _ if number < 9.95 => format!("{number:.1}"),
        _ if number < 9999.5 => format!("{number:.0}"),
        _ if number < 999_950.0 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// `700 B`, `80 KiB`, `2.0 MiB`.
pub(super) fn size(bytes: f64) -> String {
    let mut left = bytes;
    for unit in ["B", "KiB", "MiB"] {
        if left < 1000.0 {
            let digits = usize::from(left < 9.95 && unit != "B");
            return format!("{left:.digits$} {unit}");
        }
        left /= 1024.0;
    }
    format!("{left:.1} GiB")
}

/// `83 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Values of `seconds` seconds as one, the largest; the first is of second `start`. A value stays with its neighbours while the others move on.
pub(super) fn grouped(values: &[Option<f64>], start: u64, seconds: usize) -> Vec<Option<f64>> {
    let first = usize::try_from(start % seconds as u64).unwrap_or_default();
    let (head, rest) = values.split_at((seconds - first).min(values.len()));
    let largest = |group: &[Option<f64>]| group.iter().flatten().copied().max_by(f64::total_cmp);
    let head = (!head.is_empty()).then(|| largest(head));
    head.into_iter().chain(rest.chunks(seconds).map(largest)).collect()
}

/// The newest `width` values as heights; a blank where there is none.
pub(super) fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let newest = &values[values.len().saturating_sub(width)..];
    let most = newest.iter().flatten().fold(0.0, |most: f64, value| most.max(*value));
    let height = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if most > 0.0 => HEIGHTS[((value / most * 7.0).round() as usize).min(7)],
        Some(_) => HEIGHTS[0],
    };
    newest.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        let times = [0.0, 0.000_012, 0.0123, 0.25, 1.0, 61.0, 600.0, 7200.0, 864_000.0];
        let shown = times.map(time);
        assert_eq!(
            shown,
            ["0 µs", "12 µs", "12.3 ms", "250 ms", "1.0 s", "61.0 s", "10 min", "2.0 h", "10 d"]
        );
        assert_eq!(
            [0.0, 0.44, 12.3, 9999.0, 34_512.0, 2e6].map(count),
            ["0", "0.4", "12", "9999", "34.5k", "2.0M"]
        );
        let sizes = [0.0, 700.0, 1024.0, 83_886_080.0, 2e10].map(size);
        assert_eq!(sizes, ["0 B", "700 B", "1.0 KiB", "80 MiB", "18.6 GiB"]);
    }

    #[test]
    fn a_value_stays_with_its_neighbours() {
        let values: Vec<_> = (0..7).map(|value| Some(f64::from(value))).collect();
        assert_eq!(grouped(&values, 0, 3), [Some(2.0), Some(5.0), Some(6.0)]);
        assert_eq!(grouped(&values[1..], 1, 3), [Some(2.0), Some(5.0), Some(6.0)]);
        assert_eq!(grouped(&[None, Some(1.0)], 5, 3), [None, Some(1.0)]);
        assert_eq!(grouped(&[], 5, 3), []);
    }

    #[test]
    fn a_line_has_a_blank_where_nobody_looked() {
        let values = [Some(9.0), Some(0.0), None, Some(4.0), Some(8.0)];
        assert_eq!(sparkline(&values, 4), "▁ ▅█");
        assert_eq!(sparkline(&[Some(0.0)], 4), "▁");
        assert_eq!(sparkline(&[], 4), "");
    }
}
