//! What building and testing needs on a fresh Debian-like machine.

use crate::cache::Cache;
use crate::image::Image;
use crate::progress::{say, step};
use crate::{cmake, debian, nsys};
use anyhow::Result;

/// Installs or fetches what is absent.
pub(crate) fn run(cache: &Cache) -> Result<()> {
    let packages: Vec<&str> = [debian::BUILD, debian::NSYS_LIBRARIES, debian::CLUSTER, debian::TESTS]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    step("Debian packages", || debian::install(&packages))?;
    step("CMake", || cmake::ensure(cache))?;
    let nsys = step("Nsight Systems", || nsys::ensure(cache))?;
    say(format_args!("Nsight Systems: {}", nsys.target.display()));
    Ok(())
}

/// What compiling the programs of these images needs.
pub(crate) fn rust_needs(cache: &Cache, images: &[Image]) -> Result<()> {
    if images.contains(&Image::Agent) {
        cmake::ensure(cache)
    } else {
        Ok(())
    }
}
