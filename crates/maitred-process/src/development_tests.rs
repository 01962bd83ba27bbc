//! Files and folders that change, move and are replaced under the eyes of the kernel.

use std::fs;
use std::sync::mpsc::{self, Receiver};

use super::*;

/// Longest wait, enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn files_of_the_application_are_told_of_and_no_others() {
    told_of(false);
}

#[test]
fn files_of_another_machine_are_looked_at() {
    told_of(true);
}

fn told_of(is_remote: bool) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["shop", ".venv/lib", "env/lib", "public", "shop/__pycache__"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::write(at("env/pyvenv.cfg"), "").unwrap();
    fs::write(at("shop/views.py"), "a").unwrap();
    let (watch, told) = begin(&[folder.path()], &[at("public")], is_remote);
    let next = || names(folder.path(), &told).into_iter().collect::<Vec<_>>().join(" ");
    for name in
        [".venv/lib/a.py", "env/lib/a.py", "public/a.html", "shop/__pycache__/a.py", "data.sqlite3", ".#b.py"]
    {
        fs::write(at(name), "x").unwrap();
    }
    // Another length: the clock of a file system may stand still between two changes.
    fs::write(at("shop/views.py"), "bb").unwrap();
    assert_eq!(next(), "shop/views.py");
    // Many editors write a new file and rename it to the old name.
    fs::write(at("shop/views.py~"), "ccc").unwrap();
    fs::rename(at("shop/views.py~"), at("shop/views.py")).unwrap();
    assert_eq!(next(), "shop/views.py");
    // A new folder is watched from then on.
    fs::create_dir(at("blog")).unwrap();
    fs::write(at("blog/urls.py"), "x").unwrap();
    assert_eq!(next(), "blog/urls.py");
    fs::remove_file(at("blog/urls.py")).unwrap();
    assert_eq!(next(), "blog/urls.py");
    fs::write(at(".env"), "A=1").unwrap();
    assert_eq!(next(), ".env");
    drop(watch);
    assert!(told.try_recv().is_err());
}

#[test]
fn folders_are_watched_where_they_are_moved_to() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("shop/pages")).unwrap();
    let (_watch, told) = begin(&[folder.path()], &[], false);
    let until = |name: &str| {
        let mut all = BTreeSet::new();
        while !all.contains(name) {
            all.append(&mut names(folder.path(), &told));
        }
        all
    };
    for (name, place) in [("1.py", other.path().join("shop")), ("2.py", at(".shop"))] {
        fs::rename(at("shop"), &place).unwrap();
        fs::write(place.join("pages/a.py"), name).unwrap();
        fs::write(at(name), "").unwrap();
        let all = until(name);
        assert!(!all.contains("shop/pages/a.py"), "{all:?}");
        fs::rename(&place, at("shop")).unwrap();
        until("shop/pages/a.py");
    }
    std::os::unix::fs::symlink(".", at("shop/link")).unwrap();
    fs::write(at("3.py"), "").unwrap();
    let all = until("3.py");
    assert!(!all.iter().any(|name| name.contains("link")), "{all:?}");
}

#[test]
fn a_file_stays_watched_when_another_one_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("app.py"), "").unwrap();
    let (_watch, told) = begin(&[&at("app.py")], &[], false);
    fs::write(at("new.py"), "").unwrap();
    fs::rename(at("new.py"), at("app.py")).unwrap();
    assert_eq!(names(folder.path(), &told), BTreeSet::from(["app.py".to_owned()]));
    fs::write(at("app.py"), "x").unwrap();
    assert_eq!(names(folder.path(), &told), BTreeSet::from(["app.py".to_owned()]));
}

fn begin(paths: &[&Path], left_out: &[PathBuf], is_remote: bool) -> (Watch, Receiver<BTreeSet<PathBuf>>) {
    let (sender, told) = mpsc::channel();
    let paths = paths.iter().map(|path| path.to_path_buf()).collect::<Vec<_>>();
    let changed = move |files: &BTreeSet<PathBuf>| _ = sender.send(files.clone());
    (Watch::begin(&paths, left_out, is_remote, changed).unwrap(), told)
}

fn names(folder: &Path, told: &Receiver<BTreeSet<PathBuf>>) -> BTreeSet<String> {
    let files = told.recv_timeout(PATIENCE).unwrap();
    files.iter().map(|file| file.strip_prefix(folder).unwrap().display().to_string()).collect()
}
