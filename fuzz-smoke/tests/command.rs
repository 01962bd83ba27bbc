//! The command line of the program. A package with such a test has its program in `target/debug` when the tests are made, and
//! `scripts/test` runs that.

use std::process::Command;

#[test]
fn a_call_without_seconds_is_refused() {
    for arguments in [&[][..], &["soon"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_fuzz-smoke"))
            .args(arguments)
            .output()
            .expect("the program starts");
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("fuzz-smoke SECONDS"), "{output:?}");
    }
}
