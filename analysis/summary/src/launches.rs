//! How much of the GPU work can be followed back to the call that launched it.

use flopwatch_model::{ColumnId, Timeline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Coverage of the join of GPU work to launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launches {
    /// Kernels, whole graphs, copies and memsets whose call is in the capture.
    pub matched: u64,
    /// Those whose call is not.
    pub unmatched: u64,
}

pub(super) fn launches(timeline: &Timeline) -> Launches {
    let mut launches = Launches::default();
    for events in timeline.capture.events.values() {
        let Some(column) = events.column(ColumnId::Launch) else {
            continue;
        };
        for at in 0..column.len() {
            if column.get(at) == Some(u64::from(ColumnId::NO_LAUNCH)) {
                launches.unmatched += 1;
            } else {
                launches.matched += 1;
            }
        }
    }
    launches
}
