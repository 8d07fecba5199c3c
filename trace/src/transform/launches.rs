//! Joins GPU work to the API call that launched it.

use std::collections::HashMap;

use crate::model::{Capture, Category, ColumnId, Row, Values, index};

/// Correlation ids are unique within a process only: with several processes, a join on the id alone pairs strangers.
type Key = (u32, u32, u32, u32);

fn key(rows: &[Row], row: u32, correlation: u32) -> Option<Key> {
    let row = rows.get(index(row))?;
    (correlation != 0).then_some((row.capture, row.machine, row.process, correlation))
}

/// Fills the column [`ColumnId::Launch`]. One call may launch many kernels (a CUDA graph); work whose call is not in the
/// capture keeps [`ColumnId::NO_LAUNCH`]. Where two calls carry one id, the first one counts.
pub(super) fn join(capture: &mut Capture) {
    let Capture { events, rows, .. } = capture;
    let mut calls: HashMap<Key, u32> = HashMap::new();
    if let Some(api) = events.get(&Category::CudaApi) {
        for (at, (row, correlation)) in (0_u32..).zip(api.row.iter().zip(&api.correlation)) {
            if let Some(key) = key(rows, *row, *correlation) {
                calls.entry(key).or_insert(at);
            }
        }
    }
    for events in events.values_mut() {
        let launches = events.row.iter().zip(&events.correlation).map(|(row, correlation)| {
            let call = key(rows, *row, *correlation).and_then(|key| calls.get(&key).copied());
            call.unwrap_or(ColumnId::NO_LAUNCH)
        });
        let launches: Vec<u32> = launches.collect();
        if let Some(column) = events.column_mut(ColumnId::Launch) {
            *column = Values::U32(launches);
        }
    }
}
