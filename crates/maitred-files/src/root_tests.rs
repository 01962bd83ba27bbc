//! Both ways of resolving a path are held to the same rules: every test runs with each.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, mknodat};
use tempfile::TempDir;

use super::*;

const SECRET: &str = "outside";

/// `outer/secret` beside `outer/site`, with links of every kind in the root.
fn folders() -> (TempDir, PathBuf) {
    let outer = TempDir::new().unwrap();
    fs::write(outer.path().join("secret"), SECRET).unwrap();
    let path = outer.path().join("site");
    fs::create_dir_all(path.join("a/b")).unwrap();
    fs::write(path.join("a/b/file"), "inside").unwrap();
    fs::write(path.join("file"), "inside").unwrap();
    symlink("../secret", path.join("out")).unwrap();
    symlink("..", path.join("up")).unwrap();
    symlink("../../..", path.join("a/b/far")).unwrap();
    symlink(outer.path().join("secret"), path.join("absolute")).unwrap();
    symlink("../site/file", path.join("detour")).unwrap();
    symlink("/proc/self/root", path.join("magic")).unwrap();
    symlink("a/b/file", path.join("in")).unwrap();
    symlink("b", path.join("a/folder")).unwrap();
    symlink("../../file", path.join("a/b/back")).unwrap();
    symlink("loop", path.join("loop")).unwrap();
    (outer, path)
}

fn roots(path: &Path) -> [Root; 2] {
    [Resolution::Kernel, Resolution::Walk].map(|resolution| Root { resolution, ..Root::open(path).unwrap() })
}

#[test]
fn files_and_folders_are_found_in_both_ways() {
    let (_outer, path) = folders();
    for root in roots(&path) {
        for name in ["/", "", "/a", "/a/", "/a/b/"] {
            assert_eq!(
                root.inspect(name.as_bytes()),
                Ok(ObjectKind::Folder),
                "{name:?} {:?}",
                root.resolution
            );
        }
        let (mut file, stamp) = root.open_file(b"/a/b/file").unwrap();
        assert_eq!(root.inspect(b"/a/b/file"), Ok(ObjectKind::File(stamp)));
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), stamp.size), ("inside", 6));
        assert_eq!(root.inspect(b"/nothing"), Err(Errno::NOENT));
        assert_eq!(root.inspect(b"/file/"), Err(Errno::NOTDIR));
        assert_eq!(root.inspect(b"/file/x"), Err(Errno::NOTDIR));
        assert_eq!(root.inspect(&[b'n'; 300]), Err(Errno::NAMETOOLONG));
        assert!(root.open_folder(b"/a/").is_ok());
    }
}

#[test]
fn links_that_stay_inside_are_followed_by_the_kernel_and_refused_by_the_walk() {
    let (_outer, path) = folders();
    let [kernel, walk] = roots(&path);
    if Root::open(&path).unwrap().resolution == Resolution::Kernel {
        for name in ["/in", "/a/folder/file", "/a/b/back"] {
            assert!(matches!(kernel.inspect(name.as_bytes()), Ok(ObjectKind::File(_))), "{name}");
        }
    }
    for name in ["/in", "/a/folder/file", "/a/b/back", "/loop"] {
        let error = walk.inspect(name.as_bytes());
        assert!(matches!(error, Err(Errno::LOOP | Errno::NOTDIR)), "{name}: {error:?}");
    }
}

#[test]
fn no_path_of_any_segments_reads_files_outside() {
    let (_outer, path) = folders();
    let names =
        ["a", "b", "..", ".", "far", "up", "out", "absolute", "magic", "secret", "file", "site", "loop", ""];
    let mut paths = vec![String::new()];
    let mut start = 0;
    for _ in 0..4 {
        let end = paths.len();
        for place in start..end {
            for name in names {
                paths.push(format!("{}/{name}", paths[place]));
            }
        }
        start = end;
    }
    for root in roots(&path) {
        let mut inside = 0;
        for path in &paths {
            let Ok((mut file, _)) = root.open_file(path.as_bytes()) else { continue };
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{path} {:?}", root.resolution);
            inside += 1;
        }
        assert!(inside > 2, "the property would hold for a root that opens nothing");
    }
}

#[test]
fn other_objects_are_recognised_without_being_opened() {
    let (_outer, path) = folders();
    let fifo = FileType::Fifo;
    mknodat(CWD, path.join("fifo"), fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _listener = UnixListener::bind(path.join("socket")).unwrap();
    symlink("fifo", path.join("to-fifo")).unwrap();
    symlink("/dev/zero", path.join("device")).unwrap();
    for root in roots(&path) {
        assert_eq!(root.inspect(b"/fifo"), Ok(ObjectKind::Other));
        assert_eq!(root.inspect(b"/socket"), Ok(ObjectKind::Other));
        // A FIFO that took the place of an inspected file: the opening neither waits nor succeeds.
        assert_eq!(root.open_file(b"/fifo").err(), Some(Errno::NOENT));
        assert_eq!(root.open_file(b"/socket").err(), Some(Errno::NXIO));
        assert!(root.open_file(b"/to-fifo").is_err());
        assert!(root.open_file(b"/device").is_err());
        assert!(root.open_file(b"/a").is_err());
    }
}

#[test]
fn a_root_that_is_a_link_follows_the_link_when_it_changes() {
    let outer = TempDir::new().unwrap();
    for release in ["one", "two"] {
        fs::create_dir(outer.path().join(release)).unwrap();
        fs::write(outer.path().join(release).join(release), "").unwrap();
    }
    let link = outer.path().join("current");
    symlink("one", &link).unwrap();
    let root = CurrentRoot::open(&link, 1000).unwrap();
    let at = |monotonic_ns| root.at(Now { monotonic_ns, unix_seconds: 0 });
    assert!(at(5000).inspect(b"/one").is_ok());
    symlink("two", outer.path().join("next")).unwrap();
    fs::rename(outer.path().join("next"), &link).unwrap();
    assert!(at(5999).inspect(b"/one").is_ok(), "checked too early");
    assert!(at(6000).inspect(b"/two").is_ok());
    fs::remove_file(&link).unwrap();
    assert!(at(8000).inspect(b"/two").is_ok(), "the last root stays while the path leads nowhere");
}
