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
        _ if number.fract() == 0.0 && number < 9999.5 => format!("{number:.0}"),
        _ if number < 9.95 => format!("{number:.1}"),
        _ if number < 9999.5 => format!("{number:.0}"),
        _ if number < 999_950.0 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// `83 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Values of the last `seconds` seconds as at most `width` heights; a blank where there is none. A height is the largest value of its seconds, and is
/// that of the same seconds while others follow: the first value is of second `start`.
pub(super) fn sparkline(values: &[Option<f64>], start: u64, seconds: usize, width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = seconds.div_ceil(width.max(1));
    let (head, rest) = values.split_at((each - start as usize % each).min(values.len()));
    let largest = |group: &[Option<f64>]| group.iter().flatten().copied().max_by(f64::total_cmp);
    let columns: Vec<Option<f64>> = std::iter::once(head).chain(rest.chunks(each)).map(largest).collect();
    let most = largest(&columns).unwrap_or_default().max(f64::MIN_POSITIVE);
    let height =
        |value: &Option<f64>| value.map_or(' ', |value| HEIGHTS[(value / most * 7.0).round() as usize]);
    columns[columns.len().saturating_sub(width)..].iter().map(height).collect()
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
    }

    #[test]
    fn a_value_stays_with_its_neighbours() {
        let values: Vec<_> = (0..7).map(|value| Some(f64::from(value))).collect();
        assert_eq!(sparkline(&values, 0, 9, 3), "▃▇█");
        assert_eq!(sparkline(&values[1..], 1, 9, 3), "▃▇█");
        assert_eq!(sparkline(&[None, Some(1.0)], 5, 9, 3), " █");
        assert_eq!(sparkline(&[], 5, 9, 3), " ");
    }

    #[test]
    fn a_line_has_a_blank_where_no_look_was() {
        let values = [Some(9.0), Some(0.0), None, Some(4.0), Some(8.0)];
        assert_eq!(sparkline(&values, 0, 5, 5), "█▁ ▄▇");
        assert_eq!(sparkline(&[Some(0.0)], 0, 4, 4), "▁");
        assert_eq!(sparkline(&values, 0, 5, 0), "");
    }
}
