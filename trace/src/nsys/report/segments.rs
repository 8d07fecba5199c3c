//! A table in segments: the rows of each chunk as they were decoded, one after the other.
//!
//! The rows of a chunk are not copied behind those of the chunks before it. Only a segment of few
//! rows takes the next ones in, so that a report of very many small chunks is no table of very many
//! segments.

use std::ops::Range;

use super::rows::Rows;

/// A segment of fewer rows takes the next rows in.
const MIN_SEGMENT_ROWS: usize = 1 << 11;

/// The rows of a table, in their order.
#[derive(Debug)]
pub(super) struct SegmentedTable {
    name: &'static str,
    count: usize,
    /// Bytes of the texts of all segments; a text of several segments counts in each.
    text_bytes: usize,
    segments: Vec<Segment>,
}

/// Rows that lie together.
#[derive(Debug)]
struct Segment {
    /// Rows of the table before this segment.
    begin: usize,
    rows: Rows,
}

/// The rows of one segment that are within a range of rows of the table.
#[derive(Debug, Clone)]
pub(super) struct Part<'t> {
    /// Rows of the segment.
    pub(super) rows: &'t Rows,
    /// Where the range's rows are in the segment.
    pub(super) within: Range<usize>,
    /// Rows of the range before this part.
    pub(super) begin: usize,
}

impl From<Rows> for SegmentedTable {
    fn from(rows: Rows) -> Self {
        let mut segments = Self::new(rows.name());
        segments.push(rows);
        segments
    }
}

impl SegmentedTable {
    /// A table without rows.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            count: 0,
            text_bytes: 0,
            segments: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of the texts of all segments; a text of several segments counts in each.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds rows of the same table behind its own.
    pub(super) fn push(&mut self, mut rows: Rows) {
        let begin = self.count;
        self.count += rows.len();
        match self.segments.last_mut() {
            Some(last) if last.rows.len() < MIN_SEGMENT_ROWS => {
                self.text_bytes -= last.rows.text_bytes();
                last.rows.append(rows);
                self.text_bytes += last.rows.text_bytes();
            }
            _ => {
                self.text_bytes += rows.text_bytes();
                rows.shrink();
                self.segments.push(Segment { begin, rows });
            }
        }
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.segments.iter().any(|segment| segment.rows.has(column))
    }

    /// How many numbers of a column are `limit` or more.
    pub(super) fn count_from(&self, column: &str, limit: u64) -> usize {
        let numbers = self.segments.iter().filter_map(|segment| segment.rows.numbers(column));
        numbers.map(|numbers| numbers.count_from(limit)).sum()
    }

    /// The parts of `range` in their order; rows behind the last one are in none.
    pub(super) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = Part<'_>> {
        let first = self.segments.partition_point(|segment| segment.begin <= range.start);
        let behind = self.segments.get(first.saturating_sub(1)..).unwrap_or_default();
        let overlaps = behind.iter().take_while({
            let end = range.end;
            move |segment| segment.begin < end
        });
        overlaps.map(move |Segment { begin, rows }| {
            let start = range.start.max(*begin);
            let end = range.end.min(begin.saturating_add(rows.len())).max(start);
            Part {
                rows,
                within: start - begin..end - begin,
                begin: start - range.start,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::USAGES;
    use super::*;

    fn numbered(range: Range<u64>) -> Rows {
        let mut rows = Rows::new(&USAGES);
        for number in range {
            rows.push(&[number], &[]);
        }
        rows
    }

    fn first_column(segments: &SegmentedTable, range: Range<usize>) -> Vec<u64> {
        let column = USAGES.numbers().next().unwrap();
        let mut found = vec![u64::MAX; range.len()];
        for part in segments.parts(range) {
            let out = &mut found[part.begin..part.begin + part.within.len()];
            part.rows.numbers(column).unwrap().read_bits(part.within, out);
        }
        found
    }

    #[test]
    fn rows_of_any_range_are_found_wherever_segments_end() {
        let mut segments = SegmentedTable::new(USAGES.name);
        let mut end = 0;
        // Small ones are taken in by the one before.
        for length in [3, 5000, 0, 2048, 1, 9000, 7] {
            segments.push(numbered(end..end + length));
            end += length;
        }
        let count = usize::try_from(end).unwrap();
        assert_eq!((segments.len(), segments.segments.len()), (count, 4));
        for range in [
            0..count,
            0..1,
            2..4,
            5002..5004,
            7000..count,
            count - 1..count,
            100..100,
        ] {
            let expected: Vec<u64> = (0..end).collect();
            assert_eq!(first_column(&segments, range.clone()), expected[range]);
        }
    }
}
