//! The settings that this side announces, and those of the peer.

use maitred_http::limits::{MAX_FIELD_LINE, MAX_FIELDS, MAX_HEAD, MAX_TARGET};

use crate::budgets::Budgets;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{MAX_31, each_setting, put_settings};

/// Limits for one connection. A value equal to a limit is accepted, one more is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Open streams, at least 1. Past it: the stream is refused, and the peer may send its request again.
    ///
    /// Source: RFC 9113 §6.5.2 recommends no less than 100; nginx and Jetty take 128.
    pub max_streams: u32,
    /// Bytes of a request body that the peer may send before it is given more; 1 to 2^31 − 1. Past it: the stream is reset.
    ///
    /// Reason: a handler that does not read keeps so much in memory. Source: at 256 KiB and 50 ms to the peer and back
    /// a stream has 5 MB/s; Jetty takes 512 KiB, h2o and nginx begin with 64 KiB.
    pub stream_window: u32,
    /// The largest window of a stream that the caller has [widened](crate::Connection::widen) as far as it goes.
    ///
    /// Source: the largest receive buffer of Linux is 6 MiB (`net.ipv4.tcp_rmem`), so that TCP has little more on its way.
    pub max_stream_window: u32,
    /// The window of all streams together; 65,535 to 2^31 − 1, less counts as 65,535 (RFC 9113 §6.9.2). Past it: the
    /// connection ends.
    ///
    /// Reason: it bounds the bytes on their way and no memory, which the windows of streams do. Source: h2o takes 16
    /// MiB, nginx 2 GiB.
    pub connection_window: u32,
    /// Bytes of a frame's payload; 16,384 to 2^24 − 1 (RFC 9113 §6.5.2). Past it: the connection ends.
    pub max_frame: u32,
    /// Bytes of a head, each field with 32 bytes more (RFC 9113 §6.5.2). Past it: 431; past four times as much: the connection ends.
    pub max_head: usize,
    /// Fields in a head; pieces of a cookie do not count. Past it: 431.
    pub max_fields: usize,
    /// Bytes of one field, name and value; of a cookie whose pieces are joined, too. Past it: 431.
    pub max_field_line: usize,
    /// Bytes of a path with its query. Past it: 414.
    pub max_target: usize,
    /// Whether the extended CONNECT is offered (RFC 8441), which carries WebSocket.
    pub connect: bool,
    /// Budgets for useless work that a peer may cause.
    pub budgets: Budgets,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_streams: 128,
            stream_window: 256 * 1024,
            max_stream_window: 4 * 1024 * 1024,
            connection_window: 16 * 1024 * 1024,
            max_frame: 16_384,
            max_head: MAX_HEAD,
            max_fields: MAX_FIELDS,
            max_field_line: MAX_FIELD_LINE,
            max_target: MAX_TARGET,
            connect: false,
            budgets: Budgets::default(),
        }
    }
}

// ---- Numbers of settings (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1) ----

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// The window of a stream and of a connection before any SETTINGS (RFC 9113 §6.9.2).
pub(crate) const FIRST_WINDOW: u32 = 65_535;

/// The largest payload of a frame before, and the smallest one that can be asked for.
pub(crate) const FIRST_FRAME: u32 = 16_384;

/// The settings in one frame.
///
/// Reason: each costs work, and there are not more of them. Source: nghttp2 and Envoy take 32 (CVE-2020-11080).
const MAX_SETTINGS: usize = 32;

impl Settings {
    /// Every value in its range.
    pub(crate) fn bounded(mut self) -> Self {
        self.max_streams = self.max_streams.max(1);
        self.stream_window = self.stream_window.clamp(1, MAX_31);
        self.max_stream_window = self.max_stream_window.clamp(self.stream_window, MAX_31);
        self.connection_window = self.connection_window.clamp(FIRST_WINDOW, MAX_31);
        self.max_frame = self.max_frame.clamp(FIRST_FRAME, (1 << 24) - 1);
        self
    }

    /// Appends the settings for the peer. Not push, which only a client can allow, and not the table of its encoder,
    /// whose initial size is right.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let mut all = [(0, 0); 6];
        let list = u32::try_from(self.max_head).unwrap_or(u32::MAX);
        let told = [
            Some((MAX_CONCURRENT_STREAMS, self.max_streams)),
            Some((INITIAL_WINDOW_SIZE, self.stream_window)),
            Some((MAX_FRAME_SIZE, self.max_frame)).filter(|_| self.max_frame != FIRST_FRAME),
            Some((MAX_HEADER_LIST_SIZE, list)),
            self.connect.then_some((ENABLE_CONNECT_PROTOCOL, 1)),
            Some((NO_RFC7540_PRIORITIES, 1)),
        ];
        let mut count = 0;
        for (place, setting) in all.iter_mut().zip(told.into_iter().flatten()) {
            *place = setting;
            count += 1;
        }
        put_settings(all.get(..count), out);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) window: u32,
    pub(crate) max_frame: u32,
    /// Whether it has no use for priorities of RFC 7540; may be said only once (RFC 9218 §2.1).
    no_priorities: Option<u32>,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { window: FIRST_WINDOW, max_frame: FIRST_FRAME, no_priorities: None }
    }
}

