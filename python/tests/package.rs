//! The package's own tests, which are Python's: run by pytest against the module that this build
//! made.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

fn variable(name: &str) -> Result<PathBuf> {
    let value = std::env::var_os(name).with_context(|| format!("{name} is not set: `cargo xtask test` sets it"))?;
    Ok(PathBuf::from(value))
}

/// The package as an installation has it.
fn installed() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("flopwatch");
    copy(&package, &folder.path().join("flopwatch"))?;
    let module = folder.path().join("flopwatch/_native.abi3.so");
    std::fs::copy(variable("FLOPWATCH_PYTHON_MODULE")?, module)?;
    Ok(folder)
}

/// A certificate of the gateway that the tests make, which is its own authority, and its key.
fn certificate() -> Result<TempDir> {
    let names = ["localhost", "flopwatch-gateway.flopwatch-system.svc"];
    let made = rcgen::generate_simple_self_signed(names.map(str::to_owned))?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("ca.crt"), made.cert.pem())?;
    std::fs::write(folder.path().join("key"), made.signing_key.serialize_pem())?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            std::fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

#[test]
fn the_package_passes_its_tests() -> Result<()> {
    let (site, certificate) = (installed()?, certificate()?);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = Command::new(variable("FLOPWATCH_PYTHON")?)
        .args([
            "-m",
            "pytest",
            "--quiet",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
        ])
        .arg("--doctest-modules")
        .arg(&tests)
        .arg(site.path().join("flopwatch"))
        .env("PYTHONPATH", site.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FLOPWATCH_TEST_TLS", certificate.path())
        .current_dir(site.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // pytest succeeds with tests that it left out.
    ensure!(!said.contains("skipped") && said.contains(" passed"), "{said}");
    Ok(())
}
