//! How the build scripts of libraries that are loaded into other programs compile them.
//!
//! Cargo cannot: a library without the standard one needs another way to panic than the
//! workspace's tests have.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources of the crate that such libraries share.
const INJECTED: &str = "../injected";

/// A crate that is compiled already.
pub(crate) struct Extern {
    name: &'static str,
    file: PathBuf,
}

/// Compiles into the folder that cargo gives.
pub(crate) struct Compiler {
    out: PathBuf,
    rustc: OsString,
    target: OsString,
}

impl Compiler {
    /// Reads what cargo says.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        for source in ["src", "build.rs", "../injected/src", "../injected/build"] {
            println!("cargo::rerun-if-changed={source}");
        }
        Ok(Self {
            out: PathBuf::from(variable("OUT_DIR")?),
            rustc: variable("RUSTC")?,
            target: variable("TARGET")?,
        })
    }

    /// Compiles the crate of a file's layout from its folder of sources.
    pub(crate) fn layout(&self, name: &'static str, sources: &str) -> Result<Extern, Box<dyn Error>> {
        println!("cargo::rerun-if-changed={sources}");
        self.dependency(name, &Path::new(sources).join("lib.rs"))
    }

    fn dependency(&self, name: &'static str, root: &Path) -> Result<Extern, Box<dyn Error>> {
        let file = self.out.join(format!("lib{name}.rlib"));
        run(self.compile(name, "rlib", &file).arg(root))?;
        Ok(Extern { name, file })
    }

    /// Compiles `src/library.rs` of the crate that is built: with nothing of a C library, not even
    /// its start files.
    pub(crate) fn library(
        &self,
        name: &'static str,
        file: &str,
        linked: &[&str],
        layouts: &[Extern],
    ) -> Result<(), Box<dyn Error>> {
        let injected = self.dependency("flopwatch_injected", &Path::new(INJECTED).join("src/lib.rs"))?;
        let mut compile = self.compile(name, "cdylib", &self.out.join(file));
        let mut link = format!("-Clink-args=-nostdlib -nostartfiles -Wl,-soname,{file}");
        for more in linked {
            link = link + " " + more;
        }
        compile.args(["-C", "strip=symbols", "-C", "codegen-units=1"]).arg(link);
        for Extern { name, file } in layouts.iter().chain([&injected]) {
            let mut of = OsString::from(format!("{name}="));
            of.push(file);
            compile.arg("--extern").arg(of);
        }
        run(compile.arg("src/library.rs"))
    }

    fn compile(&self, name: &str, kind: &str, output: &Path) -> Command {
        let mut compile = Command::new(&self.rustc);
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
            .arg(&self.target)
            .args(["-D", "warnings", "-C", "opt-level=3", "-C", "panic=abort", "-o"])
            .arg(output);
        compile
    }
}

fn variable(name: &str) -> Result<OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("cargo sets no {name}"))
}

fn run(compile: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = compile.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cannot compile the library: {status}").into())
    }
}
