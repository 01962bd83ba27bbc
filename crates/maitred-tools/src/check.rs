//! `maitred check`: prints the configuration, and checks the applications and the files of TLS; with `--acme` also what an authority would meet.

use maitred_certificates::preflight;
use maitred_config::{EXIT_FAILURE, Loaded, Problem, print};
use maitred_config::{acme, check, tls, validation};
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
    acme::wishes(&loaded.config, &loaded.origins)?;
    let lines = tls.iter().flat_map(|tls| tls::report(tls));
    let code = print(&lines.map(|line| format!("# TLS: {line}\n")).collect::<String>());
    let user = checked.wanted.map(|wanted| (wanted.identity.uid, wanted.identity.gid));
    if loaded.looks { look(loaded, user) } else { Ok(code) }
}

/// Prints what an order of certificates would meet.
fn look(loaded: &Loaded, user: Option<(u32, u32)>) -> Result<u8, Problem> {
    let Some(wishes) = acme::wishes(&loaded.config, &loaded.origins)? else {
        return Ok(print("# acme: in development no certificate is ordered\n"));
    };
    let told = preflight(&wishes, user);
    let line = |told: &maitred_certificates::Told| {
        let kind = if told.is_fault { "fault: " } else { "" };
        format!("# acme: {kind}{}\n", told.text)
    };
    let kept = acme::lines(&loaded.config).into_iter().map(|line| format!("# {line}\n"));
    let code = print(&kept.chain(told.iter().map(line)).collect::<String>());
    Ok(if told.iter().any(|told| told.is_fault) { EXIT_FAILURE } else { code })
}
