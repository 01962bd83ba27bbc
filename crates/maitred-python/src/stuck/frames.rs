//! The frames of the calling thread, read without the interpreter: in a signal handler, at any moment.
//!
//! The thread may be in the middle of a call, with a frame that is not quite there; a reader that trusts it
//! (`faulthandler`) ends the process. So nothing is dereferenced: the kernel copies [memory](crate::own_memory), an
//! object must be of the type that its place asks for, and everything is bounded. Frames that cannot be understood are
//! left out.
//!
//! Promises: no fault, no allocation, no lock. Python has no interface for the layout: [`Layout`] has it by version,
//! and [`prepare`] reads a stack that is known. If that comes out otherwise, frames are never read.

use std::ffi::CStr;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyModule};

use crate::own_memory::{Bytes, copy, int, word};

/// The most frames, as many of the innermost as `faulthandler` writes. A stack that is deeper recurses.
const MAX_FRAMES: usize = 100;

/// The number of the last bytes of a name that are written.
const MAX_FILE: usize = 400;
const MAX_FUNCTION: usize = 120;
/// Bytes of an entry, with `File`, `line`, `in`.
const MAX_ENTRY: usize = MAX_FILE + MAX_FUNCTION + 64;
// An empty pipe takes all of them.
const _: () = assert!(MAX_FRAMES * MAX_ENTRY < 64 * 1024);

/// The longest table of lines that is looked at: that of a function with some 100,000 calls.
const MAX_TABLE: usize = 1024 * 1024;

/// Stands for a name that is not ASCII or cannot be read.
const UNREADABLE: &[u8] = b"?";

static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// Offsets in bytes from the beginning of their objects (CPython's Include/: `cpython/pystate.h`, `cpython/code.h`,
/// `internal/pycore_frame.h`).
#[derive(Clone, Copy)]
struct Layout {
    /// In the state of a thread: its innermost frame, or the object that has it at `through`.
    state_frame: usize,
    through: Option<usize>,
    frame_code: usize,
    frame_previous: usize,
    instruction: Instruction,
    code_first_line: usize,
    code_file: usize,
    code_function: usize,
    code_table: usize,
    string_bytes: usize,
}

/// How a frame says which instruction runs, with its place there. Tables of lines differ as well.
#[derive(Clone, Copy)]
enum Instruction {
    /// The number of it, before Python 3.11.
    Number(usize),
    /// The address of the instruction. Instructions begin at `start` of the code.
    Address { place: usize, start: usize },
}

/// Bytes of an instruction.
const UNIT: usize = 2;

/// The offset of the type in every object.
const TYPE: usize = 8;
/// The offset of the length in every object that has one.
const LENGTH: usize = 16;
const BYTES: usize = 32;

impl Layout {
    fn of(py: Python<'_>) -> PyResult<Option<Self>> {
        let version = py.version_info();
        if version.major != 3 {
            return Ok(None);
        }
        let empty_string: usize = py.import("sys")?.call_method1("getsizeof", ("",))?.extract()?;
        // All that an empty one has, but for the zero at its end.
        let string_bytes = empty_string.saturating_sub(1);
        // Instructions are the part of variable length.
        let start = py.import("types")?.getattr("CodeType")?.getattr("__basicsize__")?.extract()?;
        let base = Self {
            state_frame: 72,
            through: None,
            frame_code: 0,
            frame_previous: 8,
            instruction: Instruction::Address { place: 56, start },
            code_first_line: 68,
            code_file: 112,
            code_function: 120,
            code_table: 136,
            string_bytes,
        };
        Ok(Some(match version.minor {
            10 => Self {
                state_frame: 24,
                frame_code: 32,
                frame_previous: 24,
                instruction: Instruction::Number(96),
                code_first_line: 40,
                code_file: 104,
                code_function: 112,
                code_table: 120,
                ..base
            },
            11 => Self {
                state_frame: 56,
                through: Some(8),
                frame_code: 32,
                frame_previous: 48,
                code_first_line: 72,
                ..base
            },
            12 => Self { state_frame: 56, through: Some(0), ..base },
            13 => base,
            14 => Self { state_frame: 64, ..base },
            _ => return Ok(None),
        }))
    }
}

