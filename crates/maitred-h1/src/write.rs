//! Writing the parts of a response head straight into the buffer.

use maitred_http::Status;

/// The status line. An empty reason phrase still has its space before it (RFC 9112 §4).
pub(crate) fn status_line(status: Status, reason: &[u8], out: &mut Vec<u8>) {
    let code = status.code();
    let digit = |divisor: u16| b'0' + (code / divisor % 10) as u8;
    let mut start = *b"HTTP/1.1 000 ";
    let [.., hundreds, tens, ones, _] = &mut start;
    (*hundreds, *tens, *ones) = (digit(100), digit(10), digit(1));
    out.extend_from_slice(&start);
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// One field line.
pub(crate) fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// `number` in decimal.
pub(crate) fn decimal(number: u64, out: &mut Vec<u8>) {
    digits::<10>(number, out);
}

/// `number` in hexadecimal, as chunk sizes are written.
pub(crate) fn hexadecimal(number: u64, out: &mut Vec<u8>) {
    digits::<16>(number, out);
}

fn digits<const BASE: u64>(mut number: u64, out: &mut Vec<u8>) {
    // 2^64 has 20 decimal digits.
    let mut buffer = [0u8; 20];
    let mut start = buffer.len();
    for place in buffer.iter_mut().rev() {
        let digit = (number % BASE) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        start -= 1;
        number /= BASE;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(buffer.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for number in [0, 1, 9, 10, 15, 16, 255, 1024, 65536, u64::from(u32::MAX), u64::MAX] {
            let (mut dec, mut hex) = (Vec::new(), Vec::new());
            decimal(number, &mut dec);
            hexadecimal(number, &mut hex);
            assert_eq!(dec, number.to_string().into_bytes());
            assert_eq!(hex, format!("{number:x}").into_bytes());
        }
    }

    #[test]
    fn status_lines() {
        let mut out = Vec::new();
        status_line(Status::NOT_FOUND, b"Not Found", &mut out);
        status_line(Status::OK, b"", &mut out);
        assert_eq!(out, b"HTTP/1.1 404 Not Found\r\nHTTP/1.1 200 \r\n");
    }
}
