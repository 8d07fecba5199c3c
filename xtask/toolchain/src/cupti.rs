//! NVIDIA's libcupti, from PyPI in the cache folder (10 to 14 MB a release): the tracer's tests
//! load them behind a driver that is none, and a bundle takes them to a machine with a GPU.

use crate::cache::Cache;
use crate::wheel::{self, Requirements};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// The newest of each major version.
const REQUIREMENTS: Requirements = Requirements::Cupti;
/// Where the packages have their libraries.
const FOLDER: &str = "nvidia";
/// How the tests are told where they are.
const VARIABLE: &str = "FLOPWATCH_CUPTI_WHEELS";

/// A release of libcupti that is tried on a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// Such as `13.5`.
    pub name: &'static str,
    /// The library's file name.
    pub file: &'static str,
    requirements: Requirements,
    /// Where the package has the library.
    path: &'static str,
}

/// Where packages of CUDA 12 have the library.
const OF_12: (&str, &str) = ("libcupti.so.12", "nvidia/cuda_cupti/lib/libcupti.so.12");
/// Where packages of CUDA 13 have it.
const OF_13: (&str, &str) = ("libcupti.so.13", "nvidia/cu13/lib/libcupti.so.13");

const fn release(name: &'static str, requirements: Requirements, places: (&'static str, &'static str)) -> Release {
    Release {
        name,
        file: places.0,
        requirements,
        path: places.1,
    }
}

/// The releases that are tried on a GPU; 13.2 ends programs, and is none of them.
pub const RELEASES: [Release; 5] = [
    release("12.8", Requirements::CuptiFirst, OF_12),
    release("12.9", Requirements::Cupti, OF_12),
    release("13.0", Requirements::CuptiFirst, OF_13),
    release("13.3", Requirements::CuptiMiddle, OF_13),
    release("13.5", Requirements::Cupti, OF_13),
];

impl Release {
    /// The library as its package has it, fetched where it is not there.
    pub fn library(&self, cache: &Cache) -> Result<PathBuf> {
        let environment = self.requirements.environment(cache)?;
        let library = wheel::file(&environment, self.path);
        if !library.is_file() {
            bail!(
                "{} holds no {}; remove it and try again",
                environment.display(),
                self.path
            );
        }
        Ok(library)
    }
}

/// The folder that is there already.
fn find(cache: &Cache) -> Option<PathBuf> {
    let folder = wheel::file(&REQUIREMENTS.place(cache), FOLDER);
    folder.is_dir().then_some(folder)
}

/// Sees to it that the newest of each major version is there; gives the folder of their libraries
/// and headers.
pub fn ensure(cache: &Cache) -> Result<PathBuf> {
    let environment = REQUIREMENTS.environment(cache)?;
    let Some(folder) = find(cache) else {
        bail!("{} holds no libcupti; remove it and try again", environment.display());
    };
    Ok(folder)
}

/// How tests are told where it is, where it is there.
pub(crate) fn environment(cache: &Cache) -> Option<(String, String)> {
    Some((VARIABLE.to_owned(), find(cache)?.display().to_string()))
}
