//! What a window has recorded so far.

use serde::{Deserialize, Serialize};

use super::{CategoryCount, KernelTime};
use crate::schema::KubeSchema;

/// What a window that is open has recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveFigures {
    /// Events by category since the window began; a category that has none is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub categories: Vec<CategoryCount>,
    /// The five kernels with the longest total time among those that were read in the latest second that had any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub latest_kernels: Vec<KernelTime>,
}
