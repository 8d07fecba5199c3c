//! A profile that a program wrote, read as a dashboard. The file is not trusted: its size, entries,
//! names and numbers are bounded.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use flopwatch_model::{Figures, approximate};
use flopwatch_report::page::Page;
use flopwatch_report::{Format, Layout};
use flopwatch_summary::Statistics;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::super::{
    Operation, OperationCall, OperationKind, OperationMemory, Operations, OperationsAnalysis, bottleneck, dashboard,
};
use super::BYTES_PER_MB;
use crate::definition::AnalysisError;
use crate::outcome::{AnalysisOutcome, write_as};

/// Largest file in bytes.
pub const LONGEST_FILE: usize = 256 << 20;
/// Most entries, and most operations of a summary.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Longest name in bytes; longer ones are cut.
const LONGEST_NAME: usize = 1024;
/// Longest time in ms: 31 years.
const LONGEST_MS: f64 = 1e12;
/// Most memory in MB: an exabyte.
const MAX_MEMORY_MB: f64 = 1e12;
/// Operations and calls on the page.
const MAX_ROWS: usize = 1000;
/// Bottlenecks on the page.
const MAX_BOTTLENECKS: usize = 5;
/// Points of the memory over time.
const POINTS: usize = 400;

/// Why a file is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file is larger than [`LONGEST_FILE`].
    #[error("the profile has {0} bytes; at most {LONGEST_FILE} are read: export fewer entries")]
    Large(usize),
    /// The file is no JSON of a profile.
    #[error("this is no profile of operations: {0}")]
    Json(#[from] serde_json::Error),
    /// The profile holds neither entries nor a summary.
    #[error("the profile holds no entries and no summary")]
    Empty,
    /// The dashboard cannot be written.
    #[error(transparent)]
    Write(#[from] AnalysisError),
    /// A number is none, below 0 or beyond all measure.
    #[error("{field} of an entry of {operation:?} is {value}, which is no possible value")]
    Number {
        /// Name of the field.
        field: &'static str,
        /// Name of the operation.
        operation: String,
        /// Number that the field holds.
        value: f64,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    operation: String,
    start_time: f64,
    duration_ms: Option<f64>,
    end_time: Option<f64>,
    gpu_time_ms: Option<f64>,
    cpu_time_ms: Option<f64>,
    transfer_time_ms: Option<f64>,
    overhead_ms: Option<f64>,
    memory_allocated_mb: Option<f64>,
    memory_peak_mb: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    operation: String,
    call_count: u64,
    total_time_ms: f64,
    avg_time_ms: f64,
    min_time_ms: f64,
    max_time_ms: f64,
    std_dev_ms: f64,
    total_gpu_time_ms: Option<f64>,
    total_cpu_time_ms: Option<f64>,
}

/// What a file holds: an object with `entries`, `summary` or both, or a list of entries.
#[derive(Debug, Default)]
struct Profile {
    entries: Vec<Entry>,
    summary: Vec<Summary>,
}

/// A list with a bound on its length.
struct BoundedList<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = BoundedList<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list, or an object by operation")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BoundedList<T>, A::Error> {
                let mut found = Vec::new();
                while let Some(one) = list.next_element()? {
                    push(&mut found, one)?;
                }
                Ok(BoundedList(found))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BoundedList<T>, A::Error> {
                let mut found = Vec::new();
                while let Some((_, one)) = map.next_entry::<serde::de::IgnoredAny, T>()? {
                    push(&mut found, one)?;
                }
                Ok(BoundedList(found))
            }
        }
        deserializer.deserialize_any(List(std::marker::PhantomData))
    }
}

