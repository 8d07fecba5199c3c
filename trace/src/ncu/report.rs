//! Reads a report (`.ncu-rep`) as it lies on the disk, without Nsight Compute.
//!
//! The field numbers are those of the definitions that NVIDIA publishes with Nsight Compute 2022.3
//! (`extras/FileFormat/*.proto`). Reports of 2022.1 to 2025.2 have them; fields that are newer are
//! passed over.
//!
//! Kept of each launch and of each profiled range: its names and places, the value of every metric
//! and those of its instances (such as one per instruction), what NVIDIA's rules said, the
//! annotated ranges that were open, the names of sections, PTX and source text where a report has
//! them, and of machine code the launched function with its table of lines. Text of machine code
//! only NVIDIA's disassembler makes.

mod blocks;
mod launch;
mod lines;
mod metric;
mod module;
mod nvtx;
mod rules;
mod section;
mod source;

use super::table::Profiles;
use super::{Failure, ReadLimits};
use blocks::Block;
use launch::Kind;
use source::Sources;

/// What messages of launches refer to.
struct Tables<'a> {
    /// Names of metrics, by their ids.
    strings: Vec<&'a [u8]>,
    /// Code that launches ran.
    sources: Sources<'a>,
}

/// Adds the launches and ranges of the report `bytes` to `profiles`.
pub(super) fn read(bytes: &[u8], limits: &ReadLimits, profiles: &mut Profiles<'_>) -> Result<(), Failure> {
    let blocks = blocks::all(bytes, limits)?;
    // Ids of strings count through all blocks; a block's results may come before the strings of a
    // later one.
    let strings: Vec<&[u8]> = blocks.iter().flat_map(|block| &block.strings).copied().collect();
    let sources: Vec<_> = blocks.iter().flat_map(|block| &block.sources).copied().collect();
    let sources = Sources::read(&sources, profiles)?;
    let mut tables = Tables { strings, sources };
    let default_process = blocks.iter().find_map(|block| block.session_process);
    for block in &blocks {
        let Block { launches, ranges, .. } = block;
        let process = block.process.or(default_process).unwrap_or(0);
        for (messages, kind) in [(launches, Kind::Launch), (ranges, Kind::Range)] {
            for message in messages {
                launch::read(*message, kind, process, &mut tables, profiles)?;
            }
        }
    }
    Ok(())
}
