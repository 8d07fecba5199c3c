//! CMake for the static HDF5: `.cargo/cmake`, which cargo's build scripts run too, finds or fetches
//! it.

use crate::command::Run;
use crate::project;
use anyhow::{Context as _, Result};
use std::path::PathBuf;

/// Sees to it that a new enough CMake is there, so that cargo does not wait for it.
pub fn ensure() -> Result<()> {
    // Cargo sets it to the script, unless the user has a choice of their own.
    let program = std::env::var_os("CMAKE").map_or_else(script, |program| Ok(program.into()))?;
    Run::new(program).arg("--version").quiet().context("cannot get CMake")
}

fn script() -> Result<PathBuf> {
    Ok(project::root()?.join(".cargo/cmake"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    fn program(path: &Path, script: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the script on a machine with this CMake, and a Python that makes no environment.
    fn on_a_machine_with(version: &str, machine: &Path) -> Result<String> {
        program(&machine.join("bin/cmake"), &format!("echo cmake version {version}"));
        program(&machine.join("bin/python3"), "exit 1");
        Run::new(script()?)
            .arg("--version")
            .env("PATH", format!("{}:/usr/bin:/bin", machine.join("bin").display()))
            .env("FLOPWATCH_CACHE", machine.join("cache"))
            .output()
    }

    #[test]
    fn a_new_enough_cmake_of_the_machine_is_taken() {
        for version in ["3.26.0", "3.31.6", "4.0.1"] {
            let machine = tempfile::tempdir().unwrap();
            let message = on_a_machine_with(version, machine.path()).unwrap();
            assert_eq!(message, format!("cmake version {version}\n"));
            assert!(!machine.path().join("cache").exists(), "{version}");
        }
    }

    #[test]
    fn where_it_is_too_old_the_fetched_one_is_taken() {
        let machine = tempfile::tempdir().unwrap();
        let fetched = machine.path().join("cache/cmake-3.31.6/cmake/data/bin/cmake");
        program(&fetched, "echo cmake version 3.31.6, fetched");
        let message = on_a_machine_with("3.25.1", machine.path()).unwrap();
        assert_eq!(message, "cmake version 3.31.6, fetched\n");
    }

    #[test]
    fn where_none_can_be_fetched_the_error_says_what_to_do_and_leaves_nothing() {
        let machine = tempfile::tempdir().unwrap();
        let error = on_a_machine_with("3.25.1", machine.path()).unwrap_err().to_string();
        for part in ["3.26 or newer", "has 3.25", "python3-venv", "variable CMAKE"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(fs::read_dir(machine.path().join("cache")).unwrap().count(), 0);
    }
}
