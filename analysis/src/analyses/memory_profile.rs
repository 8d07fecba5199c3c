//! Profiles of memory in the format of pprof: what was given out when the profile was taken, by
//! device and kind, by function and by stack; and what changed from one profile to another.
//!
//! Functions are counted as `go tool pprof` counts them: what the innermost frame of a stack is of
//! is flat, what any frame is of is cumulative, and a function that a stack holds several times
//! counts once. The difference of two is what `go tool pprof -base BEFORE AFTER` tells.

mod changes;
mod page;
mod tally;

use flopwatch_measures::largest::largest;
use flopwatch_model::{Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use tally::Tally;

pub use changes::{MemoryProfileChanges, MemoryProfileChangesResult};

/// A profile of memory.
#[derive(Debug)]
pub struct MemoryProfile;

/// Parameters of `memory-profile` and `memory-profile-changes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryProfileParams {
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for MemoryProfileParams {
    fn default() -> Self {
        Self { limit: 50 }
    }
}

/// A profile of memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryProfileResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Which values of the profile these are: `space`; of Go's heap `inuse_space`.
    pub measured: String,
    /// Bytes in all.
    pub total_bytes: i64,
    /// Buffers in all; null where the profile does not count them.
    pub total_buffers: Option<i64>,
    /// By device and kind, the most bytes first.
    pub devices: Vec<MemoryProfileDevice>,
    /// By function, the most flat bytes first.
    pub functions: Vec<MemoryProfileFunction>,
    /// Functions that were left out behind these.
    pub functions_left_out: u64,
    /// By stack, the most bytes first.
    pub stacks: Vec<MemoryProfileStack>,
    /// Stacks that were left out behind these.
    pub stacks_left_out: u64,
}

/// Memory of a device and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileDevice {
    /// The device, as the profile calls it: `cuda:0`; null where it does not say, as of programs.
    pub device: Option<String>,
    /// What it is: `buffer`, or `executable` for a compiled program; null where the profile does
    /// not say.
    pub kind: Option<String>,
    /// Bytes.
    pub bytes: i64,
    /// Buffers; null where the profile does not count them.
    pub buffers: Option<i64>,
}

/// Memory of a function, or its change between two profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileFunction {
    /// Name of the function.
    pub function: String,
    /// The source file of one that is called so; empty where the profile does not say.
    pub file: String,
    /// Bytes of stacks whose innermost frame is of it.
    pub flat_bytes: i64,
    /// Bytes of stacks of which any frame is of it.
    pub cumulative_bytes: i64,
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileFrame {
    /// The function.
    pub function: String,
    /// Its source file; empty where the profile does not say.
    pub file: String,
    /// The line; 0 where the profile does not say.
    pub line: i64,
}

impl MemoryProfileFrame {
    /// For people: `loss (model.py:12)`, the file without its folders.
    fn shown(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        match (name.is_empty(), self.line) {
            (true, _) => self.function.clone(),
            (false, 0) => format!("{} ({name})", self.function),
            (false, line) => format!("{} ({name}:{line})", self.function),
        }
    }
}

/// Memory of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileStack {
    /// Bytes.
    pub bytes: i64,
    /// Buffers; null where the profile does not count them.
    pub buffers: Option<i64>,
    /// The device, as the profile calls it.
    pub device: Option<String>,
    /// What it is: `buffer`, `executable`.
    pub kind: Option<String>,
    /// The innermost frame that is of no installed package and not of Python's library; null where
    /// all are.
    pub own_frame: Option<MemoryProfileFrame>,
    /// Its frames, the innermost first.
    pub frames: Vec<MemoryProfileFrame>,
}

/// What memory profiles read.
const NEEDS: Needs = Needs::NOTHING.stacks();

impl Analysis for MemoryProfile {
    const NAME: &'static str = "memory-profile";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "A profile of memory in the format of pprof, e.g. of JAX's save_device_memory_profile: what was given out by device, function and stack.";
    const TITLE: &'static str = "Memory profile";
    const GROUP: Group = Group::Memory;
    const NEEDS: Needs = NEEDS;
    type Params = MemoryProfileParams;
    type Output = MemoryProfileResult;

    fn run(inputs: &Inputs<'_>, params: &MemoryProfileParams) -> Result<MemoryProfileResult, AnalysisError> {
        Ok(MemoryProfileResult::of(inputs.first(), *params))
    }

    fn page(output: &MemoryProfileResult) -> Result<Page, AnalysisError> {
        Ok(page::of_one(Self::TITLE, Self::ABOUT, output))
    }
}

impl MemoryProfileResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: MemoryProfileParams) -> Self {
        let tally = match Tally::of(timeline) {
            Ok(tally) => tally,
            Err(missing) => {
                return Self {
                    not_captured: vec![missing],
                    ..Self::default()
                };
            }
        };
        let limit = index(params.limit);
        let left_out = |all: usize| u64::try_from(all.saturating_sub(limit)).unwrap_or(u64::MAX);
        let (functions, stacks) = (tally.functions.len(), tally.stacks.len());
        let mut devices: Vec<MemoryProfileDevice> = tally.devices().collect();
        devices.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| (&a.device, &a.kind).cmp(&(&b.device, &b.kind)))
        });
        let by_function = largest(&tally.functions, limit, |(_, of)| (of.flat, of.cumulative));
        let by_function = by_function.into_iter().map(|(name, of)| MemoryProfileFunction {
            function: (*name).to_owned(),
            file: of.file.to_owned(),
            flat_bytes: of.flat,
            cumulative_bytes: of.cumulative,
        });
        let by_stack = largest(&tally.stacks, limit, |(_, of)| of.bytes);
        let by_stack = by_stack.into_iter().map(|(key, of)| key.with(*of));
        Self {
            not_captured: Vec::new(),
            measured: tally.measured.clone(),
            total_bytes: tally.total.bytes,
            total_buffers: tally.total.buffers,
            devices,
            functions: by_function.collect(),
            functions_left_out: left_out(functions),
            stacks: by_stack.collect(),
            stacks_left_out: left_out(stacks),
        }
    }
}

#[cfg(test)]
mod tests;
