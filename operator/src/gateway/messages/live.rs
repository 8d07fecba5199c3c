//! What an open window has recorded so far, as the agent tells it in the capture's status.

use std::collections::BTreeMap;

use flopwatch_api::capture::LiveFigures;
use serde::Serialize;
use utoipa::ToSchema;

/// What an open window has recorded so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Live {
    /// Events of each category since the window began.
    events: BTreeMap<String, i64>,
    /// The five kernels with the longest total time among those that came in the latest second that
    /// had any.
    #[schema(max_items = 5)]
    latest_kernels: Vec<LiveKernel>,
}

/// A kernel that ran of late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LiveKernel {
    /// Its name; of a symbol of C++ the path of the function.
    #[schema(max_length = 256)]
    name: String,
    /// Launches within that second.
    calls: i64,
    /// Time of these together, in ns.
    total_ns: i64,
}

impl Live {
    pub(crate) fn of(figures: &LiveFigures) -> Self {
        let events = figures.categories.iter();
        let kernels = figures.latest_kernels.iter();
        Self {
            events: events.map(|count| (count.category.clone(), count.events)).collect(),
            latest_kernels: kernels
                .map(|kernel| LiveKernel {
                    name: kernel.name.clone(),
                    calls: kernel.calls,
                    total_ns: kernel.total_nanoseconds,
                })
                .collect(),
        }
    }
}
