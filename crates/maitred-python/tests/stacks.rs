//! Stacks that threads write of themselves, in any state.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use _engine::Dumper;
use pyo3::prelude::*;
use pyo3::types::PyModule;

/// Reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// `faulthandler` ends the process after some hundreds, on most versions of Python. With MAITRED_LONG=1 many more.
const DUMPS: usize = 5_000;
const DUMPS_LONG: usize = 100_000;

const THREADS: &str = "
import threading

numbers = []
stop = threading.Event()

def begin(function):
    def run():
        numbers.append(threading.get_native_id())
        function()
    threading.Thread(target=run, daemon=True).start()
";

/// One pipe for all: there is one question at a time.
static ONE: Mutex<()> = Mutex::new(());

fn module(source: &str) -> Py<PyModule> {
    Python::initialize();
    let source = std::ffi::CString::new(format!("{THREADS}{source}")).expect("no zero");
    Python::attach(|py| PyModule::from_code(py, &source, c"app.py", c"app").expect("runs").unbind())
}

fn dumper() -> &'static Dumper {
    Python::attach(|py| Dumper::install(py).expect("a signal is free"))
}

/// Python's numbers of the threads, when so many have begun.
fn numbers(module: &Py<PyModule>, count: usize) -> Vec<i32> {
    loop {
        let numbers: Vec<i32> =
            Python::attach(|py| module.getattr(py, "numbers")?.extract(py)).expect("numbers");
        if numbers.len() == count {
            return numbers;
        }
        thread::yield_now();
    }
}

#[test]
fn threads_that_make_frames_all_the_time_write_their_stacks() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let module = module(
        "
def calls(depth):
    if depth:
        for _ in range(3):
            calls(depth - 1)
        sorted([2, 1], key=lambda number: calls(0) or number)

def compute():
    while not stop.is_set():
        calls(4)

for _ in range(3):
    begin(compute)
",
    );
    let dumper = dumper();
    let numbers = numbers(&module, 3);
    let mut whole = 0;
    let dumps = if std::env::var_os("MAITRED_LONG").is_some() { DUMPS_LONG } else { DUMPS };
    for tid in numbers.iter().cycle().take(dumps) {
        let dump = dumper.dump(*tid, PATIENCE).expect("it answers");
        let frames = dump.frames.expect("this Python is known");
        assert!(frames.iter().all(|frame| frame.starts_with("  File \"")), "{frames:?}");
        whole += usize::from(frames.iter().any(|frame| frame.contains("app.py\", line 21, in compute")));
    }
    Python::attach(|py| module.getattr(py, "stop")?.call_method0(py, "set")).expect("is set");
    // A stack may be cut where a frame is being made; most are not.
    assert!(whole * 2 > dumps, "{whole} of {dumps}");
}

#[test]
fn files_lines_and_functions_are_those_that_python_names() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let module = module(
        "
import sys, traceback

waits = threading.Event()
inside = threading.Event()

def over_lines(*arguments):
    return later(
        arguments,
        [number
         for number in
         range(3)],
        lambda: arguments)

def later(arguments, numbers, function):
    result = 0
    for number in numbers:
        result += number
        if number == 2:
            return list(map(lambda each:
                each if each else far.run(each), [1, 0]))
    return result

class Far:
    def run(self, each):
        with threading.Lock():
            try:
                raise KeyError
            except KeyError:
                generated = (wait() for _ in [each])
                return next(generated)

far = Far()

# A line far from the one before, more than a thousand lines long.
exec(compile('def long():' + chr(10) + '  if stop:' + chr(10) * 3000 + '    return over_lines(1, ' + ' ' * 300
    + '2)' + chr(10) * 70 + '  return 1', 'long.py', 'exec'))

def h\u{f6}lder():
    long()

def wait():
    inside.set()
    waits.wait()

begin(h\u{f6}lder)
inside.wait()

def stack():
    (number,) = numbers
    (thread,) = (thread for thread in threading.enumerate() if thread.native_id == number)
    frame = sys._current_frames()[thread.ident]
    return ['  File \"%s\", line %d, in %s' % (entry.filename, entry.lineno, entry.name if entry.name.isascii() else '?')
        for entry in traceback.extract_stack(frame)]
",
    );
    let dumper = dumper();
    let number = numbers(&module, 1)[0];
    let dump = dumper.dump(number, PATIENCE).expect("it answers");
    let expected: Vec<String> =
        Python::attach(|py| module.call_method0(py, "stack")?.extract(py)).expect("a stack");
    assert!(expected.iter().any(|frame| frame.contains("long.py\", line 3")), "{expected:?}");
    assert_eq!(dump.frames.as_deref(), Some(&*expected));
    assert!(!dump.holds);
    Python::attach(|py| module.getattr(py, "waits")?.call_method0(py, "set")).expect("is set");
}
