//! CRC32C (RFC 4960 Appendix B, there for SCTP).

/// The polynomial of Castagnoli, its bits in reverse.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksum of each byte value.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte, 0);
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[byte as usize] = value;
        }
        byte += 1;
    }
    table
};

/// The checksum of these bytes.
pub(crate) fn crc32c<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    let next = |sum: u32, byte: &u8| {
        let [lowest, ..] = sum.to_le_bytes();
        (sum >> 8) ^ TABLE.get(usize::from(lowest ^ byte)).copied().unwrap_or_default()
    };
    !bytes.into_iter().fold(u32::MAX, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        // The last four: RFC 3720 Appendix B.4.
        let up: Vec<u8> = (0..32).collect();
        let down: Vec<u8> = (0..32).rev().collect();
        for (bytes, sum) in [
            (&b""[..], 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&up, 0x46dd_794e),
            (&down, 0x113f_db5c),
        ] {
            assert_eq!(crc32c(bytes), sum, "{bytes:?}");
        }
    }
}