fn push<T, E: serde::de::Error>(found: &mut Vec<T>, one: T) -> Result<(), E> {
    if found.len() >= MAX_ENTRIES {
        return Err(E::custom(format_args!("it has more than {MAX_ENTRIES} entries")));
    }
    found.push(one);
    Ok(())
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = Profile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with entries or a summary, or a list of entries")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Profile, A::Error> {
                let mut profile = Profile::default();
                while let Some(entry) = list.next_element()? {
                    push(&mut profile.entries, entry)?;
                }
                Ok(profile)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Profile, A::Error> {
                let mut profile = Profile::default();
                let mut known = false;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "entries" => profile.entries = map.next_value::<BoundedList<Entry>>()?.0,
                        "summary" => profile.summary = map.next_value::<BoundedList<Summary>>()?.0,
                        _ => {
                            map.next_value::<serde::de::IgnoredAny>()?;
                            continue;
                        }
                    }
                    known = true;
                }
                if known {
                    Ok(profile)
                } else {
                    Err(A::Error::custom("it has neither entries nor a summary"))
                }
            }
        }
        deserializer.deserialize_any(Whole)
    }
}

/// Whether a file that begins with `start` is likely a profile and no trace: of the keys that it
/// names, one is a profile's own.
pub fn is_profile(start: &[u8]) -> bool {
    let holds = |text: &[u8]| start.windows(text.len()).any(|part| part == text);
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    let own = holds(b"\"duration_ms\"") || holds(b"\"call_count\"") || holds(b"\"avg_time_ms\"");
    matches!(first, Some(b'{' | b'[')) && own && holds(b"\"operation\"") && !holds(b"\"traceEvents\"")
}

/// The dashboard of a profile that a program wrote: JSON with `entries`, `summary` or both.
pub fn read(json: &[u8]) -> Result<Page, ProfileError> {
    Ok(dashboard::page(&operations(json)?))
}

/// Writes the dashboard of a profile in a format: as `operations` writes that of a capture. A text
/// is for what it is written on.
pub fn write(json: &[u8], format: Format, layout: Layout, out: &mut dyn Write) -> Result<(), ProfileError> {
    let operations = operations(json)?;
    let parameters = serde_json::Value::Object(serde_json::Map::new());
    let made = AnalysisOutcome::<OperationsAnalysis>(operations);
    Ok(write_as(&made, &parameters, Vec::new(), format, layout, out)?)
}

/// The operations of the profile.
pub(super) fn operations(json: &[u8]) -> Result<Operations, ProfileError> {
    if json.len() > LONGEST_FILE {
        return Err(ProfileError::Large(json.len()));
    }
    let mut profile: Profile = serde_json::from_slice(json)?;
    if profile.entries.is_empty() && profile.summary.is_empty() {
        return Err(ProfileError::Empty);
    }
    for entry in &mut profile.entries {
        cut(&mut entry.operation);
    }
    let of_entries = from_entries(&profile.entries)?;
    let mut operations = if profile.summary.is_empty() {
        of_entries
    } else {
        from_summary(&profile.summary, of_entries)?
    };
    let own = operations.iter().map(|operation| operation.self_ns);
    let self_ns = own.fold(0, u64::saturating_add);
    for operation in &mut operations {
        if self_ns > 0 {
            operation.self_ratio = approximate(operation.self_ns.into()) / approximate(self_ns.into());
        }
    }
    operations.sort_by(|a, b| b.self_ns.cmp(&a.self_ns).then_with(|| a.operation.cmp(&b.operation)));
    let calls = operations.iter().map(|operation| operation.calls);
    let calls = calls.fold(0, u64::saturating_add);
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let distinct = count(operations.len());
    let bottlenecks = bottleneck::bottlenecks(&operations, MAX_BOTTLENECKS);
    operations.truncate(MAX_ROWS);
    Ok(Operations {
        kind: OperationKind::Profile,
        kinds: Vec::new(),
        calls,
        distinct,
        self_ns,
        total_ns: self_ns,
        avg_ns: (calls > 0).then(|| approximate(self_ns.into()) / approximate(calls.into())),
        gpu_work: None,
        not_captured: Vec::new(),
        bottlenecks,
        operations_left_out: distinct - count(operations.len()),
        operations,
        first_calls: first_calls(&profile.entries)?,
        memory: memory(&profile.entries)?,
    })
}

fn cut(name: &mut String) {
    let mut end = LONGEST_NAME.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
}

