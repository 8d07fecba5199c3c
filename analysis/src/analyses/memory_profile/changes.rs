//! What changed from one profile of memory to another.

use std::collections::BTreeMap;

use flopwatch_measures::largest::largest;
use flopwatch_model::{Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::Serialize;

use super::tally::{OfFunction, StackKey, Sum, Tally};
use super::{MemoryProfileFrame, MemoryProfileFunction, MemoryProfileParams, NEEDS, page};
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// The difference of two profiles of memory.
#[derive(Debug)]
pub struct MemoryProfileChanges;

/// The difference of two profiles of memory: after less before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryProfileChangesResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Which values of the profiles these are, e.g. `space`.
    pub measured: String,
    /// Bytes in all, before.
    pub before_bytes: i64,
    /// Bytes in all, after.
    pub after_bytes: i64,
    /// Their difference.
    pub change_bytes: i64,
    /// By device and kind, the largest change first.
    pub devices: Vec<MemoryProfileDeviceChange>,
    /// By function, the largest flat change first; those without a change, flat or cumulative, are
    /// not there.
    pub functions: Vec<MemoryProfileFunction>,
    /// Functions that were left out behind these.
    pub functions_left_out: u64,
    /// By stack, the largest change first; those without are not there.
    pub stacks: Vec<MemoryProfileStackChange>,
    /// Stacks that were left out behind these.
    pub stacks_left_out: u64,
}

/// The change of a device and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileDeviceChange {
    /// The device, as the profile calls it.
    pub device: Option<String>,
    /// What it is: `buffer`, `executable`.
    pub kind: Option<String>,
    /// Bytes before.
    pub before_bytes: i64,
    /// Bytes after.
    pub after_bytes: i64,
    /// Their difference.
    pub change_bytes: i64,
}

/// The change of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryProfileStackChange {
    /// Bytes before.
    pub before_bytes: i64,
    /// Bytes after.
    pub after_bytes: i64,
    /// Their difference.
    pub change_bytes: i64,
    /// Change of the number of buffers; null where neither profile counts them.
    pub change_buffers: Option<i64>,
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

impl Analysis for MemoryProfileChanges {
    const NAME: &'static str = "memory-profile-changes";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "The difference of two profiles of memory, before and after, by device, function and stack, as go tool pprof -base tells it.";
    const TITLE: &'static str = "Changes of memory";
    const GROUP: Group = Group::Memory;
    const INPUTS: InputCount = InputCount::Two;
    const NEEDS: Needs = NEEDS;
    type Params = MemoryProfileParams;
    type Output = MemoryProfileChangesResult;

    fn run(inputs: &Inputs<'_>, params: &MemoryProfileParams) -> Result<MemoryProfileChangesResult, AnalysisError> {
        Ok(MemoryProfileChangesResult::of(inputs.first(), inputs.second(), *params))
    }

    fn page(output: &MemoryProfileChangesResult) -> Result<Page, AnalysisError> {
        Ok(page::of_two(Self::TITLE, Self::ABOUT, output))
    }
}

/// Keys of either, with their values of both.
fn joined<'a, K, V>(
    before: impl Iterator<Item = (&'a K, &'a V)>,
    after: impl Iterator<Item = (&'a K, &'a V)>,
) -> BTreeMap<&'a K, (V, V)>
where
    K: Ord + 'a,
    V: Copy + Default + 'a,
{
    let mut both: BTreeMap<&K, (V, V)> = before.map(|(key, value)| (key, (*value, V::default()))).collect();
    for (key, value) in after {
        both.entry(key).or_default().1 = *value;
    }
    both
}

fn function(name: &str, (before, after): (OfFunction<'_>, OfFunction<'_>)) -> MemoryProfileFunction {
    let file = if after.file.is_empty() { before.file } else { after.file };
    MemoryProfileFunction {
        function: name.to_owned(),
        file: file.to_owned(),
        flat_bytes: after.flat.saturating_sub(before.flat),
        cumulative_bytes: after.cumulative.saturating_sub(before.cumulative),
    }
}

