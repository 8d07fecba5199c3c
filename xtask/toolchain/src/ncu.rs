//! Nsight Compute: the one on the machine, or Debian's (component non-free) in the cache folder. It reads reports without a driver.

use crate::cache::{Cache, remove};
use crate::command::find_program;
use crate::debian::{self, Pinned};
use crate::progress::say;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::PathBuf;

/// Debian 13's, whose libraries Debian 12 has too: Debian 12's own is of 2022. It opens every report of the corpus, newer ones included.
const SUITE: &str = "trixie";
const COMPONENT: &str = "non-free";
/// What profiles and reads reports: 103 MB. The package beside it (237 MB) holds the window, and the sections that `--set` names.
const PACKAGE: Pinned = Pinned {
    name: "nsight-compute-target",
    version: "2024.1.1.4~12.4.1-2",
    sha256: "e3c38f3f24e8b08dd389616991f698ee3550131dc79a9887736bf476444fde13",
};
/// Where Debian puts it.
const TARGET: &str = "usr/lib/x86_64-linux-gnu/nsight-compute/target/linux-desktop-glibc_2_11_3-x64";
/// The folder's name in the cache's item.
const FOLDER: &str = "target";
/// The layout that is made of the package.
const LAYOUT: &str = "1";
/// How tests are told where it is.
const VARIABLE: &str = "FLOPWATCH_NCU";

fn pins() -> [&'static str; 2] {
    [PACKAGE.sha256, LAYOUT]
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
    let fetched = cache.place("ncu", &pins()).join(FOLDER).join("ncu");
    Ok(fetched.is_file().then_some(fetched))
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<PathBuf> {
    if let Some(found) = find(cache)? {
        return Ok(found);
    }
    debian::codename().context("Nsight Compute is not on PATH; install it from NVIDIA")?;
    let folder = cache.item("ncu", &pins(), |folder| {
        say(format_args!(
            "fetching {} {} from Debian {SUITE} {COMPONENT}",
            PACKAGE.name, PACKAGE.version
        ));
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked)?;
        debian::unpack(cache, SUITE, COMPONENT, &[PACKAGE], &unpacked)?;
        fs::rename(unpacked.join(TARGET), folder.join(FOLDER))
            .with_context(|| format!("Debian's package lacks {TARGET}"))?;
        remove(&unpacked)
    })?;
    Ok(folder.join(FOLDER).join("ncu"))
}

/// How tests are told where it is, where it is there.
pub(crate) fn environment(cache: &Cache) -> Result<Option<(String, String)>> {
    let found = find(cache)?;
    Ok(found.map(|program| (VARIABLE.to_owned(), program.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m8_the_package_of_nsight_compute_is_pinned_by_version_and_sum() {
        assert!(PACKAGE.version.starts_with("2024"), "{PACKAGE:?}");
        let hex = PACKAGE.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(PACKAGE.sha256.len() == 64 && hex, "{PACKAGE:?}");
    }
}
