//! Sampled series of a trace: its counters, and memory in use.

use std::collections::BTreeMap;

use super::Failure;
use super::event::{Event, Id};
use super::gather::Gather;
use super::json::{Cursor, unescape};
use super::part::TIME_BIAS;
use flopwatch_model::{Allocation, CounterSeries, LossReason};

/// Letters of a name in a file.
const MAX_NAME_CHARACTERS: usize = 128;

/// Source of what Kineto counts.
const SOURCE: &str = "kineto";

/// Samples by series, times as the file has them.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<Key, Samples>);

/// What tells a series from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: String,
    of: Of,
    metric: String,
}

/// What a series is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Device(String),
    /// The number that its events name as their process, which is a GPU's or a process's.
    Process(i64),
}

#[derive(Debug, Default)]
struct Samples {
    unit: String,
    at: Vec<i64>,
    value: Vec<f64>,
}

impl Series {
    /// The first time of all.
    pub(super) fn first(&self) -> Option<i64> {
        self.0.values().flat_map(|samples| samples.at.iter().copied()).min()
    }

    /// Keeps the samples whose times `holds` says; gives how many were left out.
    pub(super) fn retain(&mut self, holds: impl Fn(i64) -> bool) -> usize {
        let mut left_out = 0;
        for samples in self.0.values_mut() {
            let keep: Vec<bool> = samples.at.iter().map(|at| holds(*at)).collect();
            left_out += keep.iter().filter(|keep| !**keep).count();
            let mut kept = keep.iter();
            samples.at.retain(|_| kept.next() == Some(&true));
            let mut kept = keep.iter();
            samples.value.retain(|_| kept.next() == Some(&true));
        }
        self.0.retain(|_, samples| !samples.at.is_empty());
        left_out
    }

    /// The series with times from `origin` on. `is_gpu` says of the number of a process whether it
    /// is a GPU's.
    pub(super) fn since(self, origin: i64, is_gpu: impl Fn(i64) -> bool) -> Vec<CounterSeries> {
        let series = self.0.into_iter().map(|(Key { source, of, metric }, samples)| {
            let device = match of {
                Of::Device(device) => device,
                Of::Process(number) if is_gpu(number) => format!("gpu{number}"),
                Of::Process(number) => format!("process{number}"),
            };
            let mut pairs: Vec<(i64, f64)> = samples.at.into_iter().zip(samples.value).collect();
            pairs.sort_by_key(|(at, _)| *at);
            let t_ns = pairs
                .iter()
                .map(|(at, _)| u64::try_from(at.saturating_sub(origin)).unwrap_or(0));
            CounterSeries {
                source,
                device,
                metric,
                unit: samples.unit,
                t_ns: t_ns.collect(),
                value: pairs.iter().map(|(_, value)| *value).collect(),
            }
        });
        series.collect()
    }
}

