//! Earlier names of options, with a table of our own: the real one is empty.

use super::*;
use crate::options::renamed::{NAMES, Renamed};

/// A process in whose version `most-workers` is an earlier name.
fn renamed_case(files: &[(&str, &str)]) -> Case {
    Case { earlier: Names(&[Renamed { old: "most-workers", new: "max-threads" }]), ..Case::new(files) }
}

fn most(loaded: &Loaded) -> usize {
    loaded.config.pool.limits.max_threads
}

#[test]
fn an_earlier_name_works_everywhere_and_is_told_of_with_the_new_one() {
    let said = |place: &str| {
        format!("{place}: 'most-workers' is called 'max-threads' now; the old name still works")
    };
    let loaded = renamed_case(&[]).loaded(&["--most-workers", "7"]);
    assert_eq!((most(&loaded), loaded.warnings), (7, vec![said("--max-threads")]));
    let loaded = renamed_case(&[]).with("MAITRED_MOST_WORKERS", "8").loaded(&[]);
    assert_eq!((most(&loaded), loaded.warnings), (8, vec![said("MAITRED_MOST_WORKERS")]));
    let loaded = renamed_case(&[("maitred.toml", "queue = 5\nmost-workers = 9\n")]).loaded(&[]);
    assert_eq!((most(&loaded), loaded.warnings), (9, vec![said("maitred.toml:2")]));
    let file = "[pool.a]\nmost-workers = 3\nmatch = \"/a\"\n";
    let loaded = renamed_case(&[("maitred.toml", file)]).loaded(&[]);
    assert_eq!(loaded.config.pools[0].threads.limits.max_threads, 3);
    assert_eq!(loaded.warnings, [said("maitred.toml:2: pool.a")]);
}

#[test]
fn it_is_told_of_once_and_the_new_name_is_not() {
    let case = renamed_case(&[("maitred.toml", "most-workers = 9\n")]).with("MAITRED_MOST_WORKERS", "8");
    let loaded = case.loaded(&["--most-workers=7", "--pool", "a,most-workers=2,path=/a"]);
    assert_eq!((most(&loaded), loaded.config.pools[0].threads.limits.max_threads), (7, 2));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(renamed_case(&[]).loaded(&["--max-threads", "7"]).warnings.is_empty());
}

#[test]
fn a_name_that_is_not_in_the_table_is_unknown() {
    assert!(Case::new(&[]).error(&["--most-workers", "7"]).contains("--most-workers: unknown option"));
}

#[test]
fn every_earlier_name_leads_to_an_option_and_is_none_itself() {
    let is_sound =
        |Renamed { old, new }: &Renamed| options::find(new).is_some() && options::find(old).is_none();
    assert!(NAMES.0.iter().all(is_sound));
    // The real table may be empty, so these show that the check can fail.
    for (old, new) in [("most-threads", "most-workers"), ("max-threads", "min-threads")] {
        assert!(!is_sound(&Renamed { old, new }), "{old} -> {new}");
    }
}
