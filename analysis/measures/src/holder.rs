//! Which range, operator or function of a thread holds a call of the same thread.

use std::collections::BTreeMap;

use flopwatch_model::{EventId, EventLinks, Events, Row, RowId, Timeline, Track};

use crate::interval::Interval;

/// A query for the innermost event around a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderQuery {
    /// When it is.
    pub time: Interval,
    /// The row among whose events is searched; see [`row_on`].
    pub row: RowId,
}

/// For each question, the innermost event of its row that begins at or before it and ends at or
/// behind its end. Questions must be sorted by start, and events in the order of a [`Timeline`].
/// Only events that `nests` picks are answers: of those that do not nest the innermost is not
/// defined.
pub fn innermost(events: &Events, nests: impl Fn(usize) -> bool, queries: &[HolderQuery]) -> EventLinks {
    let rows = events.rows_end();
    // Per row the events that have begun and may still hold the next question, the innermost last.
    let mut running: Vec<Vec<EventId>> = vec![Vec::new(); rows];
    let mut next = EventId::all().zip(&events.start_ns).zip(&events.row).peekable();
    let answer = |query: &HolderQuery| {
        while let Some(((event, start), row)) = next.next_if(|((_, start), _)| **start <= query.time.start) {
            let Some(running) = running.get_mut(row.index()).filter(|_| nests(event.index())) else {
                continue;
            };
            while running.pop_if(|last| events.end_ns(last.index()) <= *start).is_some() {}
            running.push(event);
        }
        let running = running.get_mut(query.row.index())?;
        let over = |event: &mut EventId| events.end_ns(event.index()) <= query.time.start;
        while running.pop_if(over).is_some() {}
        let holds = |event: &&EventId| events.end_ns(event.index()) >= query.time.end;
        running.iter().rev().find(holds).copied()
    };
    queries.iter().map(answer).collect()
}

/// What a thread is known by: capture, machine, process and thread.
pub type ThreadKey = (u32, u32, u32, u64);

/// The thread of a row; `None` of a row of a GPU.
pub fn thread_of(row: &Row) -> Option<ThreadKey> {
    Some((row.capture, row.machine, row.process, row.thread?))
}

/// For each row of the timeline the row of the same thread on `track`; `None` where the thread has
/// none.
pub fn row_on(timeline: &Timeline, track: Track) -> Vec<Option<RowId>> {
    let rows = &timeline.capture.rows;
    let on_track = RowId::all().zip(rows).filter(|(_, row)| row.track == track);
    let by_thread: BTreeMap<ThreadKey, RowId> = on_track.filter_map(|(id, row)| Some((thread_of(row)?, id))).collect();
    let found = rows.iter().map(|row| by_thread.get(&thread_of(row)?).copied());
    found.collect()
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Category;

    use super::*;

    #[test]
    fn the_innermost_range_that_holds_all_of_a_call_is_found() {
        let mut trace = Trace::new();
        let ranges = trace.thread(1, 11, Track::Nvtx);
        let others = trace.thread(1, 12, Track::Nvtx);
        let calls = trace.thread(1, 11, Track::CudaApi);
        trace.event(Category::NvtxRange, ranges, "step", 0, 100);
        trace.event(Category::NvtxRange, ranges, "forward", 10, 40);
        trace.event(Category::NvtxRange, others, "other thread", 0, 200);
        let timeline = trace.build();
        let events = &timeline.capture.events[&Category::NvtxRange];
        let row = row_on(&timeline, Track::Nvtx)[calls.index()].unwrap();
        assert_eq!(row, ranges);
        let asked = [(5, 8), (10, 20), (35, 45), (40, 41), (99, 101), (100, 120)];
        let queries = asked.map(|(start, end)| HolderQuery {
            time: Interval::new(start, end),
            row,
        });
        let names: Vec<&str> = innermost(events, |_| true, &queries)
            .iter()
            .map(|found| found.map_or("", |event| events.name_of(event.index())))
            .collect();
        assert_eq!(names, ["step", "forward", "step", "step", "", ""]);
    }
}
