//! Which events of a timeline are asked for, and what is said of it.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ArtifactItem;
use crate::gateway::problem::Problem;

/// Which events of a timeline.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineQuery {
    /// Name of the capture; needed where the session has several.
    #[param(max_length = 253)]
    pub(crate) capture: Option<String>,
    /// Only events that end behind this time, in ns from the session's start.
    pub(crate) from: Option<u64>,
    /// Only events that start before this time, in ns from the session's start.
    pub(crate) to: Option<u64>,
    /// Only events of this category, such as `cuda_kernel`.
    #[param(max_length = 64)]
    pub(crate) category: Option<String>,
    /// What the page before gave as `next`.
    pub(crate) after: Option<u64>,
    /// Most events on the page, 1 to 100,000.
    #[param(minimum = 1, maximum = 100_000, default = 10_000)]
    pub(crate) limit: Option<u32>,
}

/// Most events on a page, and the longest name of a category, as the document says.
const MAX_EVENTS: u32 = 100_000;
const MAX_CATEGORY_CHARS: usize = 64;

impl TimelineQuery {
    /// The parameters of the analysis `events`; none are given where the earliest events are asked
    /// for. Numbers are those of 63 bits, as the document says of every 64-bit integer.
    pub(crate) fn parameters(&self) -> Result<Vec<(String, String)>, Problem> {
        let numbers = [self.from, self.to, self.after];
        if numbers
            .into_iter()
            .flatten()
            .any(|number| i64::try_from(number).is_err())
        {
            let bound = "from, to and after must be at most 9223372036854775807";
            return Err(Problem::BadRequest(bound.to_owned()));
        }
        if self.limit.is_some_and(|limit| !(1..=MAX_EVENTS).contains(&limit)) {
            return Err(Problem::BadRequest(format!("limit must be 1 to {MAX_EVENTS}")));
        }
        if self
            .category
            .as_deref()
            .is_some_and(|name| name.chars().count() > MAX_CATEGORY_CHARS)
        {
            let bound = format!("category must have at most {MAX_CATEGORY_CHARS} characters");
            return Err(Problem::BadRequest(bound));
        }
        let text = |value: Option<u64>| value.map(|value| value.to_string());
        let given = [
            ("from_ns", text(self.from)),
            ("to_ns", text(self.to)),
            ("category", self.category.clone()),
            ("after", text(self.after)),
            ("limit", text(self.limit.map(u64::from))),
        ];
        let given = given.into_iter();
        Ok(given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect())
    }
}

/// Whether a timeline can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TimelineState {
    /// It is being made, or its capture has not begun.
    Pending,
    /// It can be fetched.
    Ready,
    /// The capture ended without one.
    Absent,
}

/// The earliest events of a timeline. The agent writes it; here it is described.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its fields are for the document")]
pub(crate) struct TimelineEvents {
    session_id: String,
    /// Length of the window in ns.
    total_duration_ns: u64,
    /// How many events there are, in the document or not.
    total_events: u64,
    /// In order of their start.
    events: Vec<TimelineEvent>,
}

/// An event, with the columns of its category beside these.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its fields are for the document")]
pub(crate) struct TimelineEvent {
    /// Such as `cuda_kernel`.
    category: String,
    /// Name of the event.
    name: String,
    /// Start in ns from the session's start.
    start_ns: u64,
    /// Length in ns.
    duration_ns: u64,
    /// CUDA stream; 0 on the CPU.
    stream: u64,
}

/// Whether a timeline can be fetched.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimelineStatus {
    pub(crate) session_id: String,
    /// Name of the capture; null before the session has one.
    pub(crate) capture: Option<String>,
    pub(crate) status: TimelineState,
    /// The file, when it can be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact: Option<ArtifactItem>,
}