fn stack(key: &StackKey<'_>, (before, after): (Sum, Sum)) -> MemoryProfileStackChange {
    let is_counted = before.buffers.or(after.buffers).is_some();
    let buffers = after.buffers.unwrap_or(0).saturating_sub(before.buffers.unwrap_or(0));
    MemoryProfileStackChange {
        before_bytes: before.bytes,
        after_bytes: after.bytes,
        change_bytes: after.bytes.saturating_sub(before.bytes),
        change_buffers: is_counted.then_some(buffers),
        device: key.device.map(str::to_owned),
        kind: key.kind.map(str::to_owned),
        own_frame: key.own_frame(),
        frames: key.frames.iter().map(super::tally::frame).collect(),
    }
}

impl MemoryProfileChangesResult {
    /// From `before` to `after`.
    pub fn of(before: &Timeline, after: &Timeline, params: MemoryProfileParams) -> Self {
        let (before, after) = match (Tally::of(before), Tally::of(after)) {
            (Ok(before), Ok(after)) if before.measured == after.measured => (before, after),
            (Ok(before), Ok(after)) => {
                let reason = format!("one profile holds {}, the other {}", before.measured, after.measured);
                return Self::none(NotCaptured::new("a difference", reason));
            }
            (Err(missing), _) | (_, Err(missing)) => return Self::none(missing),
        };
        let limit = index(params.limit);
        let left_out = |all: usize| u64::try_from(all.saturating_sub(limit)).unwrap_or(u64::MAX);
        let functions = joined(before.functions.iter(), after.functions.iter());
        let functions = functions.into_iter().map(|(name, both)| function(name, both));
        let functions = functions.filter(|of| of.flat_bytes != 0 || of.cumulative_bytes != 0);
        let functions: Vec<MemoryProfileFunction> = functions.collect();
        let stacks = joined(before.stacks.iter(), after.stacks.iter());
        let stacks = stacks.into_iter().filter(|(_, (before, after))| before != after);
        let stacks: Vec<_> = stacks.collect();
        let (all_functions, all_stacks) = (functions.len(), stacks.len());
        let by_function = largest(functions, limit, |of| {
            (of.flat_bytes.unsigned_abs(), of.cumulative_bytes.unsigned_abs())
        });
        let size = |(before, after): &(Sum, Sum)| after.bytes.saturating_sub(before.bytes).unsigned_abs();
        let by_stack = largest(stacks, limit, |(_, both)| size(both));
        Self {
            not_captured: Vec::new(),
            before_bytes: before.total.bytes,
            after_bytes: after.total.bytes,
            change_bytes: after.total.bytes.saturating_sub(before.total.bytes),
            devices: devices(&before, &after),
            functions: by_function,
            functions_left_out: left_out(all_functions),
            stacks: by_stack.into_iter().map(|(key, both)| stack(key, both)).collect(),
            stacks_left_out: left_out(all_stacks),
            measured: after.measured,
        }
    }

    fn none(missing: NotCaptured) -> Self {
        Self {
            not_captured: vec![missing],
            ..Self::default()
        }
    }
}

fn devices(before: &Tally<'_>, after: &Tally<'_>) -> Vec<MemoryProfileDeviceChange> {
    let of = |tally: &Tally<'_>| -> BTreeMap<(Option<String>, Option<String>), i64> {
        tally.devices().map(|one| ((one.device, one.kind), one.bytes)).collect()
    };
    let (before, after) = (of(before), of(after));
    let both = joined(before.iter(), after.iter());
    let mut changes: Vec<MemoryProfileDeviceChange> = both
        .into_iter()
        .map(|((device, kind), (before, after))| MemoryProfileDeviceChange {
            device: device.clone(),
            kind: kind.clone(),
            before_bytes: before,
            after_bytes: after,
            change_bytes: after.saturating_sub(before),
        })
        .collect();
    changes.sort_by_key(|one| std::cmp::Reverse(one.change_bytes.unsigned_abs()));
    changes
}
