//! Allocations and memory of a round, on an allocator that counts.
//!
//! `count [--smoke]` prints a Markdown table. Resident memory is measured in a process of its own for
//! each kind (`count resident KIND`), because memory that was freed is used again.

use std::hint::black_box;
use std::process::Command;

use fieldset::{Kind, SETS, Source, build, expected, nothing, search};

/// Rounds held at the same time for resident memory, so that a page more or less does not show.
const HELD: usize = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, index] = &arguments[..]
        && word == "resident"
    {
        let kind = index.parse().ok().and_then(|index: usize| Kind::ALL.get(index).copied());
        println!("{}", kind.map_or(0, resident));
        return;
    }
    println!(
        "| kind | allocations per set | bytes asked for per set | resident bytes per set | against `String` |"
    );
    println!("|---|--:|--:|--:|--:|");
    let strings = resident_in_child(3);
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let (allocations, bytes) = count(kind);
        let resident = resident_in_child(index);
        let ratio = resident as f64 / strings as f64;
        println!("| {} | {allocations:.2} | {bytes} | {resident} | {ratio:.2} |", kind.name());
    }
}

/// Allocations of a round (growing counts as one) and bytes it holds, per set. A set that is used
/// again was filled once before; what it holds is counted from its beginning.
fn count(kind: Kind) -> (f64, i64) {
    let source = Source::new();
    let mut held = nothing(kind);
    let first = allocation_counter::measure(|| build(kind, &source, &mut held));
    let next = allocation_counter::measure(|| build(kind, &source, &mut held));
    assert_eq!(search(&held), expected(), "{kind:?} lost a field");
    (next.count_total as f64 / SETS as f64, first.bytes_current / SETS as i64)
}

/// Growth of this process's resident memory per set.
fn resident(kind: Kind) -> usize {
    let source = Source::new();
    let mut rounds: Vec<_> = (0..HELD).map(|_| nothing(kind)).collect();
    let before = resident_pages();
    for held in &mut rounds {
        build(kind, &source, held);
    }
    let grown = resident_pages().saturating_sub(before);
    black_box(&rounds);
    // The kernel of every system this runs on has pages of 4 KiB.
    grown * 4096 / (HELD * SETS)
}

fn resident_pages() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

/// 0 where the child cannot be run.
fn resident_in_child(index: usize) -> usize {
    let output = std::env::current_exe()
        .and_then(|program| Command::new(program).args(["resident", &index.to_string()]).output());
    output.ok().and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok()).unwrap_or(0)
}
