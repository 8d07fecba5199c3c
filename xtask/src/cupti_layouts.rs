//! A release of CUPTI held against the places from which the tracer reads its records: what is new,
//! and what has moved. The headers are read where the wheel has them, and nothing of them is kept.

mod compare;
mod headers;
#[cfg(test)]
mod tests;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use compare::{Finding, compare};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::cupti;
use flopwatch_toolchain::progress::{result, say};
use headers::Headers;
use std::fs;
use std::path::{Path, PathBuf};

/// The header by which a folder is known.
const HEADER: &str = "cupti_activity.h";
/// Folders within folders that are looked into.
const MAX_DEPTH: usize = 8;

/// Which releases.
#[derive(Debug, Args)]
pub(crate) struct CuptiLayoutsOptions {
    /// Wheels of nvidia-cuda-cupti, or folders with headers below [default: those that `cargo xtask
    /// setup` fetched].
    #[arg(value_name = "WHEEL_OR_FOLDER")]
    paths: Vec<PathBuf>,
}

/// Prints what each release has otherwise; fails where a field that is read has moved.
pub(crate) fn run(cache: &Cache, options: &CuptiLayoutsOptions) -> Result<()> {
    let paths = match &options.paths[..] {
        [] => vec![cupti::ensure(cache)?],
        paths => paths.to_vec(),
    };
    let mut moved = 0_usize;
    for path in &paths {
        moved += check(path)?;
    }
    if moved > 0 {
        bail!("{moved} places from which the tracer reads have moved: it must not call such a libcupti");
    }
    result("every field that the tracer reads is where it was");
    Ok(())
}

/// Checks every release of a wheel or folder; gives how many fields have moved.
fn check(path: &Path) -> Result<usize> {
    let scratch = tempfile::tempdir()?;
    let folder = if path.is_file() {
        // A wheel is an archive that Python unpacks.
        Run::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(path)
            .arg(scratch.path())
            .quiet()?;
        scratch.path()
    } else {
        path
    };
    let mut found = Vec::new();
    below(folder, MAX_DEPTH, &mut found)?;
    if found.is_empty() {
        bail!("{} has no {HEADER}", path.display());
    }
    found.sort();
    let mut moved = 0;
    for headers in found {
        let name = headers.strip_prefix(folder).unwrap_or(&headers);
        let read = Headers::read(&headers)?;
        say(format_args!(
            "{} {}: API version {}",
            path.display(),
            name.display(),
            read.version
        ));
        for finding in compare(&read) {
            match finding {
                Finding::Moved(what) => {
                    moved += 1;
                    say(format_args!("  MOVED  {what}"));
                }
                Finding::New(what) => say(format_args!("  new    {what}")),
            }
        }
    }
    Ok(moved)
}

/// The folders of headers below a folder.
fn below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join(HEADER).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        // No link: it could lead back here.
        if depth > 0 && path.symlink_metadata()?.is_dir() {
            below(&path, depth - 1, found)?;
        }
    }
    Ok(())
}