/// `value` times `size` as a whole number, where it is possible.
fn whole(field: &'static str, operation: &str, value: f64, size: f64, max: f64) -> Result<u64, ProfileError> {
    if !(0.0..=max).contains(&value) {
        return Err(ProfileError::Number {
            field,
            operation: operation.to_owned(),
            value,
        });
    }
    // Seconds of a Duration are the way from a float to an integer that cannot go wrong.
    let seconds = std::time::Duration::try_from_secs_f64(value * size / 1e9).unwrap_or_default();
    Ok(u64::try_from(seconds.as_nanos()).unwrap_or(u64::MAX))
}

fn ns(field: &'static str, operation: &str, ms: f64) -> Result<u64, ProfileError> {
    whole(field, operation, ms, 1e6, LONGEST_MS)
}

fn maybe_ns(field: &'static str, operation: &str, ms: Option<f64>) -> Result<Option<u64>, ProfileError> {
    ms.map(|ms| ns(field, operation, ms)).transpose()
}

fn maybe_bytes(field: &'static str, operation: &str, megabytes: Option<f64>) -> Result<Option<u64>, ProfileError> {
    let bytes = megabytes.map(|megabytes| whole(field, operation, megabytes, BYTES_PER_MB, MAX_MEMORY_MB));
    bytes.transpose()
}

impl Entry {
    fn length_ns(&self) -> Result<u64, ProfileError> {
        let between = || self.end_time.map(|end| (end - self.start_time) * 1e3);
        let length = self.duration_ms.or_else(between).unwrap_or(0.0);
        ns("duration_ms", &self.operation, length)
    }
}

/// The parts of an entry in the order of the fields of [`Operation`].
type EntryParts = [Option<u64>; 4];

fn parts(entry: &Entry) -> Result<EntryParts, ProfileError> {
    let of = |field, value| maybe_ns(field, &entry.operation, value);
    Ok([
        of("gpu_time_ms", entry.gpu_time_ms)?,
        of("transfer_time_ms", entry.transfer_time_ms)?,
        of("cpu_time_ms", entry.cpu_time_ms)?,
        of("overhead_ms", entry.overhead_ms)?,
    ])
}

/// The operations of entries.
fn from_entries(entries: &[Entry]) -> Result<Vec<Operation>, ProfileError> {
    let mut found: BTreeMap<&str, (Operation, Vec<u64>)> = BTreeMap::new();
    for entry in entries {
        let (operation, lengths) = found.entry(&entry.operation).or_default();
        lengths.push(entry.length_ns()?);
        let [gpu, transfer, cpu, overhead] = parts(entry)?;
        let sums = [
            (&mut operation.gpu_ns, gpu),
            (&mut operation.self_gpu_ns, gpu),
            (&mut operation.transfer_ns, transfer),
            (&mut operation.cpu_ns, cpu),
            (&mut operation.overhead_ns, overhead),
            (
                &mut operation.allocated_bytes,
                maybe_bytes("memory_allocated_mb", &entry.operation, entry.memory_allocated_mb)?,
            ),
        ];
        for (sum, part) in sums {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0).saturating_add(part));
            }
        }
        let peak = maybe_bytes("memory_peak_mb", &entry.operation, entry.memory_peak_mb)?;
        operation.peak_bytes = operation.peak_bytes.max(peak);
    }
    let operation = |(name, (operation, mut lengths)): (&str, (Operation, Vec<u64>))| {
        let statistics = Statistics::from_figures(&Figures::of(&mut lengths))?;
        Some(Operation {
            operation: name.to_owned(),
            calls: statistics.calls,
            total_ns: statistics.total,
            self_ns: statistics.total,
            avg_ns: statistics.avg,
            median_ns: Some(statistics.median),
            min_ns: statistics.min,
            max_ns: statistics.max,
            std_dev_ns: statistics.stddev,
            ..operation
        })
    };
    Ok(found.into_iter().filter_map(operation).collect())
}

