//! Strips: the lanes of a row, each of which has levels of detail of its own.

use rayon::prelude::*;

use flopwatch_model::{LodLevel, index};

/// Fewest events that a thread looks through.
const MIN_CHUNK_EVENTS: usize = 1 << 18;

/// The strips of a category that hold events, numbered by row and lane.
///
/// There are at most [`LodLevel::LANES`] per row, so that events that all overlap do not leave each
/// one a strip to itself: the last strip of a row takes the lanes beyond it as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strips {
    /// Per row a bit for each lane that holds events.
    used: Vec<u64>,
    /// Per row the number of its first strip.
    first: Vec<u32>,
    all: Vec<(u32, u32)>,
}

impl Strips {
    /// Of the columns `row`, whose values are below `rows`, and `lane`.
    pub fn new(row: &[u32], lane: &[u32], rows: u32) -> Self {
        let of_chunk = |(row, lane): (&[u32], &[u32])| {
            let mut used = vec![0_u64; index(rows)];
            for (row, lane) in row.iter().zip(lane) {
                if let Some(used) = used.get_mut(index(*row)) {
                    *used |= 1 << gathered(*lane);
                }
            }
            used
        };
        let both = |mut all: Vec<u64>, more: Vec<u64>| {
            for (all, more) in all.iter_mut().zip(more) {
                *all |= more;
            }
            all
        };
        // A chunk has a list of all rows, of which a foreign file may have many.
        let chunk = MIN_CHUNK_EVENTS.max(16 * index(rows));
        let chunks = row.par_chunks(chunk).zip(lane.par_chunks(chunk)).map(of_chunk);
        let used = chunks.reduce_with(both).unwrap_or_else(|| vec![0; index(rows)]);
        let mut first = Vec::with_capacity(used.len());
        let mut all = Vec::new();
        for (row, used) in (0_u32..).zip(&used) {
            first.push(u32::try_from(all.len()).unwrap_or(u32::MAX));
            let lanes = (0..LodLevel::LANES).filter(|lane| used & (1 << lane) != 0);
            all.extend(lanes.map(|lane| (row, lane)));
        }
        Self { used, first, all }
    }

    /// Row and lane of each strip.
    pub fn all(&self) -> &[(u32, u32)] {
        &self.all
    }

    /// The strip of each event of the columns that this was made of.
    pub fn number(&self, row: &[u32], lane: &[u32]) -> Vec<u32> {
        let strip = |(row, lane): (&u32, &u32)| {
            let (row, below) = (index(*row), (1_u64 << gathered(*lane)) - 1);
            let before = self.used.get(row).map_or(0, |used| (used & below).count_ones());
            self.first.get(row).map_or(0, |first| first + before)
        };
        row.par_iter().zip(lane).map(strip).collect()
    }
}

/// The lane whose strip takes the events of `lane`.
pub(super) fn gathered(lane: u32) -> u32 {
    lane.min(LodLevel::LANES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_the_lanes_that_hold_events_and_far_lanes_share_one() {
        let (row, lane) = ([3, 1, 3, 3, 1, 3], [0, 2, 70, 1, 0, 63]);
        let strips = Strips::new(&row, &lane, 5);
        assert_eq!(strips.all(), [(1, 0), (1, 2), (3, 0), (3, 1), (3, 63)]);
        assert_eq!(strips.number(&row, &lane), [2, 1, 4, 3, 0, 4]);
    }
}
