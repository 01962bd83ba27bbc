//! Named pools in files, in the environment and on the command line.

use maitred_server::{Overflow, Strategy};

use super::{Case, Loaded, check};
use crate::PoolConfig;
use crate::pools::show_rule;

/// The pool with this name.
fn pool<'a>(loaded: &'a Loaded, name: &str) -> &'a PoolConfig {
    &loaded.config.pools.iter().find(|pool| pool.name == name).expect(name).threads
}

/// The rules, each with its pool and its source.
fn rules(loaded: &Loaded) -> Vec<String> {
    let rules = loaded.config.rules.iter().enumerate();
    rules
        .map(|(position, rule)| {
            format!("{} {} {}", rule.pool, show_rule(rule), loaded.origins.of_rule(position))
        })
        .collect()
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.config.pools.iter().map(|pool| pool.name.as_str()).collect()
}

const REPORTS: &str = "\
max-threads = 20
queue = 30

[pool.reports]
max-threads = 2
overflow = \"refuse\"
strategy = \"pec\"
match = [
  \"/report/*\",
  { method = \"GET\", path = \"/x/*\", header = \"X-Kind: batch\", client = \"10.0.0.0/8\" },
]
";

#[test]
fn the_options_of_threads_are_those_of_the_default_pool() {
    let case = Case::new(&[("maitred.toml", "queue = 5\nthread-requests = 0\ninterrupt = true\n")])
        .with("MAITRED_QUEUE_LOW", "0")
        .with("MAITRED_OVERFLOW", "refuse");
    let loaded = case.loaded(&[
        "--queue-high=100",
        "--thread-idle=0.5",
        "--request-timeout=2.5",
        "--max-lost-threads=0",
        "--strategy=epc",
    ]);
    let pool = &loaded.config.pool;
    assert_eq!((pool.limits.queue, pool.limits.low_mark, pool.limits.high_mark), (5, 0, 100));
    assert_eq!(
        (pool.limits.thread_idle.as_millis(), pool.limits.request_timeout.map(|limit| limit.as_millis())),
        (500, Some(2500))
    );
    assert_eq!((pool.limits.thread_requests, pool.max_lost_threads), (0, Some(0)));
    assert_eq!(
        (pool.limits.interrupt, pool.limits.overflow, pool.strategy),
        (true, Overflow::Refuse, Strategy::Epc)
    );
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn a_table_is_a_pool_with_the_built_in_defaults() {
    let loaded = Case::new(&[("maitred.toml", REPORTS)]).loaded(&[]);
    let reports = pool(&loaded, "reports");
    assert_eq!((reports.limits.min_threads, reports.limits.max_threads, reports.limits.queue), (0, 2, 1000));
    assert_eq!((reports.limits.overflow, reports.strategy), (Overflow::Refuse, Strategy::Pec));
    assert_eq!((loaded.config.pool.limits.max_threads, loaded.config.pool.limits.queue), (20, 30));
    assert_eq!(
        rules(&loaded),
        [
            "reports \"/report/*\" maitred.toml:9",
            "reports { method = \"GET\", path = \"/x/*\", header = \"X-Kind: batch\", client = \"10.0.0.0/8\" } \
             maitred.toml:10",
        ]
    );
    check(&loaded.config, &loaded.origins).expect("valid");
}

#[test]
fn a_rule_about_certificates_without_asking_for_them_is_a_warning() {
    let text = "[pool.tills]\nmatch = [{ path = \"/a\", client-certificate = \"*.shop.example\" }]\n";
    let filter = "[[filter]]\nclient-certificate = \"*\"\naccess = \"deny all\"\n";
    let case = Case::new(&[("maitred.toml", &format!("{text}{filter}"))]);
    let loaded = case.loaded(&[]);
    assert_eq!(
        rules(&loaded),
        ["tills { path = \"/a\", client-certificate = \"*.shop.example\" } maitred.toml:2"]
    );
    let nobody = "clients are not asked for certificates, so that nobody has one; set tls-client-auth";
    assert_eq!(
        loaded.warnings,
        [
            format!(
                "maitred.toml:2: pool.tills: {nobody}: \
                 {{ path = \"/a\", client-certificate = \"*.shop.example\" }}"
            ),
            format!("maitred.toml:4: filter.client-certificate: {nobody}"),
        ]
    );
    let asking = case.loaded(&["--tls", "--tls-client-auth", "optional", "--tls-client-ca", "ca.pem"]);
    assert_eq!(asking.warnings, [""; 0]);
}

#[test]
fn a_pool_may_be_written_in_every_form_of_a_table() {
    for text in [
        "pool.a.max-threads = 2\npool.a.match = \"/a\"\n",
        "pool = { a = { max-threads = 2, match = [\"/a\"] } }\n",
        "[pool]\na.max-threads = 2\na.match = { path = \"/a\" }\n",
    ] {
        let loaded = Case::new(&[("maitred.toml", text)]).loaded(&["--queue=3"]);
        assert_eq!(
            (pool(&loaded, "a").limits.max_threads, pool(&loaded, "a").limits.queue),
            (2, 1000),
            "{text}"
        );
        assert!(rules(&loaded)[0].starts_with("a \"/a\" maitred.toml:"), "{text}");
    }
}

#[test]
fn the_command_line_says_the_same_in_its_own_form() {
    let loaded = Case::new(&[]).loaded(&[
        "--pool",
        "reports,max-threads=2, min-threads=1,path=/report/*",
        "--pool=reports,method=GET,path=/x/*,header=X-Kind: batch,client=10.0.0.0/8",
        "--pool=other,path=*.pdf",
    ]);
    assert_eq!(names(&loaded), ["reports", "other"]);
    assert_eq!(
        (pool(&loaded, "reports").limits.min_threads, pool(&loaded, "reports").limits.max_threads),
        (1, 2)
    );
    assert_eq!(pool(&loaded, "other").limits.max_threads, 10);
    assert_eq!(
        rules(&loaded),
        [
            "reports \"/report/*\" command line",
            "reports { method = \"GET\", path = \"/x/*\", header = \"X-Kind: batch\", client = \"10.0.0.0/8\" } \
             command line",
            "other \"*.pdf\" command line",
        ]
    );
}

#[test]
fn a_variable_holds_several_pools() {
    let case = Case::new(&[]).with("MAITRED_POOL", "a,max-threads=2,path=/a/*, b,path=/b,a,path=/c");
    let loaded = case.loaded(&[]);
    assert_eq!(names(&loaded), ["a", "b"]);
    let source = "environment variable MAITRED_POOL";
    assert_eq!(
        rules(&loaded),
        [format!("a \"/a/*\" {source}"), format!("a \"/c\" {source}"), format!("b \"/b\" {source}")]
    );
}

#[test]
fn later_places_win_key_by_key_and_their_rules_replace_those_before() {
    let case = Case::new(&[
        ("maitred.toml", REPORTS),
        ("maitred.toml.d/a.toml", "[pool.reports]\nqueue = 7\n[pool.late]\nmatch = \"/late\"\n"),
    ]);
    let loaded = case.loaded(&["--pool=reports,max-threads=4"]);
    let reports = pool(&loaded, "reports");
    assert_eq!(
        (reports.limits.max_threads, reports.limits.queue, reports.limits.overflow),
        (4, 7, Overflow::Refuse)
    );
    let source = |key| loaded.origins.of_pool(Some("reports"), key).to_string();
    assert_eq!(source("max-threads"), "command line");
    assert_eq!(source("queue"), "drop-in maitred.toml.d/a.toml:2");
    assert_eq!(source("overflow"), "maitred.toml:6");
    assert_eq!(source("thread-idle"), "default");
    assert_eq!(loaded.origins.pools.of("reports", None).to_string(), "maitred.toml:4");
    assert_eq!((rules(&loaded).len(), names(&loaded)), (3, vec!["reports", "late"]));
    let loaded = case.loaded(&["--pool=reports,path=/only"]);
    assert_eq!(
        rules(&loaded),
        ["late \"/late\" drop-in maitred.toml.d/a.toml:4", "reports \"/only\" command line"]
    );
}

#[test]
fn the_default_pool_takes_exceptions() {
    let case = Case::new(&[("maitred.toml", "[pool.default]\nmatch = \"/report/quick\"\n")]);
    let loaded = case.loaded(&["--pool=reports,path=/report/*", "--pool=default,path=/report/now"]);
    assert_eq!(
        rules(&loaded),
        ["reports \"/report/*\" command line", "default \"/report/now\" command line"]
    );
    assert_eq!(names(&loaded), ["reports"]);
}

#[test]
fn errors_in_tables_of_pools_name_file_line_key_and_remedy() {
    for (text, error) in [
        (
            "[pool.reports]\nmax-thread = 1\n",
            "maitred.toml:2: unknown key 'max-thread' in [pool.reports]; did you mean 'max-threads'?",
        ),
        (
            "[pool.reports]\nmax_threads = 1\n",
            "maitred.toml:2: unknown key 'max_threads' in [pool.reports]; did you mean 'max-threads'?",
        ),
        (
            "[pool.reports]\nmatches = []\n",
            "maitred.toml:2: unknown key 'matches' in [pool.reports]; did you mean 'match'?",
        ),
        (
            "[pool.reports]\nlisten = \":1\"\n",
            "maitred.toml:2: unknown key 'listen' in [pool.reports]; write it above the first table: behind \
             [pool.reports] it belongs to the pool, which has no such key",
        ),
        (
            "[pool.reports]\npath = \"/a\"\n",
            "maitred.toml:2: unknown key 'path' in [pool.reports]; it is part of a rule: match = [{ path = \"...\" }]",
        ),
        (
            "[pool.reports]\n\nmax-threads = 0\n",
            "maitred.toml:3: pool.reports.max-threads: '0' is not a whole number from 1 to 10000; give one, for \
             example 1",
        ),
        (
            "[pool.reports]\nqueue = [\n1]\n",
            "maitred.toml:2: pool.reports.queue: the value is of the type array; expected: whole number from 1 to \
             1000000",
        ),
        (
            "[pool.reports]\nstrategy = \"epc\"\n",
            "maitred.toml:2: pool.reports.strategy: 'epc' is for threads that poll, and those of a named pool never \
             do; write adaptive or pec",
        ),
        (
            "[pool.default]\nmax-threads = 3\n",
            "maitred.toml:2: pool.default.max-threads: the pool 'default' has rules only: it is what max-threads \
             outside of pools is for; set max-threads there",
        ),
        ("[pools.reports]\nmax-threads = 3\n", "maitred.toml:1: unknown key 'pools'; did you mean 'pool'?"),
        (
            "[pool]\nmax-threads = 3\n",
            "maitred.toml:2: 'max-threads' in [pool] is no pool, it is of the type integer; give the pool a name: \
             [pool.NAME]",
        ),
        (
            "pool = \"reports\"\n",
            "maitred.toml:1: pool: the value is of the type string; write a table [pool.NAME] for each pool",
        ),
        (
            "[pool.\"a b\"]\n",
            "maitred.toml:1: pool: 'a b' is no name of a pool; write 1 to 32 letters, digits, '-' and '_', a letter first",
        ),
    ] {
        assert_eq!(Case::new(&[("maitred.toml", text)]).error(&[]), error);
    }
}

#[test]
fn errors_in_rules_name_the_line_of_the_rule() {
    for (text, error) in [
        ("match = 1", ":2: pool.a.match: a rule is of the type integer; expected: \"/path\", "),
        (
            "match = [\n\"/a\",\n\"a\",\n]",
            ":4: pool.a.match: the path 'a' starts neither with '/' nor with '*'; did you mean '/a'?",
        ),
        (
            "match = [\n{ pth = \"/a\" },\n]",
            ":3: pool.a.match: unknown key 'pth' in a rule; did you mean 'path'?",
        ),
        (
            "match = [{ x = 1 }]",
            ":2: pool.a.match: unknown key 'x' in a rule; a rule has host, method, path, ",
        ),
        ("match = [{ path = 1 }]", ":2: pool.a.match.path: the value is of the type integer; expected: text"),
        (
            "match = [{}]",
            ":2: pool.a.match: a rule has no condition; it has host, method, path, header, client, \
             client-certificate",
        ),
        (
            "match = [\n{ client = \"10.1.0.0/8\" }]",
            ":3: pool.a.match.client: the client '10.1.0.0/8' has bits behind its prefix; did you mean \
             '10.0.0.0/8'?",
        ),
        ("match = [{ header = \"X-Kind\" }]", ":2: pool.a.match.header: the header 'X-Kind' has no ':'; "),
        (
            "match = [{ method = \"get\" }]",
            ":2: pool.a.match.method: 'get' is no method; did you mean 'GET'?",
        ),
    ] {
        let error_found = Case::new(&[("maitred.toml", &format!("[pool.a]\n{text}\n"))]).error(&[]);
        assert!(error_found.starts_with(&format!("maitred.toml{error}")), "{error_found}");
    }
}

#[test]
fn errors_in_pools_on_the_command_line_name_pool_key_and_remedy() {
    for (text, error) in [
        ("", "--pool: '' is no name of a pool; write 1 to 32 letters, digits, '-' and '_', a letter first"),
        ("a,max-thread=2", "--pool: a: unknown key 'max-thread'; did you mean 'max-threads'?"),
        ("a,max-threads", "--pool: a: 'max-threads' has no '='; write KEY=VALUE behind each comma"),
        (
            "a,path=/a,path=/b",
            "--pool: a: path is given twice; for another rule write --pool a,... once more",
        ),
        ("a,path=b", "--pool a: path: the path 'b' starts neither with '/' nor with '*'; did you mean '/b'?"),
        (
            "a,queue=0",
            "--pool a: queue: '0' is not a whole number from 1 to 1000000; give one, for example 1",
        ),
        (
            "a,strategy=pc",
            "--pool a: strategy: 'pc' is for threads that poll, and those of a named pool never do; write \
             adaptive or pec",
        ),
    ] {
        assert_eq!(Case::new(&[]).error(&["--pool", text]), error);
    }
    let case = Case::new(&[]).with("MAITRED_POOL", "a,queue-low=101");
    assert_eq!(
        case.error(&[]),
        "MAITRED_POOL a: queue-low: '101' is not a whole number from 0 to 100; give one, for example 10"
    );
    let error = Case::new(&[]).error(&["--pool", "a,colour=1"]);
    assert!(error.starts_with("--pool: a: unknown key 'colour'; a pool has min-threads, "), "{error}");
    assert!(error.ends_with(", strategy, host, method, path, header, client, client-certificate"), "{error}");
}

#[test]
fn keys_of_a_pool_are_checked_against_each_other() {
    let file = "[pool.a]\nmin-threads = 3\n\nmax-threads = 2\nmatch = \"/a\"\n";
    let case = Case::new(&[("maitred.toml", file)]);
    let error = |case: &Case, arguments: &[&str]| {
        let loaded = case.loaded(arguments);
        check(&loaded.config, &loaded.origins).expect_err("an error").to_string()
    };
    assert_eq!(
        error(&case, &[]),
        "maitred.toml:2: pool.a.min-threads: min-threads 3 is greater than max-threads 2 (maitred.toml:4); set \
         max-threads to 3 or more"
    );
    assert_eq!(
        error(&Case::new(&[("maitred.toml", "queue-low = 10\n")]), &["--queue-high=5"]),
        "maitred.toml:1: queue-low: queue-low 10 is greater than queue-high 5 (command line); set queue-high to 10 or \
         more"
    );
    assert_eq!(
        error(&Case::new(&[]), &["--queue-low=90"]),
        "--queue-low: queue-low 90 is greater than queue-high 80 (default); set queue-high to 90 or more"
    );
}

#[test]
fn poll_groups_fit_the_default_pool() {
    let case = Case::new(&[("maitred.toml", "strategy = \"pec\"\n\nmax-threads = 3\n")]);
    let checked = |arguments: &[&str]| {
        let loaded = case.loaded(arguments);
        check(&loaded.config, &loaded.origins)
            .map(|_| loaded.config.poll_groups)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        checked(&["--poll-groups=2"]),
        Err("--poll-groups: 2 groups need the strategy adaptive (maitred.toml:1); leave one of them out"
            .to_owned())
    );
    assert_eq!(
        checked(&["--poll-groups=4", "--strategy=adaptive"]),
        Err("--poll-groups: each of 4 groups needs a thread, and max-threads is 3 (maitred.toml:3); set max-threads \
             to 4 or more"
            .to_owned())
    );
    assert_eq!(checked(&["--poll-groups=3", "--strategy=adaptive"]), Ok(Some(3)));
    assert_eq!((checked(&["--poll-groups=1"]), checked(&[])), (Ok(Some(1)), Ok(None)));
}

#[test]
fn an_asgi_application_takes_no_pools() {
    let loaded = Case::new(&[]).loaded(&["--interface=asgi", "--pool=a,path=/a"]);
    assert_eq!(
        check(&loaded.config, &loaded.origins).expect_err("an error").to_string(),
        "--pool a: the pool 'a' can have no thread: an ASGI application runs on one event loop; leave the pools out"
    );
}

#[test]
fn settings_without_effect_are_warnings() {
    let case = Case::new(&[("maitred.toml", "[pool.a]\nmax-threads = 2\n\n[pool.b]\nmatch = \"/b\"\n")]);
    let loaded = case.loaded(&["--interrupt", "--pool=c,path=/b,interrupt=on"]);
    assert_eq!(
        loaded.warnings,
        [
            "maitred.toml:1: pool.a: no rule leads to the pool 'a'; give it one",
            "--interrupt: without request-timeout nothing is interrupted; set it",
            "--pool c: interrupt: without request-timeout nothing is interrupted; set it",
            "maitred.toml:5: pool.b: a later rule leads the same requests to the pool 'c': \"/b\"",
        ]
    );
    // Mounts and hosts lead to pools, too, and the pool beside an event loop needs no rule.
    let text = "mount = \"/a=a,pool=a\"\n[pool.a]\n[pool.b]\n[pool.threads]\n[host.h]\npool = \"b\"\nmount = \"/x=x\"\n";
    assert_eq!(Case::new(&[("maitred.toml", text)]).loaded(&[]).warnings, [""; 0]);
}
