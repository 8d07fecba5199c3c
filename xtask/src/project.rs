//! The repository: where it is and how its programs are built.

use crate::cache::Cache;
use crate::command::Run;
use crate::{cmake, kernels, node, nsys, python};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("xtask lies in the workspace")
}

/// `cargo`, the one that runs this recipe when there is one, in the workspace.
pub(crate) fn cargo() -> Result<Run> {
    Ok(Run::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).dir(root()?))
}

/// What cargo's children need to know: the CMake for static HDF5, and what tests run: the profiler, a Python with h5py and what
/// clients need, Node, the GPU kernels.
pub(crate) fn environment(cache: &Cache) -> Result<BTreeMap<String, String>> {
    let mut vars = BTreeMap::new();
    if let Some(cmake) = cmake::find(cache) {
        vars.insert("CMAKE".to_owned(), cmake.display().to_string());
    }
    if let Some(python) = python::find(cache) {
        vars.insert("FLOPWATCH_H5PY".to_owned(), python.display().to_string());
    }
    if let Some(node) = node::find(cache) {
        vars.insert("FLOPWATCH_NODE".to_owned(), node.program().display().to_string());
    }
    if let Some(nsys) = nsys::find(cache)? {
        vars.extend(nsys.environment());
    }
    if let Some(library) = kernels::built(cache)? {
        vars.insert("FLOPWATCH_CUDA_KERNELS".to_owned(), library.display().to_string());
    }
    Ok(vars)
}

/// The folder that cargo builds into.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = cargo()?
        .args(["metadata", "--no-deps", "--format-version=1"])
        .output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("`cargo metadata` gave no JSON")?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    folder
        .map(PathBuf::from)
        .context("`cargo metadata` names no target directory")
}

/// Builds the binaries of some packages in the `rig` profile; gives each binary's path by its name.
pub(crate) fn build_binaries(cache: &Cache, packages: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    build(cargo()?.envs(environment(cache)?), packages)
}

/// Builds a package's shared library in the `rig` profile.
pub(crate) fn build_library(package: &str) -> Result<PathBuf> {
    let mut library = None;
    let run = cargo()?.args([
        "build",
        "--quiet",
        "--profile",
        "rig",
        "--lib",
        "--message-format=json",
        "-p",
        package,
    ]);
    run.lines(|line| library = library.take().or_else(|| shared_library(line)))?;
    library.with_context(|| format!("cargo built no shared library of {package}"))
}

/// Builds a program as the workspace's tests build it for a test of its package: what they compiled is not compiled once more.
pub(crate) fn build_beside_tests(cache: &Cache, program: &str, test: &str) -> Result<PathBuf> {
    let mut found = None;
    let run = cargo()?.envs(environment(cache)?).args([
        "test",
        "--workspace",
        "--no-run",
        "--quiet",
        "--message-format=json",
        "--test",
        test,
    ]);
    run.lines(|line| found = found.take().or_else(|| executable(line, program)))?;
    found.with_context(|| format!("cargo built no program {program}"))
}

fn executable(line: &str, program: &str) -> Option<PathBuf> {
    let value: Value = serde_json::from_str(line).ok()?;
    let target = value.get("target")?;
    let ours = target.get("name")? == program && target.get("kind")?.as_array()?.iter().any(|kind| kind == "bin");
    let path = value.get("executable")?.as_str().filter(|_| ours)?;
    Some(PathBuf::from(path))
}

fn shared_library(line: &str) -> Option<PathBuf> {
    let value: Value = serde_json::from_str(line).ok()?;
    let cdylib = value
        .get("target")?
        .get("crate_types")?
        .as_array()?
        .iter()
        .any(|kind| kind == "cdylib");
    let files = value.get("filenames")?.as_array().filter(|_| cdylib)?;
    files
        .iter()
        .filter_map(Value::as_str)
        .map(PathBuf::from)
        .find(|path| path.extension().is_some_and(|end| end == "so"))
}

/// Builds one package's binaries linked statically (glibc inside), in a target folder of its own.
pub(crate) fn build_static(package: &str) -> Result<BTreeMap<String, PathBuf>> {
    let run = cargo()?
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_DIR", target_directory()?.join("static"));
    // Naming the target keeps the flags away from build scripts and procedural macros, which cannot be static.
    build_with(run, &[package], &["--target", "x86_64-unknown-linux-gnu"])
}

fn build(run: Run, packages: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    build_with(run, packages, &[])
}

fn build_with(run: Run, packages: &[&str], more: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let mut run = run
        .args([
            "build",
            "--quiet",
            "--profile",
            "rig",
            "--bins",
            "--message-format=json",
        ])
        .args(more);
    for package in packages {
        run = run.args(["-p", package]);
    }
    let mut built = BTreeMap::new();
    let mut complaints = String::new();
    let outcome = run.lines(|line| match message(line) {
        Some(Message::Binary(name, path)) => drop(built.insert(name, path)),
        Some(Message::Complaint(text)) => complaints.push_str(&text),
        None => {}
    });
    outcome.map_err(|error| {
        if complaints.is_empty() {
            error
        } else {
            anyhow::anyhow!("{complaints}")
        }
    })?;
    Ok(built)
}

enum Message {
    Binary(String, PathBuf),
    Complaint(String),
}

fn message(line: &str) -> Option<Message> {
    let value: Value = serde_json::from_str(line).ok()?;
    match value.get("reason")?.as_str()? {
        "compiler-artifact" => {
            let path = value.get("executable")?.as_str()?;
            let name = value.get("target")?.get("name")?.as_str()?;
            Some(Message::Binary(name.to_owned(), path.into()))
        }
        "compiler-message" => {
            let message = value.get("message")?;
            let error = message.get("level")?.as_str()? == "error";
            error.then(|| {
                message
                    .get("rendered")?
                    .as_str()
                    .map(|text| Message::Complaint(text.to_owned()))
            })?
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_names_its_shared_libraries() {
        let line = r#"{"reason":"compiler-artifact","target":{"crate_types":["cdylib"]},"filenames":["/t/libx.so"]}"#;
        assert_eq!(shared_library(line), Some(PathBuf::from("/t/libx.so")));
        let other = r#"{"reason":"compiler-artifact","target":{"crate_types":["lib"]},"filenames":["/t/libx.so"]}"#;
        assert_eq!(shared_library(other), None);
    }

    #[test]
    fn cargo_names_its_binaries_and_errors() {
        let binary = r#"{"reason":"compiler-artifact","target":{"name":"x"},"executable":"/t/x"}"#;
        assert!(
            matches!(message(binary), Some(Message::Binary(name, path)) if name == "x" && path == Path::new("/t/x"))
        );
        let library = r#"{"reason":"compiler-artifact","target":{"name":"x"},"executable":null}"#;
        assert!(message(library).is_none());
        let error = r#"{"reason":"compiler-message","message":{"level":"error","rendered":"bad"}}"#;
        assert!(matches!(message(error), Some(Message::Complaint(text)) if text == "bad"));
        let warning = r#"{"reason":"compiler-message","message":{"level":"warning","rendered":"hm"}}"#;
        assert!(message(warning).is_none());
        assert!(message("not JSON").is_none());
    }
}
