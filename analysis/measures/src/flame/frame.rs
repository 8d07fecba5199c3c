//! Frames of stacks.

use flopwatch_model::Category;
use schemars::JsonSchema;
use serde::Serialize;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// The root: the time of all frames.
    All,
    /// A process, thread, GPU or stream.
    Group,
    /// A step of the training or inference loop.
    Step,
    /// An NVTX range.
    Range,
    /// A range that was marked by other means than NVTX.
    Annotation,
    /// A function of Python.
    Python,
    /// An operator of a framework.
    Operator,
    /// A call of the CUDA API.
    Call,
    /// A function of a sampled stack of calls.
    Function,
    /// A kernel.
    Kernel,
    /// A whole CUDA graph.
    Graph,
    /// A copy or memset.
    Copy,
    /// An operation of an accelerator without streams.
    DeviceOp,
    /// What was summed, or has no stack.
    Rest,
}

impl FrameKind {
    /// Of the events of `category`.
    pub fn of(category: Category) -> Self {
        match category {
            Category::Step => Self::Step,
            Category::NvtxRange => Self::Range,
            Category::Annotation => Self::Annotation,
            Category::PythonFunction => Self::Python,
            Category::CpuOp => Self::Operator,
            Category::CudaApi => Self::Call,
            Category::CpuSample => Self::Function,
            Category::CudaKernel => Self::Kernel,
            Category::CudaGraph => Self::Graph,
            Category::DeviceOp => Self::DeviceOp,
            _ if category.is_gpu_work() => Self::Copy,
            _ => Self::Rest,
        }
    }

    /// For people, in the plural.
    pub const fn label(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Group => "groups",
            Self::Step => "steps",
            Self::Range => "NVTX ranges",
            Self::Annotation => "annotations",
            Self::Python => "Python functions",
            Self::Operator => "operators",
            Self::Call => "CUDA calls",
            Self::Function => "functions",
            Self::Kernel => "kernels",
            Self::Graph => "whole CUDA graphs",
            Self::Copy => "copies and memsets",
            Self::DeviceOp => "device operations",
            Self::Rest => "summed, or without a stack",
        }
    }

    /// Whether it is work of a GPU.
    pub const fn is_gpu_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Graph | Self::Copy | Self::DeviceOp)
    }

    /// Whether programs number such names: the line numbers of functions and the numbers of kernels
    /// tell them apart.
    pub(super) const fn may_be_numbered(self) -> bool {
        matches!(self, Self::Step | Self::Range | Self::Annotation | Self::Operator)
    }
}

/// A frame: equal names of one kind are one frame.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Name of the frame.
    pub name: String,
}

impl Frame {
    /// The file and the line of a function of Python, which Kineto names `file.py(12): function`.
    pub fn source(&self) -> Option<(&str, u32)> {
        if self.kind != FrameKind::Python {
            return None;
        }
        let (file, rest) = self.name.split_once('(')?;
        let (line, _) = rest.split_once("): ")?;
        (!file.is_empty()).then_some((file, line.parse().ok()?))
    }
}
