//! Warnings that are given once for each route: what an application does with every request of it.

use std::collections::HashSet;
use std::hash::Hasher;
use std::sync::{Mutex, PoisonError};

use maitred_match::{Shape, shape_hasher};

/// So many pairs of a route and a text are told of. Peers choose paths: more would not be read by anybody.
const MOST: usize = 1000;

#[derive(Default)]
pub(crate) struct Once {
    told: Mutex<HashSet<u64>>,
}

impl Once {
    pub(crate) fn is_new(&self, route: Shape<'_>, text: &str) -> bool {
        let mut hasher = shape_hasher();
        hasher.write_u64(route.hash());
        hasher.write(text.as_bytes());
        let key = hasher.finish();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MOST && told.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_new_once_for_each_route_up_to_a_bound() {
        let once = Once::default();
        let is_new =
            |path: &str, text| once.is_new(Shape { method: "GET", path: path.as_bytes(), host: 0 }, text);
        assert!(is_new("/events/1", "Connection") && !is_new("/events/2?a=b", "Connection"));
        assert!(is_new("/events/1", "Upgrade") && is_new("/other", "Connection"));
        let told = (0..2 * MOST).filter(|number| is_new(&format!("/{}", "x/".repeat(*number)), "Connection"));
        assert_eq!(told.count(), MOST - 3);
        assert!(!is_new("/last", "Connection"));
    }
}
