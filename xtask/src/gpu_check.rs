//! Bundles to carry to a machine with an NVIDIA GPU: made here, checked here as far as a machine
//! without one can.

mod bundle;
mod nsys;
mod tracer;

use anyhow::{Context as _, Result, bail};
use bundle::{Bundle, mebibytes};
use clap::{Args, ValueEnum};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::command::Run;
use flopwatch_toolchain::progress::{result, say, step};
use flopwatch_toolchain::{cmake, kernels, project};
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "flopwatch-gpu-check";
const LAUNCHER: &str = "flopwatch-launcher";
const WORKLOAD: &str = "flopwatch-sample-workload";
const PYTHON_MODULE: &str = "lib_native.so";
/// Events that the processor's part is run with here.
const SIZE_HERE: &str = "300000";

/// Which bundles, and where they go.
#[derive(Debug, Args)]
pub(crate) struct GpuCheckOptions {
    /// Only this stage's bundle.
    #[arg(long, value_enum)]
    stage: Option<Stage>,
    /// Folder for the bundles; `gpu-check` below cargo's target folder by default.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// What a bundle checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The transform on the GPU, NVML, Nsight Compute.
    Transform,
    /// The graft with CUDA tracing; carries a trimmed Nsight Systems.
    Graft,
    /// The agent's other profilers: Kineto, JAX, Nsight Compute, GPM.
    Profilers,
    /// The CUDA tracer; carries copies of libcupti.
    Tracer,
}

impl Stage {
    /// The folder that the bundle's program writes to, below the one in which it is run.
    const fn results(self) -> &'static str {
        match self {
            Self::Transform => "results",
            Self::Graft => "results-graft",
            Self::Profilers => "results-profilers",
            Self::Tracer => "results-tracer",
        }
    }
}

/// Makes the bundles, runs their parts that need no GPU, and says how to run them where one is.
pub(crate) fn run(cache: &Cache, options: &GpuCheckOptions) -> Result<()> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => project::target_directory()?.join("gpu-check"),
    };
    for stage in [Stage::Transform, Stage::Graft, Stage::Profilers, Stage::Tracer] {
        if options.stage.is_some_and(|only| only != stage) {
            continue;
        }
        let bundle = step("bundle", || match stage {
            Stage::Transform => transform(cache, &output),
            Stage::Graft => graft(cache, &output),
            Stage::Profilers => profilers(cache, &output),
            Stage::Tracer => traced(cache, &output),
        })?;
        let size = step("archive", || bundle.pack())?;
        step("check without a GPU", || match stage {
            Stage::Transform => rehearse_transform(&bundle),
            Stage::Graft => rehearse_graft(&bundle),
            Stage::Profilers => rehearse_profilers(&bundle),
            Stage::Tracer => tracer::rehearse_all(&bundle),
        })?;
        result(format_args!(
            "{} ({}, {} unpacked). Carry it to a machine with an NVIDIA GPU (driver 580 or newer), unpack it, and \
             run:\n  ./{}/run.sh --require-gpu\nThen add {}/results.md to docs/gpu-results.md.",
            bundle.archive().display(),
            mebibytes(size.packed),
            mebibytes(size.unpacked),
            bundle.name(),
            stage.results(),
        ));
    }
    Ok(())
}

/// What all carry: the program and the kernels.
fn common(cache: &Cache, output: &Path, name: &'static str) -> Result<Bundle> {
    let library = kernels::build(cache)?;
    cmake::ensure()?;
    let program = optimised(PROGRAM, PROGRAM)?;
    let mut bundle = Bundle::new(output, name)?;
    bundle.add(&program, PROGRAM)?;
    bundle.add(&library, kernels::FILE_NAME)?;
    Ok(bundle)
}

fn transform(cache: &Cache, output: &Path) -> Result<Bundle> {
    let mut bundle = common(cache, output, "flopwatch-gpu-check")?;
    let source = project::root()?.join("tests/gpu-check");
    bundle.add(&source.join("cupy_pipeline.py"), "cupy_pipeline.py")?;
    bundle.add(&source.join("run.sh"), "run.sh")?;
    bundle.finish()?;
    Ok(bundle)
}

fn graft(cache: &Cache, output: &Path) -> Result<Bundle> {
    let mut bundle = common(cache, output, "flopwatch-gpu-graft")?;
    let mut programs = project::build_binaries(&[WORKLOAD])?;
    programs.extend(project::build_static(LAUNCHER)?);
    for (name, to) in [(WORKLOAD, WORKLOAD), (LAUNCHER, "launcher")] {
        let from = programs.get(name).with_context(|| format!("cargo built no {name}"))?;
        bundle.add(from, to)?;
    }
    let source = project::root()?.join("tests/gpu-check");
    bundle.add(&source.join("torch_program.py"), "torch_program.py")?;
    bundle.add(&source.join("run-graft.sh"), "run.sh")?;
    nsys::add(cache, &mut bundle)?;
    bundle.finish()?;
    Ok(bundle)
}

