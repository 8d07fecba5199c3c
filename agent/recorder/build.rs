//! Compiles the library, which the crate carries in itself.
//!
//! Cargo cannot: a library without the standard one needs another way to panic than the workspace's
//! tests have.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAYOUT: &str = "../../trace/ring/src";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    for source in ["src", "build.rs", LAYOUT] {
        println!("cargo::rerun-if-changed={source}");
    }
    let layout = out.join("libflopwatch_ring.rlib");
    let mut compile = compiler("flopwatch_ring", "rlib", &layout)?;
    run(compile.arg(Path::new(LAYOUT).join("lib.rs")))?;
    let library = out.join("libflopwatch-recorder.so");
    let mut compile = compiler("flopwatch_recorder", "cdylib", &library)?;
    let mut of_layout = OsString::from("flopwatch_ring=");
    of_layout.push(&layout);
    // It links nothing of a C library, not even its start files.
    compile
        .args(["-C", "strip=symbols", "-C", "codegen-units=1"])
        .arg("-Clink-args=-nostdlib -nostartfiles -Wl,-soname,libflopwatch-recorder.so")
        .arg("--extern")
        .arg(of_layout);
    run(compile.arg("src/library.rs"))
}

fn variable(name: &str) -> Result<OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("cargo sets no {name}"))
}

fn compiler(name: &str, kind: &str, output: &Path) -> Result<Command, Box<dyn Error>> {
    let mut compile = Command::new(variable("RUSTC")?);
    compile
        .args([
            "--edition",
            "2024",
            "--crate-name",
            name,
            "--crate-type",
            kind,
            "--target",
        ])
        .arg(variable("TARGET")?)
        .args(["-D", "warnings", "-C", "opt-level=3", "-C", "panic=abort", "-o"])
        .arg(output);
    Ok(compile)
}

fn run(compile: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = compile.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cannot compile the library: {status}").into())
    }
}
