//! PyTorch's Kineto: what it records beside operators, and for how long.

#![allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in a manifest, as it is in Kineto's configuration"
)]

use flopwatch_model::Category;
use serde::{Deserialize, Serialize};

use crate::schema::KubeSchema;

/// Options of Kineto. Each of the first five makes the program slower while it records, and the trace larger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct KinetoOptions {
    /// Python functions, and the source lines that called operators.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stacks: bool,
    /// Shapes and types of operators' inputs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shapes: bool,
    /// What PyTorch's allocators give out and take back. Not every version says it of captures on demand.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory: bool,
    /// Estimates of operators' floating-point operations.
    #[serde(default, skip_serializing_if = "is_false")]
    pub flops: bool,
    /// Modules that operators belong to, of TorchScript alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub modules: bool,
    /// How many iterations of the training loop are recorded, instead of a length of time. The window ends with
    /// `spec.durationSeconds` all the same, and a program that did not come so far by then gives nothing. An iteration ends
    /// with a step of an optimizer of PyTorch, or of `torch.profiler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub iterations: Option<i32>,
}

impl KinetoOptions {
    /// The categories of the timeline that are recorded of any program; the `cuda_` ones come beside them of one that uses CUDA.
    pub fn records(&self) -> Vec<Category> {
        let always = [Category::CpuOp, Category::Annotation, Category::Step];
        let python = self.stacks.then_some(Category::PythonFunction);
        always.into_iter().chain(python).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}
