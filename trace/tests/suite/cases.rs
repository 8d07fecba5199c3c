//! Small inputs with the value that is expected of each: `../shared/cases`.

use std::path::{Path, PathBuf};

/// A file of the cases, or a printed reason to skip.
pub(crate) fn case(name: &str) -> Option<PathBuf> {
    shared(&format!("cases/{name}"))
}

/// A file of `../shared`, or a printed reason to skip.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    if path.is_file() {
        return Some(path);
    }
    println!("skipped (corpus): ../shared/{name} is not there");
    None
}
