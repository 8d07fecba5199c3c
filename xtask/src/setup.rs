//! What building and testing needs on a fresh Debian-like machine.

use crate::web;
use anyhow::{Result, bail};
use flopwatch_toolchain::cache::Cache;
use flopwatch_toolchain::progress::{say, step};
use flopwatch_toolchain::{cmake, cupti, debian, kernels, ncu, nsys, nvdisasm, python, torch};

/// Installs or fetches what is absent: for building and recording.
pub(crate) fn basic(cache: &Cache) -> Result<()> {
    packages(&[debian::BUILD])?;
    tools(cache)
}

/// What cargo needs of all that tests have, and Debian's packages for the rest.
pub(crate) fn before_cargo(cache: &Cache, for_cluster: bool) -> Result<()> {
    let cluster = if for_cluster { debian::CLUSTER } else { &[] };
    packages(&[debian::BUILD, debian::CRATE_TESTS, debian::BROWSER, cluster])?;
    // What is fetched comes over the network while the kernels are compiled.
    std::thread::scope(|scope| {
        let kernels = scope.spawn(|| step("GPU kernels", || kernels::build(cache).map(drop)));
        let fetched = tools(cache).and_then(|()| step("viewer", || web::build(cache)));
        kernels
            .join()
            .unwrap_or_else(|_| bail!("the step of the GPU kernels came to no end"))?;
        fetched
    })
}

/// What tests need beside that: a round fetches it while cargo compiles.
pub(crate) fn for_tests(cache: &Cache) -> Result<()> {
    // Python's packages take as long as all the rest: one is unpacked while the other comes.
    std::thread::scope(|scope| {
        let packages = scope.spawn(|| {
            step("Python", || {
                python::ensure(cache)?;
                python::package_tools(cache).map(drop)
            })?;
            step("PyTorch", || torch::ensure(cache))
        });
        let others = beside_python(cache);
        packages
            .join()
            .unwrap_or_else(|_| bail!("the step of Python came to no end"))?;
        others
    })
}

/// What tests need beside Python's packages and Debian's.
fn beside_python(cache: &Cache) -> Result<()> {
    step("newer Nsight Systems", || nsys::ensure_newer(cache))?;
    step("Nsight Compute", || ncu::ensure_any(cache))?;
    step("libcupti", || cupti::ensure(cache).map(drop))?;
    step("disassembler", || nvdisasm::ensure(cache))
}

/// All that any recipe needs.
pub(crate) fn all(cache: &Cache) -> Result<()> {
    before_cargo(cache, true)?;
    for_tests(cache)
}

fn packages(groups: &[&[&str]]) -> Result<()> {
    let packages: Vec<&str> = groups.iter().copied().flatten().copied().collect();
    step("Debian packages", || debian::install(&packages))
}

/// What is no package of Debian's, for building and recording.
fn tools(cache: &Cache) -> Result<()> {
    step("CMake", cmake::ensure)?;
    let nsys = step("Nsight Systems", || nsys::ensure(cache))?;
    say(format_args!("Nsight Systems: {}", nsys.target.display()));
    Ok(())
}
