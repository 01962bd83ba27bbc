//! Checks of the repository that the compiler does not make.
//!
//! `cargo run -q -p xtask -- directions` fails when a crate depends on one it must not know, when a protocol crate names a socket,
//! a thread, a file or a clock, when the folders or the files of a crate import each other in a circle, and when a crate or a type is
//! too large. `circles.txt` and `types.txt` list the circles and the types that are allowed until they are gone. The command looks at
//! `cargo metadata` and at source text; it builds nothing.

mod circles;
mod directions;
mod file_circles;
mod lists;
mod modules;
mod purity;
mod sizes;
mod source;
mod types;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use source::Crate;

/// Names and texts of files.
type Texts = Vec<(String, String)>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["directions"] => directions(),
        _ => Err(vec!["usage: cargo run -q -p xtask -- directions".to_owned()]),
    };
    match outcome {
        Ok(summary) => {
            let _ = writeln!(std::io::stdout(), "{summary}");
            ExitCode::SUCCESS
        }
        Err(faults) => {
            for fault in &faults {
                let _ = writeln!(std::io::stderr(), "xtask: {fault}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Checks the dependency edges of the workspace and the source of the protocol crates.
///
/// # Errors
/// One line for every forbidden edge and every forbidden path.
fn directions() -> Result<String, Vec<String>> {
    let metadata = cargo_metadata().map_err(|error| vec![error])?;
    let packages = directions::packages(&metadata).map_err(|error| vec![error])?;
    let mut faults = directions::faults(&packages);
    let mut files = 0;
    for package in packages.iter().filter(|package| purity::PURE_CRATES.contains(&package.name.as_str())) {
        for file in rust_files(&package.folder.join("src")).map_err(|error| vec![error])? {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| vec![format!("{}: {error}", file.display())])?;
            files += 1;
            faults.extend(purity::faults(&text).iter().map(|fault| format!("{}:{fault}", file.display())));
        }
    }
    let texts = texts(&packages).map_err(|error| vec![error])?;
    let crates: Vec<Crate<'_>> = texts
        .iter()
        .map(|(name, files)| {
            Crate::new(name, files.iter().map(|(name, text)| (name.as_str(), text.as_str())))
        })
        .collect();
    let root = metadata["workspace_root"].as_str().unwrap_or(".");
    let list = |name: &str| {
        let file = Path::new(root).join(name);
        std::fs::read_to_string(&file).map_err(|error| vec![format!("{}: {error}", file.display())])
    };
    let (found, inside) = inside(&crates, &list(file_circles::FILE)?, &list(types::FILE)?);
    faults.extend(found);
    if !faults.is_empty() {
        faults.push(format!("directions: {} faults", faults.len()));
        return Err(faults);
    }
    let edges: usize = packages.iter().map(|package| package.dependencies.len()).sum();
    Ok(format!(
        "directions: {} packages, {edges} edges, {files} files of protocol crates, {inside}: all allowed",
        packages.len()
    ))
}

/// Checks the inside of crates: circles, and how large crates and types are. The faults, and what was counted.
fn inside(crates: &[Crate<'_>], listed_circles: &str, listed_types: &str) -> (Vec<String>, String) {
    let mut faults = Vec::new();
    let (mut rooms, mut sizes) = (0, Vec::new());
    for each in crates {
        let mut found = circles::Rooms::default();
        each.files.iter().for_each(|file| found.add(file));
        rooms += found.count();
        faults.extend(found.faults(each.name));
        sizes.push((each.name.to_owned(), each.files.iter().map(|file| file.lines).sum()));
    }
    faults.extend(sizes::faults(&sizes));
    let (found, circles) = file_circles::faults(crates, listed_circles);
    faults.extend(found);
    let (found, large) = types::faults(crates, listed_types);
    faults.extend(found);
    let told = format!(
        "{rooms} rooms, {} circles of {} files, {large} large types, {}",
        circles.circles,
        circles.files,
        sizes::summary(crates)
    );
    (faults, told)
}

/// The files of each crate, by their names below its `src`.
fn texts(packages: &[directions::Package]) -> Result<Vec<(String, Texts)>, String> {
    let mut texts = Vec::new();
    for package in packages.iter().filter(|package| package.name.starts_with("maitred-")) {
        let source = package.folder.join("src");
        let mut files = Vec::new();
        for file in rust_files(&source)? {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let name = file.strip_prefix(&source).unwrap_or(&file).to_string_lossy().into_owned();
            files.push((name, text));
        }
        texts.push((package.name.clone(), files));
    }
    Ok(texts)
}

/// The workspace as cargo sees it, without resolving dependencies: no network, no lock file needed.
fn cargo_metadata() -> Result<serde_json::Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// All `.rs` files under `folder`, in a stable order.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
