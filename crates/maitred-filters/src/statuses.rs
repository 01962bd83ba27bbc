//! Statuses of responses: a list of single ones, of ranges and of classes.

use std::fmt;
use std::ops::RangeInclusive;

use maitred_http::Status;
use maitred_match::BadPattern;

/// The responses whose fields a filter changes. Written as `200, 301-308, 4xx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    ranges: Box<[RangeInclusive<u16>]>,
    text: Box<str>,
}

impl Statuses {
    /// The list that a text is.
    ///
    /// # Errors
    /// A part of it is no status from 100 to 599, no range and no class, or the list is empty.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let ranges: Option<Vec<_>> = text.split(',').map(|part| range(part.trim())).collect();
        let Some(ranges) = ranges else {
            let what = format!("'{}' is no list of statuses", text.escape_default());
            return Err(BadPattern::new(
                what,
                "write statuses, ranges and classes, such as \"200, 301-308, 4xx\"",
            ));
        };
        Ok(Self { ranges: ranges.into(), text: text.trim().into() })
    }

    /// Whether a status is in the list.
    pub fn contains(&self, status: Status) -> bool {
        self.ranges.iter().any(|range| range.contains(&status.code()))
    }
}

fn range(part: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = part.strip_suffix("xx") {
        let first = code(&format!("{class}00"))?;
        return Some(first..=first + 99);
    }
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let range = code(first.trim())?..=code(last.trim())?;
    (!range.is_empty()).then_some(range)
}

fn code(text: &str) -> Option<u16> {
    let code: u16 = text.parse().ok()?;
    (text.len() == 3 && (100..=599).contains(&code)).then_some(code)
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ones_ranges_and_classes() {
        let statuses = Statuses::parse(" 200, 301-308,4xx ").expect("a list");
        let found: Vec<u16> = [100, 199, 200, 201, 300, 301, 304, 308, 309, 399, 400, 499, 500]
            .into_iter()
            .filter(|code| statuses.contains(Status::from_code(*code).expect("a status")))
            .collect();
        assert_eq!(found, [200, 301, 304, 308, 400, 499]);
        assert_eq!(statuses.to_string(), "200, 301-308,4xx");
    }

    #[test]
    fn text_that_is_no_status_is_an_error() {
        for text in [
            "", "200,", "20", "0200", "+20", "600", "99", "308-301", "6xx", "xx", "2x", "ok", "200-",
            "200 201",
        ] {
            let error = Statuses::parse(text).expect_err(text).to_string();
            assert!(error.contains("is no list of statuses; write statuses, ranges"), "{error}");
        }
    }
}
