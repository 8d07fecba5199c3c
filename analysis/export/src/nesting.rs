//! Which events share a track: in viewers of traces the slices of a track nest, and one that
//! crosses another's end is drawn wrong or lost. So events that nest stay together, and one that
//! overlaps gets another track.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flopwatch_model::{Category, Events, RowId, RowMajor, Timeline};

/// How many tracks of a row are tried before an event goes by its lane, so that a file of nothing
/// but overlaps is no attack.
const MAX_TRACKS_TRIED: usize = 16;

/// An event in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedEvent<'a> {
    /// Category of the event.
    pub(super) category: Category,
    /// The category's events.
    pub(super) events: &'a Events,
    /// Index of the event among the category's events.
    pub(super) at: usize,
    /// Start in ns.
    pub(super) start_ns: u64,
    /// Length in ns.
    pub(super) duration_ns: u64,
    /// Which track of its row.
    pub(super) track: u32,
}

/// What happens on the tracks of a row, in an order in which every track's own things are in order
/// of time.
#[derive(Debug, Clone, Copy)]
pub(super) enum TrackStep<'a> {
    /// An event begins.
    Begin(PlacedEvent<'a>),
    /// The latest event of a track that has not ended ends.
    End {
        /// Which track of the row.
        track: u32,
        /// When, in ns.
        at_ns: u64,
    },
}

/// The events of a timeline by row.
#[derive(Debug)]
pub(super) struct ByRow<'a> {
    categories: Vec<(Category, &'a Events, RowMajor)>,
    /// Per row: which of `categories` hold events of it, and where.
    rows: BTreeMap<RowId, Vec<(usize, std::ops::Range<usize>)>>,
}

impl<'a> ByRow<'a> {
    /// Of `timeline`, whose events are sorted.
    pub(super) fn new(timeline: &'a Timeline) -> Self {
        let count = timeline.capture.rows.len();
        let mut rows: BTreeMap<RowId, Vec<(usize, std::ops::Range<usize>)>> = BTreeMap::new();
        let mut categories = Vec::new();
        for (number, (category, events)) in timeline.capture.events.iter().enumerate() {
            let by_row = RowMajor::new(&events.row, count);
            for (row, range) in by_row.rows() {
                rows.entry(*row).or_default().push((number, range.clone()));
            }
            categories.push((*category, events, by_row));
        }
        Self { categories, rows }
    }

    /// The rows that hold events.
    pub(super) fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        self.rows.keys().copied()
    }

    /// Goes through the events of `row` and gives each its track, until `each` fails.
    pub(super) fn walk<E>(&self, row: RowId, mut each: impl FnMut(TrackStep<'a>) -> Result<(), E>) -> Result<(), E> {
        let parts = self.rows.get(&row).map(Vec::as_slice).unwrap_or_default();
        let mut parts: Vec<_> = parts
            .iter()
            .filter_map(|(number, range)| {
                let (category, events, by_row) = self.categories.get(*number)?;
                let placed = |at| {
                    Some(PlacedEvent {
                        category: *category,
                        events,
                        at,
                        start_ns: *events.start_ns.get(at)?,
                        duration_ns: *events.duration_ns.get(at)?,
                        track: 0,
                    })
                };
                let spans = by_row.positions(range.clone()).filter_map(placed);
                Some(spans.peekable())
            })
            .collect();
        let mut nest = Nest::default();
        // The first of the earliest: parts come in the order of their categories.
        while let Some((_, at)) = parts
            .iter_mut()
            .enumerate()
            .filter_map(|(at, spans)| {
                spans
                    .peek()
                    .map(|span| ((span.start_ns, Reverse(span.duration_ns)), at))
            })
            .min()
        {
            let Some(mut placed) = parts.get_mut(at).and_then(Iterator::next) else {
                break;
            };
            let end = placed.start_ns.saturating_add(placed.duration_ns);
            let lane = placed.events.lane.get(placed.at).copied().unwrap_or(0);
            placed.track = nest.assign_track(placed.start_ns, end, lane, |track, at_ns| {
                each(TrackStep::End { track, at_ns })
            })?;
            each(TrackStep::Begin(placed))?;
        }
        nest.finish(|track, at_ns| each(TrackStep::End { track, at_ns }))
    }
}

/// The tracks of one row: the ends of what runs on each, the outermost first.
#[derive(Debug, Default)]
struct Nest {
    tracks: BTreeMap<u32, Vec<u64>>,
}

impl Nest {
    /// The track of the next event, in the order of starts and, of equal starts, the longest first.
    /// `ended` is told what has ended on the tracks that were looked at.
    fn assign_track<E>(
        &mut self,
        start: u64,
        end: u64,
        lane: u32,
        mut ended: impl FnMut(u32, u64) -> Result<(), E>,
    ) -> Result<u32, E> {
        for track in (0_u32..).take(MAX_TRACKS_TRIED) {
            let running = self.tracks.entry(track).or_default();
            until(running, start, |at_ns| ended(track, at_ns))?;
            if running.last().is_none_or(|outer| end <= *outer) {
                running.push(end);
                return Ok(track);
            }
        }
        // Events of one lane never overlap.
        let track = lane.saturating_add(u32::try_from(MAX_TRACKS_TRIED).unwrap_or(u32::MAX));
        let running = self.tracks.entry(track).or_default();
        until(running, start, |at_ns| ended(track, at_ns))?;
        running.push(end);
        Ok(track)
    }

    /// Ends what still runs.
    fn finish<E>(self, mut ended: impl FnMut(u32, u64) -> Result<(), E>) -> Result<(), E> {
        for (track, mut running) in self.tracks {
            until(&mut running, u64::MAX, |at_ns| ended(track, at_ns))?;
        }
        Ok(())
    }
}

/// Takes from `running` what has ended by `time`, the innermost first.
fn until<E>(running: &mut Vec<u64>, time: u64, mut ended: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
    while let Some(at_ns) = running.last().copied().filter(|end| *end <= time) {
        running.pop();
        ended(at_ns)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Starts and ends, and the tracks that they get.
    type Case = (&'static [(u64, u64)], &'static [u32]);

    fn tracks(events: &[(u64, u64)]) -> Vec<u32> {
        let mut nest = Nest::default();
        let tracks = events.iter().zip(0..).map(|((start, end), lane)| {
            let placed: Result<u32, Infallible> = nest.assign_track(*start, *end, lane, |_, _| Ok(()));
            placed.unwrap()
        });
        tracks.collect()
    }

    #[test]
    fn what_nests_shares_a_track_and_what_overlaps_does_not() {
        let cases: [Case; 5] = [
            (&[(0, 10), (2, 5), (5, 10)], &[0, 0, 0]),
            (&[(0, 10), (5, 15), (12, 14)], &[0, 1, 0]),
            (&[(0, 4), (4, 8), (8, 8), (8, 9)], &[0, 0, 0, 0]),
            (&[(0, 10), (0, 10), (0, 0)], &[0, 0, 0]),
            (&[(0, 3), (1, 4), (2, 5), (3, 6)], &[0, 1, 2, 0]),
        ];
        for (events, expected) in cases {
            assert_eq!(tracks(events), expected, "{events:?}");
        }
    }

    #[test]
    fn more_overlaps_than_are_tried_go_by_their_lanes() {
        let stairs: Vec<(u64, u64)> = (0..40).map(|at| (at, at + 100)).collect();
        let tracks = tracks(&stairs);
        assert_eq!(tracks[..16], (0..16).collect::<Vec<u32>>());
        assert_eq!(tracks[16..], (32..56).collect::<Vec<u32>>());
    }
}
