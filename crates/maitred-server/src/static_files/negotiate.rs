//! Which stored form of a file a request gets (RFC 9110 §12.5.3).
//!
//! Promises: no allocation; a coding the peer refused is never chosen. Leaves out: compressing.

/// A form in which a file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// The file itself.
    Identity = 0,
    /// `name.gz` (RFC 1952)
    Gzip = 1,
    /// `name.zst` (RFC 8878)
    Zstd = 2,
    /// `name.br` (RFC 7932)
    Brotli = 3,
}

impl Coding {
    /// The compressed ones in the order we prefer them: by what they usually save.
    pub(super) const COMPRESSED: [Coding; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The value of `Content-Encoding`; none for the file itself.
    pub(super) fn token(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Brotli => Some("br"),
        }
    }

    /// What the name of a sibling in this coding ends with.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
            Self::Brotli => ".br",
        }
    }

    fn from_token(token: &[u8]) -> Option<Self> {
        // RFC 9110 §8.4.1.3: "x-gzip" is equivalent to "gzip".
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        if token.eq_ignore_ascii_case(b"identity") {
            return Some(Self::Identity);
        }
        Self::COMPRESSED
            .into_iter()
            .find(|coding| coding.token().is_some_and(|name| token.eq_ignore_ascii_case(name.as_bytes())))
    }
}

/// A weight in thousandths, 0 to 1000.
type Weight = u16;

/// The coding to answer with: the highest weight of those in `available`, ours on a tie. Where the
/// peer accepts none of them, or says nothing, the file itself is sent (RFC 9110 §12.5.3 allows it).
pub(super) fn choose<'a>(
    accept_encoding: impl Iterator<Item = &'a [u8]>,
    available: impl Fn(Coding) -> bool,
) -> Coding {
    let mut weights = [None::<Weight>; 4];
    let mut any_other = None;
    for element in accept_encoding.flat_map(|value| value.split(|byte| *byte == b',')) {
        let mut parts = element.split(|byte| *byte == b';');
        let token = parts.next().unwrap_or_default().trim_ascii();
        let weight = weight(parts);
        if token == b"*" {
            any_other = Some(weight);
        } else if let Some(coding) = Coding::from_token(token) {
            weights[coding as usize] = Some(weight);
        }
    }
    let mut best = (Coding::Identity, 0);
    for coding in Coding::COMPRESSED {
        let weight = weights[coding as usize].or(any_other).unwrap_or(0);
        if weight > best.1 && available(coding) {
            best = (coding, weight);
        }
    }
    // Identity that is not named is acceptable, but anything named comes first.
    let identity = weights[Coding::Identity as usize].or(any_other).unwrap_or(0);
    if identity > best.1 { Coding::Identity } else { best.0 }
}

/// The weight among the parameters of an element, 1000 when there is none, 0 when it is malformed:
/// what cannot be read is not acceptance.
fn weight<'a>(parameters: impl Iterator<Item = &'a [u8]>) -> Weight {
    for parameter in parameters {
        let parameter = parameter.trim_ascii();
        if let Some(value) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")) {
            return thousandths(value).unwrap_or(0);
        }
    }
    1000
}

/// `qvalue` of RFC 9110 §12.4.2: 0 or 1 with up to three decimals, at most 1.
fn thousandths(value: &[u8]) -> Option<Weight> {
    let (whole, decimals) = match value {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut result: Weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, unit) in decimals.iter().zip([100, 10, 1]) {
        result += Weight::from(char::from(*digit).to_digit(10)? as u8) * unit;
    }
    (result <= 1000).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(value: &str, available: &[Coding]) -> Coding {
        choose([value.as_bytes()].into_iter(), |coding| available.contains(&coding))
    }

    #[test]
    fn the_highest_weight_wins_and_ties_are_ours() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        let all = [Gzip, Zstd, Brotli];
        for (value, available, expected) in [
            ("gzip, deflate, br, zstd", &all[..], Brotli),
            ("gzip, deflate, br, zstd", &all[..2], Zstd),
            ("gzip, deflate, br, zstd", &all[..1], Gzip),
            ("gzip, deflate, br, zstd", &[], Identity),
            ("gzip;q=1.0, br;q=0.5", &all, Gzip),
            ("br;q=0.001", &all, Brotli),
            ("br;q=0", &all, Identity),
            ("br;q=0, *", &all, Zstd),
            ("*", &all, Brotli),
            ("*;q=0.5, gzip", &all, Gzip),
            ("*;q=0", &all, Identity),
            ("gzip, *;q=0", &all, Gzip),
            ("identity", &all, Identity),
            ("identity;q=0.5, gzip;q=0.4", &all, Identity),
            ("identity;q=0.5, gzip;q=0.5", &all, Gzip),
            ("identity;q=0", &[], Identity),
            ("identity;q=0, *", &all, Brotli),
            ("", &all, Identity),
            ("deflate", &all, Identity),
            ("X-GZIP", &all, Gzip),
            ("GZip ; Q=0.3", &all, Gzip),
            (" gzip\t;\tq=0.3 ,br;q=0.2", &all, Gzip),
            ("br;q=2, gzip;q=0.1", &all, Gzip),
            ("br;q=1.001, gzip;q=0.1", &all, Gzip),
            ("br;q=0.1234, gzip;q=0.1", &all, Gzip),
            ("br;q=, gzip;q=0.1", &all, Gzip),
            ("br;q=0., gzip;q=0.1", &all, Gzip),
            ("br;q=1., gzip;q=0.1", &all, Brotli),
            (",,br,,", &all, Brotli),
        ] {
            assert_eq!(chosen(value, available), expected, "{value:?} {available:?}");
        }
    }

    #[test]
    fn several_fields_count_as_one_list() {
        let values = [&b"br;q=0"[..], b"gzip;q=0.2"];
        assert_eq!(choose(values.into_iter(), |_| true), Coding::Gzip);
        assert_eq!(choose([].into_iter(), |_| true), Coding::Identity);
    }
}
