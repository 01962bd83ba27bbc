//! Runs every fuzz target for some seconds with its seeds and with changes of them: `fuzz-smoke SECONDS`.
//!
//! It finds what is broken at once, without a nightly toolchain. What is new is found by libFuzzer, which follows the code
//! that an input reaches: `make fuzz`. An input that fails is written to `.build/fuzz`, to be tried again.

#![expect(
    clippy::duplicate_mod,
    reason = "two targets share a file, and each is the root of a program elsewhere"
)]

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[path = "../../fuzz/fuzz_targets/accepted.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod accepted;
#[path = "../../fuzz/fuzz_targets/acme_answers.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod acme_answers;
#[path = "../../fuzz/fuzz_targets/fieldset.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod fieldset;
#[path = "../../fuzz/fuzz_targets/forwarded.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod forwarded;
#[path = "../../fuzz/fuzz_targets/h1_chunked.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod h1_chunked;
#[path = "../../fuzz/fuzz_targets/h1_head.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod h1_head;
#[path = "../../fuzz/fuzz_targets/h1_response.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod h1_response;
#[path = "../../fuzz/fuzz_targets/h2_connection.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod h2_connection;
#[path = "../../fuzz/fuzz_targets/hpack_decode.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod hpack_decode;
#[path = "../../fuzz/fuzz_targets/hpack_round.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod hpack_round;
#[path = "../../fuzz/fuzz_targets/path.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod path;
#[path = "../../fuzz/fuzz_targets/path_readings.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod path_readings;
#[path = "../../fuzz/fuzz_targets/pool_rule.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod pool_rule;
#[path = "../../fuzz/fuzz_targets/proxy_v1.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod proxy_v1;
#[path = "../../fuzz/fuzz_targets/proxy_v2.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod proxy_v2;
#[path = "../../fuzz/fuzz_targets/range.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod range;
#[path = "../../fuzz/fuzz_targets/tls_files.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod tls_files;
#[path = "../../fuzz/fuzz_targets/tls_session.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod tls_session;
#[path = "../../fuzz/fuzz_targets/tls_ticket.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod tls_ticket;
#[path = "../../fuzz/fuzz_targets/trace_context.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod trace_context;
#[path = "../../fuzz/fuzz_targets/ws_deflate.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod ws_deflate;
#[path = "../../fuzz/fuzz_targets/ws_handshake.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod ws_handshake;
#[path = "../../fuzz/fuzz_targets/ws_receiver.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod ws_receiver;
#[path = "../../fuzz/fuzz_targets/ws_round.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod ws_round;
#[path = "../../fuzz/fuzz_targets/ws_utf8.rs"]
#[allow(unused_attributes, missing_docs, reason = "the root of a program for libFuzzer")]
mod ws_utf8;

/// What is done with one input.
type Target = fn(&[u8]);

/// Every file of `fuzz/fuzz_targets`.
const TARGETS: &[(&str, Target)] = &[
    ("accepted", accepted::run),
    ("acme_answers", acme_answers::run),
    ("fieldset", fieldset::run),
    ("forwarded", forwarded::run),
    ("h1_chunked", h1_chunked::run),
    ("h1_head", h1_head::run),
    ("h1_response", h1_response::run),
    ("h2_connection", h2_connection::run),
    ("hpack_decode", hpack_decode::run),
    ("hpack_round", hpack_round::run),
    ("path", path::run),
    ("path_readings", path_readings::run),
    ("pool_rule", pool_rule::run),
    ("proxy_v1", proxy_v1::run),
    ("proxy_v2", proxy_v2::run),
    ("range", range::run),
    ("tls_files", tls_files::run),
    ("tls_session", tls_session::run),
    ("tls_ticket", tls_ticket::run),
    ("trace_context", trace_context::run),
    ("ws_deflate", ws_deflate::run),
    ("ws_handshake", ws_handshake::run),
    ("ws_receiver", ws_receiver::run),
    ("ws_round", ws_round::run),
    ("ws_utf8", ws_utf8::run),
];

/// The longest input, in bytes.
const LONGEST: usize = 4096;

fn main() -> ExitCode {
    let Some(seconds) = std::env::args().nth(1).and_then(|word| word.parse().ok()) else {
        return told("fuzz-smoke: for how many seconds? fuzz-smoke SECONDS");
    };
    let limit = Duration::from_secs(seconds);
    let waiting = Mutex::new(TARGETS.to_vec());
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, target)) = waiting.lock().ok().and_then(|mut left| left.pop()) {
            let line = match run(name, target, limit) {
                Ok(runs) => format!("fuzz: {name}: {runs} runs in {seconds} s"),
                Err(problem) => {
                    failed.lock().expect("no panic").push(name);
                    format!("fuzz: {name} failed: {problem}")
                }
            };
            told(&line);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("no panic");
    told(&format!("fuzz-smoke: {} targets, {} failed", TARGETS.len(), failed.len()));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn told(line: &str) -> ExitCode {
    // Who has closed the pipe does not want to know.
    let _ = io::Write::write_all(&mut io::stdout(), format!("{line}\n").as_bytes());
    ExitCode::from(2)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// How often the target was run, or what failed.
fn run(name: &str, target: Target, limit: Duration) -> Result<u64, String> {
    let folder = root().join("fuzz/corpus").join(name);
    let seeds = seeds(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let begun = Instant::now();
    let mut runs = 0;
    for seed in &seeds {
        once(name, target, seed)?;
        runs += 1;
    }
    while begun.elapsed() < limit {
        for _ in 0..64 {
            once(name, target, &chance.changed(&seeds))?;
            runs += 1;
        }
    }
    Ok(runs)
}

fn seeds(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let seeds = files.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
    if seeds.is_empty() { Err(io::Error::other("no seeds")) } else { Ok(seeds) }
}

fn once(name: &str, target: Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target(input))).map_err(|_| {
        let file = root().join(".build/fuzz").join(format!("{name}.failed"));
        let kept = fs::create_dir_all(root().join(".build/fuzz")).and_then(|()| fs::write(&file, input));
        let place = if kept.is_ok() { file.display().to_string() } else { format!("{input:?}") };
        format!("its input is {place}")
    })
}

/// A generator of numbers without a pattern (xorshift64*); the same ones in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        mixed as usize % limit.max(1)
    }

    /// One of the seeds, with some changes.
    fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        const TELLING: &[u8] = b"\0\t\n\r \"%*+,-./09:;=?@AZ[\\]_az\x7f\x80\xff";
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = self.below(input.len() + 1);
            match self.below(6) {
                0 => input.insert(at, TELLING[self.below(TELLING.len())]),
                1 if at < input.len() => input[at] = TELLING[self.below(TELLING.len())],
                2 if at < input.len() => input[at] ^= 1 << self.below(8),
                3 if at < input.len() => {
                    let end = at + 1 + self.below((input.len() - at).min(16));
                    input.drain(at..end.min(input.len()));
                }
                4 => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let to = from + self.below(other.len() - from + 1);
                    input.splice(at..at, other[from..to].iter().copied());
                }
                _ => {
                    let end = at + self.below((input.len() - at).min(32) + 1);
                    let again = input[at..end].to_vec();
                    input.splice(at..at, again);
                }
            }
        }
        input.truncate(LONGEST);
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_run() {
        let folder = root().join("fuzz/fuzz_targets");
        let files = fs::read_dir(folder).expect("the targets").map(|entry| entry.expect("a file").path());
        let is_target = |file: &PathBuf| fs::read_to_string(file).expect("text").contains("fuzz_target!");
        let mut found: Vec<String> = files
            .filter(is_target)
            .map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        found.sort();
        assert_eq!(found, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn an_input_that_fails_is_told() {
        let failing: Target = |_| panic!("as meant");
        let told = once("as-meant", failing, b"x").expect_err("it fails");
        assert!(told.contains("as-meant.failed"), "{told}");
    }
}