/// The stack that is known: a call over several lines, and one in a loop.
const KNOWN: &CStr = c"
def outer(read):
    words = [1,
             2]
    return inner(
        words, read)

def inner(words, read):
    for word in words:
        if word == 2:
            read()
";
const KNOWN_AS: &str = "  File \"<known>\", line 11, in inner\n  File \"<known>\", line 5, in outer\n";

pub(super) fn prepare(py: Python<'_>) -> PyResult<()> {
    if LAYOUT.get().is_some() || cfg!(not(target_pointer_width = "64")) {
        return Ok(());
    }
    let Some(layout) = Layout::of(py)? else { return Ok(()) };
    let read = PyCFunction::new_closure(py, None, None, move |_, _| {
        let mut text = Vec::new();
        layout.walk(own_state(), &mut |entry| text.extend_from_slice(entry));
        if text.starts_with(KNOWN_AS.as_bytes()) {
            // Another thread may have found the same.
            let _ = LAYOUT.set(layout);
        }
    })?;
    PyModule::from_code(py, KNOWN, c"<known>", c"maitred._known")?.call_method1("outer", (read,)).map(drop)
}

/// Writes a line for each frame of the calling thread, the innermost first. False if frames cannot be read in this Python.
pub(super) fn write_own(write: &mut dyn FnMut(&[u8])) -> bool {
    LAYOUT.get().map(|layout| layout.walk(own_state(), write)).is_some()
}

fn own_state() -> usize {
    // SAFETY: no arguments; reads a value of this thread.
    unsafe { ffi::PyGILState_GetThisThreadState() as usize }
}

impl Layout {
    fn walk(&self, state: usize, write: &mut dyn FnMut(&[u8])) {
        let mut next = self.first(state);
        for _ in 0..MAX_FRAMES {
            let Some(frame) = next.filter(|frame| *frame != 0) else { return };
            if let Some(entry) = self.entry(frame) {
                write(entry.written());
            }
            next = word(frame.wrapping_add(self.frame_previous));
        }
    }

    fn first(&self, state: usize) -> Option<usize> {
        // Address 0 cannot be read.
        let found = word(state.wrapping_add(self.state_frame))?;
        self.through.map_or(Some(found), |through| word(found.wrapping_add(through)))
    }

    fn entry(&self, frame: usize) -> Option<Entry> {
        // From 3.14 on the lowest bits mark how the reference is counted.
        let code = word(frame.wrapping_add(self.frame_code))? & !3;
        if !is_of(code, &raw const ffi::PyCode_Type) {
            return None;
        }
        // None: it is being made, or C code calls Python here (3.12).
        let line = self.line(frame, code)?;
        let mut entry = Entry::default();
        entry.put(b"  File \"");
        self.put_string(code.wrapping_add(self.code_file), MAX_FILE, &mut entry);
        entry.put(b"\", line ");
        entry.put(itoa::Buffer::new().format(line).as_bytes());
        entry.put(b", in ");
        self.put_string(code.wrapping_add(self.code_function), MAX_FUNCTION, &mut entry);
        entry.put(b"\n");
        Some(entry)
    }

    /// The end of the string to which the place points.
    fn put_string(&self, place: usize, limit: usize, entry: &mut Entry) {
        let mut copied = [0; MAX_FILE + 1];
        let read = |copied: &mut [u8; MAX_FILE + 1]| {
            let string = word(place).filter(|string| is_of(*string, &raw const ffi::PyUnicode_Type))?;
            let length = word(string.wrapping_add(LENGTH))?;
            let shown = length.min(limit);
            let start = string.wrapping_add(self.string_bytes).wrapping_add(length - shown);
            copy(start, copied.get_mut(..=shown)?)?;
            // The text of a string that is not ASCII is elsewhere: here are other fields of the object then, with
            // zeros.
            let (end, text) = copied[..=shown].split_last()?;
            (*end == 0 && text.iter().all(|byte| matches!(byte, b' '..=b'~'))).then_some(shown)
        };
        match read(&mut copied) {
            Some(length) => entry.put(&copied[..length]),
            None => entry.put(UNREADABLE),
        }
    }

