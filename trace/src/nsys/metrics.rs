//! Samples of the GPUs' hardware counters (`--gpu-metrics-devices`), which become series.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::{Failure, Reader};
use crate::hdf5_io::Number as _;
use flopwatch_model::{CounterSeries, LossReason};

const SAMPLES: &str = "GPU_METRICS";
const METRICS: &str = "TARGET_INFO_GPU_METRICS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[SAMPLES];

/// Letters of a metric's name in the file.
const MAX_NAME_CHARACTERS: usize = 128;

/// What is sampled: `typeId`, whose lowest byte is the number of the GPU, and `metricId`.
type Metric = (u64, u32);

/// Times in ns and values.
type Samples = Vec<(u64, i64)>;

impl Reader<'_> {
    /// Reads the samples. It follows `rebase`, which left in `duration_ns` by how much the
    /// session's start was moved back.
    pub(super) fn read_gpu_metrics(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SAMPLES)? else {
            return Ok(());
        };
        let moved = i64::try_from(self.capture.duration_ns).unwrap_or(i64::MAX);
        let mut found: HashMap<Metric, Samples> = HashMap::new();
        let mut early = 0;
        for slab in table.slabs() {
            self.count_samples(SAMPLES, slab.len())?;
            let times: Vec<i64> = table.required("timestamp", &slab)?;
            let types: Vec<u64> = table.optional_ids("typeId", &slab)?;
            let metrics: Vec<u32> = table.optional("metricId", &slab)?;
            let values: Vec<i64> = table.optional("value", &slab)?;
            for ((time, kind), (metric, value)) in times.into_iter().zip(types).zip(metrics.into_iter().zip(values)) {
                let Ok(t_ns) = u64::try_from(time.saturating_add(moved)) else {
                    early += 1;
                    continue;
                };
                found.entry((kind, metric)).or_default().push((t_ns, value));
            }
            self.check_series(found.len())?;
        }
        let what = format!("{SAMPLES}: samples before the session");
        self.capture.losses.add(LossReason::Skipped, &what, early);
        let names = self.metric_names(&found)?;
        // By GPU and name: the unit and the samples.
        let mut series: BTreeMap<(u64, String), (String, Samples)> = BTreeMap::new();
        for ((kind, metric), mut samples) in found {
            let described = names.get(&(kind, metric)).cloned();
            let (name, unit) = described.unwrap_or_else(|| (format!("metric_{metric}"), String::new()));
            let of = series
                .entry((kind & 0xFF, name))
                .or_insert_with(|| (unit, Samples::new()));
            of.1.append(&mut samples);
        }
        for ((gpu, metric), (unit, mut samples)) in series {
            samples.sort_unstable();
            self.capture.counters.push(CounterSeries {
                source: "nsys".to_owned(),
                device: format!("gpu{gpu}"),
                metric,
                unit,
                t_ns: samples.iter().map(|(t_ns, _)| *t_ns).collect(),
                value: samples.iter().map(|(_, value)| f64::from_signed(*value)).collect(),
            });
        }
        Ok(())
    }

    /// Samples count as events do.
    pub(super) fn count_samples(&mut self, table: &str, samples: usize) -> Result<(), Failure> {
        self.events = self.events.saturating_add(u64::try_from(samples).unwrap_or(u64::MAX));
        within(table, self.events, "events", self.limits.max_events)
    }

    fn check_series(&self, series: usize) -> Result<(), Failure> {
        let series = u64::try_from(series).unwrap_or(u64::MAX);
        within(SAMPLES, series, "metrics", self.limits.max_rows.into())
    }

    /// Name in the file and unit of each metric that has samples.
    fn metric_names<V>(&mut self, found: &HashMap<Metric, V>) -> Result<HashMap<Metric, (String, String)>, Failure> {
        let mut names = HashMap::new();
        let Some(table) = self.table(METRICS)? else {
            return Ok(names);
        };
        for slab in table.slabs() {
            let types: Vec<u64> = table.optional_ids("typeId", &slab)?;
            let metrics: Vec<u32> = table.optional("metricId", &slab)?;
            let texts = table.strings("metricName", &slab)?;
            for (metric, text) in types.into_iter().zip(metrics).zip(texts) {
                if found.contains_key(&metric) {
                    self.strings.take(METRICS, &text)?;
                    let text = self.publishable(&text);
                    names.insert(metric, (file_name(&text), unit(&text)));
                }
            }
        }
        Ok(names)
    }
}

/// Fails where there are more than the limit allows.
pub(super) fn within(table: &str, count: u64, what: &'static str, limit: u64) -> Result<(), Failure> {
    if count <= limit {
        return Ok(());
    }
    Err(Failure::TooMany {
        table: table.to_owned(),
        what,
        limit,
    })
}

/// `DRAM Read Bandwidth [Throughput %]` as a name in the file:
/// `DRAM_Read_Bandwidth_Throughput_pct`.
fn file_name(text: &str) -> String {
    let text = text.replace('%', " pct ");
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || ".:-".contains(letter)));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name = words.join("_");
    name.truncate(MAX_NAME_CHARACTERS);
    if name.bytes().all(|byte| byte == b'.') {
        "unnamed".clone_into(&mut name);
    }
    name
}

/// The unit of `DRAM Read Bandwidth [Throughput %]`: `%`; of `GPC Clock Frequency [MHz]`: `MHz`.
fn unit(text: &str) -> String {
    let inside = text.rsplit_once('[').and_then(|(_, behind)| behind.split_once(']'));
    let inside = inside.map_or("", |(inside, _)| inside).trim();
    let unit = if inside.ends_with('%') { "%" } else { inside };
    unit.chars().take(MAX_NAME_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_become_names_in_the_file_and_units() {
        for (text, name, of) in [
            ("SMs Active [Throughput %]", "SMs_Active_Throughput_pct", "%"),
            ("GPC Clock Frequency [MHz]", "GPC_Clock_Frequency_MHz", "MHz"),
            (
                "Compute Warps in Flight [Avg Warps per Cycle]",
                "Compute_Warps_in_Flight_Avg_Warps_per_Cycle",
                "Avg Warps per Cycle",
            ),
            ("NVLink RX/TX", "NVLink_RX_TX", ""),
            ("", "unnamed", ""),
        ] {
            assert_eq!((file_name(text).as_str(), unit(text).as_str()), (name, of));
        }
    }
}
