//! The choice of the text that a reader wants (RFC 9110 §12.5.1).

use super::Format;

impl Format {
    /// The format that the values of `Accept` ask for: OpenMetrics where it is named and no other type has a higher
    /// weight, otherwise the Prometheus text, also without such a field.
    pub fn accepted<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut plain, mut open) = (0, 0);
        for range in values.into_iter().flat_map(|value| value.split(|byte| *byte == b',')) {
            let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut weight, mut version) = (1000, true);
            for parameter in parts {
                let mut pair = parameter.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
                match (pair.next().unwrap_or_default(), pair.next().unwrap_or_default()) {
                    (b"q" | b"Q", value) => weight = thousandths(value),
                    (b"version", value) => version = value.starts_with(b"1.") || value.starts_with(b"\"1."),
                    _ => {}
                }
            }
            match &*media_type {
                b"application/openmetrics-text" if version => open = open.max(weight),
                b"text/plain" | b"text/*" => plain = plain.max(weight),
                _ => {}
            }
        }
        if open > 0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// A weight, 0 to 1 with up to three digits; 0 for invalid text.
fn thousandths(text: &[u8]) -> u32 {
    let weight = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    weight.filter(|weight| (0.0..=1.0).contains(weight)).map_or(0, |weight| (weight * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn accept_values_choose_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", Format::OpenMetrics),
            ("Application/OpenMetrics-Text", Format::OpenMetrics),
            ("text/plain;q=0.5, application/openmetrics-text;q=0.4", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-text;q=x;;=", Format::Prometheus),
            ("application/openmetrics-text;version=0.0.1", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("", Format::Prometheus),
        ] {
            assert_eq!(Format::accepted([accept.as_bytes()]), expected, "{accept}");
        }
        assert_eq!(Format::accepted([]), Format::Prometheus);
        let two = ["text/html".as_bytes(), b"application/openmetrics-text"];
        assert_eq!(Format::accepted(two), Format::OpenMetrics);
    }
}
