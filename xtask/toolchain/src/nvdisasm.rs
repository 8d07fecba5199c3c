//! NVIDIA's disassembler, which the agent runs where a machine has one: the one on the machine, or
//! PyPI's in the cache folder (5 MB).

use crate::cache::Cache;
use crate::command::find_program;
use crate::wheel::{self, Requirements};
use anyhow::{Result, bail};
use std::path::PathBuf;

const REQUIREMENTS: Requirements = Requirements::Nvdisasm;
/// Where the package has it.
const PROGRAM: &str = "nvidia/cu13/bin/nvdisasm";
/// How the agent and the tests are told where it is.
const VARIABLE: &str = "FLOPWATCH_NVDISASM";

/// The program that is there already: that of `FLOPWATCH_NVDISASM`, PATH, the cache.
pub fn find(cache: &Cache) -> Option<PathBuf> {
    let told = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let fetched = || {
        let program = wheel::file(&REQUIREMENTS.place(cache), PROGRAM);
        program.is_file().then_some(program)
    };
    told.map(PathBuf::from)
        .or_else(|| find_program("nvdisasm"))
        .or_else(fetched)
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<()> {
    if find(cache).is_some() {
        return Ok(());
    }
    let environment = REQUIREMENTS.environment(cache)?;
    if find(cache).is_none() {
        bail!("{} holds no nvdisasm; remove it and try again", environment.display());
    }
    Ok(())
}

/// How tests are told where it is, where it is there.
pub(crate) fn environment(cache: &Cache) -> Option<(String, String)> {
    let found = find(cache)?;
    Some((VARIABLE.to_owned(), found.display().to_string()))
}
