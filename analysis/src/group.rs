//! What analyses are about, for lists that people choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an analysis is about. Lists show the groups in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The capture as a whole.
    #[default]
    Overview,
    /// What is slow and what to do about it.
    Advice,
    /// What GPUs did with their time.
    GpuTime,
    /// What the host did: threads, API calls, synchronisation, calls that allocate, collectives of several ranks.
    Host,
    /// What memory was given out, to whom and for how long.
    Memory,
    /// Iterations, the critical path, utilisation of the hardware.
    Steps,
    /// Kernels from inside: what bounds them, and what they could do.
    Kernels,
    /// Ranges, annotations and operators by name.
    Operations,
    /// Captures side by side.
    Comparison,
    /// Tables that equal those of `nsys stats`.
    NsysTables,
    /// Files for other programs.
    Exports,
}

impl Group {
    /// Every group, in the order of lists.
    pub const ALL: [Self; 11] = [
        Self::Overview,
        Self::Advice,
        Self::GpuTime,
        Self::Host,
        Self::Memory,
        Self::Steps,
        Self::Kernels,
        Self::Operations,
        Self::Comparison,
        Self::NsysTables,
        Self::Exports,
    ];

    /// Its name for programs, as JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Advice => "advice",
            Self::GpuTime => "gpu_time",
            Self::Host => "host",
            Self::Memory => "memory",
            Self::Steps => "steps",
            Self::Kernels => "kernels",
            Self::Operations => "operations",
            Self::Comparison => "comparison",
            Self::NsysTables => "nsys_tables",
            Self::Exports => "exports",
        }
    }

    /// Its heading for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Advice => "Advice",
            Self::GpuTime => "GPU time",
            Self::Host => "Host",
            Self::Memory => "Memory",
            Self::Steps => "Steps",
            Self::Kernels => "Kernels",
            Self::Operations => "Operations",
            Self::Comparison => "Comparison",
            Self::NsysTables => "nsys tables",
            Self::Exports => "Exports",
        }
    }
}
