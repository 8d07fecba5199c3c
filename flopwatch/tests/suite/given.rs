//! What tests are given beside the repository and by the machine. A test without it says so, and
//! does not run.

use std::path::{Path, PathBuf};

use flopwatch_attach::nsys::HostTools;
use flopwatch_pipeline::tools;

/// A file or folder of `../shared`, such as a capture of other people's.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    let there = path.exists();
    if !there {
        println!("skipped (corpus): ../shared/{name} is not there");
    }
    there.then_some(path)
}

/// Nsight Systems: what `FLOPWATCH_NSYS` and `FLOPWATCH_NSYS_HOST` name, or that on PATH.
pub(crate) fn nsys() -> Option<HostTools> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (nsys, host) = (named("FLOPWATCH_NSYS"), named("FLOPWATCH_NSYS_HOST"));
    let found = tools::find(nsys.as_deref(), host.as_deref(), std::env::var_os("PATH").as_ref());
    if let Err(error) = &found {
        println!("skipped: {error}");
    }
    found.ok()
}
