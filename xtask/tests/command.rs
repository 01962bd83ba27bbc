//! The command line of the program. A package with such a test has its program in `target/debug` when the tests are made, and
//! `scripts/test` runs that.

use std::process::Command;

#[test]
fn an_unknown_task_is_refused_with_the_known_one() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_xtask")).arg("direction").output().expect("the program starts");
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("usage:") && told.contains("directions"), "{told}");
}
