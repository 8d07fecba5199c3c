//! Samples NVML, attributes what it reads to pods, exposes it to Prometheus and records it for
//! captures.
//!
//! [`Sampler::open`] loads the driver's library and starts the one thread that samples. Without
//! NVML it fails once and says why; the program goes on without these metrics.
//!
//! What NVML's numbers mean: utilisation is the share of the driver's own last window (up to a
//! second) in which a kernel ran, however small it was; power is the driver's average, over about a
//! second on recent GPUs. An interval that is shorter than those windows repeats values rather than
//! adding detail. GPU Performance Monitoring (GPM, Hopper and newer) counts in hardware: its values
//! are of the whole time between two samples, which is at least 110 ms.

mod clock;
mod collector;
mod device;
mod error;
mod gpm;
mod gpu_instance;
mod metric;
mod observer;
mod processor_clock;
mod recording;
mod sampler;
mod snapshot;

pub use clock::utc_ns;
pub use collector::GpuCollector;
pub use error::{NvmlError, Reason};
pub use metric::{Attribution, Metric, Unit};
pub use observer::{Observation, Observer, Round, Wanted};
pub use processor_clock::ProcessorClock;
pub use recording::{DeviceSelection, Recording, Series, SubscribeError, Subscription, SubscriptionRequest, Target};
pub use sampler::{Resolver, Sampler, SamplerOptions};
pub use snapshot::{
    ContainerIdentity, DeviceIdentity, GpuState, ProcessReading, ProcessTotal, TimedReading, UnitReading,
};
