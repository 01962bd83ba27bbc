//! The trailer section of a chunked body (RFC 9112 §7.1.2).

use httparse::{EMPTY_HEADER, Error, Status as Parsed};
use maitred_http::FieldSet;

use crate::error::Malformed;
use crate::hop_by_hop::is_forbidden_trailer;
use crate::limits::{FIELD_SLOTS, Limits};

/// The fields of a complete trailer section, forbidden ones left out.
///
/// # Errors
/// A malformed field, or too many.
pub(crate) fn read(section: &[u8], limits: &Limits) -> Result<FieldSet, Malformed> {
    let mut slots = [EMPTY_HEADER; FIELD_SLOTS];
    let count = limits.max_trailer_fields.min(slots.len());
    match httparse::parse_headers(section, slots.get_mut(..count).unwrap_or_default()) {
        Ok(Parsed::Complete((_, fields))) => {
            let mut trailers = FieldSet::new();
            for field in fields.iter().filter(|field| !is_forbidden_trailer(field.name.as_bytes())) {
                trailers.push(field.name, field.value);
            }
            Ok(trailers)
        }
        Err(Error::TooManyHeaders) => Err(Malformed::TooManyTrailers),
        Ok(Parsed::Partial) | Err(_) => Err(Malformed::Trailer),
    }
}
