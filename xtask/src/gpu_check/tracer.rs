//! The tracer's bundle: a small CUDA program that needs no toolkit, and copies of libcupti as
//! NVIDIA's packages have them. It is rehearsed with stand-ins for NVIDIA's libraries.

use super::bundle::Bundle;
use super::rehearse;
use anyhow::{Context as _, Result, bail};
use flopwatch_toolchain::cache::{Cache, remove};
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::{cupti, project};
use std::fs;
use std::path::{Path, PathBuf};

/// The program, as the check looks for it.
const PROGRAM: &str = "tracer-program";
/// Items that every rehearsal tries: those of each release, and what needs neither PyTorch nor MPS.
const LEAST_ITEMS: usize = 16;
/// What makes a rehearsal short; the stand-in takes every graph for one of three kernels.
const SHORT: [&str; 8] = [
    "--nodes",
    "3",
    "--records",
    "300000",
    "--pace-ms",
    "100",
    "--switches",
    "20",
];

/// Adds what the tracer's check needs beside the program of all checks.
pub(super) fn add(cache: &Cache, bundle: &mut Bundle) -> Result<()> {
    let source = project::root()?.join("tests/gpu-check");
    let scratch = tempfile::tempdir()?;
    let program = scratch.path().join(PROGRAM);
    let sources = ["program.c", "bare.c"].map(|file| source.join("tracer").join(file));
    compile(&["-O2"], &sources, &program)?;
    bundle.add(&program, PROGRAM)?;
    for release in &cupti::RELEASES {
        let inside = format!("cupti/{}/{}", release.name, release.file);
        bundle.add(&release.library(cache)?, &inside)?;
    }
    bundle.add(&source.join("torch_profiler_program.py"), "torch_profiler_program.py")?;
    bundle.add(&source.join("run-tracer.sh"), "run.sh")
}

/// Tries the bundle with a driver and libraries that are none, where every item must hold.
pub(super) fn rehearse_all(bundle: &Bundle) -> Result<()> {
    rehearse(bundle, &[])?;
    let doubles = bundle.folder().with_file_name("flopwatch-gpu-tracer-doubles");
    let (driver, cupti) = doubles_in(&doubles)?;
    let [driver, cupti] = [driver, cupti].map(|folder| folder.to_string_lossy().into_owned());
    let mut options = vec!["--driver", driver.as_str(), "--cupti", cupti.as_str()];
    options.extend(SHORT);
    let found = rehearse(bundle, &options)?;
    let items = found.pointer("/items").and_then(serde_json::Value::as_array);
    let items = items.context("the rehearsal's results have no items")?;
    let tried = items.iter().filter(|item| {
        item.pointer("/not_run").is_some_and(serde_json::Value::is_null)
            && item
                .pointer("/found/failures")
                .and_then(serde_json::Value::as_array)
                .is_some_and(Vec::is_empty)
    });
    let tried = tried.count();
    if tried < LEAST_ITEMS {
        bail!("{tried} items of the tracer's check hold with stand-ins, of {LEAST_ITEMS}");
    }
    Ok(())
}

/// Makes the stand-ins; gives the folders of the driver and of the copies of libcupti.
fn doubles_in(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    remove(folder)?;
    let source = project::root()?.join("tests/rig/fake-cupti");
    let (driver, cupti) = (folder.join("driver"), folder.join("cupti"));
    fs::create_dir_all(&driver)?;
    let shared = ["-O1", "-shared", "-fPIC", "-pthread"];
    let sources = ["cuda.c", "driver.c"].map(|file| source.join(file));
    let soname = "-Wl,-soname,libcuda.so.1";
    compile(
        &[&shared[..], &[soname]].concat(),
        &sources,
        &driver.join("libcuda.so.1"),
    )?;
    for release in &cupti::RELEASES {
        let place = cupti.join(release.name);
        fs::create_dir_all(&place)?;
        let define = format!("-DRELEASE={}", double_of(release.name)?);
        let soname = format!("-Wl,-soname,{}", release.file);
        let words = [define.as_str(), &soname, "-Wno-infinite-recursion"];
        compile(
            &[&shared[..], &words].concat(),
            &[source.join("cupti.c")],
            &place.join(release.file),
        )?;
    }
    Ok((driver, cupti))
}

/// How the stand-in numbers a release: 1305 for `13.5`.
fn double_of(name: &str) -> Result<u32> {
    let (major, minor) = name.split_once('.').context("a release has two numbers")?;
    Ok(major.parse::<u32>()? * 100 + minor.parse::<u32>()?)
}

fn compile(words: &[&str], sources: &[PathBuf], to: &Path) -> Result<()> {
    Run::new("cc")
        .args(["-Wall", "-Wextra", "-Werror"])
        .args(words)
        .arg("-o")
        .arg(to)
        .args(sources)
        .arg("-ldl")
        .quiet()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_of_the_bundle_has_a_stand_in() {
        let numbers = cupti::RELEASES.map(|release| double_of(release.name).unwrap());
        assert_eq!(numbers, [1208, 1209, 1300, 1303, 1305]);
    }

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn the_program_and_the_stand_ins_compile_without_a_word() {
            let folder = tempfile::tempdir().unwrap();
            let (driver, cupti) = doubles_in(&folder.path().join("doubles")).unwrap();
            assert!(driver.join("libcuda.so.1").is_file() && cupti.join("13.5/libcupti.so.13").is_file());
            let source = project::root().unwrap().join("tests/gpu-check/tracer");
            let sources = ["program.c", "bare.c"].map(|file| source.join(file));
            let program = folder.path().join(PROGRAM);
            compile(&["-O2"], &sources, &program).unwrap();
            let said = Run::new("sh")
                .args(["-c", "printf 'init\\nlaunch 5\\n' | \"$0\""])
                .arg(&program)
                .env("LD_LIBRARY_PATH", &driver)
                .output()
                .unwrap();
            assert_eq!(said, "ready 13000\nlaunched 5 5\n");
        }
    }
}
