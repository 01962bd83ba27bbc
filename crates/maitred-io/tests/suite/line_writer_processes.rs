//! Line writers of several processes at one file. The other processes run this program, with [`other_process`] as their only test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use maitred_io::line_writer::{LineWriter, Options, Period, Rotation, Target};
use maitred_io::shared_memory::SharedMemory;

/// Far more than any of these steps needs; reached only by a defect.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// The buffer of a process.
const ROOM: usize = 1 << 16;

/// A process that has more lines that wait writes them before it goes on.
const MOST_UNWRITTEN: u64 = 300;

/// What another process is told.
const NUMBER: &str = "MAITRED_TEST_NUMBER";
const PATH: &str = "MAITRED_TEST_PATH";
const LINES: &str = "MAITRED_TEST_LINES";
const MAX_BYTES: &str = "MAITRED_TEST_MAX_BYTES";
const MAX_FILE: &str = "MAITRED_TEST_MAX_FILE";

pub(crate) fn rotation(max_bytes: u64) -> Rotation {
    let strftime = |_: &str, second: u64| format!("{:08}-{:06}", second / 86_400, second % 86_400);
    Rotation { max_bytes, period: None, keep: 0, max_age: Duration::ZERO, strftime }
}

/// Lines of a process: its number, theirs, and as much that some writes are of several pages.
fn line(process: u64, number: u64) -> String {
    format!("{process} {number} {}.", "x".repeat(usize::try_from(number * 37 % 190).expect("a length")))
}

/// A process that writes lines.
pub(crate) struct Other {
    pub(crate) number: u64,
    process: std::process::Child,
    /// The number of lines it has accepted.
    memory: SharedMemory,
}

/// How the other process writes.
pub(crate) struct Task<'a> {
    pub(crate) path: &'a Path,
    pub(crate) lines: u64,
    /// Of a file that is rotated; 0 for one that is not.
    pub(crate) max_bytes: u64,
    /// A process may make no file longer (RLIMIT_FSIZE).
    pub(crate) max_file: Option<u64>,
}

impl Other {
    pub(crate) fn start(number: u64, task: &Task<'_>) -> Self {
        let memory = SharedMemory::new(size_of::<u64>()).expect("memory");
        let file = memory.as_fd().try_clone_to_owned().expect("a descriptor");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "line_writer_processes::other_process", "--ignored"])
            .env(NUMBER, number.to_string())
            .env(PATH, task.path)
            .env(LINES, task.lines.to_string())
            .env(MAX_BYTES, task.max_bytes.to_string())
            .stdin(Stdio::from(file))
            .stdout(Stdio::null());
        if let Some(most) = task.max_file {
            command.env(MAX_FILE, most.to_string());
        }
        Self { number, process: command.spawn().expect("a process"), memory }
    }

    fn accepted(&self) -> u64 {
        self.memory.words()[0].load(Relaxed)
    }

    /// How many of its lines may be in the file: it is killed with some that wait, and after it has accepted one and before it has counted it.
    pub(crate) fn written(&self) -> RangeInclusive<u64> {
        let accepted = self.accepted();
        accepted.saturating_sub(MOST_UNWRITTEN + 1)..=accepted + 1
    }

    /// Waits until it has accepted so many lines.
    pub(crate) fn wait_for(&self, lines: u64) {
        let begin = Instant::now();
        while self.accepted() < lines {
            assert!(begin.elapsed() < PLENTY, "process {} does not get on", self.number);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }

    pub(crate) fn end(&mut self) {
        assert!(self.process.wait().expect("ended").success(), "process {}", self.number);
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A writer that knows of others, to the file they write to.
pub(crate) fn writer(task: &Task<'_>) -> LineWriter {
    let target = match task.max_bytes {
        0 => Target::Path(task.path.to_owned()),
        max_bytes => Target::Rotated(task.path.to_owned(), rotation(max_bytes)),
    };
    let options = Options { several: true, ..Options::default() };
    LineWriter::open_with(target, ROOM, options).expect("writer")
}

/// The other process. Its standard input is the memory.
#[test]
#[ignore = "a process of other tests"]
fn other_process() {
    let told = |name| std::env::var(name).ok();
    let number = |name| told(name).map(|text| text.parse::<u64>().expect("a number"));
    let own = number(NUMBER).expect("only for other tests");
    let path = PathBuf::from(told(PATH).expect("a path"));
    let lines = number(LINES).expect("lines");
    let task = Task { path: &path, lines, max_bytes: number(MAX_BYTES).expect("a size"), max_file: None };
    let memory: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input");
    let memory = SharedMemory::open(memory).expect("memory");
    if let Some(most) = number(MAX_FILE) {
        limit_files(most);
    }
    let writer = writer(&task);
    writer.set_linger(Duration::from_micros(300));
    let counter = &memory.words()[0];
    for number in 0..lines {
        assert!(writer.write(line(own, number).as_bytes()), "there is room");
        counter.store(number + 1, Relaxed);
        if writer.unwritten() > MOST_UNWRITTEN {
            writer.flush(PLENTY);
        }
    }
    if number(MAX_FILE).is_none() {
        assert!(writer.flush(PLENTY));
    } else {
        assert!(!writer.flush(Duration::from_millis(200)), "the file takes no more");
    }
}

/// A write beyond it is done in part, as on a full disk.
fn limit_files(most: u64) {
    let limit = rustix::process::Rlimit { current: Some(most), maximum: Some(most) };
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("a limit");
}

/// All lines of all files of the log; which are no longer than `max_bytes` if that is not 0.
pub(crate) fn lines_in(folder: &Path, max_bytes: u64) -> Vec<String> {
    let mut all = String::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let begin = all.len();
        File::open(&path).expect("file").read_to_string(&mut all).expect("text");
        let length = all.len() - begin;
        assert!(max_bytes == 0 || length as u64 <= max_bytes, "{} has {length} bytes", path.display());
        assert!(length == 0 || all.ends_with('\n'), "{} ends within a line", path.display());
    }
    all.lines().map(str::to_owned).collect()
}

/// Checks that each line is one of ours, whole, and there once; of each process the first ones, and as many as expected.
pub(crate) fn assert_complete(lines: &[String], expected: &BTreeMap<u64, RangeInclusive<u64>>) {
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for shown in lines {
        let mut parts = shown.split(' ');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok());
        let numbers = next().zip(next());
        let (process, number) = numbers.unwrap_or_else(|| panic!("no line of ours: {shown}"));
        assert_eq!(*shown, line(process, number));
        found.entry(process).or_default().push(number);
    }
    for (process, count) in expected {
        let mut numbers = found.remove(process).unwrap_or_default();
        numbers.sort_unstable();
        for (expected, number) in numbers.iter().enumerate() {
            assert_eq!(*number, expected as u64, "of process {process}: missing, or there twice");
        }
        assert!(count.contains(&(numbers.len() as u64)), "process {process}: {} of {count:?}", numbers.len());
    }
    assert!(found.is_empty(), "of nobody: {:?}", found.keys());
}

