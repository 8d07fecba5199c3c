//! Nsight Compute: which launches it profiles, and what it collects of each.

mod arguments;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::schema::KubeSchema;

/// Most launches that a session profiles: each is run again once for every pass of its metrics.
pub const MAX_LAUNCHES: i32 = 1000;

/// What is collected of each launch: the section sets of Nsight Compute that every version since 2022 has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum NcuSet {
    /// Speed of light, launch statistics, occupancy: some 9 passes a launch.
    #[default]
    Basic,
    /// Beside it memory and compute workload, and counters per line of source.
    Detailed,
    /// Everything, with warp states and instruction statistics: more than 40 passes a launch.
    Full,
    /// Speed of light and the rooflines of all precisions.
    Roofline,
}

impl NcuSet {
    /// Every set, in the order in which help texts list them.
    pub const ALL: [Self; 4] = [Self::Basic, Self::Detailed, Self::Full, Self::Roofline];

    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The set of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.as_str() == name)
    }
}

/// How a launch is run again for the passes of its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum ReplayMode {
    /// Each launch in place, its memory saved before and restored after. Kernels that wait for each other, as those of NCCL,
    /// hang in it, so a program with NCCL needs a filter.
    #[default]
    Kernel,
    /// The whole program, once for each pass: it must do the same each time.
    Application,
    /// Ranges of launches and calls together: those of `nvtxInclude`, or between `cudaProfilerStart` and `cudaProfilerStop`.
    Range,
}

impl ReplayMode {
    /// Every mode, in the order in which help texts list them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Application, Self::Range];

    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The mode of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Options of Nsight Compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", x_kube(
    validation = Rule::new("(has(self.kernelRegex) ? 1 : 0) + (has(self.kernelNames) ? 1 : 0) + (has(self.topKernelsOf) ? 1 : 0) <= 1")
        .message("spec.profiler.ncu takes one filter of kernels: kernelRegex, kernelNames or topKernelsOf"),
))]
pub struct NcuOptions {
    /// What is collected of each launch.
    #[serde(default)]
    pub set: NcuSet,
    /// Regular expression that the function name of a kernel must hold, without namespaces, templates and arguments. Default:
    /// every kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[ -~]+$"))]
    pub kernel_regex: Option<String>,
    /// Function names of the kernels to profile, without namespaces, templates and arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 256), regex(pattern = r"^[A-Za-z_$][A-Za-z0-9_$]*$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub kernel_names: Vec<String>,
    /// Name of a session of this namespace that has ended: the kernels with the longest total time in its captures are profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 52), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub top_kernels_of: Option<String>,
    /// How many kernels `topKernelsOf` takes.
    #[serde(default = "default_top_kernels")]
    #[schemars(range(min = 1, max = 5))]
    pub top_kernels: i32,
    /// Launches that the filter lets through and that are not profiled, at the program's start.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub launch_skip: i32,
    /// Launches to profile at most. After them the program runs at its own pace.
    #[serde(default = "default_launch_count")]
    #[schemars(range(min = 1, max = MAX_LAUNCHES))]
    pub launch_count: i32,
    /// How a launch is run again for the passes of its metrics.
    #[serde(default)]
    pub replay_mode: ReplayMode,
    /// NVTX ranges whose launches are profiled, in Nsight Compute's words (`domain@range`, or `range/` for one that was
    /// pushed). Default: all launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        inner(length(min = 1, max = 256), regex(pattern = r"^[ -~]+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub nvtx_include: Vec<String>,
}

const fn default_top_kernels() -> i32 {
    5
}

const fn default_launch_count() -> i32 {
    10
}

impl Default for NcuOptions {
    fn default() -> Self {
        Self {
            set: NcuSet::default(),
            kernel_regex: None,
            kernel_names: Vec::new(),
            top_kernels_of: None,
            top_kernels: default_top_kernels(),
            launch_skip: 0,
            launch_count: default_launch_count(),
            replay_mode: ReplayMode::default(),
            nvtx_include: Vec::new(),
        }
    }
}

impl NcuOptions {
    /// Whether only some kernels are profiled.
    pub const fn has_filter(&self) -> bool {
        self.kernel_regex.is_some()
            || !self.kernel_names.is_empty()
            || self.top_kernels_of.is_some()
            || !self.nvtx_include.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_is_the_default() {
        assert_eq!(serde_json::from_str::<NcuOptions>("{}").unwrap(), NcuOptions::default());
    }

    #[test]
    fn a_filter_is_whatever_leaves_kernels_out() {
        let has_filter = |text: &str| serde_json::from_str::<NcuOptions>(text).unwrap().has_filter();
        assert!(
            !has_filter(r#"{"launchCount": 3, "launchSkip": 2}"#),
            "NCCL's may be among those that are left"
        );
        for filter in [
            r#""kernelRegex": "a""#,
            r#""kernelNames": ["a"]"#,
            r#""topKernelsOf": "a""#,
            r#""nvtxInclude": ["a/"]"#,
        ] {
            assert!(has_filter(&format!("{{{filter}}}")), "{filter}");
        }
    }

    #[test]
    fn every_name_is_read_back() {
        for set in NcuSet::ALL {
            assert_eq!(NcuSet::from_name(set.as_str()), Some(set));
        }
        for mode in ReplayMode::ALL {
            assert_eq!(ReplayMode::from_name(mode.as_str()), Some(mode));
        }
    }
}
