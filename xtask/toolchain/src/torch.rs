//! A Python with PyTorch for the CPU, for tests that make captures with it.
//!
//! PyPI has PyTorch with CUDA alone, which is 5.4 GB with all that it asks for. What the CPU needs
//! of it is taken without its dependencies and made to do without the CUDA libraries: 0.6 GB to
//! fetch, 1 GB of disk.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::cache::Cache;
use crate::command::Run;
use crate::wheel::{self, Requirements};

/// PyTorch and the packages that it needs on the CPU. Three of NVIDIA's are small, and libraries
/// that the CPU's part is linked with.
const REQUIREMENTS: Requirements = Requirements::Torch;
/// Takes the need for absent CUDA libraries out of PyTorch's own.
const CPU_ONLY: &str = include_str!("torch/cpu_only.py");
/// What tests import. Python keeps it compiled, so that an environment that cannot be written, as
/// in a pod, begins as quickly.
const IMPORTED: &str =
    "import torch, torch.profiler, torch._dynamo, torch._inductor.compile_fx; torch.ones(2) @ torch.ones(2)";

fn place(cache: &Cache) -> PathBuf {
    cache.place(REQUIREMENTS.name(), &pins(&REQUIREMENTS.locked()))
}

/// A change of these makes the environment anew.
const fn pins(locked: &str) -> [&str; 3] {
    [locked, CPU_ONLY, IMPORTED]
}

/// The interpreter; `None` when it was not set up yet.
pub fn find(cache: &Cache) -> Option<PathBuf> {
    let python = place(cache).join("bin/python3");
    python.exists().then_some(python)
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<()> {
    let made = cache.item(REQUIREMENTS.name(), &pins(&REQUIREMENTS.locked()), |folder| {
        // Compiling all modules takes longer than to fetch them, and most are never imported.
        REQUIREMENTS.install(folder, &["--no-compile"])?;
        let torch = wheel::file(folder, "torch");
        if !torch.exists() {
            bail!("the wheel of torch holds no package torch");
        }
        let python = || Run::new(folder.join("bin/python3"));
        python()
            .args(["-c", CPU_ONLY])
            .arg(&torch)
            .quiet()
            .context("cannot take the need for CUDA out of PyTorch")?;
        python()
            .args(["-c", IMPORTED])
            // Where it is set, eight programs that start at once compile a thousand modules each.
            .without("PYTHONDONTWRITEBYTECODE")
            .quiet()
            .context("PyTorch without CUDA's libraries does not start")
    });
    made.map(drop)
}