#[test]
fn two_processes_write_many_lines_at_once_and_lose_and_mix_none() {
    const COUNT: u64 = 100_000;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: COUNT, max_bytes: 0, max_file: None };
    let mut others = [0, 1].map(|number| Other::start(number, &task));
    others.iter_mut().for_each(Other::end);
    let lines = lines_in(folder.path(), 0);
    assert_complete(&lines, &BTreeMap::from([(0, COUNT..=COUNT), (1, COUNT..=COUNT)]));
}

#[test]
fn processes_rotate_one_file_and_lose_nothing() {
    const COUNT: u64 = 4000;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: COUNT, max_bytes: 20_000, max_file: None };
    let mut others: Vec<Other> = (0..4).map(|number| Other::start(number, &task)).collect();
    others.iter_mut().for_each(Other::end);
    let lines = lines_in(folder.path(), task.max_bytes);
    assert_complete(&lines, &(0..4).map(|number| (number, COUNT..=COUNT)).collect());
}

/// As logrotate does it, while lines are written.
#[test]
fn a_file_that_is_renamed_and_opened_anew_under_load_loses_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: 0, max_bytes: 0, max_file: None };
    let writers = [writer(&task), writer(&task)];
    let is_over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let write = |(process, writer): (u64, &LineWriter)| {
            let mut number = 0;
            while !is_over.load(Relaxed) {
                assert!(writer.write(line(process, number).as_bytes()), "there is room");
                number += 1;
                if writer.unwritten() > MOST_UNWRITTEN {
                    writer.flush(PLENTY);
                }
            }
            assert!(writer.flush(PLENTY));
            (process, number..=number)
        };
        let threads: Vec<_> = (0..).zip(&writers).map(|each| scope.spawn(move || write(each))).collect();
        for number in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            fs::rename(&path, folder.path().join(format!("log.{number}"))).expect("renamed");
            for writer in &writers {
                writer.reopen();
                assert!(writer.flush(PLENTY));
            }
        }
        is_over.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 21);
    assert_complete(&lines_in(folder.path(), 0), &written);
}

/// One with a name that changes, one that is renamed: each second is another period.
#[test]
fn writers_change_the_file_together_when_the_time_comes() {
    let second = |pattern: &str, second: u64| match pattern {
        "%Y%m%d-%H%M%S" => format!("{:08}-{:06}", second / 86_400, second % 86_400),
        _ => format!("{:02}", second % 60),
    };
    for (name, period) in [("log-%S", None), ("log", Some(Period::Day))] {
        let folder = tempfile::tempdir().expect("folder");
        let rotation = Rotation { period, strftime: second, ..rotation(0) };
        let open = || {
            let target = Target::Rotated(folder.path().join(name), rotation);
            let options = Options { several: true, ..Options::default() };
            LineWriter::open_with(target, ROOM, options).expect("writer")
        };
        let writers = [open(), open(), open()];
        let begin = Instant::now();
        let mut written = 0;
        while fs::read_dir(folder.path()).expect("folder").count() < 3 {
            assert!(begin.elapsed() < PLENTY);
            for (process, writer) in (0..).zip(&writers) {
                assert!(writer.write(line(process, written).as_bytes()));
                assert!(writer.flush(PLENTY));
            }
            written += 1;
        }
        let closed = begin.elapsed().as_secs() + 2;
        let files = fs::read_dir(folder.path()).expect("folder").count() as u64;
        assert!(files <= closed, "{files} files in {closed} seconds: each begins one of its own");
        let expected = (0..3).map(|process| (process, written..=written)).collect();
        assert_complete(&lines_in(folder.path(), 0), &expected);
    }
}

