//! `maitred check`: prints the configuration, and checks the applications and the files of TLS.

use maitred_config::{Loaded, Problem, print};
use maitred_config::{check, tls, validation};
use maitred_process::host::Host;
use maitred_process::loading;

/// Prints the merged configuration and the certificates; returns the exit code.
///
/// # Errors
/// The first mistake in the configuration.
pub fn check(loaded: &Loaded, host: &dyn Host) -> Result<u8, Problem> {
    print(&check::report(loaded));
    let checked = validation::check(&loaded.config, &loaded.origins)?;
    for program in checked.programs() {
        loading::look(program, &loaded.config, &checked, host)?;
    }
    let tls = tls::Material::read(&loaded.config, &loaded.origins, tls::From::Disk)?;
    let lines = tls.iter().flat_map(|tls| tls::report(tls));
    Ok(print(&lines.map(|line| format!("# TLS: {line}\n")).collect::<String>()))
}
