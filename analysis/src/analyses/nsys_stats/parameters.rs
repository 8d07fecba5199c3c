//! Parameters that several tables have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows that a table has unless more are asked for.
pub(super) const USUAL_ROWS: u32 = 10_000;

/// How kernels are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NsysKernelName {
    /// By the whole name: `void gemm<float>(float*)`.
    #[default]
    Demangled,
    /// By the name without templates and arguments, `gemm`; nsys's `:base`. It is made of the whole
    /// name where the source does not say it.
    Base,
    /// By the symbol in the program, `_Z4gemmIfEvPf`; nsys's `:mangled`. A kernel without one keeps
    /// its whole name.
    Mangled,
}

/// Parameters of tables of `nsys stats` that hold no kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NsysParams {
    /// Most rows in the result, the first ones in the table's order.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub limit: u32,
}

impl Default for NsysParams {
    fn default() -> Self {
        Self { limit: USUAL_ROWS }
    }
}

/// Parameters of tables of `nsys stats` that name kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NsysKernelParams {
    /// How kernels are called: nsys's `:base` and `:mangled`.
    pub name: NsysKernelName,
    /// Whether the name of the innermost NVTX range around a kernel's launch stands before the
    /// kernel's, as in `step/gemm`: nsys's `:nvtx-name`.
    pub nvtx_name: bool,
    /// Most rows in the result, the first ones in the table's order.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub limit: u32,
}

impl Default for NsysKernelParams {
    fn default() -> Self {
        Self {
            name: NsysKernelName::default(),
            nvtx_name: false,
            limit: USUAL_ROWS,
        }
    }
}

/// Parameters of `nvtx_kern_sum`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NsysRangeKernelParams {
    /// How kernels are called: nsys's `:base` and `:mangled`.
    pub name: NsysKernelName,
    /// Most rows in the result, the first ones in the table's order.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub limit: u32,
}

impl Default for NsysRangeKernelParams {
    fn default() -> Self {
        Self {
            name: NsysKernelName::default(),
            limit: USUAL_ROWS,
        }
    }
}
