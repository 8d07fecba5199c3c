//! Compiles the fallback library, which the launcher carries in itself and installs beside itself.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| std::env::var_os(name).ok_or(format!("cargo sets no {name}"));
    let source = "fallback/library.rs";
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed=build.rs");
    let mut compile = Command::new(variable("RUSTC")?);
    compile
        .args(["--edition", "2024", "--crate-name", "flopwatch_fallback"])
        .args(["--crate-type", "cdylib", "--target"])
        .arg(variable("TARGET")?)
        .args(["-D", "warnings", "-O", "-C", "panic=abort", "-C", "strip=symbols"])
        // It links nothing of a C library, not even its start files.
        .arg("-Clink-args=-nostdlib -nostartfiles -Wl,-soname,libflopwatch-fallback.so")
        .arg("-o")
        .arg(PathBuf::from(variable("OUT_DIR")?).join("libflopwatch-fallback.so"))
        .arg(source);
    let status = compile.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cannot compile {source}: {status}").into())
    }
}
