//! The known name that is nearest to a wrong one, and the remedy that it is.

/// The candidate nearest to `name`, unless all are too far away to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase().replace('_', "-");
    let (distance, candidate) = candidates
        .into_iter()
        .map(|candidate| {
            let plain = candidate.to_lowercase().replace('_', "-");
            (distance(&wanted, &plain), candidate)
        })
        .min_by_key(|(distance, _)| *distance)?;
    let longest = wanted.chars().count().max(candidate.chars().count());
    // A third of the letters wrong is still a typing error; more is another word.
    (distance * 3 <= longest).then_some(candidate)
}

/// The remedy for an unknown name: the nearest of `names`, or `otherwise`.
pub fn did_you_mean<'a>(
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    nearest(name, names).map_or_else(|| otherwise.into(), |meant| format!("did you mean '{meant}'?"))
}

/// How many letters are wrong, missing, too many, or in the place of their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let [one, other]: [Vec<char>; 2] = [one, other].map(|name| name.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (at, letter) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, wanted) in other.iter().enumerate() {
            let wrong = rows[at][to] + usize::from(letter != wanted);
            let mut fewest = wrong.min(rows[at][to + 1] + 1).min(row[to] + 1);
            if at > 0 && to > 0 && *letter == other[to - 1] && one[at - 1] == *wanted {
                fewest = fewest.min(rows[at - 1][to - 1] + 1);
            }
            row.push(fewest);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn nearest_forgives_typing_errors_and_nothing_else() {
        let names = ["min-threads", "max-threads", "listen"];
        assert_eq!(nearest("max-thread", names), Some("max-threads"));
        assert_eq!(nearest("MIN_THREADS", names), Some("min-threads"));
        assert_eq!(nearest("lsiten", names), Some("listen"));
        assert_eq!(nearest("colour", names), None);
    }

    #[test]
    fn a_distance_counts_letters() {
        for (one, other, letters) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("listen", "lsiten", 1),
            ("lsiten", "lisetn", 2),
            ("kitten", "sitting", 3),
            ("über", "uber", 1),
        ] {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
    }
}