impl Gather<'_> {
    /// Takes a sample: totals of the memory allocator, or the members of a counter event.
    pub(super) fn sample(&mut self, at: i64, event: &Event<'_>) -> Result<(), Failure> {
        if event.phase != b'C' {
            self.allocation(at, event)?;
            let device = match (event.arguments.device_type, event.arguments.device) {
                (Some(0), _) => "cpu".to_owned(),
                (_, Some(device)) if device >= 0 => format!("gpu{device}"),
                _ => "unknown".to_owned(),
            };
            let totals = [
                ("memory_allocated", event.arguments.allocated),
                ("memory_reserved", event.arguments.reserved),
            ];
            for (metric, total) in totals {
                if let Some(total) = total {
                    let key = Key {
                        source: SOURCE.to_owned(),
                        of: Of::Device(device.clone()),
                        metric: metric.to_owned(),
                    };
                    self.push(key, "bytes", at, &total.to_string())?;
                }
            }
            return Ok(());
        }
        let of = match event.process {
            Id::Number(number) => Of::Process(number),
            Id::Text(text) => Of::Device(self.file_name(text)),
            Id::None => Of::Device("unknown".to_owned()),
        };
        // A trace of ours names a series by its three names; each has no space in it.
        let own = self.writer_metadata.as_ref().and_then(|_| of_three(event.name));
        let counter = self.file_name(event.name);
        let mut cursor = Cursor::new(event.members, 0);
        let Ok(true) = cursor.enter(b'{', b'}') else {
            return Ok(());
        };
        while let Ok(key) = cursor.key() {
            let (series, unit) = if let Some(names) = own {
                let [source, device, metric] = names.map(|name| self.file_name(name));
                let unit = Some(self.publishable(&unescape(key))).filter(|unit| unit != "value");
                let of = Of::Device(device);
                (Key { source, of, metric }, unit.unwrap_or_default())
            } else {
                let metric = clipped(format!("{counter}.{}", self.file_name(key)));
                let (source, of) = (SOURCE.to_owned(), of.clone());
                (Key { source, of, metric }, String::new())
            };
            if matches!(cursor.token(), Ok(b'{' | b'[')) {
                self.count_loss(LossReason::Skipped, "samples that are no numbers");
                if cursor.value().is_err() {
                    break;
                }
            } else if let Ok(value) = cursor.scalar() {
                let text = String::from_utf8_lossy(value.text);
                self.push(series, &unit, at, &text)?;
            }
            if !matches!(cursor.follows(b'}'), Ok(false)) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps what an allocator did; its time is as the file has it, its process is the number of
    /// [`Gather::allocating`].
    fn allocation(&mut self, at: i64, event: &Event<'_>) -> Result<(), Failure> {
        let arguments = &event.arguments;
        let Some(bytes) = arguments.change else {
            return Ok(());
        };
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let small = |value: Option<i64>| unsigned(value).and_then(|value| u32::try_from(value).ok());
        let (process, is_new) = self.allocating.take(event.process.into());
        if is_new && let Id::Text(text) = event.process {
            self.take(text.len())?;
        }
        let thread = match event.thread {
            Id::Number(number) => u64::try_from(number).ok(),
            Id::None | Id::Text(_) => None,
        };
        self.capture.allocations.push(Allocation {
            t_ns: at.cast_unsigned() ^ TIME_BIAS,
            process,
            thread,
            correlation: 0,
            kind: None,
            device: small(arguments.device).filter(|_| arguments.device_type != Some(0)),
            address: unsigned(arguments.address).unwrap_or(0),
            bytes,
            allocated: unsigned(arguments.allocated),
            reserved: unsigned(arguments.reserved),
        });
        Ok(())
    }

    fn push(&mut self, key: Key, unit: &str, at: i64, value: &str) -> Result<(), Failure> {
        let Some(value) = value.parse::<f64>().ok().filter(|value| value.is_finite()) else {
            self.count_loss(LossReason::Skipped, "samples that are no numbers");
            return Ok(());
        };
        if !self.series.0.contains_key(&key) {
            let limit = u64::from(self.limits.max_rows);
            if u64::try_from(self.series.0.len()).unwrap_or(u64::MAX) >= limit {
                return Err(Failure::TooMany {
                    what: "counters",
                    limit,
                });
            }
            let device = match &key.of {
                Of::Device(device) => device.len(),
                Of::Process(_) => 0,
            };
            self.take(key.source.len() + device + key.metric.len() + unit.len())?;
        }
        let samples = self.series.0.entry(key).or_default();
        if samples.at.is_empty() {
            unit.clone_into(&mut samples.unit);
        }
        samples.at.push(at);
        samples.value.push(value);
        Ok(())
    }

    /// A text of the trace as a name in a file.
    fn file_name(&mut self, raw: &[u8]) -> String {
        let text = self.publishable(&unescape(raw));
        let letters = text.chars().map(|letter| {
            let fits = letter.is_ascii_alphanumeric() || "._:-".contains(letter);
            if fits { letter } else { '_' }
        });
        let name = clipped(letters.collect());
        if name.bytes().all(|byte| byte == b'.') {
            "unnamed".to_owned()
        } else {
            name
        }
    }
}

/// The source, the device and the metric that the name of a series of ours holds.
fn of_three(name: &[u8]) -> Option<[&[u8]; 3]> {
    let mut parts = name.split(|byte| *byte == b' ');
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

fn clipped(mut name: String) -> String {
    name.truncate(MAX_NAME_CHARACTERS);
    name
}
