//! The server of nghttp2.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;

use libnghttp2_sys::*;

use crate::seen::{CONNECTION_WINDOW, Head, MAX_HEAD, MAX_STREAMS, STREAM_WINDOW, Seen, Server, is_answered};

pub struct Nghttp2 {
    session: *mut nghttp2_session,
    /// The session's user data.
    log: *mut Log,
    written: Vec<u8>,
    over: bool,
}

/// The notes of the callbacks.
#[derive(Default)]
struct Log {
    seen: Seen,
    /// Fields of the heads that are not complete.
    heads: BTreeMap<u32, Vec<(Vec<u8>, Vec<u8>)>>,
}

const PRIORITY_UPDATE: u8 = 0x10;

impl Nghttp2 {
    pub fn new() -> Self {
        let log = Box::into_raw(Box::<Log>::default());
        let (mut session, mut callbacks, mut option) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let entry = |settings_id, value| nghttp2_settings_entry { settings_id, value };
        let settings = [
            entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS as i32, MAX_STREAMS),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE as i32, STREAM_WINDOW),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE as i32, MAX_HEAD),
            entry(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL as i32, 1),
            entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES as i32, 1),
        ];
        // SAFETY: Every function gets the objects that one before has made, both are deleted once and not used after
        // that; the callbacks have the signatures that the library wants, and `log` lives until the session is deleted.
        unsafe {
            assert_eq!(nghttp2_session_callbacks_new(&mut callbacks), 0);
            nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Some(on_begin_headers));
            nghttp2_session_callbacks_set_on_header_callback(callbacks, Some(on_header));
            nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, Some(on_invalid_header));
            nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Some(on_frame));
            nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Some(on_data));
            assert_eq!(nghttp2_option_new(&mut option), 0);
            nghttp2_option_set_no_auto_window_update(option, 1);
            nghttp2_option_set_builtin_recv_extension_type(option, PRIORITY_UPDATE);
            nghttp2_option_set_max_continuations(option, 16);
            assert_eq!(nghttp2_session_server_new2(&mut session, callbacks, log.cast(), option), 0);
            nghttp2_option_del(option);
            nghttp2_session_callbacks_del(callbacks);
            assert_eq!(nghttp2_submit_settings(session, 0, settings.as_ptr(), settings.len()), 0);
            let window = CONNECTION_WINDOW as i32;
            assert_eq!(nghttp2_session_set_local_window_size(session, 0, 0, window), 0);
        }
        Self { session, log, written: Vec::new(), over: false }
    }

    fn send(&mut self) {
        loop {
            let mut start = ptr::null();
            // SAFETY: The session lives, and its pointer to the bytes holds until its next call.
            let bytes = unsafe {
                let length = nghttp2_session_mem_send2(self.session, &mut start);
                if length <= 0 {
                    return;
                }
                slice::from_raw_parts(start, length as usize)
            };
            self.written.extend_from_slice(bytes);
        }
    }
}

impl Server for Nghttp2 {
    fn name(&self) -> &'static str {
        "nghttp2"
    }

    fn feed(&mut self, bytes: &[u8], seen: &mut Seen) {
        if self.over {
            return;
        }
        // SAFETY: The session lives, and the bytes do for the call.
        let taken = unsafe { nghttp2_session_mem_recv2(self.session, bytes.as_ptr(), bytes.len()) };
        self.send();
        // SAFETY: The log lives, and only callbacks within a call of the session look at it beside this.
        *seen = std::mem::take(unsafe { &mut (*self.log).seen });
        for stream in seen.ends.iter().copied().filter(|stream| is_answered(*stream)) {
            let (name, value) = (b":status", b"200");
            let status = nghttp2_nv {
                name: name.as_ptr().cast_mut(),
                value: value.as_ptr().cast_mut(),
                namelen: name.len(),
                valuelen: value.len(),
                flags: 0,
            };
            // SAFETY: The session lives; it copies the field, and has no body to read.
            unsafe { nghttp2_submit_response2(self.session, stream as i32, &status, 1, ptr::null()) };
        }
        self.send();
        seen.note_written(&mut self.written);
        // A preface that is none is told only to the caller (RFC 9113 §3.4: GOAWAY may be left out).
        if taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC as isize {
            seen.goaway = Some(NGHTTP2_PROTOCOL_ERROR);
        } else if taken < 0 {
            seen.goaway = seen.goaway.or(Some(NGHTTP2_INTERNAL_ERROR));
        }
        // SAFETY: The session lives.
        let wants =
            unsafe { nghttp2_session_want_read(self.session) + nghttp2_session_want_write(self.session) };
        if wants == 0 {
            seen.goaway = seen.goaway.or(Some(NGHTTP2_NO_ERROR));
        }
        self.over = seen.goaway.is_some();
    }
}