impl PeerSettings {
    /// Takes the settings in the payload of a frame, in their order; `table` gets the sizes of the table of our encoder.
    /// Errors: one of them has a value that it cannot have, or there are too many.
    pub(crate) fn take(&mut self, payload: &[u8], mut table: impl FnMut(u32)) -> Result<(), ConnectionError> {
        let settings = each_setting(payload);
        if settings.len() > MAX_SETTINGS {
            return Err(ConnectionError::calm("too many settings in one frame"));
        }
        for (number, value) in settings {
            match number {
                HEADER_TABLE_SIZE => table(value),
                ENABLE_PUSH if value > 1 => {
                    return Err(ConnectionError::protocol("SETTINGS_ENABLE_PUSH is neither 0 nor 1"));
                }
                INITIAL_WINDOW_SIZE if value > MAX_31 => {
                    let reason = "SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1";
                    return Err(ConnectionError::new(ErrorCode::FlowControlError, reason));
                }
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !(FIRST_FRAME..1 << 24).contains(&value) => {
                    return Err(ConnectionError::protocol(
                        "SETTINGS_MAX_FRAME_SIZE is not in 2^14 to 2^24-1",
                    ));
                }
                MAX_FRAME_SIZE => self.max_frame = value,
                NO_RFC7540_PRIORITIES => {
                    if value > 1 || self.no_priorities.is_some_and(|before| before != value) {
                        let reason = "SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1, or changes";
                        return Err(ConnectionError::protocol(reason));
                    }
                    self.no_priorities = Some(value);
                }
                _ => {}
            }
        }
        // After the first SETTINGS without it the value stays 0 (RFC 9218 §2.1).
        self.no_priorities.get_or_insert(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(settings: &[(u16, u32)]) -> Result<(PeerSettings, Vec<u32>), ConnectionError> {
        let (mut out, mut peer, mut tables) = (Vec::new(), PeerSettings::default(), Vec::new());
        put_settings(Some(settings), &mut out);
        peer.take(&out[9..], |size| tables.push(size))?;
        Ok((peer, tables))
    }

    #[test]
    fn settings_of_a_peer() {
        let (peer, tables) =
            taken(&[(1, 0), (1, 9), (4, 5), (4, 7), (5, 20_000), (2, 0), (3, 0), (99, 99)]).expect("taken");
        assert_eq!((peer.window, peer.max_frame, tables), (7, 20_000, vec![0, 9]));
        use ErrorCode::{EnhanceYourCalm, FlowControlError, ProtocolError};
        for (settings, code) in [
            (&[(2, 2)][..], ProtocolError),
            (&[(4, 1 << 31)], FlowControlError),
            (&[(4, u32::MAX)], FlowControlError),
            (&[(5, 16_383)], ProtocolError),
            (&[(5, 1 << 24)], ProtocolError),
            (&[(9, 2)], ProtocolError),
            (&[(9, 1), (9, 0)], ProtocolError),
            (&[(7, 7); MAX_SETTINGS + 1], EnhanceYourCalm),
        ] {
            assert_eq!(taken(settings).expect_err("refused").code, code, "{settings:?}");
        }
        assert!(taken(&[(7, 7); MAX_SETTINGS]).is_ok() && taken(&[(4, MAX_31), (5, (1 << 24) - 1)]).is_ok());
    }

    #[test]
    fn priorities_are_said_in_the_first_frame() {
        let (mut out, mut peer) = (Vec::new(), PeerSettings::default());
        put_settings(Some(&[(9, 1)]), &mut out);
        peer.take(b"", |_| ()).expect("taken");
        assert!(peer.take(&out[9..], |_| ()).is_err());
    }

    #[test]
    fn values_out_of_range_are_brought_into_it() {
        let settings = Settings {
            max_streams: 0,
            stream_window: u32::MAX,
            connection_window: 1,
            max_frame: 1,
            ..Settings::default()
        };
        let settings = settings.bounded();
        let values =
            (settings.max_streams, settings.stream_window, settings.connection_window, settings.max_frame);
        assert_eq!(values, (1, MAX_31, 65_535, 16_384));
    }
}
