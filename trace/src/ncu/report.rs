//! Reads a report (`.ncu-rep`) as it lies on the disk, without Nsight Compute.
//!
//! The field numbers are those of the definitions that NVIDIA publishes with Nsight Compute 2022.3 (`extras/FileFormat/*.proto`). Reports of
//! 2022.1 to 2025.2 have them; fields that are newer are passed over.
//!
//! Kept of each launch and of each profiled range: its names and places, the value of every metric and those of its instances (such as one per
//! instruction), what NVIDIA's rules said, the annotated ranges that were open, and the names of sections. Code is counted as not read.

mod blocks;
mod launch;
mod metric;
mod nvtx;
mod rules;

use super::table::Profiles;
use super::{Failure, ReadLimits};
use blocks::Block;
use launch::Kind;

/// Adds the launches and ranges of the report `bytes` to `profiles`.
pub(super) fn read(bytes: &[u8], limits: &ReadLimits, profiles: &mut Profiles<'_>) -> Result<(), Failure> {
    let blocks = blocks::all(bytes, limits)?;
    // Ids of strings count through all blocks; a block's results may come before the strings of a later one.
    let strings: Vec<&[u8]> = blocks.iter().flat_map(|block| &block.strings).copied().collect();
    let sources = blocks.iter().map(|block| u64::from(block.sources)).sum();
    profiles.leave_out("code of kernels", sources);
    let default_process = blocks.iter().find_map(|block| block.session_process);
    for block in &blocks {
        let Block { launches, ranges, .. } = block;
        let process = block.process.or(default_process).unwrap_or(0);
        for (messages, kind) in [(launches, Kind::Launch), (ranges, Kind::Range)] {
            for message in messages {
                launch::read(*message, kind, process, &strings, profiles)?;
            }
        }
    }
    Ok(())
}
