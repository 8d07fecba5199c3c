//! What the graft needs of Nsight Systems: the program and its injection, the importer, the exporter, and their libraries.

use super::bundle::Bundle;
use anyhow::{Context as _, Result};
use flopwatch_launcher::needed::{Driver, Needed, names};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::nsys;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    let mut libraries = BTreeMap::new();
    for name in ["QdstrmImporter", "libexporter.so"] {
        let file = found.host.join(name);
        if !file.exists() {
            // Other versions have the exporter elsewhere; the rehearsal shows whether it works.
            continue;
        }
        bundle.add(&file, &format!("nsys/host-linux-x64/{name}"))?;
        let message = Run::new("ldd").arg(&file).output()?;
        libraries.extend(linked(&message));
    }
    let host = found.host.canonicalize().context("the host half of Nsight Systems")?;
    for (name, path) in &libraries {
        let own = path.parent().and_then(|folder| folder.canonicalize().ok());
        if own.as_ref() == Some(&host) {
            bundle.add(path, &format!("nsys/host-linux-x64/{name}"))?;
        } else if !OF_THE_MACHINE.iter().any(|known| name.starts_with(known)) {
            bundle.add(path, &format!("nsys/libraries/{name}"))?;
        }
    }
    Ok(())
}

/// Names and places of libraries in what ldd says.
fn linked(ldd: &str) -> BTreeMap<String, PathBuf> {
    let found = ldd.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let (path, _) = rest.rsplit_once(" (0x")?;
        Some((name.to_owned(), PathBuf::from(path)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let message = "\tlinux-vdso.so.1 (0x1)\n\tlibssh.so => /opt/a b/libssh.so (0x2)\n\tlibx.so => not found\n";
        let found: Vec<_> = linked(message).into_iter().collect();
        assert_eq!(found, [("libssh.so".to_owned(), PathBuf::from("/opt/a b/libssh.so"))]);
    }
}
