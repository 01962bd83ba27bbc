//! Dates: the three forms of RFC 9110 §5.6.7, and the writer against httpdate's.

use std::time::{Duration, SystemTime};

use maitred_http::date::{LAST, format, parse};
use proptest::prelude::*;

fn text(seconds: u64) -> String {
    String::from_utf8_lossy(&format(seconds)).into_owned()
}

#[test]
fn dates_are_written_as_imf_fixdate() {
    for (seconds, expected) in [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
        (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (LAST, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (LAST + 1, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        assert_eq!(text(seconds), expected);
    }
}

#[test]
fn all_three_forms_are_read() {
    for date in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        assert_eq!(parse(date.as_bytes()), Some(784_111_777), "{date}");
    }
}

#[test]
fn text_that_is_not_a_date_is_not_read() {
    for date in [
        "",
        "0",
        "1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT x",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Tue, 06 Nov 1894 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GM\u{212a}",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(parse(date.as_bytes()), None, "{date}");
    }
    assert_eq!(parse(&[0xff; 29]), None);
}

proptest! {
    #[test]
    fn a_date_written_is_read_back(seconds in 0..=LAST) {
        prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        let oracle = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        prop_assert_eq!(text(seconds), oracle);
    }

    #[test]
    fn a_number_past_the_last_date_is_the_last(seconds in LAST..) {
        prop_assert_eq!(format(seconds), format(LAST));
    }

    #[test]
    fn any_text_is_survived(
        near in "(Sun|Fri|Friday|xxx),? ?[0-9 ]{1,2}[- ](Feb|Nov|Dec|xxx)[- ][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2}( GMT)?",
        bytes: Vec<u8>,
    ) {
        if let Some(seconds) = parse(near.as_bytes()) {
            prop_assert!(seconds <= LAST);
        }
        parse(&bytes);
    }
}
