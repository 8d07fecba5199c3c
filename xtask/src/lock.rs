//! The list of what recipes take from PyPI, locked anew.

use anyhow::{Context as _, Result};
use clap::Args;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::step;
use flopwatch_toolchain::wheel::Requirements;
use flopwatch_toolchain::{lock, project};
use std::fs;

/// The oldest Python that recipes run on: Debian 12's.
const PYTHON: &str = "3.11";

/// Which versions are taken.
#[derive(Debug, Args)]
pub(crate) struct LockOptions {
    /// Take the newest versions of packages that others ask for [default: keep those that still
    /// do].
    #[arg(long)]
    upgrade: bool,
}

/// Locks what each group of `pyproject.toml` asks for, and writes one list of it.
pub(crate) fn run(cache: &Cache, options: &LockOptions) -> Result<()> {
    let list = project::root()?.join(lock::FILE);
    let folder = list.parent().context("the list of requirements lies in no folder")?;
    let uv = Requirements::Uv.environment(cache)?.join("bin/uv");
    let work = tempfile::tempdir()?;
    let mut groups = Vec::new();
    for group in Requirements::ALL {
        let file = work.path().join(group.name()).with_extension("txt");
        // uv keeps the versions that it finds there.
        fs::write(&file, group.locked())?;
        let mut run = Run::new(&uv).dir(folder).args([
            "pip",
            "compile",
            "--no-cache",
            "--universal",
            "--python-version",
            PYTHON,
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--group",
            group.name(),
        ]);
        if options.upgrade {
            run = run.arg("--upgrade");
        }
        step(group.name(), || run.arg("--output-file").arg(&file).quiet())?;
        groups.push((group.name(), fs::read_to_string(&file)?));
    }
    fs::write(&list, lock::merge(&groups)).with_context(|| format!("cannot write {}", list.display()))
}
