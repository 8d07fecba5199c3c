//! A simulated GPU: stand-ins for NVIDIA's driver and libcupti, and a program that launches kernels
//! on them (`tests/rig/fake-cupti`). Nothing of it says anything of a GPU.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::project;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the image has it.
pub(super) const PLACE: &str = "opt/simulated-gpu";

/// The release of libcupti that is simulated, as the stand-in numbers it.
const RELEASE: &str = "-DRELEASE=1305";
const SHARED: [&str; 3] = ["-shared", "-fPIC", "-pthread"];

/// Compiles it into a folder, which it gives.
pub(super) fn compile(folder: &Path) -> Result<PathBuf> {
    for name in ["driver", "cupti"] {
        let inside = folder.join(name);
        fs::create_dir_all(&inside).with_context(|| format!("cannot make {}", inside.display()))?;
    }
    let driver = [&SHARED[..], &["-Wl,-soname,libcuda.so.1"]].concat();
    let cupti = ["-Wl,-soname,libcupti.so.13", RELEASE, "-Wno-infinite-recursion"];
    let cupti = [&SHARED[..], &cupti].concat();
    let next = [&SHARED[..], &["-Wno-unused-function"]].concat();
    for (source, words, to) in [
        ("program.c", &["-pthread"][..], "program"),
        ("cuda.c", driver.as_slice(), "driver/libcuda.so.1"),
        ("cupti.c", cupti.as_slice(), "cupti/libcupti.so.13"),
        ("next.c", next.as_slice(), "libnext.so"),
    ] {
        let source = project::root()?.join("tests/rig/fake-cupti").join(source);
        let to = folder.join(to);
        Run::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror"])
            .args(words)
            .arg("-o")
            .arg(to)
            .arg(source)
            .arg("-ldl")
            .quiet()?;
    }
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    /// Tests that start processes.
    mod crate_tests {
        use super::super::*;

        #[test]
        fn the_program_launches_on_the_simulated_gpu() {
            let folder = tempfile::tempdir().unwrap();
            compile(folder.path()).unwrap();
            let said = Run::new("sh")
                .args(["-c", "printf 'init\\nlaunch 5\\n' | \"$0\""])
                .arg(folder.path().join("program"))
                .env("LD_LIBRARY_PATH", folder.path().join("driver"))
                .output()
                .unwrap();
            assert_eq!(said, "init 0\nrecorded 0\n");
        }
    }
}
