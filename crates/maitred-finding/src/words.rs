//! Times and sizes in sentences.

pub(crate) const MIB: u64 = 1024 * 1024;

pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.01 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 120.0 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    let mib = bytes as f64 / MIB as f64;
    if mib < 1024.0 { format!("{mib:.0} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}
