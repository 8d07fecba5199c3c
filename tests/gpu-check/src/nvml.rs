//! NVML through the agent's own sampler, while the GPU works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use flopwatch_nvml::{DeviceSelection, Sampler, SamplerOptions, SubscriptionRequest};
use flopwatch_trace::transform::device::{on_gpu, sample};
use serde::Serialize;

/// What the sampler gave.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct NvmlResult {
    /// Why there is no NVML.
    pub(crate) unavailable: Option<String>,
    /// Per metric the number of points, the smallest and the largest value.
    pub(crate) series: BTreeMap<String, SeriesResult>,
    /// Metrics that the GPU does not support.
    pub(crate) unsupported: Vec<String>,
    /// Samples that were due and not taken.
    pub(crate) missed: u64,
}

/// One metric of one device.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeriesResult {
    pub(crate) points: usize,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) unit: String,
    /// Whether GPU Performance Monitoring gave it.
    pub(crate) gpm: bool,
}

/// Samples for two seconds.
pub(crate) fn read(gpu: bool) -> Result<NvmlResult> {
    let own = std::process::id();
    let sampler = match Sampler::open(SamplerOptions::new(Arc::new(|_| None))) {
        Ok(sampler) => sampler,
        Err(error) => {
            return Ok(NvmlResult {
                unavailable: Some(error.to_string()),
                ..NvmlResult::default()
            });
        }
    };
    let request = SubscriptionRequest {
        devices: DeviceSelection::All,
        ..SubscriptionRequest::new(Duration::from_millis(100), Arc::new(move |pid| pid == own))
    };
    let subscription = sampler.subscribe(request)?;
    let input = sample(1_000_000);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        if gpu {
            drop(on_gpu(&input)?);
        } else {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
    let recording = subscription.stop();
    let mut result = NvmlResult {
        missed: recording.missed.saturating_add(recording.dropped),
        unsupported: recording
            .unsupported
            .iter()
            .map(|(_, metric)| metric.as_str().to_owned())
            .collect(),
        ..NvmlResult::default()
    };
    for series in recording.series {
        let values = || series.points.iter().map(|(_, value)| *value);
        let name = format!(
            "{} {:?} gpu {}",
            series.metric.as_str(),
            series.attribution,
            series.device.index
        );
        let found = SeriesResult {
            points: series.points.len(),
            least: values().fold(f64::INFINITY, f64::min),
            most: values().fold(f64::NEG_INFINITY, f64::max),
            unit: series.metric.unit().as_str().to_owned(),
            gpm: series.metric.is_gpm(),
        };
        result.series.insert(name, found);
    }
    Ok(result)
}
