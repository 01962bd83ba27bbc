//! The page that lists a folder.
//!
//! Promises: names are escaped, folders come first, each kind in the order of its bytes; hidden names and objects other
//! than files and folders are left out. Leaves out: times, sorting by the peer.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::path;
use crate::root::{ObjectKind, Root};

/// The most entries a page shows; the page says when there are more.
///
/// Reason: the page is made in memory, at most about 1 KiB an entry (a name has up to 255 bytes,
/// three times that when encoded). Source: GitHub's and Apache users' experience that browsers get
/// slow with tens of thousands of rows.
const MAX_ENTRIES: usize = 10_000;

struct Entry {
    name: Vec<u8>,
    /// The size in bytes; none for a folder.
    size: Option<u64>,
}

/// The page for the folder at `path`, which ends with a slash. `title` is the path the peer sees.
pub(crate) fn page(root: &Root, path: &[u8], title: &[u8]) -> Result<Vec<u8>, Errno> {
    let (entries, complete) = read(root, path, root.open_folder(path)?)?;
    let mut title_text = String::new();
    path::escape_html(&String::from_utf8_lossy(title), &mut title_text);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title_text}</title>\n</head>\n\
         <body>\n<h1>{title_text}</h1>\n<table>\n"
    );
    if path != b"/" && !path.is_empty() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td></tr>\n");
    }
    for entry in &entries {
        push_row(entry, &mut page);
    }
    page.push_str("</table>\n");
    if !complete {
        page.push_str(&format!("<p>Only the first {MAX_ENTRIES} entries read are shown.</p>\n"));
    }
    page.push_str("</body>\n</html>\n");
    Ok(page.into_bytes())
}

/// The entries to show, and whether they are all.
fn read(root: &Root, path: &[u8], folder: OwnedFd) -> Result<(Vec<Entry>, bool), Errno> {
    let mut entries = Vec::new();
    let mut complete = true;
    for item in Dir::new(folder)? {
        let item = item?;
        if path::is_hidden(item.file_name().to_bytes()) {
            continue;
        }
        if entries.len() == MAX_ENTRIES {
            complete = false;
            break;
        }
        entries.extend(entry(root, path, item.file_name(), item.file_type()));
    }
    entries.sort_by(|one, other| (one.size.is_some(), &one.name).cmp(&(other.size.is_some(), &other.name)));
    Ok((entries, complete))
}

/// An entry as a request for it would find it: a link that leads out of the root is none.
fn entry(root: &Root, path: &[u8], name: &CStr, file_type: FileType) -> Option<Entry> {
    let name = name.to_bytes().to_vec();
    if file_type == FileType::Directory {
        return Some(Entry { name, size: None });
    }
    let mut below = path.to_vec();
    below.extend_from_slice(&name);
    match root.inspect(&below) {
        Ok(ObjectKind::File(stamp)) => Some(Entry { name, size: Some(stamp.size) }),
        Ok(ObjectKind::Folder) => Some(Entry { name, size: None }),
        Ok(ObjectKind::Other) | Err(_) => None,
    }
}

fn push_row(entry: &Entry, page: &mut String) {
    // "./" keeps a name with a colon from being read as a scheme.
    page.push_str("<tr><td><a href=\"./");
    path::encode(&entry.name, page);
    let slash = if entry.size.is_none() { "/" } else { "" };
    page.push_str(slash);
    page.push_str("\">");
    path::escape_html(&String::from_utf8_lossy(&entry.name), page);
    page.push_str(slash);
    page.push_str("</a></td><td>");
    if let Some(size) = entry.size {
        page.push_str(&size.to_string());
    }
    page.push_str("</td></tr>\n");
}
