//! What can attach to a container, as the agent's probe found it.

use serde::{Deserialize, Serialize};

use crate::profiler::ProfilerType;
use crate::schema::KubeSchema;

/// One way of profiling a container: open, or closed with the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// The profiler that this entry is about.
    pub profiler: ProfilerType,
    /// Whether it can be used on this container now.
    pub available: bool,
    /// Why, for programs: one word of a closed set.
    #[schemars(length(max = 128))]
    pub reason: String,
    /// Why, and what would open it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub remedy: String,
}
