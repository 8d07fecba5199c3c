//! The transform on the device that is picked for it.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_cuda::{CudaError, Gpu, Neighbours, neighbours};

use super::choice::{Cost, Device, DeviceChoice, DevicePreference, Machine, Reason, choose};
use super::engine::{Columns, Engine, Input, Output};
use super::{Cpu, TransformOptions, cuda, transform_with};
use flopwatch_model::{Capture, Category, Timeline};

/// Why the GPU that was asked for could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The GPU cannot be used, or failed on the way.
    #[error("the transform was asked to run on a GPU: {0}")]
    Gpu(String),
}

/// The transform on the device that `wanted` and this machine make best; says which one that was,
/// and why.
pub fn transform_on(
    wanted: DevicePreference,
    capture: Capture,
    options: TransformOptions,
) -> Result<(Timeline, DeviceChoice), DeviceError> {
    transform_beside(0, wanted, capture, options)
}

/// The same for a process that cannot see the machine's others, such as one in a PID namespace of
/// its own: NVML tells it of none. `others` compute processes were seen from outside ([`others`]).
pub fn transform_beside(
    others: u32,
    wanted: DevicePreference,
    capture: Capture,
    options: TransformOptions,
) -> Result<(Timeline, DeviceChoice), DeviceError> {
    let engine = DeferredEngine {
        machine: LocalMachine { others },
        wanted,
        picked: Mutex::new(None),
    };
    // Before the work, where the answer is an error.
    if wanted == DevicePreference::Gpu {
        choose(wanted, 0, 0, &engine.machine).map_err(|reason| DeviceError::Gpu(reason.to_string()))?;
    }
    let timeline = transform_with(&engine, capture, options);
    let picked = engine.picked.into_inner().unwrap_or_else(PoisonError::into_inner);
    let choice = picked.unwrap_or(DeviceChoice {
        device: Device::Cpu,
        reason: Reason::Few { events: 0 },
    });
    if wanted == DevicePreference::Gpu && choice.device == Device::Cpu {
        return Err(DeviceError::Gpu(choice.reason.to_string()));
    }
    tracing::info!(device = ?choice.device, reason = %choice.reason, events = timeline.total_events(), "transformed");
    Ok((timeline, choice))
}

/// Picks when it sees how much there is to do.
struct DeferredEngine {
    machine: LocalMachine,
    wanted: DevicePreference,
    picked: Mutex<Option<DeviceChoice>>,
}

impl Engine for DeferredEngine {
    fn run(&self, input: Input) -> Output {
        let counts = input.categories.values().map(|columns| columns.start_ns.len());
        let events = u64::try_from(counts.sum::<usize>()).unwrap_or(u64::MAX);
        let unavailable = |reason| DeviceChoice {
            device: Device::Cpu,
            reason,
        };
        let mut choice =
            choose(self.wanted, events, cuda::needed_bytes(&input), &self.machine).unwrap_or_else(unavailable);
        let mut output = None;
        if choice.device == Device::Gpu {
            match on_gpu(&input) {
                Ok(made) => output = Some(made),
                Err(error) => choice = unavailable(Reason::Unavailable(error)),
            }
        }
        *self.picked.lock().unwrap_or_else(PoisonError::into_inner) = Some(choice);
        output.unwrap_or_else(|| Cpu.run(input))
    }
}

/// The steps on this process's GPU.
pub fn on_gpu(input: &Input) -> Result<Output, CudaError> {
    let gpu = gpu()?;
    gpu.use_here()?;
    cuda::run(gpu, gpu.kernels(), input)
}

/// The first GPU, made ready once per process.
fn gpu() -> Result<&'static Gpu, CudaError> {
    static GPU: OnceLock<Result<Gpu, CudaError>> = OnceLock::new();
    GPU.get_or_init(|| Gpu::open(0)).as_ref().map_err(Clone::clone)
}

/// This machine, as it is measured: each device once per process.
struct LocalMachine {
    /// Compute processes that were seen from outside.
    others: u32,
}

/// Compute processes on the GPUs other than this one. `Err` says why nothing is known.
pub fn others() -> Result<u32, String> {
    neighbours().map(|found| found.foreign)
}

/// Events that the processor is measured with: few, as every capture waits for it on a machine that
/// has a GPU.
const CPU_SIZES: [u64; 2] = [1 << 14, 1 << 17];
/// Events that the GPU is measured with.
const GPU_SIZES: [u64; 2] = [1 << 20, 1 << 22];

impl Machine for LocalMachine {
    fn check(&self) -> Result<(), CudaError> {
        Gpu::check().map(drop)
    }

    fn cpu(&self) -> Cost {
        static COST: OnceLock<Cost> = OnceLock::new();
        *COST.get_or_init(|| {
            let [few, many] = CPU_SIZES.map(|events| {
                let input = sample(events);
                let begin = Instant::now();
                drop(Cpu.run(input));
                (events, begin.elapsed())
            });
            Cost::through(few, many)
        })
    }

    fn neighbours(&self) -> Result<Neighbours, String> {
        neighbours().map(|found| Neighbours {
            foreign: found.foreign.max(self.others),
            ..found
        })
    }

    fn open(&self) -> Result<(), CudaError> {
        gpu().map(drop)
    }

    fn gpu(&self) -> Result<Cost, CudaError> {
        static COST: OnceLock<Result<Cost, CudaError>> = OnceLock::new();
        COST.get_or_init(|| {
            // The first run loads the kernels, and says nothing about the later ones.
            on_gpu(&sample(GPU_SIZES[0]))?;
            let timed = |events: u64| -> Result<(u64, Duration), CudaError> {
                let input = sample(events);
                let begin = Instant::now();
                drop(on_gpu(&input)?);
                Ok((events, begin.elapsed()))
            };
            Ok(Cost::through(timed(GPU_SIZES[0])?, timed(GPU_SIZES[1])?))
        })
        .clone()
    }
}

/// A capture of the kind that is common: kernels of eight streams, out of order, few of them
/// overlapping, in the same order at every call.
pub fn sample(events: u64) -> Input {
    let mut columns = Columns {
        names: 256,
        ..Columns::default()
    };
    for at in 0..events {
        let mixed = mix(at);
        let narrow = |value: u64| u32::try_from(value).unwrap_or_default();
        // Eight streams' worth of progress, each with an offset of its own.
        let start = (at / 8) * 10_000 + (at % 8) * 1_250 + mixed % 997;
        columns.start_ns.push(start);
        columns
            .duration_ns
            .push(500 + (mixed >> 10) % 9_000 + if mixed >> 52 == 0 { 20_000 } else { 0 });
        columns.row.push(narrow(mix(at.wrapping_mul(3)) % 8));
        columns.name.push(narrow((mixed >> 32) % 256));
    }
    Input {
        categories: [(Category::CudaKernel, columns)].into(),
        rows: 8,
    }
}

/// SplitMix64.
const fn mix(at: u64) -> u64 {
    let state = at.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
