//! The node's GPUs as NVML shows them: for `/metrics`, and beside a capture.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_nvml::{
    DeviceSelection, GpuState, Observation, Observer, Recording, Resolver, Sampler, SamplerOptions, Subscription,
    SubscriptionRequest, Target,
};
use prometheus::Registry;
use tracing::{info, warn};

use crate::failure::chain;
use crate::transform::{SampledSeries, Samples};

/// NVML, or its absence.
#[derive(Debug)]
pub struct Gpus {
    sampler: Option<Sampler>,
}

impl Gpus {
    /// Opens NVML. Without it nothing is sampled; that is said once.
    pub fn open(library: Option<PathBuf>, resolver: Resolver) -> Self {
        match Sampler::open(SamplerOptions {
            library,
            ..SamplerOptions::new(resolver)
        }) {
            Ok(sampler) => Self { sampler: Some(sampler) },
            Err(error) => {
                info!(reason = %chain(&error), "no NVML on this node: no GPU metrics");
                Self { sampler: None }
            }
        }
    }

    /// Whether NVML answered.
    pub const fn is_available(&self) -> bool {
        self.sampler.is_some()
    }

    /// The GPUs and their partitions as they were sampled last; empty without NVML.
    pub fn states(&self) -> Vec<GpuState> {
        self.sampler.as_ref().map(Sampler::states).unwrap_or_default()
    }

    /// The newest CUDA that the node's driver serves, such as 13000 for 13.0; none without NVML, or
    /// where it does not say.
    pub fn cuda_driver(&self) -> Option<u32> {
        self.sampler.as_ref().and_then(Sampler::cuda_driver)
    }

    /// Shows the GPUs' series with the other metrics.
    pub fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        match &self.sampler {
            Some(sampler) => registry.register(Box::new(sampler.collector()?)),
            None => Ok(()),
        }
    }

    /// Gives an observer every round of readings, one each `interval`; none without NVML.
    pub fn observe(&self, interval: Duration, observer: Arc<dyn Observer>) -> Option<Observation> {
        let observation = self.sampler.as_ref()?.observe(interval, observer);
        observation
            .inspect_err(|error| warn!(%error, "NVML is not sampled for the metrics ring"))
            .ok()
    }

    /// Records beside a capture. Without NVML the recording is empty.
    pub fn record(&self, interval: Duration, devices: DeviceSelection, target: Target) -> Sampling {
        let subscription = self.sampler.as_ref().and_then(|sampler| {
            let request = SubscriptionRequest {
                devices,
                ..SubscriptionRequest::new(interval, target)
            };
            sampler
                .subscribe(request)
                .inspect_err(|error| warn!(%error, "no NVML samples beside this capture"))
                .ok()
        });
        Sampling { subscription }
    }
}

/// A recording under way; thrown away when dropped.
#[derive(Debug)]
pub struct Sampling {
    subscription: Option<Subscription>,
}

impl Sampling {
    /// Ends it. The window's times are the caller's to fill in.
    pub fn finish(self) -> Samples {
        self.subscription
            .map(|subscription| samples(subscription.stop()))
            .unwrap_or_default()
    }
}

fn samples(recording: Recording) -> Samples {
    let series = recording.series.into_iter().map(|series| {
        let (t_utc_ns, value) = series.points.into_iter().unzip();
        SampledSeries {
            source: "nvml".to_owned(),
            device: series.device.uuid,
            metric: series.metric.as_str().to_owned(),
            unit: series.metric.unit().as_str().to_owned(),
            t_utc_ns,
            value,
        }
    });
    Samples {
        series: series.collect(),
        missed: recording.missed.saturating_add(recording.dropped),
        ..Samples::default()
    }
}
