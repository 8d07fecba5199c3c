//! The sums of a profile's samples.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{SampleKind, StackFrame, StackProfile, StackSample, Timeline, index};
use flopwatch_report::NotCaptured;

use super::{MemoryProfileDevice, MemoryProfileFrame, MemoryProfileStack};

/// Folders of what is installed rather than somebody's own program.
const INSTALLED: [&str; 5] = ["site-packages", "dist-packages", "/lib/python", "<frozen", "jax/_src"];

/// Bytes and buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: i64,
    pub(super) buffers: Option<i64>,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.buffers = match (self.buffers, other.buffers) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Bytes of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OfFunction<'a> {
    pub(super) file: &'a str,
    pub(super) flat: i64,
    pub(super) cumulative: i64,
}

/// A frame by its texts.
pub(super) type Frame<'a> = (&'a str, &'a str, i64);

/// A stack, the innermost frame first, of a device and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackKey<'a> {
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) device: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
}

/// The sums of a profile's samples.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    /// The kind of values that was summed.
    pub(super) measured: String,
    pub(super) total: Sum,
    devices: BTreeMap<(Option<&'a str>, Option<&'a str>), Sum>,
    pub(super) functions: BTreeMap<&'a str, OfFunction<'a>>,
    pub(super) stacks: BTreeMap<StackKey<'a>, Sum>,
}

/// Which values are bytes, and which count buffers.
fn columns(profile: &StackProfile) -> Option<(usize, Option<usize>)> {
    let is_bytes = |kind: &SampleKind| kind.unit == "bytes";
    let kinds = &profile.kinds;
    let default = profile.default_kind.map(index);
    let named = |name: &str| kinds.iter().position(|kind| kind.name == name && is_bytes(kind));
    let bytes = default
        .filter(|at| kinds.get(*at).is_some_and(is_bytes))
        .or_else(|| named("space"))
        .or_else(|| named("inuse_space"))
        .or_else(|| kinds.iter().rposition(is_bytes))?;
    // `inuse_objects` belongs to `inuse_space`, `allocations` to `space`.
    let objects = kinds.get(bytes)?.name.replace("space", "objects");
    let counts = |wanted: &str| {
        kinds
            .iter()
            .position(|kind| kind.name == wanted && kind.unit == "count")
    };
    Some((bytes, counts(&objects).or_else(|| counts("allocations"))))
}

impl<'a> Tally<'a> {
    pub(super) fn of(timeline: &'a Timeline) -> Result<Self, NotCaptured> {
        let what = "memory by stack";
        let profile = timeline.capture.stacks.as_ref().ok_or_else(|| {
            NotCaptured::new(
                what,
                "the capture is no profile of memory; take one with jax.profiler.save_device_memory_profile",
            )
        })?;
        let (bytes, buffers) = columns(profile).ok_or_else(|| {
            let kinds: Vec<String> = profile
                .kinds
                .iter()
                .map(|kind| format!("{} in {}", kind.name, kind.unit))
                .collect();
            NotCaptured::new(
                what,
                format!(
                    "the profile holds {}, and no bytes; it is no profile of memory",
                    kinds.join(", ")
                ),
            )
        })?;
        let mut tally = Self {
            measured: profile
                .kinds
                .get(bytes)
                .map_or_else(String::new, |kind| kind.name.clone()),
            total: Sum::default(),
            devices: BTreeMap::new(),
            functions: BTreeMap::new(),
            stacks: BTreeMap::new(),
        };
        for sample in &profile.samples {
            let sum = Sum {
                bytes: sample.values.get(bytes).copied().unwrap_or(0),
                buffers: buffers.and_then(|at| sample.values.get(at).copied()),
            };
            tally.add(profile, sample, sum);
        }
        Ok(tally)
    }

    fn add(&mut self, profile: &'a StackProfile, sample: &'a StackSample, sum: Sum) {
        self.total.add(sum);
        let (device, kind) = (profile.label(sample, "device"), profile.label(sample, "kind"));
        self.devices.entry((device, kind)).or_default().add(sum);
        let texts = |frame: &StackFrame| (profile.text(frame.function), profile.text(frame.file), frame.line);
        let frames = sample
            .stack
            .iter()
            .filter_map(|frame| profile.frames.get(index(*frame)));
        let frames: Vec<Frame<'a>> = frames.map(texts).collect();
        let mut seen = BTreeSet::new();
        for (depth, (function, file, _)) in frames.iter().enumerate() {
            let of = self.functions.entry(function).or_insert(OfFunction {
                file,
                ..OfFunction::default()
            });
            if depth == 0 {
                of.flat = of.flat.saturating_add(sum.bytes);
            }
            if seen.insert(*function) {
                of.cumulative = of.cumulative.saturating_add(sum.bytes);
            }
        }
        let key = StackKey { frames, device, kind };
        self.stacks.entry(key).or_default().add(sum);
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = MemoryProfileDevice> {
        self.devices.iter().map(|((device, kind), sum)| MemoryProfileDevice {
            device: device.map(str::to_owned),
            kind: kind.map(str::to_owned),
            bytes: sum.bytes,
            buffers: sum.buffers,
        })
    }
}

impl StackKey<'_> {
    /// With its sum.
    pub(super) fn with(&self, sum: Sum) -> MemoryProfileStack {
        MemoryProfileStack {
            bytes: sum.bytes,
            buffers: sum.buffers,
            device: self.device.map(str::to_owned),
            kind: self.kind.map(str::to_owned),
            own_frame: self.own_frame(),
            frames: self.frames.iter().map(frame).collect(),
        }
    }

    /// The innermost frame that is somebody's own.
    pub(super) fn own_frame(&self) -> Option<MemoryProfileFrame> {
        self.frames.iter().find(|frame| is_own(frame)).map(frame)
    }
}

fn is_own(frame: &Frame<'_>) -> bool {
    !frame.1.is_empty() && !INSTALLED.iter().any(|folder| frame.1.contains(folder))
}

pub(super) fn frame(frame: &Frame<'_>) -> MemoryProfileFrame {
    MemoryProfileFrame {
        function: frame.0.to_owned(),
        file: frame.1.to_owned(),
        line: frame.2,
    }
}
