//! One result: a launch that was profiled, or a range of launches.

use super::super::Failure;
use super::super::table::Profiles;
use super::super::unit::unit_of;
use super::metric::Metric;
use super::{Tables, nvtx, rules, section};
use crate::wire::{Damage, Message, Value};
use flopwatch_model::{KernelProfile, MetricValue, ValueList, index, whole};

/// What was profiled, and where its message has what both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A launch of a kernel.
    Launch,
    /// Launches between two marks, replayed together.
    Range,
}

impl Kind {
    const fn metrics(self) -> u64 {
        match self {
            Self::Launch => 13,
            Self::Range => 4,
        }
    }

    const fn rules(self) -> Option<u64> {
        match self {
            Self::Launch => Some(19),
            Self::Range => None,
        }
    }

    const fn sections(self) -> u64 {
        match self {
            Self::Launch => 17,
            Self::Range => 7,
        }
    }

    const fn ranges(self) -> u64 {
        match self {
            Self::Launch => 21,
            Self::Range => 10,
        }
    }

    const fn context(self) -> u64 {
        match self {
            Self::Launch => 22,
            Self::Range => 11,
        }
    }
}

/// The metric that says which device ran it.
const DEVICE: &[u8] = b"launch__device_id";

/// The metric whose instance is where its first instruction was.
const ENTRY: &[u8] = b"launch__function_pcs";

/// What a range is called, which has no name of its own.
const RANGE: &str = "range";

/// Adds the result `message` to `profiles`; `tables` hold what it refers to.
pub(super) fn read<'a>(
    message: Message<'a>,
    kind: Kind,
    process: u32,
    tables: &mut Tables<'a>,
    profiles: &mut Profiles<'_>,
) -> Result<(), Failure> {
    let Tables { strings, sources } = tables;
    let mut profile = KernelProfile {
        process,
        ..KernelProfile::default()
    };
    let mut names: [&'a [u8]; 3] = [b""; 3];
    let (mut metrics, mut thread, mut source) = (Vec::new(), None, None);
    for field in message.fields() {
        let (number, value) = field?;
        if number == kind.metrics() {
            let metric = Metric::read(value)?;
            if metric.is_named(strings, DEVICE)
                && let Some(MetricValue::Integer(device)) = metric.value
            {
                profile.device = u32::try_from(device).unwrap_or(u32::MAX);
            }
            metrics.push(metric);
            continue;
        }
        if number == kind.context() {
            profile.context = value.number().unwrap_or(0);
        }
        if Some(number) == kind.rules() {
            rules::read(value, &mut profile.rules)?;
        } else if number == kind.ranges() {
            nvtx::read(value, &mut profile.ranges)?;
        } else if number == kind.sections() {
            let name = section::read(value, &mut profile.rooflines)?;
            profile.sections.push(name);
        }
        if number == 1 {
            thread = value.number().and_then(|id| u32::try_from(id).ok());
        }
        if kind == Kind::Range {
            continue;
        }
        match number {
            5..=7 => {
                let name = usize::try_from(number - 5).ok().and_then(|at| names.get_mut(at));
                if let Some(name) = name {
                    *name = value.bytes().unwrap_or_default();
                }
            }
            15 => source = identifier_of(value)?,
            10 => profile.grid = triple(value)?,
            11 => profile.block = triple(value)?,
            23 => profile.stream = value.number().unwrap_or(0),
            _ => {}
        }
    }
    // What other threads were about is not around this launch.
    profile
        .ranges
        .retain(|range| range.thread.is_none() || range.thread == thread);
    let [mangled, function, demangled] = names;
    if let Some(id) = source {
        let entry = metrics.iter().find(|metric| metric.is_named(strings, ENTRY));
        let entry = entry.map(Metric::instances).transpose()?;
        let entry = entry.and_then(|found| match found.values {
            ValueList::Integers(list) => list.first().copied(),
            // Reports of 2022 have addresses as numbers; those of devices are below 2^53.
            ValueList::Numbers(list) => list.first().copied().map(whole),
            ValueList::Texts(_) => None,
        });
        profile.code = sources.code(id);
        profile.function = sources.function(id, mangled, entry, profiles)?;
    }
    let name = [demangled, function, mangled].into_iter().find(|name| !name.is_empty());
    let name = name.map_or(RANGE.into(), String::from_utf8_lossy);
    let id = profiles.add_launch(&name, profile)?;
    for metric in metrics {
        let Some(name) = strings.get(index(metric.name)) else {
            profiles.leave_out("metrics without a name", 1);
            continue;
        };
        let name = String::from_utf8_lossy(name);
        if metric.parts() > 0 {
            profiles.instances(id, &name, metric.instances()?)?;
        }
        let Some(value) = metric.value else {
            profiles.leave_out("metrics without a value", 1);
            continue;
        };
        profiles.value(id, &name, value, &unit_of(&name))?;
    }
    Ok(())
}

/// The id of the code that a launch ran.
fn identifier_of(value: Value<'_>) -> Result<Option<u64>, Damage> {
    let mut found = None;
    for field in value.message().into_iter().flat_map(Message::fields) {
        if let (1, value) = field? {
            found = value.number();
        }
    }
    Ok(found)
}

/// X, Y and Z.
fn triple(value: Value<'_>) -> Result<[u32; 3], Damage> {
    let mut sizes = [0; 3];
    for field in value.message().into_iter().flat_map(Message::fields) {
        let (number, value) = field?;
        let size = usize::try_from(number)
            .ok()
            .and_then(|axis| sizes.get_mut(axis.checked_sub(1)?));
        if let (Some(size), Some(number)) = (size, value.number()) {
            *size = u32::try_from(number).unwrap_or(u32::MAX);
        }
    }
    Ok(sizes)
}
