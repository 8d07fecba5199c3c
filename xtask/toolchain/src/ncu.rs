//! Nsight Compute: the one on the machine, or Debian's (component non-free) in the cache folder. It
//! reads reports without a driver.

use crate::cache::{Cache, remove};
use crate::command::find_program;
use crate::debian::{self, Pinned};
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Debian 13's, whose libraries Debian 12 has too: Debian 12's own is of 2022. It opens every
/// report of the corpus, newer ones included.
const SUITE: &str = "trixie";
const COMPONENT: &str = "non-free";
/// What profiles and reads reports (103 MB); sections, and reports of NVIDIA's own samples (237 MB,
/// most of it a window that is not kept).
const PACKAGES: [Pinned; 2] = [
    Pinned {
        name: "nsight-compute-target",
        version: "2024.1.1.4~12.4.1-2",
        sha256: "e3c38f3f24e8b08dd389616991f698ee3550131dc79a9887736bf476444fde13",
    },
    Pinned {
        name: "nsight-compute",
        version: "2024.1.1.4~12.4.1-2",
        sha256: "6c051bb3cd1795aa6d61b52977eb40d848e11816693eb27cc95d8ddac27c8cff",
    },
];
/// What is kept of them. The program looks for its sections two folders above its own.
const KEPT: [(&str, &str); 3] = [
    ("usr/lib/x86_64-linux-gnu/nsight-compute/target", "target"),
    ("usr/lib/x86_64-linux-gnu/nsight-compute/sections", "sections"),
    ("usr/share/doc/nsight-compute/examples", "samples"),
];
/// The program, below the folder of a version.
pub const PROGRAM: &str = "target/linux-desktop-glibc_2_11_3-x64/ncu";
/// The reports there.
const SAMPLES: &str = "samples";
/// The layout that is made of the packages.
const LAYOUT: &str = "1";
/// How tests are told where the program is, and the reports of samples.
const VARIABLE: &str = "FLOPWATCH_NCU";
const SAMPLES_VARIABLE: &str = "FLOPWATCH_NCU_SAMPLES";

/// The smallest report of the samples.
const SAMPLE: &str = "samples/uncoalescedGlobalAccesses/addConstDouble.ncu-rep";

/// Nsight Compute of Debian.
#[derive(Debug, Clone)]
pub struct Ncu {
    /// Folder of the profiler's programs.
    pub target: PathBuf,
    /// Folder of the files that say what each section of a report measures.
    pub sections: PathBuf,
    /// A report of NVIDIA's own samples.
    pub sample: PathBuf,
}

fn place(cache: &Cache) -> PathBuf {
    cache.place("ncu", &pins())
}

fn pins() -> Vec<&'static str> {
    PACKAGES.iter().map(|package| package.sha256).chain([LAYOUT]).collect()
}

/// The program that is there already: that of `FLOPWATCH_NCU`, PATH, the cache.
pub fn find(cache: &Cache) -> Result<Option<PathBuf>> {
    if let Some(told) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let told = PathBuf::from(told);
        if !told.is_file() {
            bail!("{VARIABLE}={} names no program", told.display());
        }
        return Ok(Some(told));
    }
    if let Some(found) = find_program("ncu") {
        return Ok(Some(found));
    }
    let fetched = place(cache).join(PROGRAM);
    Ok(fetched.is_file().then_some(fetched))
}

/// Sees to it that the program is there: the one on the machine, or Debian's with its samples.
pub fn ensure_any(cache: &Cache) -> Result<()> {
    if debian::codename().is_err() {
        let found = find(cache)?;
        return found
            .map(drop)
            .context("Nsight Compute is not on PATH; install it from NVIDIA");
    }
    ensure(cache).map(drop)
}

/// Debian's, fetched if the cache lacks it.
pub fn ensure(cache: &Cache) -> Result<Ncu> {
    let fetch = |folder: &Path| {
        let names = PACKAGES.map(|package| format!("{} {}", package.name, package.version));
        say(format_args!(
            "fetching {} from Debian {SUITE} {COMPONENT}",
            names.join(", ")
        ));
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked)?;
        debian::unpack(cache, SUITE, COMPONENT, &PACKAGES, &unpacked)?;
        for (from, to) in KEPT {
            fs::rename(unpacked.join(from), folder.join(to))
                .with_context(|| format!("Debian's packages lack {from}"))?;
        }
        remove(&unpacked)
    };
    let folder = cache.item("ncu", &pins(), fetch)?;
    Ok(Ncu {
        target: folder.join("target"),
        sections: folder.join("sections"),
        sample: folder.join(SAMPLE),
    })
}

/// How tests are told where they are, where they are there.
pub(crate) fn environment(cache: &Cache) -> Result<BTreeMap<String, String>> {
    let samples = place(cache).join(SAMPLES);
    let found = [
        (VARIABLE, find(cache)?),
        (SAMPLES_VARIABLE, samples.is_dir().then_some(samples)),
    ];
    let found = found
        .into_iter()
        .filter_map(|(name, path)| Some((name.to_owned(), path?.display().to_string())));
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_nsight_compute_is_pinned_by_version_and_sum() {
        let [program, beside] = &PACKAGES;
        assert_eq!(program.version, beside.version, "they belong together");
        for package in &PACKAGES {
            let hex = package.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(package.sha256.len() == 64 && hex, "{package:?}");
        }
    }
}
