//! What the graft needs of Nsight Systems: the program and its injection, the importer, and their
//! libraries.

use super::bundle::Bundle;
use anyhow::Result;
use flopwatch_launcher::needed::{Driver, Needed, names};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::nsys;

/// What the check traces; the newest CUPTI serves the drivers that our kernels need.
const PARTS: &str = "cuda,nvtx,osrt";
/// Libraries that belong to the machine's C library, and must be its own.
const OF_THE_MACHINE: [&str; 9] = [
    "ld-linux",
    "libc.so",
    "libdl.so",
    "libm.so",
    "libpthread.so",
    "libresolv.so",
    "librt.so",
    "libutil.so",
    "linux-vdso",
];

/// Adds Nsight Systems to the bundle.
pub(super) fn add(cache: &Cache, bundle: &mut Bundle) -> Result<()> {
    let found = nsys::ensure(cache)?;
    let names = names(&found.target)?;
    for name in Needed::of(PARTS, Driver::Absent).among(&names) {
        let inside = format!("nsys/target-linux-x64/{}", name.to_string_lossy());
        bundle.add_tree(&found.target.join(name), &inside)?;
    }
    let host = found.host_parts()?;
    for (name, path) in &host.own {
        bundle.add(path, &format!("nsys/host-linux-x64/{name}"))?;
    }
    for (name, path) in &host.libraries {
        if !OF_THE_MACHINE.iter().any(|known| name.starts_with(known)) {
            bundle.add(path, &format!("nsys/libraries/{name}"))?;
        }
    }
    Ok(())
}
