//! What counts as an operation.

use flopwatch_model::{Category, ColumnId, Events, Timeline, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What operations are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// Operators of PyTorch on the CPU, e.g. `aten::mm`.
    CpuOp,
    /// NVTX ranges.
    Nvtx,
    /// Operations of a compiled program (HLO) on the device.
    Hlo,
    /// Ranges that the program marked by other means than NVTX.
    Annotation,
    /// Steps of the training or inference loop.
    Step,
    /// Entries of a profile that was written by a program itself.
    Profile,
}

/// Which operations a request is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationChoice {
    /// The first of the others, in their order, that the capture holds.
    #[default]
    Auto,
    /// Operators of PyTorch on the CPU.
    CpuOp,
    /// NVTX ranges.
    Nvtx,
    /// Operations of a compiled program (HLO) on the device.
    Hlo,
    /// Ranges that the program marked by other means than NVTX.
    Annotation,
    /// Steps of the training or inference loop.
    Step,
}

impl OperationKind {
    /// The kinds of a capture, in the order in which one is chosen.
    pub const OF_CAPTURES: [Self; 5] = [Self::CpuOp, Self::Nvtx, Self::Hlo, Self::Annotation, Self::Step];

    /// For people, in the plural.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CpuOp => "PyTorch operators",
            Self::Nvtx => "NVTX ranges",
            Self::Hlo => "HLO operations",
            Self::Annotation => "annotations",
            Self::Step => "steps",
            Self::Profile => "entries of a profile",
        }
    }

    /// The category whose events are the calls; `None` of a kind that is found by a column or in no
    /// capture.
    pub(super) const fn category(self) -> Option<Category> {
        match self {
            Self::CpuOp => Some(Category::CpuOp),
            Self::Nvtx => Some(Category::NvtxRange),
            Self::Annotation => Some(Category::Annotation),
            Self::Step => Some(Category::Step),
            Self::Hlo | Self::Profile => None,
        }
    }

    /// How many calls of this kind the capture holds.
    pub(super) fn count(self, timeline: &Timeline) -> u64 {
        if let Some(category) = self.category() {
            return timeline.capture.events.get(&category).map_or(0, Events::count);
        }
        if self == Self::Profile {
            return 0;
        }
        let events = timeline.capture.events.iter();
        let counts = events.filter(|(category, _)| category.is_gpu_work() || **category == Category::DeviceOp);
        let of = |(category, events): (&Category, &Events)| {
            // Work of an accelerator without streams is an operation, whether a column names it or
            // not.
            if *category == Category::DeviceOp {
                return events.count();
            }
            let count_filled = |column: &Values| {
                let count_filled = (0..column.len()).filter(|at| column.get(*at).is_some_and(|text| text > 0));
                u64::try_from(count_filled.count()).unwrap_or(u64::MAX)
            };
            events.column(ColumnId::HloOp).map_or(0, count_filled)
        };
        counts.map(of).sum()
    }
}

impl OperationChoice {
    /// The kind that is meant in a capture; of `Auto` in a capture without any, the first.
    pub(super) fn resolve(self, timeline: &Timeline) -> OperationKind {
        match self {
            Self::CpuOp => OperationKind::CpuOp,
            Self::Nvtx => OperationKind::Nvtx,
            Self::Hlo => OperationKind::Hlo,
            Self::Annotation => OperationKind::Annotation,
            Self::Step => OperationKind::Step,
            Self::Auto => {
                let mut kinds = OperationKind::OF_CAPTURES.into_iter();
                kinds
                    .find(|kind| kind.count(timeline) > 0)
                    .unwrap_or(OperationKind::CpuOp)
            }
        }
    }
}
