//! The known name that is nearest to a wrong one.

/// The candidate nearest to `name`, unless all are too far away to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase().replace('_', "-");
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| {
            let plain = candidate.to_lowercase().replace('_', "-");
            (strsim::damerau_levenshtein(&wanted, &plain), candidate)
        })
        .min_by_key(|(distance, _)| *distance)?;
    let longest = wanted.chars().count().max(candidate.chars().count());
    // A third of the letters wrong is still a typing error; more is another word.
    (distance * 3 <= longest).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_forgives_typing_errors_and_nothing_else() {
        let names = ["min-threads", "max-threads", "listen"];
        assert_eq!(nearest("max-thread", names), Some("max-threads"));
        assert_eq!(nearest("MIN_THREADS", names), Some("min-threads"));
        assert_eq!(nearest("lsiten", names), Some("listen"));
        assert_eq!(nearest("colour", names), None);
    }
}