/// One of them begins another file; the next line of the other one is in there.
#[test]
fn a_file_that_another_process_has_renamed_gets_no_further_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: 0, max_bytes: 1000, max_file: None };
    let writers = [writer(&task), writer(&task)];
    let write = |process: usize, text: &[u8]| {
        assert!(writers[process].write(text));
        assert!(writers[process].flush(PLENTY));
    };
    write(0, b"first");
    write(1, b"second");
    write(0, &[b'x'; 990]);
    assert_eq!(fs::read(&path).expect("file").len(), 991, "a file of its own");
    write(1, b"third");
    let present = fs::read_to_string(&path).expect("file");
    assert!(present.starts_with('x') && present.ends_with("\nthird\n"), "where the name leads");
    assert_eq!(lines_in(folder.path(), 1000).len(), 4);
}

/// What one process has opened before midnight, and another one has begun after it, is not closed by the first one.
#[test]
fn a_file_that_others_have_begun_in_this_period_goes_on() {
    static BEFORE: AtomicU64 = AtomicU64::new(86_400);
    let days = |pattern: &str, second: u64| {
        let second = second - BEFORE.load(Relaxed);
        if pattern.contains("%H") { format!("{second:08}-000000") } else { format!("{}", second / 86_400) }
    };
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let rotation = Rotation { period: Some(Period::Day), strftime: days, ..rotation(0) };
    let open = || {
        let options = Options { several: true, ..Options::default() };
        LineWriter::open_with(Target::Rotated(path.clone(), rotation), ROOM, options).expect("writer")
    };
    let early = open();
    BEFORE.store(0, Relaxed);
    let late = open();
    for (writer, line) in [(&late, b"late"), (&early, b"last")] {
        assert!(writer.write(line));
        assert!(writer.flush(PLENTY));
    }
    assert_eq!(fs::read_to_string(&path).expect("file"), "late\nlast\n");
}

/// The last line before midnight may get the time of a file of after it: the period is the one of the first lines.
#[test]
fn a_line_at_midnight_does_not_keep_the_file_of_yesterday() {
    static DAY: AtomicU64 = AtomicU64::new(0);
    // By this clock every time is of the same day, also that of the last line.
    let today = |pattern: &str, second: u64| {
        if pattern.contains("%H") { format!("{second:08}-000000") } else { format!("{}", DAY.load(Relaxed)) }
    };
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let rotation = Rotation { period: Some(Period::Day), strftime: today, ..rotation(0) };
    let open = || {
        let options = Options { several: true, ..Options::default() };
        LineWriter::open_with(Target::Rotated(path.clone(), rotation), ROOM, options).expect("writer")
    };
    let write = |writer: &LineWriter, line: &[u8]| {
        assert!(writer.write(line));
        assert!(writer.flush(PLENTY));
    };
    let (one, other) = (open(), open());
    write(&one, b"yesterday");
    DAY.store(1, Relaxed);
    // The time is looked at once a second.
    let second = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse).tv_sec;
    while rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse).tv_sec == second {
        std::thread::sleep(Duration::from_millis(1));
    }
    write(&one, b"today");
    write(&other, b"today");
    assert_eq!(fs::read_to_string(&path).expect("file"), "today\ntoday\n");
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 2);
}

#[test]
fn a_lock_that_is_never_given_back_keeps_no_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: 0, max_bytes: 300, max_file: None };
    let writer = writer(&task);
    let holder = File::open(&path).expect("file");
    rustix::fs::flock(&holder, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    for number in 0..8 {
        assert!(writer.write(line(0, number).as_bytes()));
    }
    assert!(writer.flush(PLENTY));
    assert_complete(&lines_in(folder.path(), 300), &BTreeMap::from([(0, 8..=8)]));
}

#[test]
fn what_goes_to_a_pipe_goes_in_calls_that_are_not_mixed_with_those_of_others() {
    let (read, write) = rustix::pipe::pipe().expect("pipe");
    let options = Options { several: true, ..Options::default() };
    let writer = LineWriter::open_with(Target::File(write.into()), ROOM, options).expect("writer");
    writer.set_linger(PLENTY);
    for _ in 0..99 {
        assert!(writer.write(&[b'x'; 199]));
    }
    assert!(writer.flush(PLENTY));
    // 20 lines are 4,000 bytes.
    assert_eq!(writer.writes(), 5);
    drop(read);
}
