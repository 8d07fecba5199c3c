//! The questions that analyses answer, for lists that people choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The question that an analysis answers. Lists show the groups in this order.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// What is slow and what to do about it.
    Advice,
    /// What GPUs did with their time.
    GpuTime,
    /// How work reaches GPUs.
    Launches,
    /// What the host did: threads, API calls, synchronisation, calls that allocate.
    Host,
    /// How ranks wait for each other.
    Ranks,
    /// Iterations, the critical path, utilisation of the hardware.
    Steps,
    /// Kernels from inside: what bounds them, and what they could do.
    Kernels,
    /// Tensor cores and batch sizes.
    TensorCores,
    /// Kernels that another accelerator could take.
    Offload,
    /// What memory was given out, to whom and for how long.
    Memory,
    /// Compilation by the framework, and the start of the program.
    Compilation,
    /// Ranges, annotations and operators by name.
    Operations,
    /// Time by stack.
    Stacks,
    /// Compiled programs of JAX.
    Programs,
    /// A capture beside that of before a change.
    Comparison,
    /// The capture as a whole: its tables and its events.
    #[default]
    Capture,
    /// Tables that equal those of `nsys stats`.
    NsysTables,
    /// What clients of an earlier suite ask.
    EarlierSuite,
    /// Files for other programs.
    Exports,
}

impl Group {
    /// Every group, in the order of lists.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name of the group for programs, as JSON has it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The question as people ask it, or what the group holds where that is no question.
    pub const fn question(self) -> &'static str {
        match self {
            Self::Advice => "What is slow, why, what to do?",
            Self::GpuTime => "Where did the GPUs' time go?",
            Self::Launches => "How is work launched?",
            Self::Host => "What does the host do?",
            Self::Ranks => "How do ranks wait for each other?",
            Self::Steps => "How long is a step, and what bounds it?",
            Self::Kernels => "How well does a kernel use the GPU?",
            Self::TensorCores => "Are tensor cores used, which batch size pays?",
            Self::Offload => "Which kernels could another accelerator take?",
            Self::Memory => "Where is the memory?",
            Self::Compilation => "What did torch.compile cost and gain?",
            Self::Operations => "Which operation takes the time?",
            Self::Stacks => "Which stack takes the time?",
            Self::Programs => "What do JAX's compiled programs do?",
            Self::Comparison => "What did a change do?",
            Self::Capture => "What does the capture hold?",
            Self::NsysTables => "Tables of nsys stats",
            Self::EarlierSuite => "For clients of the earlier suite",
            Self::Exports => "Files for other programs",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn json_names_each_group_as_programs_do_and_lists_have_each_once() {
        for group in Group::ALL {
            assert_eq!(serde_json::to_value(group).unwrap(), group.name());
        }
        let distinct: BTreeSet<Group> = Group::ALL.iter().copied().collect();
        assert_eq!(distinct.len(), Group::ALL.len());
        assert!(Group::ALL.is_sorted());
    }
}