    fn line(&self, frame: usize, code: usize) -> Option<i64> {
        let table = word(code.wrapping_add(self.code_table))?;
        let length = word(table.wrapping_add(LENGTH))?;
        if !is_of(table, &raw const ffi::PyBytes_Type) || length > MAX_TABLE {
            return None;
        }
        let table = Bytes::new(table.wrapping_add(BYTES), length);
        let first = i64::from(int(code.wrapping_add(self.code_first_line))?);
        match self.instruction {
            Instruction::Number(place) => {
                let number = usize::try_from(int(frame.wrapping_add(place))?).ok()?;
                line_of_pairs(table, first, UNIT.wrapping_mul(number))
            }
            Instruction::Address { place, start } => {
                let address = word(frame.wrapping_add(place))?;
                line_of_locations(table, first, address.wrapping_sub(code.wrapping_add(start)))
            }
        }
    }
}

/// The line of the instruction at this offset: Python 3.10 (CPython's Objects/lnotab_notes.txt).
fn line_of_pairs(mut table: Bytes, mut line: i64, offset: usize) -> Option<i64> {
    /// Code that has no line.
    const NONE: i8 = -128;
    let mut end = 0;
    loop {
        end += usize::from(table.next()?);
        let lines = table.next()?.cast_signed();
        if lines != NONE {
            line += i64::from(lines);
        }
        if offset < end {
            return (lines != NONE).then_some(line);
        }
    }
}

/// The line in a table of Python 3.11 or later (CPython's Objects/locations.md).
fn line_of_locations(mut table: Bytes, mut line: i64, offset: usize) -> Option<i64> {
    /// The form of code that has no line.
    const NONE: u8 = 15;
    let mut end = 0;
    loop {
        let head = table.next()?;
        end += UNIT * (usize::from(head & 7) + 1);
        let form = head >> 3 & 15;
        // How many bytes and how many numbers of columns come after the line.
        let (lines, bytes, numbers) = match form {
            0..=9 => (0, 1, 0),
            10..=12 => (i64::from(form - 10), 2, 0),
            13 => (signed(varint(&mut table)?), 0, 0),
            14 => (signed(varint(&mut table)?), 0, 3),
            _ => (0, 0, 0),
        };
        (0..bytes).try_for_each(|_| table.next().map(drop))?;
        (0..numbers).try_for_each(|_| varint(&mut table).map(drop))?;
        line += lines;
        if offset < end {
            return (form != NONE).then_some(line);
        }
    }
}

/// Six bits in each byte, the lowest first; bit 6 says that there are more.
fn varint(table: &mut Bytes) -> Option<u32> {
    let mut value = 0;
    // 32 bits.
    for shift in (0..36).step_by(6) {
        let byte = table.next()?;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// The lowest bit is the sign.
fn signed(value: u32) -> i64 {
    let size = i64::from(value >> 1);
    if value & 1 == 0 { size } else { -size }
}

fn is_of(object: usize, class: *const ffi::PyTypeObject) -> bool {
    word(object.wrapping_add(TYPE)) == Some(class as usize)
}

struct Entry {
    text: [u8; MAX_ENTRY],
    length: usize,
}

impl Default for Entry {
    fn default() -> Self {
        Self { text: [0; MAX_ENTRY], length: 0 }
    }
}

impl Entry {
    fn put(&mut self, part: &[u8]) {
        let end = self.length + part.len();
        if let Some(place) = self.text.get_mut(self.length..end) {
            place.copy_from_slice(part);
            self.length = end;
        }
    }

    fn written(&self) -> &[u8] {
        &self.text[..self.length]
    }
}
