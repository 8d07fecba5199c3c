//! Where the heavy steps are done: the processor, or a GPU that is measured to be worth it there
//! and then.

use std::fmt;
use std::time::Duration;

use flopwatch_cuda::{CudaError, Neighbours};
use flopwatch_summary::TransformedOn;
use serde::{Deserialize, Serialize};

pub use flopwatch_summary::Device;

/// What the user asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DevicePreference {
    /// A GPU where it is free and faster, the processor elsewhere.
    #[default]
    Auto,
    /// A GPU or nothing.
    Gpu,
    /// The CPU.
    Cpu,
}

/// What was picked, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceChoice {
    /// The device that the transform runs on.
    pub device: Device,
    /// Why the transform runs there.
    pub reason: Reason,
}

impl From<&DeviceChoice> for TransformedOn {
    fn from(choice: &DeviceChoice) -> Self {
        Self {
            device: choice.device,
            reason: choice.reason.to_string(),
        }
    }
}

/// Why a device was picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The user asked for it.
    Asked,
    /// Nothing to do that would be worth a question.
    Few {
        /// How many events.
        events: u64,
    },
    /// The processor is done before a GPU would be ready.
    SoonDone {
        /// What the processor needs, as measured.
        cpu: Duration,
    },
    /// The GPU cannot be used.
    Unavailable(CudaError),
    /// Others compute on the GPU, and the workload comes first.
    Foreign(Neighbours),
    /// Nobody can tell whether others compute on the GPU.
    Unknown(String),
    /// Too little of the GPU's memory is free.
    Memory {
        /// Bytes that the steps need.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The GPU was measured, and is the slower or the faster one.
    Measured {
        /// What the GPU needs, copies included.
        gpu: Duration,
        /// What the processor needs.
        cpu: Duration,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => formatter.write_str("as asked for"),
            Self::Few { events } => write!(formatter, "{events} events are too few for a GPU to matter"),
            Self::SoonDone { cpu } => write!(
                formatter,
                "the processor needs about {cpu:.0?}, less than a GPU takes to get ready"
            ),
            Self::Unavailable(error) => error.fmt(formatter),
            Self::Foreign(neighbours) => write!(
                formatter,
                "{} foreign compute process{} on the GPU",
                neighbours.foreign,
                if neighbours.foreign == 1 { "" } else { "es" }
            ),
            Self::Unknown(reason) => write!(formatter, "cannot tell whether others compute on the GPU: {reason}"),
            Self::Memory { needed, free } => write!(
                formatter,
                "{} MiB of GPU memory are needed, {} MiB are free",
                needed >> 20,
                free >> 20
            ),
            Self::Measured { gpu, cpu } => {
                write!(
                    formatter,
                    "measured here: GPU about {gpu:.0?} with copies, processor about {cpu:.0?}"
                )
            }
        }
    }
}

/// What a device needs for a number of events, as measured at two sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// For no events at all.
    pub fixed: Duration,
    /// For every 2^20 events more.
    pub per_mebi: Duration,
}

impl Cost {
    /// The line through two measurements, of which the second is of more events.
    pub fn through(few: (u64, Duration), many: (u64, Duration)) -> Self {
        let events = u128::from(many.0.saturating_sub(few.0).max(1));
        let grown = many.1.saturating_sub(few.1).as_nanos();
        let per_mebi = nanoseconds((grown << 20) / events);
        let line = Self {
            fixed: Duration::ZERO,
            per_mebi,
        };
        Self {
            fixed: few.1.saturating_sub(line.of(few.0)),
            per_mebi,
        }
    }

    /// For so many events.
    pub fn of(&self, events: u64) -> Duration {
        let growing = self.per_mebi.as_nanos().saturating_mul(u128::from(events)) >> 20;
        self.fixed.saturating_add(nanoseconds(growing))
    }
}

