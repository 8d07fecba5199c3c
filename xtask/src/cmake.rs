//! CMake for the static HDF5 library, which wants a newer one than Debian 12 has.

use crate::cache::Cache;
use crate::command::Run;
use crate::wheel;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The lowest CMake that HDF5's build accepts.
const LOWEST: (u32, u32) = (3, 26);
/// The wheel taken from PyPI where the machine's CMake is older.
pub(crate) const WHEEL: &str = "cmake==3.31.6";

/// The CMake that cargo must be told of: `None` when the one on PATH will do or when none was set up yet.
pub(crate) fn find(cache: &Cache) -> Option<PathBuf> {
    if std::env::var_os("CMAKE").is_some() || usable(Path::new("cmake")) {
        return None;
    }
    let path = program(&cache.place("cmake", &[WHEEL]));
    path.exists().then_some(path)
}

/// Sees to it that a new enough CMake is there.
pub(crate) fn ensure(cache: &Cache) -> Result<()> {
    if std::env::var_os("CMAKE").is_some() || usable(Path::new("cmake")) {
        return Ok(());
    }
    let venv = wheel::environment(cache, "cmake", &[WHEEL])?;
    let path = program(&venv);
    if !usable(&path) {
        anyhow::bail!(
            "{} does not run; remove {} and try again",
            path.display(),
            venv.display()
        );
    }
    Ok(())
}

/// The program inside the wheel: unlike the script in `bin`, it does not care that its folder was renamed.
fn program(venv: &Path) -> PathBuf {
    wheel::file(venv, "cmake/data/bin/cmake")
}

fn usable(cmake: &Path) -> bool {
    let said = Run::new(cmake).arg("--version").output();
    said.ok()
        .and_then(|text| parse_version(&text))
        .is_some_and(|version| version >= LOWEST)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("cmake version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmake_versions_compare_by_number() {
        assert!(parse_version("cmake version 3.25.1\n").unwrap() < LOWEST);
        assert!(parse_version("cmake version 3.31.6\n").unwrap() >= LOWEST);
        assert!(parse_version("cmake version 4.0.1\n").unwrap() >= LOWEST);
        assert_eq!(parse_version("nonsense"), None);
    }
}
