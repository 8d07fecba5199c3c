//! Joins GPU work to the API call that launched it.

use std::collections::BTreeMap;

use rayon::prelude::*;

use flopwatch_model::{Capture, Category, ColumnId, Events, Row, RowId, Values, index};

/// Correlation ids are unique within a process only: with several processes, a join on the id alone
/// pairs strangers.
type Process = (u32, u32, u32);

/// The number of each row's process.
fn processes(rows: &[Row]) -> (Vec<usize>, usize) {
    let mut known: BTreeMap<Process, usize> = BTreeMap::new();
    let of_rows = rows
        .iter()
        .map(|row| {
            let next = known.len();
            *known.entry((row.capture, row.machine, row.process)).or_insert(next)
        })
        .collect();
    (of_rows, known.len())
}

/// The calls of one process by correlation id.
#[derive(Debug)]
enum Calls {
    /// Ids follow each other closely, as profilers number them: a table from the least id on.
    Dense { least: u32, calls: Vec<u32> },
    /// Ids and calls, sorted.
    Sparse(Vec<(u32, u32)>),
}

impl Calls {
    /// `found` are ids with calls in the order of their starts: the first call of an id counts.
    fn new(mut found: Vec<(u32, u32)>) -> Self {
        let min = found.iter().map(|(id, _)| *id).min().unwrap_or(0);
        let max = found.iter().map(|(id, _)| *id).max().unwrap_or(0);
        let span = index(max - min).saturating_add(1);
        if span > found.len().saturating_mul(8).saturating_add(1024) {
            found.par_sort_unstable();
            found.dedup_by_key(|(id, _)| *id);
            return Self::Sparse(found);
        }
        let mut calls = vec![ColumnId::NO_LAUNCH; span];
        for (id, call) in found {
            if let Some(slot) = calls.get_mut(index(id - min))
                && *slot == ColumnId::NO_LAUNCH
            {
                *slot = call;
            }
        }
        Self::Dense { least: min, calls }
    }

    fn get(&self, id: u32) -> u32 {
        let call = match self {
            Self::Dense { least: min, calls } => id.checked_sub(*min).and_then(|at| calls.get(index(at))).copied(),
            Self::Sparse(calls) => {
                let at = calls.binary_search_by_key(&id, |(id, _)| *id).ok();
                at.and_then(|at| calls.get(at)).map(|(_, call)| *call)
            }
        };
        call.unwrap_or(ColumnId::NO_LAUNCH)
    }
}

/// Fills the column [`ColumnId::Launch`]. One call may launch many kernels (a CUDA graph); work
/// whose call is not in the capture keeps [`ColumnId::NO_LAUNCH`], as does work without a
/// correlation id, which is 0. Where two calls carry one id, the first one counts.
pub(super) fn join(capture: &mut Capture) {
    let Capture { events, rows, .. } = capture;
    let (of_rows, count) = processes(rows);
    let process = |row: RowId| of_rows.get(row.index()).copied();
    let mut found: Vec<Vec<(u32, u32)>> = vec![Vec::new(); count];
    if let Some(api) = events.get(&Category::CudaApi) {
        for (at, (row, correlation)) in (0_u32..).zip(api.row.iter().zip(&api.correlation)) {
            if *correlation != 0
                && let Some(found) = process(*row).and_then(|process| found.get_mut(process))
            {
                found.push((*correlation, at));
            }
        }
    }
    let calls: Vec<Calls> = found.into_par_iter().map(Calls::new).collect();
    let launch = |(row, correlation): (&RowId, &u32)| {
        let calls = process(*row).and_then(|process| calls.get(process));
        match calls {
            Some(calls) if *correlation != 0 => calls.get(*correlation),
            _ => ColumnId::NO_LAUNCH,
        }
    };
    let work: Vec<&mut Events> = events
        .values_mut()
        .filter(|events| events.column(ColumnId::Launch).is_some())
        .collect();
    for events in work {
        let launches = events
            .row
            .par_iter()
            .with_min_len(1 << 14)
            .zip(&events.correlation)
            .map(launch)
            .collect();
        if let Some(column) = events.column_mut(ColumnId::Launch) {
            *column = Values::U32(launches);
        }
    }
}
