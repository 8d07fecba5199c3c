//! The sessions that a schedule makes.

use flopwatch_model::Category;
use serde::{Deserialize, Serialize};

use crate::artifact::Output;
use crate::profiler::ProfilerSpec;
use crate::schema::KubeSchema;
use crate::session::{
    DUMPS_ARE_RAW, MAX_REQUIREMENTS, MetricsSpec, ProfilingSessionSpec, RetentionSpec, TargetSpec,
    default_duration_seconds,
};

/// A session without its target, which is the pod that was drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.profiler.type != 'Ncu'")
        .message("spec.session.profiler.type: Ncu profiles pods that a session makes, and a schedule profiles those that run already"),
    validation = Rule::new(DUMPS_ARE_RAW)
        .message("spec.session.profiler.jax.dumps are published as Raw: add Raw to spec.session.outputs, or leave dumps out"),
)]
pub struct ScheduledSession {
    /// Profiler to use, and its options. The default, `type: Auto`, takes the deepest that is open for the container.
    #[serde(default)]
    pub profiler: ProfilerSpec,
    /// Length of a window in seconds, 1 to 300.
    #[serde(default = "default_duration_seconds")]
    #[schemars(range(min = 1, max = 300))]
    pub duration_seconds: i32,
    /// Categories of the timeline that must each hold events for a capture to succeed. Default: as for a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_REQUIREMENTS), extend("x-kubernetes-list-type" = "set"))]
    pub require: Vec<Category>,
    /// NVML sampling beside the captures.
    #[serde(default)]
    pub metrics: MetricsSpec,
    /// What to publish. Default: the summary alone, which is a few kilobytes.
    #[serde(default = "default_outputs")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub outputs: Vec<Output>,
    /// How long to keep the results, and where.
    #[serde(default)]
    pub retention: RetentionSpec,
}

fn default_outputs() -> Vec<Output> {
    vec![Output::Summary]
}

impl Default for ScheduledSession {
    fn default() -> Self {
        Self {
            profiler: ProfilerSpec::default(),
            duration_seconds: default_duration_seconds(),
            require: Vec::new(),
            metrics: MetricsSpec::default(),
            outputs: default_outputs(),
            retention: RetentionSpec::default(),
        }
    }
}

impl ScheduledSession {
    /// The session of `target` that the schedule asks for, with the defaults of a session for what
    /// schedules leave to it.
    pub fn of(&self, target: TargetSpec) -> ProfilingSessionSpec {
        let Self {
            profiler,
            duration_seconds,
            require,
            metrics,
            outputs,
            retention,
        } = self;
        ProfilingSessionSpec {
            profiler: profiler.clone(),
            duration_seconds: *duration_seconds,
            require: require.clone(),
            metrics: metrics.clone(),
            outputs: outputs.clone(),
            retention: retention.clone(),
            ..ProfilingSessionSpec::of(target)
        }
    }
}