fn nanoseconds(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Fewer events are never worth a question to a driver's context.
const MIN_DEVICE_EVENTS: u64 = 1 << 18;
/// What the processor may take before a GPU is asked. On an H100's host a context and the kernels
/// take 0.3 s and the measurement 0.2 s, which a GPU that is twice as fast has to win back.
const DEVICE_READY_DURATION: Duration = Duration::from_secs(1);

/// What the choice depends on; asked in the order of what it costs to find out, and only when it
/// matters.
pub trait Machine {
    /// Whether driver and kernels are there, without starting anything on the GPU.
    fn check(&self) -> Result<(), CudaError>;
    /// What the processor needs.
    fn cpu(&self) -> Cost;
    /// Who computes on the GPU, and its free memory.
    fn neighbours(&self) -> Result<Neighbours, String>;
    /// Makes the GPU ready.
    fn open(&self) -> Result<(), CudaError>;
    /// Makes the GPU ready and measures it.
    fn gpu(&self) -> Result<Cost, CudaError>;
}

/// Picks for `events` events that need `needed_bytes` of GPU memory. `Err` only where a GPU was
/// asked for and cannot be had.
pub fn choose(
    wanted: DevicePreference,
    events: u64,
    needed_bytes: u64,
    machine: &dyn Machine,
) -> Result<DeviceChoice, Reason> {
    let cpu = |reason| {
        Ok(DeviceChoice {
            device: Device::Cpu,
            reason,
        })
    };
    match wanted {
        DevicePreference::Cpu => return cpu(Reason::Asked),
        DevicePreference::Gpu => {
            machine.check().map_err(Reason::Unavailable)?;
            machine.open().map_err(Reason::Unavailable)?;
            return Ok(DeviceChoice {
                device: Device::Gpu,
                reason: Reason::Asked,
            });
        }
        DevicePreference::Auto => {}
    }
    if let Err(error) = machine.check() {
        return cpu(Reason::Unavailable(error));
    }
    if events < MIN_DEVICE_EVENTS {
        return cpu(Reason::Few { events });
    }
    let processor_time = machine.cpu().of(events);
    if processor_time < DEVICE_READY_DURATION {
        return cpu(Reason::SoonDone { cpu: processor_time });
    }
    match machine.neighbours() {
        Err(reason) => return cpu(Reason::Unknown(reason)),
        Ok(neighbours) if neighbours.foreign > 0 => return cpu(Reason::Foreign(neighbours)),
        Ok(neighbours) if neighbours.free_bytes < needed_bytes => {
            return cpu(Reason::Memory {
                needed: needed_bytes,
                free: neighbours.free_bytes,
            });
        }
        Ok(_) => {}
    }
    let gpu_time = match machine.gpu() {
        Ok(cost) => cost.of(events),
        Err(error) => return cpu(Reason::Unavailable(error)),
    };
    let device = if gpu_time < processor_time {
        Device::Gpu
    } else {
        Device::Cpu
    };
    let reason = Reason::Measured {
        gpu: gpu_time,
        cpu: processor_time,
    };
    Ok(DeviceChoice { device, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with a free GPU that is ten times as fast as its processor.
    #[derive(Clone)]
    struct Rig {
        check: Result<(), CudaError>,
        neighbours: Result<Neighbours, String>,
        gpu: Result<Cost, CudaError>,
    }

    impl Default for Rig {
        fn default() -> Self {
            Self {
                check: Ok(()),
                neighbours: Ok(Neighbours {
                    foreign: 0,
                    foreign_bytes: 0,
                    free_bytes: 80 << 30,
                    gpus: 1,
                }),
                gpu: Ok(cost(10)),
            }
        }
    }

    fn cost(milliseconds: u64) -> Cost {
        Cost {
            fixed: Duration::from_millis(5),
            per_mebi: Duration::from_millis(milliseconds),
        }
    }

    impl Machine for Rig {
        fn check(&self) -> Result<(), CudaError> {
            self.check.clone()
        }
        fn cpu(&self) -> Cost {
            cost(100)
        }
        fn neighbours(&self) -> Result<Neighbours, String> {
            self.neighbours.clone()
        }
        fn open(&self) -> Result<(), CudaError> {
            self.gpu.clone().map(drop)
        }
        fn gpu(&self) -> Result<Cost, CudaError> {
            self.gpu.clone()
        }
    }

    const MANY: u64 = 100 << 20;

    fn auto(events: u64, machine: &Rig) -> (Device, String) {
        let choice = choose(DevicePreference::Auto, events, 1 << 30, machine).unwrap();
        (choice.device, choice.reason.to_string())
    }

    #[test]
    fn a_free_and_faster_gpu_is_taken_and_both_times_are_told() {
        let (device, reason) = auto(MANY, &Rig::default());
        assert_eq!(device, Device::Gpu);
        assert!(
            reason.contains("GPU about 1s") && reason.contains("processor about 10s"),
            "{reason}"
        );
    }

    #[test]
    fn without_a_driver_the_processor_does_it_and_says_so() {
        let machine = Rig {
            check: Err(CudaError::NoDriver),
            ..Rig::default()
        };
        assert_eq!(auto(10, &machine), (Device::Cpu, "no NVIDIA driver".to_owned()));
        assert_eq!(auto(MANY, &machine), (Device::Cpu, "no NVIDIA driver".to_owned()));
    }

    #[test]
    fn a_gpu_is_left_alone_where_it_would_disturb_or_cost_more() {
        let free = Rig::default().neighbours.unwrap();
        let cases = [
            (Rig::default(), 1000, "too few"),
            (Rig::default(), 1 << 20, "less than a GPU takes"),
            (
                Rig {
                    neighbours: Ok(Neighbours { foreign: 2, ..free }),
                    ..Rig::default()
                },
                MANY,
                "2 foreign compute processes",
            ),
            (
                Rig {
                    neighbours: Err("no permission".to_owned()),
                    ..Rig::default()
                },
                MANY,
                "cannot tell whether others compute on the GPU: no permission",
            ),
            (
                Rig {
                    neighbours: Ok(Neighbours {
                        free_bytes: 512 << 20,
                        ..free
                    }),
                    ..Rig::default()
                },
                MANY,
                "1024 MiB of GPU memory are needed, 512 MiB are free",
            ),
            (
                Rig {
                    gpu: Ok(cost(200)),
                    ..Rig::default()
                },
                MANY,
                "GPU about 20s",
            ),
            (
                Rig {
                    gpu: Err(CudaError::NoGpu),
                    ..Rig::default()
                },
                MANY,
                "shows no GPU",
            ),
        ];
        for (machine, events, expected) in cases {
            let (device, reason) = auto(events, &machine);
            assert_eq!(device, Device::Cpu, "{reason}");
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn a_gpu_that_was_asked_for_is_used_or_the_reason_is_an_error() {
        let asked = |machine: &Rig| choose(DevicePreference::Gpu, 1, 1, machine);
        assert_eq!(asked(&Rig::default()).unwrap().device, Device::Gpu);
        let machine = Rig {
            check: Err(CudaError::NoDriver),
            ..Rig::default()
        };
        assert_eq!(asked(&machine).unwrap_err().to_string(), "no NVIDIA driver");
        assert_eq!(
            choose(DevicePreference::Cpu, MANY, 1, &machine).unwrap().device,
            Device::Cpu
        );
    }

    #[test]
    fn the_cost_is_the_line_through_two_measurements() {
        let cost = Cost::through(
            (1 << 20, Duration::from_millis(15)),
            (3 << 20, Duration::from_millis(35)),
        );
        assert_eq!(
            (cost.fixed, cost.per_mebi),
            (Duration::from_millis(5), Duration::from_millis(10))
        );
        assert_eq!(cost.of(10 << 20), Duration::from_millis(105));
        let noise = Cost::through((100, Duration::from_millis(9)), (200, Duration::from_millis(8)));
        assert_eq!(noise.of(1 << 30), Duration::from_millis(9));
    }
}