fn profilers(cache: &Cache, output: &Path) -> Result<Bundle> {
    let mut bundle = common(cache, output, "flopwatch-gpu-profilers")?;
    let programs = project::build_static(LAUNCHER)?;
    let launcher = programs.get(LAUNCHER).context("cargo built no launcher")?;
    bundle.add(launcher, "launcher")?;
    let source = project::root()?.join("tests/gpu-check");
    for program in ["torch_program.py", "jax_program.py", "regions_program.py"] {
        bundle.add(&source.join(program), program)?;
    }
    python_package(&mut bundle)?;
    bundle.add(&source.join("run-profilers.sh"), "run.sh")?;
    bundle.finish()?;
    Ok(bundle)
}

fn traced(cache: &Cache, output: &Path) -> Result<Bundle> {
    let mut bundle = common(cache, output, "flopwatch-gpu-tracer")?;
    tracer::add(cache, &mut bundle)?;
    bundle.finish()?;
    Ok(bundle)
}

/// The package as a wheel holds it, with the module built for the interpreters that the wheel is
/// for.
fn python_package(bundle: &mut Bundle) -> Result<()> {
    let module = optimised("flopwatch-python", PYTHON_MODULE)?;
    bundle.add(&module, "flopwatch/_native.abi3.so")?;
    bundle.add_tree(&project::root()?.join("python/flopwatch"), "flopwatch")
}

/// What a package builds, optimised: its times are results.
fn optimised(package: &str, file: &str) -> Result<PathBuf> {
    project::cargo()?
        // Line tables would outweigh the program.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .args(["build", "--quiet", "--release", "-p", package])
        .shown()?;
    Ok(project::target_directory()?.join("release").join(file))
}

/// Runs a bundle as it will be run, so that nothing is missing there; gives its results.
fn rehearse(bundle: &Bundle, options: &[&str]) -> Result<serde_json::Value> {
    let results = bundle.folder().with_file_name(format!("{}-here", bundle.name()));
    flopwatch_toolchain::cache::remove(&results)?;
    Run::new(bundle.folder().join("run.sh"))
        .args(options)
        .arg("--output")
        .arg(&results)
        .shown()?;
    let text = fs::read_to_string(results.join("results.json"))?;
    let found: serde_json::Value = serde_json::from_str(&text)?;
    match found.pointer("/machine/no_gpu").and_then(serde_json::Value::as_str) {
        Some(reason) => say(format_args!("no GPU part ran: {reason}")),
        None => say("the GPU part ran, see results.md"),
    }
    Ok(found)
}

fn rehearse_transform(bundle: &Bundle) -> Result<()> {
    let found = rehearse(bundle, &["--sizes", SIZE_HERE])?;
    let kernels = found
        .pointer("/machine/kernels")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    for wanted in ["cuda 13.0", "sm_75", "sm_80", "sm_90", "sm_100", "compute_100"] {
        if !kernels.contains(wanted) {
            bail!("the bundle's kernels lack {wanted}: {kernels}");
        }
    }
    if kernels.contains("other sources") {
        bail!("the bundle's kernels are not those of its program: {kernels}");
    }
    Ok(())
}

/// The program without CUDA is grafted and captured here too: the trimmed profiler is whole.
fn rehearse_graft(bundle: &Bundle) -> Result<()> {
    let found = rehearse(bundle, &["--seconds", "2"])?;
    let ranges = found
        .pointer("/programs/0/grafted/windows/1/ranges")
        .and_then(serde_json::Value::as_u64);
    match ranges {
        Some(1..) => Ok(()),
        _ => bail!("the second capture of the program without CUDA holds no ranges"),
    }
}

/// Kineto and JAX's service record on the processor here, where the variables name a Python with
/// PyTorch and one with JAX.
fn rehearse_profilers(bundle: &Bundle) -> Result<()> {
    let frameworks = [
        ("FLOPWATCH_TORCH", "--python", "/profilers/0/found/cpu_op"),
        ("FLOPWATCH_PYTHON", "--jax-python", "/profilers/1/found/events"),
    ];
    let frameworks = frameworks.map(|(variable, option, found)| (std::env::var(variable).ok(), option, found));
    let mut options = vec!["--seconds", "2"];
    for (python, option, _) in &frameworks {
        options.extend(python.iter().flat_map(|python| [*option, python]));
    }
    let results = rehearse(bundle, &options)?;
    for (python, _, found) in &frameworks {
        let events = results.pointer(found).and_then(serde_json::Value::as_u64);
        // With a GPU here, they hold what they must by the program's own check.
        let here = results
            .pointer("/machine/no_gpu")
            .is_some_and(serde_json::Value::is_string);
        if here && python.is_some() && events.is_none_or(|count| count == 0) {
            bail!("the rehearsal found no events at {found} of its results");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../docs/gpu-results.md");

    #[test]
    fn the_page_says_where_the_results_of_each_stage_are() {
        for stage in Stage::value_variants() {
            let folder = stage.results();
            assert!(PAGE.contains(&format!("`{folder}/")), "{folder}");
        }
    }
}
