//! How a request over HTTP asks to profile: an option that requests can have stands here alone.

use flopwatch_api::artifact::Output;
use flopwatch_api::session::{ProfilingSessionSpec, StartMode};
use flopwatch_model::Category;
use serde::Deserialize;
use utoipa::ToSchema;

/// How to profile; what is left out is as in a ProfilingSession.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunOptions {
    /// When the window opens: `Now`, or `ContainerStart`, which needs a template.
    #[schema(value_type = Option<String>)]
    pub(crate) start: Option<StartMode>,
    /// Length of the window in seconds.
    #[schema(minimum = 1, maximum = 300)]
    pub(crate) duration_seconds: Option<i32>,
    /// How long to wait for targets and a turn, in seconds.
    #[schema(minimum = 1, maximum = 86_400)]
    pub(crate) start_deadline_seconds: Option<i32>,
    /// Categories of the timeline that must hold events for success, such as `cuda_kernel` and
    /// `nvtx_range`.
    #[schema(value_type = Option<Vec<String>>, max_items = 26)]
    pub(crate) require: Option<Vec<Category>>,
    /// What to publish: Timeline, Summary, Raw.
    #[schema(value_type = Option<Vec<String>>, max_items = 3)]
    pub(crate) outputs: Option<Vec<Output>>,
    /// Seconds after its end at which the session and its artifacts are deleted.
    #[schema(minimum = 0, maximum = 31_536_000)]
    pub(crate) ttl_seconds_after_finished: Option<i32>,
}

impl RunOptions {
    /// These options, with those of `other` that are not given.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            start: self.start.or(other.start),
            duration_seconds: self.duration_seconds.or(other.duration_seconds),
            start_deadline_seconds: self.start_deadline_seconds.or(other.start_deadline_seconds),
            require: self.require.or(other.require),
            outputs: self.outputs.or(other.outputs),
            ttl_seconds_after_finished: self.ttl_seconds_after_finished.or(other.ttl_seconds_after_finished),
        }
    }

    /// Sets what is given on the spec of a session; what is not keeps its default.
    pub(crate) fn set_on(self, spec: &mut ProfilingSessionSpec) {
        let Self {
            start,
            duration_seconds,
            start_deadline_seconds,
            require,
            outputs,
            ttl_seconds_after_finished,
        } = self;
        set(&mut spec.start, start);
        set(&mut spec.duration_seconds, duration_seconds);
        set(&mut spec.start_deadline_seconds, start_deadline_seconds);
        set(&mut spec.require, require);
        set(&mut spec.outputs, outputs);
        set(
            &mut spec.retention.ttl_seconds_after_finished,
            ttl_seconds_after_finished,
        );
    }
}

/// Sets a field to what is given for it.
pub(crate) fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}
