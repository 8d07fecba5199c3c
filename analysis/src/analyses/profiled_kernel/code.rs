//! Figures of instructions: by opcode, and by address.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Instances, KernelCode, KernelProfile, ValueList};

/// Most bytes of a text of code in the result.
const MOST_CODE: usize = 1 << 20;

/// Code that the launch ran, as far as the report has it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeText {
    /// Source text; empty where the report holds none.
    pub source: String,
    /// PTX of all kernels of the module; empty where the compiler left none.
    pub ptx: String,
    /// Bytes of source and PTX that were left out behind the first of each.
    pub left_out_bytes: u64,
    /// Bytes of machine code, of all kernels of the module.
    pub machine_code_bytes: u64,
}

impl CodeText {
    pub(super) fn of(code: &KernelCode) -> Self {
        let mut left_out_bytes = 0;
        let mut cut = |text: &str| {
            let end = text.floor_char_boundary(MOST_CODE);
            left_out_bytes += u64::try_from(text.len() - end).unwrap_or(u64::MAX);
            text.get(..end).unwrap_or_default().to_owned()
        };
        let (source, ptx) = (cut(&code.source), cut(&code.ptx));
        Self {
            source,
            ptx,
            left_out_bytes,
            machine_code_bytes: code.machine_code_bytes,
        }
    }
}

/// Instructions by opcode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct InstructionMix {
    /// Opcodes, the most executed first.
    pub opcodes: Vec<Opcode>,
}

/// An opcode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Opcode {
    /// Its name, e.g. `FFMA`.
    pub name: String,
    /// Times that a warp executed it.
    pub executed: u64,
}

/// An instruction at an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Instruction {
    /// Bytes behind the kernel's first instruction that has figures. An instruction is 16 bytes long.
    pub offset_bytes: u64,
    /// Times that a warp executed it.
    pub executed: Option<u64>,
    /// Threads that executed it, in all.
    pub threads: Option<u64>,
    /// Samples of warps that were at it.
    pub samples: Option<u64>,
    /// The state that most of them were in.
    pub stall: Option<String>,
    /// Share of the launch's samples, 0 to 1.
    pub sample_ratio: Option<f64>,
}

impl InstructionMix {
    pub(super) fn of(profile: &KernelProfile) -> Self {
        let Some(Instances {
            keys: ValueList::Texts(names),
            values,
        }) = profile.instances.get("sass__inst_executed_per_opcode")
        else {
            return Self::default();
        };
        let opcodes = names.iter().enumerate().filter_map(|(at, name)| {
            Some(Opcode {
                name: name.clone(),
                executed: integer(values, at)?,
            })
        });
        let mut opcodes: Vec<Opcode> = opcodes.collect();
        opcodes.sort_by(|a, b| b.executed.cmp(&a.executed).then_with(|| a.name.cmp(&b.name)));
        Self { opcodes }
    }
}

fn integer(values: &ValueList, at: usize) -> Option<u64> {
    match values {
        ValueList::Integers(list) => list.get(at).copied(),
        ValueList::Numbers(list) => super::occupancy::whole(&(*list.get(at)?).into()),
        ValueList::Texts(_) => None,
    }
}

/// Values of a metric by address.
fn by_address(profile: &KernelProfile, metric: &str) -> BTreeMap<u64, u64> {
    let Some(Instances {
        keys: ValueList::Integers(addresses),
        values,
    }) = profile.instances.get(metric)
    else {
        return BTreeMap::new();
    };
    let places = addresses.iter().enumerate();
    places
        .filter_map(|(at, address)| Some((*address, integer(values, at)?)))
        .collect()
}

const EXECUTED: &str = "inst_executed";
const THREADS: &str = "thread_inst_executed";
const SAMPLES: &str = "smsp__pcsamp_sample_count";
const STALL: &str = "smsp__pcsamp_warps_issue_stalled_";

/// Instructions with most samples, in the order of addresses, and how many were left out.
pub(super) fn instructions(profile: &KernelProfile, limit: u32) -> (Vec<Instruction>, u64) {
    let (executed, threads) = (by_address(profile, EXECUTED), by_address(profile, THREADS));
    let samples = by_address(profile, SAMPLES);
    let mut stalls: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for metric in profile.instances.keys() {
        let Some(reason) = metric
            .strip_prefix(STALL)
            .filter(|reason| !reason.ends_with("_not_issued"))
        else {
            continue;
        };
        for (address, count) in by_address(profile, metric) {
            let most = stalls.entry(address).or_default();
            if count > most.0 {
                *most = (count, reason);
            }
        }
    }
    let mut addresses: Vec<u64> = executed.keys().chain(samples.keys()).copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    let first = addresses.first().copied().unwrap_or(0);
    let all: u64 = samples.values().sum();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let left_out = u64::try_from(addresses.len().saturating_sub(limit)).unwrap_or(u64::MAX);
    if left_out > 0 {
        addresses.sort_by_key(|address| (std::cmp::Reverse(samples.get(address).copied().unwrap_or(0)), *address));
        addresses.truncate(limit);
        addresses.sort_unstable();
    }
    let instruction = |address: u64| {
        let here = samples.get(&address).copied();
        let of = |number: u64| crate::model::approximate(number.into());
        Instruction {
            offset_bytes: address - first,
            executed: executed.get(&address).copied(),
            threads: threads.get(&address).copied(),
            samples: here,
            stall: stalls
                .get(&address)
                .filter(|(count, _)| *count > 0)
                .map(|(_, reason)| (*reason).to_owned()),
            sample_ratio: here.filter(|_| all > 0).map(|here| of(here) / of(all)),
        }
    };
    (addresses.into_iter().map(instruction).collect(), left_out)
}
