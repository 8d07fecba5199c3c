//! Documentation, made with what was compiled for the tests.

use anyhow::Result;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::project;
use std::path::PathBuf;

/// Documents the libraries, with what was compiled for the tests; fails when there is something
/// wrong.
pub(super) fn check(cache: &Cache) -> Result<()> {
    let shim = shim()?;
    project::cargo()?
        .envs(project::environment(cache)?)
        .env("RUSTDOC", shim)
        .env("FLOPWATCH_RUSTDOC", "rustdoc")
        .env("FLOPWATCH_DOCUMENTATION", project::target_directory()?.join("doc"))
        .args(["test", "--quiet", "--workspace", "--no-fail-fast", "--doc"])
        .patiently()
        .shown()
}

/// What stands in rustdoc's place.
fn shim() -> Result<PathBuf> {
    Ok(project::root()?.join("xtask/src/lint/rustdoc.sh"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_toolchain::command::Run;
    use std::fs;

    /// Documents a library as cargo has its examples run.
    fn document(library: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("lib.rs");
        fs::write(&file, library)?;
        Run::new(shim()?)
            .env("FLOPWATCH_RUSTDOC", "rustdoc")
            .env("FLOPWATCH_DOCUMENTATION", folder.path().join("doc"))
            .args([
                "--edition=2024",
                "--crate-type",
                "lib",
                "--crate-name",
                "sample",
                "--test",
            ])
            .arg(&file)
            .arg("--test-run-directory")
            .arg(folder.path())
            .args(["--error-format", "human"])
            .quiet()
    }

    #[test]
    fn a_link_that_leads_nowhere_fails_also_in_what_is_private() {
        let library = |link: &str| format!("//! A library.\n\nmod private {{\n    //! See [`{link}`].\n}}\n");
        document(&library("std::fs")).unwrap();
        let error = document(&library("Nowhere")).unwrap_err().to_string();
        assert!(error.contains("unresolved link to `Nowhere`"), "{error}");
    }
}
