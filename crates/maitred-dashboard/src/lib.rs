//! The dashboard: the files of the page that shows a running server, as they are in `assets/`, and the same page as one file with a
//! snapshot in it.
//!
//! ```text
//! assets/index.html   the frame    assets/style.css   assets/vendor/   uPlot, with its licence
//! assets/*.js         modules: their types are in comments, which `scripts/dashboard` has checked
//! offline.rs          everything in one file
//! ```
//! Promises: nothing is fetched from anywhere else, and nothing needs a build: the files are served as they are here. A
//! file is compressed once, when it is first asked for.
//!
//! Leaves out: access control, and the source of its figures (`dashboard/` of maitred-control).

mod offline;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use maitred_http::coding::Coding;

pub use offline::offline;

/// The rights of a page of ours (Content Security Policy, level 3): use its own files, and ask the server that it comes
/// from.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Debug)]
pub struct Asset {
    /// The path below `/dashboard/`; empty for the page itself.
    pub path: &'static str,
    /// The media type of the file.
    pub media_type: &'static str,
    /// The bytes of the file.
    pub bytes: &'static [u8],
    compressed: OnceLock<Vec<u8>>,
}

impl Asset {
    const fn new(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, media_type, bytes, compressed: OnceLock::new() }
    }

    /// The bytes, compressed with gzip.
    pub fn gzip(&self) -> &[u8] {
        self.compressed.get_or_init(|| {
            let mut out = Vec::new();
            // It writes to memory, which does not fail.
            let _ = maitred_compress::whole(Coding::Gzip, 6, self.bytes, &mut out);
            out
        })
    }

    /// The entity tag of the file, with its quotation marks (RFC 9110 section 8.8.3): another one for each content.
    pub fn tag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        format!("\"{:016x}\"", hasher.finish())
    }
}

macro_rules! assets {
    ($($path:literal $file:literal $media_type:expr;)*) => {
        [$(Asset::new($path, $media_type, include_bytes!(concat!("../assets/", $file)))),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

static ASSETS: [Asset; 24] = assets! {
    "" "index.html" HTML;
    "style.css" "style.css" CSS;
    "icon.svg" "icon.svg" SVG;
    "format.js" "format.js" JS;
    "dom.js" "dom.js" JS;
    "table.js" "table.js" JS;
    "generic.js" "generic.js" JS;
    "api.js" "api.js" JS;
    "router.js" "router.js" JS;
    "live.js" "live.js" JS;
    "series.js" "series.js" JS;
    "spans.js" "spans.js" JS;
    "chart.js" "chart.js" JS;
    "page-overview.js" "page-overview.js" JS;
    "page-upstreams.js" "page-upstreams.js" JS;
    "page-routes.js" "page-routes.js" JS;
    "page-threads.js" "page-threads.js" JS;
    "page-requests.js" "page-requests.js" JS;
    "page-network.js" "page-network.js" JS;
    "page-system.js" "page-system.js" JS;
    "main.js" "main.js" JS;
    "vendor/uplot.js" "vendor/uplot.js" JS;
    "vendor/uplot.css" "vendor/uplot.css" CSS;
    "vendor/LICENSE" "vendor/LICENSE" TEXT;
};

/// All files.
pub fn assets() -> &'static [Asset] {
    &ASSETS
}

/// The file at this path below `/dashboard/`.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
