//! Lints of the Python package: format, ruff's rules, mypy's types.

use anyhow::Result;
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::{project, python};

/// Runs ruff and mypy with what `python/pyproject.toml` says.
pub(super) fn check(cache: &Cache) -> Result<()> {
    let tools = python::package_tools(cache)?.join("bin");
    let run = |tool: &str, arguments: &[&str]| -> Result<()> {
        let package = project::root()?.join("python");
        Run::new(tools.join(tool)).args(arguments).dir(package).quiet()
    };
    run("ruff", &["format", "--check", "--quiet", "--no-cache", "."])?;
    run("ruff", &["check", "--quiet", "--no-cache", "."])?;
    // A script names the interpreter of where it was installed, which was another folder. Nothing
    // is kept in the tree.
    run(
        "python3",
        &["-m", "mypy", "--cache-dir=/dev/null", "flopwatch", "tests/typed.py"],
    )
}
