//! The GPU kernels: device code of `trace/cuda/device`, compiled by the CUDA compiler that PyPI
//! carries.

use crate::cache::{Cache, file_hash};
use crate::command::{Run, find_program};
use crate::debian;
use crate::progress::{human, say};
use crate::project;
use crate::wheel::{self, Requirements};
use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The compiler and what it needs, each pinned; together about 300 MB unpacked.
const COMPILER: Requirements = Requirements::Nvcc;

/// Machine code for these compute capabilities, and PTX of the last for what comes later.
const ARCHITECTURES: [u32; 4] = [75, 80, 90, 100];

/// File name of the library; `flopwatch_cuda::kernels::FILE_NAME` looks for it.
pub const FILE_NAME: &str = "libflopwatch_kernels.so";

fn sources() -> Result<PathBuf> {
    Ok(project::root()?.join("trace/cuda/device"))
}

/// The files of the device code, in the order of their names.
fn files() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(sources()?).context("no device code in trace/cuda/device")?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

/// What the library says it was built from; the program that loads it expects the same of its own
/// sources.
fn source_hash() -> Result<String> {
    let mut hash = Sha256::new();
    for file in files()? {
        hash.update(fs::read(&file)?);
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(16);
    Ok(text)
}

/// Where the library lies in the cache, built or not.
fn place(cache: &Cache, hash: &str) -> PathBuf {
    let flags = arguments(hash).join(" ");
    cache.place("kernels", &[hash, &flags, &COMPILER.locked()])
}

/// The library when it was built already.
pub fn built(cache: &Cache) -> Result<Option<PathBuf>> {
    let path = place(cache, &source_hash()?).join(FILE_NAME);
    Ok(path.exists().then_some(path))
}

/// Sees to it that the library is there, and gives it.
pub fn build(cache: &Cache) -> Result<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        bail!("the kernels are built on x86_64 only; everything else works without them");
    }
    if let Some(path) = built(cache)? {
        return Ok(path);
    }
    if find_program("g++").is_none() {
        debian::install(&["g++"])?;
    }
    let hash = source_hash()?;
    let flags = arguments(&hash);
    let joined = flags.join(" ");
    let compiler_pins = COMPILER.locked();
    let pins = [hash.as_str(), joined.as_str(), compiler_pins.as_str()];
    let compiler = compiler(cache)?;
    let folder = cache.item("kernels", &pins, |folder| {
        say(format_args!("compiling the GPU kernels"));
        let begin = Instant::now();
        fs::create_dir_all(folder)?;
        Run::new(compiler.join("bin/nvcc"))
            .args(&flags)
            .arg("-I")
            .arg(compiler.join("include/cccl"))
            .arg("-L")
            .arg(compiler.join("lib"))
            .arg("-o")
            .arg(folder.join(FILE_NAME))
            .arg(sources()?.join("kernels.cu"))
            .quiet()?;
        say(format_args!("compiled in {}", human(begin.elapsed())));
        Ok(())
    })?;
    Ok(folder.join(FILE_NAME))
}

/// The compiler's folder, which holds `bin`, `include`, `lib` and `nvvm`.
fn compiler(cache: &Cache) -> Result<PathBuf> {
    let environment = COMPILER.environment(cache)?;
    let folder = wheel::file(&environment, "nvidia/cu13");
    if !folder.join("bin/nvcc").exists() {
        bail!(
            "{} holds no CUDA compiler; remove it and try again",
            environment.display()
        );
    }
    Ok(folder)
}

/// The compiler's options, but for paths.
fn arguments(hash: &str) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-std=c++17",
        "-O3",
        "-shared",
        "--threads=2",
        // The CUDA runtime inside, so that the node needs its driver alone; nothing of it is
        // visible from outside.
        "-cudart=static",
        "-Xcompiler=-fPIC,-fvisibility=hidden",
        "-Xlinker=--exclude-libs,ALL",
        "-Xlinker=--strip-all",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("-DFLOPWATCH_SOURCE={hash}"));
    for architecture in ARCHITECTURES {
        arguments.push(format!("-gencode=arch=compute_{architecture},code=sm_{architecture}"));
    }
    if let Some(last) = ARCHITECTURES.last() {
        arguments.push(format!("-gencode=arch=compute_{last},code=compute_{last}"));
    }
    arguments
}

/// Builds the library, and copies it to `output` when there is one.
pub fn run(cache: &Cache, output: Option<&Path>) -> Result<()> {
    let mut path = build(cache)?;
    if let Some(output) = output {
        fs::copy(&path, output).with_context(|| format!("cannot write {}", output.display()))?;
        output.clone_into(&mut path);
    }
    let bytes = fs::metadata(&path)?.len();
    say(format_args!(
        "{} ({} KiB, sha256 {})",
        path.display(),
        bytes >> 10,
        file_hash(&path)?
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_is_compiled_and_the_last_one_as_ptx_too() {
        let arguments = arguments("0011223344556677");
        for architecture in ARCHITECTURES {
            let wanted = format!("-gencode=arch=compute_{architecture},code=sm_{architecture}");
            assert!(arguments.contains(&wanted), "{wanted}");
        }
        assert!(arguments.iter().any(|argument| argument.ends_with("code=compute_100")));
        assert!(arguments.contains(&"-DFLOPWATCH_SOURCE=0011223344556677".to_owned()));
    }

    #[test]
    fn another_source_is_another_library() {
        let cache = Cache::at(Path::new("/nowhere"));
        assert_ne!(place(&cache, "a"), place(&cache, "b"));
        assert_eq!(source_hash().unwrap().len(), 16);
    }
}