impl Drop for Nghttp2 {
    fn drop(&mut self) {
        // SAFETY: Both were made in `new`, and no other code has them after this.
        unsafe {
            nghttp2_session_del(self.session);
            drop(Box::from_raw(self.log));
        }
    }
}

/// # Safety
/// `data` is the user data of a session.
unsafe fn log<'a>(data: *mut c_void) -> &'a mut Log {
    // SAFETY: It is the log of a server, which no other code looks at during a callback.
    unsafe { &mut *data.cast::<Log>() }
}

unsafe extern "C" fn on_begin_headers(
    _: *mut nghttp2_session,
    frame: *const nghttp2_frame,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The library gives a frame of HEADERS and the user data.
    unsafe { log(data).heads.insert((*frame).hd.stream_id as u32, Vec::new()) };
    0
}

unsafe extern "C" fn on_header(
    _: *mut nghttp2_session,
    frame: *const nghttp2_frame,
    name: *const u8,
    name_length: usize,
    value: *const u8,
    value_length: usize,
    _: u8,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The library gives a frame of HEADERS, the user data, and pointers to so many bytes, none of them null.
    unsafe {
        let fields = log(data).heads.entry((*frame).hd.stream_id as u32).or_default();
        let text = |start, length| slice::from_raw_parts(start, length).to_vec();
        fields.push((text(name, name_length), text(value, value_length)));
    }
    0
}

/// Without this they are left out, and the request goes on.
unsafe extern "C" fn on_invalid_header(
    _: *mut nghttp2_session,
    _: *const nghttp2_frame,
    _: *const u8,
    _: usize,
    _: *const u8,
    _: usize,
    _: u8,
    _: *mut c_void,
) -> c_int {
    NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
}

unsafe extern "C" fn on_frame(
    _: *mut nghttp2_session,
    frame: *const nghttp2_frame,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The library gives a frame and the user data; that of HEADERS has a category.
    let (head, category, log) = unsafe { ((*frame).hd, (*frame).headers.cat, log(data)) };
    let kind = u32::from(head.type_);
    if kind != NGHTTP2_HEADERS && kind != NGHTTP2_DATA {
        return 0;
    }
    let stream = head.stream_id as u32;
    if kind == NGHTTP2_HEADERS {
        let fields = log.heads.remove(&stream).unwrap_or_default();
        if category == NGHTTP2_HCAT_REQUEST {
            log.seen.heads.push(request(stream, fields));
        }
    }
    if u32::from(head.flags) & NGHTTP2_FLAG_END_STREAM != 0 {
        log.seen.ends.push(stream);
    }
    0
}

unsafe extern "C" fn on_data(
    _: *mut nghttp2_session,
    _: u8,
    stream: i32,
    start: *const u8,
    length: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The library gives the user data and a pointer to so many bytes.
    unsafe {
        let body = log(data).seen.data.entry(stream as u32).or_default();
        body.extend_from_slice(slice::from_raw_parts(start, length));
    }
    0
}

fn request(stream: u32, fields: Vec<(Vec<u8>, Vec<u8>)>) -> Head {
    let mut head = Head { stream, ..Head::default() };
    for (name, value) in fields {
        match &name[..] {
            b":method" => head.method = value,
            b":scheme" => {}
            b":path" => head.path = value,
            b":authority" => head.authority = value,
            b":protocol" => head.protocol = value,
            _ => head.fields.push((name, value)),
        }
    }
    head.normal()
}
