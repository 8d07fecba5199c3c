//! NVIDIA's libcupti of each major version of CUDA, from PyPI in the cache folder (40 MB): the
//! tracer's tests load them behind a driver that is none. The license lets nobody hand them on.

use crate::cache::Cache;
use crate::wheel::{self, Requirements};
use anyhow::{Result, bail};
use std::path::PathBuf;

const REQUIREMENTS: Requirements = Requirements::Cupti;
/// Where the packages have their libraries.
const FOLDER: &str = "nvidia";
/// How the tests are told where they are.
const VARIABLE: &str = "FLOPWATCH_CUPTI_WHEELS";

/// The folder that is there already.
fn find(cache: &Cache) -> Option<PathBuf> {
    let folder = wheel::file(&REQUIREMENTS.place(cache), FOLDER);
    folder.is_dir().then_some(folder)
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<()> {
    let environment = REQUIREMENTS.environment(cache)?;
    if find(cache).is_none() {
        bail!("{} holds no libcupti; remove it and try again", environment.display());
    }
    Ok(())
}

/// How tests are told where it is, where it is there.
pub(crate) fn environment(cache: &Cache) -> Option<(String, String)> {
    Some((VARIABLE.to_owned(), find(cache)?.display().to_string()))
}
