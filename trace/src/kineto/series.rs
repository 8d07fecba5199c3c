//! Sampled series of a trace: its counters, and memory in use.

use std::collections::BTreeMap;

use super::Failure;
use super::event::{Event, Id};
use super::gather::Gather;
use super::json::{Cursor, unescape};
use super::part::BIAS;
use crate::model::{Allocation, CounterSeries, LossReason};

/// Letters of a name in a file.
const LONGEST: usize = 128;

/// Samples by device and metric, times as the file has them.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<(String, String), Samples>);

#[derive(Debug, Default)]
struct Samples {
    unit: &'static str,
    at: Vec<i64>,
    value: Vec<f64>,
}

impl Series {
    /// The first time of all.
    pub(super) fn first(&self) -> Option<i64> {
        self.0.values().flat_map(|samples| samples.at.iter().copied()).min()
    }

    /// The series with times from `origin` on.
    pub(super) fn since(self, origin: i64) -> Vec<CounterSeries> {
        let series = self.0.into_iter().map(|((device, metric), samples)| {
            let mut pairs: Vec<(i64, f64)> = samples.at.into_iter().zip(samples.value).collect();
            pairs.sort_by_key(|(at, _)| *at);
            let t_ns = pairs
                .iter()
                .map(|(at, _)| u64::try_from(at.saturating_sub(origin)).unwrap_or(0));
            CounterSeries {
                source: "kineto".to_owned(),
                device,
                metric,
                unit: samples.unit.to_owned(),
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
            self.allocation(at, event);
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
                    self.push(&device, metric, "bytes", at, &total.to_string())?;
                }
            }
            return Ok(());
        }
        let device = match event.process {
            Id::Number(number) => format!("gpu{number}"),
            Id::Text(text) => self.file_name(text),
            Id::None => "unknown".to_owned(),
        };
        let counter = self.file_name(event.name);
        let mut cursor = Cursor::new(event.members, 0);
        let Ok(true) = cursor.enter(b'{', b'}') else {
            return Ok(());
        };
        while let Ok(key) = cursor.key() {
            let key = self.file_name(key);
            let metric = clipped(format!("{counter}.{key}"));
            if matches!(cursor.token(), Ok(b'{' | b'[')) {
                self.lose(LossReason::Skipped, "samples that are no numbers");
                if cursor.value().is_err() {
                    break;
                }
            } else if let Ok(value) = cursor.scalar() {
                let text = String::from_utf8_lossy(value.text);
                self.push(&device, &metric, "", at, &text)?;
            }
            if !matches!(cursor.follows(b'}'), Ok(false)) {
                break;
            }
        }
        Ok(())
    }

    /// Keeps what an allocator did; its time is as the file has it.
    fn allocation(&mut self, at: i64, event: &Event<'_>) {
        let arguments = &event.arguments;
        let Some(bytes) = arguments.change else { return };
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let small = |value: Option<i64>| unsigned(value).and_then(|value| u32::try_from(value).ok());
        let process = match event.process {
            Id::Number(number) => small(Some(number)),
            Id::None | Id::Text(_) => None,
        };
        let thread = match event.thread {
            Id::Number(number) => u64::try_from(number).ok(),
            Id::None | Id::Text(_) => None,
        };
        self.capture.allocations.push(Allocation {
            t_ns: at.cast_unsigned() ^ BIAS,
            process: process.unwrap_or(0),
            thread,
            correlation: 0,
            kind: None,
            device: small(arguments.device).filter(|_| arguments.device_type != Some(0)),
            address: unsigned(arguments.address).unwrap_or(0),
            bytes,
            allocated: unsigned(arguments.allocated),
            reserved: unsigned(arguments.reserved),
        });
    }

    fn push(&mut self, device: &str, metric: &str, unit: &'static str, at: i64, value: &str) -> Result<(), Failure> {
        let Some(value) = value.parse::<f64>().ok().filter(|value| value.is_finite()) else {
            self.lose(LossReason::Skipped, "samples that are no numbers");
            return Ok(());
        };
        let key = (device.to_owned(), metric.to_owned());
        if !self.series.0.contains_key(&key) {
            let limit = u64::from(self.limits.max_rows);
            if u64::try_from(self.series.0.len()).unwrap_or(u64::MAX) >= limit {
                return Err(Failure::TooMany {
                    what: "counters",
                    limit,
                });
            }
            self.take(device.len() + metric.len())?;
        }
        let samples = self.series.0.entry(key).or_default();
        samples.unit = unit;
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

fn clipped(mut name: String) -> String {
    name.truncate(LONGEST);
    name
}