/// The operations of a summary, which is of all calls, with what only entries say.
fn from_summary(summary: &[Summary], of_entries: Vec<Operation>) -> Result<Vec<Operation>, ProfileError> {
    let mut of_entries: BTreeMap<String, Operation> = of_entries
        .into_iter()
        .map(|operation| (operation.operation.clone(), operation))
        .collect();
    let operation = |of: &Summary| {
        let mut name = of.operation.clone();
        cut(&mut name);
        let known = of_entries.remove(&name).unwrap_or_default();
        let total_ns = ns("total_time_ms", &name, of.total_time_ms)?;
        // Parts of some calls are no parts of all.
        let whole = known.calls == of.call_count;
        Ok(Operation {
            calls: of.call_count,
            total_ns,
            self_ns: total_ns,
            avg_ns: approximate(ns("avg_time_ms", &name, of.avg_time_ms)?.into()),
            median_ns: known.median_ns.filter(|_| whole),
            min_ns: ns("min_time_ms", &name, of.min_time_ms)?,
            max_ns: ns("max_time_ms", &name, of.max_time_ms)?,
            std_dev_ns: approximate(ns("std_dev_ms", &name, of.std_dev_ms)?.into()),
            gpu_ns: maybe_ns("total_gpu_time_ms", &name, of.total_gpu_time_ms)?,
            self_gpu_ns: maybe_ns("total_gpu_time_ms", &name, of.total_gpu_time_ms)?,
            cpu_ns: maybe_ns("total_cpu_time_ms", &name, of.total_cpu_time_ms)?,
            transfer_ns: known.transfer_ns.filter(|_| whole),
            overhead_ns: known.overhead_ns.filter(|_| whole),
            allocated_bytes: known.allocated_bytes.filter(|_| whole),
            peak_bytes: known.peak_bytes.filter(|_| whole),
            operation: name,
            ..Operation::default()
        })
    };
    summary.iter().map(operation).collect()
}

/// Entries by start, with their starts in ns since the first.
fn since_first(entries: &[Entry]) -> Result<Vec<(u64, &Entry)>, ProfileError> {
    let first = entries
        .iter()
        .map(|entry| entry.start_time)
        .fold(f64::INFINITY, f64::min);
    let mut timed = Vec::with_capacity(entries.len());
    for entry in entries {
        let ms = (entry.start_time - first) * 1e3;
        timed.push((ns("start_time", &entry.operation, ms)?, entry));
    }
    timed.sort_by_key(|(start, _)| *start);
    Ok(timed)
}

fn first_calls(entries: &[Entry]) -> Result<Vec<OperationCall>, ProfileError> {
    let call = |(start_ns, entry): (u64, &Entry)| {
        let [gpu_ns, transfer_ns, cpu_ns, overhead_ns] = parts(entry)?;
        Ok(OperationCall {
            operation: entry.operation.clone(),
            name: entry.operation.clone(),
            start_ns,
            end_ns: start_ns.saturating_add(entry.length_ns()?),
            row: None,
            gpu_ns,
            transfer_ns,
            cpu_ns,
            overhead_ns,
        })
    };
    since_first(entries)?.into_iter().take(MAX_ROWS).map(call).collect()
}

fn memory(entries: &[Entry]) -> Result<Vec<OperationMemory>, ProfileError> {
    let mut points = Vec::new();
    for (t_ns, entry) in since_first(entries)? {
        let allocated = maybe_bytes("memory_allocated_mb", &entry.operation, entry.memory_allocated_mb)?;
        let peak = maybe_bytes("memory_peak_mb", &entry.operation, entry.memory_peak_mb)?;
        if allocated.is_some() || peak.is_some() {
            points.push(OperationMemory {
                t_ns,
                allocated_bytes: allocated.unwrap_or(0),
                peak_bytes: peak.or(allocated).unwrap_or(0),
            });
        }
    }
    let step = points.len().div_ceil(POINTS).max(1);
    let highest = |part: &[OperationMemory]| part.iter().copied().max_by_key(|point| point.peak_bytes);
    Ok(points.chunks(step).filter_map(highest).collect())
}
