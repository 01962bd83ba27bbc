//! Earlier names of options. `most-workers` stands for one: it is in the table for tests only.

use super::*;

fn most(loaded: &Loaded) -> usize {
    loaded.config.pool.max_threads
}

#[test]
fn an_earlier_name_works_everywhere_and_is_told_of_with_the_new_one() {
    let said = |place: &str| {
        format!("{place}: 'most-workers' is called 'max-threads' now; the old name still works")
    };
    let loaded = Case::new(&[]).loaded(&["--most-workers", "7"]);
    assert_eq!((most(&loaded), loaded.warnings), (7, vec![said("--max-threads")]));
    let loaded = Case::new(&[]).with("MAITRED_MOST_WORKERS", "8").loaded(&[]);
    assert_eq!((most(&loaded), loaded.warnings), (8, vec![said("MAITRED_MOST_WORKERS")]));
    let loaded = Case::new(&[("maitred.toml", "queue = 5\nmost-workers = 9\n")]).loaded(&[]);
    assert_eq!((most(&loaded), loaded.warnings), (9, vec![said("maitred.toml:2")]));
    let file = "[pool.a]\nmost-workers = 3\nmatch = \"/a\"\n";
    let loaded = Case::new(&[("maitred.toml", file)]).loaded(&[]);
    assert_eq!(loaded.config.pools[0].threads.max_threads, 3);
    assert_eq!(loaded.warnings, [said("maitred.toml:2: pool.a")]);
}

#[test]
fn it_is_told_of_once_and_the_new_name_is_not() {
    let case = Case::new(&[("maitred.toml", "most-workers = 9\n")]).with("MAITRED_MOST_WORKERS", "8");
    let loaded = case.loaded(&["--most-workers=7", "--pool", "a,most-workers=2,path=/a"]);
    assert_eq!((most(&loaded), loaded.config.pools[0].threads.max_threads), (7, 2));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(Case::new(&[]).loaded(&["--max-threads", "7"]).warnings.is_empty());
}
