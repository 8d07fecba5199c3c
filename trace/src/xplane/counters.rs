//! Samples of counters, which a plane has in its line `_counters_`; they become series of the
//! capture.

use std::collections::BTreeMap;

use super::Failure;
use super::fill::{Fill, Owner, too_many};
use super::memory;
use super::plane::{Plane, Stat};
use crate::wire::Message;
use flopwatch_model::{CounterSeries, LossReason};

/// Maximum number of characters of a metric's name in a timeline file; longer names are cut.
const MAX_NAME_CHARACTERS: usize = 128;

/// Samples as (time, value) by device and metric. Times carry the bias of events' times.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<(String, String), Vec<(u64, f64)>>);

impl Series {
    /// The earliest time of all samples, biased; `None` where there are none.
    pub(super) fn first(&self) -> Option<u64> {
        self.0.values().flatten().map(|(at, _)| *at).min()
    }

    /// Keeps the samples for whose time `holds` returns `true`. Returns how many were removed.
    pub(super) fn retain(&mut self, holds: impl Fn(u64) -> bool) -> usize {
        let size = |of: &BTreeMap<(String, String), Vec<(u64, f64)>>| of.values().map(Vec::len).sum::<usize>();
        let before = size(&self.0);
        self.0.retain(|_, samples| {
            samples.retain(|(at, _)| holds(*at));
            !samples.is_empty()
        });
        before - size(&self.0)
    }

    /// The series of the capture, with times in ns relative to `origin`, a biased time.
    pub(super) fn since(self, origin: u64) -> Vec<CounterSeries> {
        let series = self.0.into_iter().map(|((device, metric), mut samples)| {
            samples.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            CounterSeries {
                source: "xplane".to_owned(),
                device,
                unit: unit(&metric).to_owned(),
                metric,
                t_ns: samples.iter().map(|(at, _)| at.saturating_sub(origin)).collect(),
                value: samples.iter().map(|(_, value)| *value).collect(),
            }
        });
        series.collect()
    }
}

/// The unit of a metric: bytes or a ratio for those of allocators, which are known, and empty for
/// all others.
fn unit(metric: &str) -> &'static str {
    match metric {
        memory::FRAGMENTATION => "ratio",
        memory::PEAK => "bytes",
        _ => "",
    }
}

impl Fill<'_> {
    /// Adds the samples of an event of `_counters_` at the biased time `at`: one for each statistic
    /// of the event that is a number.
    pub(super) fn samples(
        &mut self,
        owner: Owner,
        counter: &[u8],
        at: u64,
        (message, plane): (Message<'_>, &Plane<'_>),
    ) -> Result<(), Failure> {
        let device = match owner {
            Owner::Gpu(device) => format!("gpu{device}"),
            Owner::Accelerator(device) => format!("device{device}"),
            Owner::Host | Owner::Only(..) => "host".to_owned(),
            Owner::Unknown => "unknown".to_owned(),
        };
        let mut found = false;
        for field in message.fields() {
            let (4, value) = field? else { continue };
            let Some(stat) = value.message() else { continue };
            let Some((name, value)) = plane.stat(stat, |_| true)? else {
                continue;
            };
            let value = match value {
                Stat::Integer(value) => flopwatch_model::approximate(value.into()),
                Stat::Double(value) if value.is_finite() => value,
                Stat::Double(_) | Stat::Text(_) => continue,
            };
            let counter = self.file_name(counter);
            let metric = if name.ends_with(b"value") {
                counter
            } else {
                let mut metric = format!("{counter}.{}", self.file_name(name));
                metric.truncate(MAX_NAME_CHARACTERS);
                metric
            };
            self.sample((device.clone(), metric), at, value)?;
            found = true;
        }
        if !found {
            let what = "samples that are no numbers";
            self.capture.losses.add(LossReason::Skipped, what, 1);
        }
        Ok(())
    }

    pub(super) fn sample(&mut self, key: (String, String), at: u64, value: f64) -> Result<(), Failure> {
        let limit = u64::from(self.limits.max_rows);
        let series = u64::try_from(self.series.0.len()).unwrap_or(u64::MAX);
        if series >= limit && !self.series.0.contains_key(&key) {
            return Err(too_many("counters", limit));
        }
        self.series.0.entry(key).or_default().push((at, value));
        Ok(())
    }

    /// A text of the profile as a name that a timeline file can have: redacted, of permitted
    /// characters and at most [`MAX_NAME_CHARACTERS`] long.
    fn file_name(&mut self, raw: &[u8]) -> String {
        let text = self.publishable(raw);
        let letters = text.chars().map(|letter| {
            let fits = letter.is_ascii_alphanumeric() || "._:-".contains(letter);
            if fits { letter } else { '_' }
        });
        let name: String = letters.take(MAX_NAME_CHARACTERS).collect();
        if name.bytes().all(|byte| byte == b'.') {
            "unnamed".to_owned()
        } else {
            name
        }
    }
}
