//! What of the fleet is asked for.

use flopwatch_fleet::GroupBy;
use flopwatch_model::Category;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What makes a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TopBy {
    /// Kernels, by name: time of GPUs.
    Kernels,
    /// NVTX ranges, by name: time of processors. Ranges nest, so that their sum holds the time of
    /// the inner ones more than once.
    Ranges,
    /// Images, as pods name them: time of GPUs in kernels.
    Images,
}

impl TopBy {
    pub(super) const fn group(self) -> GroupBy {
        match self {
            Self::Kernels | Self::Ranges => GroupBy::Name,
            Self::Images => GroupBy::Image,
        }
    }

    pub(super) const fn category(self) -> Category {
        match self {
            Self::Kernels | Self::Images => Category::CudaKernel,
            Self::Ranges => Category::NvtxRange,
        }
    }
}

/// What of the fleet is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TopQuery {
    /// What makes a group.
    pub(crate) by: TopBy,
    /// Captures of this namespace alone; without it the right to list sessions of every namespace
    /// is needed.
    #[param(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", example = "team")]
    pub(crate) namespace: Option<String>,
    /// Windows that began from here on (RFC 3339); default: 24 hours before `until`.
    #[param(format = DateTime)]
    pub(crate) since: Option<String>,
    /// Windows that began before this (RFC 3339), at most 92 days after `since`; default: now.
    #[param(format = DateTime)]
    pub(crate) until: Option<String>,
    /// Most groups, 1 to 500; the rest is one.
    #[param(minimum = 1, maximum = 500, default = 20)]
    pub(crate) limit: Option<u16>,
    /// Whether only captures count that a schedule drew: those that people and alerts asked for are
    /// no sample of the fleet.
    #[serde(default)]
    pub(crate) drawn_only: bool,
}
